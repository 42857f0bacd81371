"""Commands on several notebooks, patterns and stdin; scripts; history under earlier names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cellwright import read
from cellwright.cli.commands.history import _log_row, _stale_row
from cellwright.document.change import CellChange
from cellwright.journal.history import Entry
from cellwright.workspace.api.answers import CellStaleness
from tests.unit.cli import samples
from tests.unit.cli.calling import call, succeed

if TYPE_CHECKING:
    from pathlib import Path

OTHER = samples.write(samples.code("a", "x = 1", samples.STREAM, count=1))


@pytest.fixture(autouse=True)
def other(folder: Path) -> Path:
    """A second notebook beside `nb.ipynb`, and one that Jupyter keeps for itself."""
    (folder / "deep" / ".ipynb_checkpoints").mkdir(parents=True)
    (folder / "deep" / ".ipynb_checkpoints" / "x.ipynb").write_bytes(OTHER)
    path = folder / "deep" / "other.ipynb"
    path.write_bytes(OTHER)
    return path


def test_several_notebooks_are_read_each_below_its_name() -> None:
    text = succeed("read", "nb.ipynb", "deep/other.ipynb").text
    assert text.startswith("==> nb.ipynb <==\n# %% [markdown] cell:0\n# Sales\n")
    assert text.endswith("as is\n\n==> deep/other.ipynb <==\n# %% [code] cell:0\nx = 1\n")
    found = succeed("read", "**/*.ipynb", "--json").data["notebooks"]
    assert [each["path"] for each in found] == ["deep/other.ipynb", "nb.ipynb"]
    assert call("read", "no*.ipynb").code == 2


def test_one_that_cannot_be_read_does_not_hide_the_others(folder: Path) -> None:
    (folder / "bad.ipynb").write_bytes(b"{")
    answer = call("read", "bad.ipynb", "deep/other.ipynb")
    assert answer.code == 3
    assert "bad.ipynb" in answer.err
    assert "x = 1" in answer.text


def test_a_notebook_on_stdin_is_read_and_compared(folder: Path) -> None:
    assert succeed("read", "-", stdin=OTHER).text == "# %% [code] cell:0\nx = 1\n"
    assert succeed("read", "-", "--json", stdin=OTHER).data["cells"][0]["id"] == "a"
    (folder / "new.ipynb").write_bytes(OTHER.replace(b"x = 1", b"x = 2"))
    assert "-x = 1\n+x = 2\n" in succeed("diff", "-", "new.ipynb", stdin=OTHER).text
    assert "-x = 2\n+x = 1\n" in succeed("diff", "new.ipynb", "-", stdin=OTHER).text


def test_outputs_of_several_notebooks_are_cleared(other: Path) -> None:
    succeed("edit", "nb.ipynb", "deep/*.ipynb", "clear-outputs")
    assert b"42\\n" not in other.read_bytes()
    assert not any(cell.outputs for cell in read("nb.ipynb").cells if cell.type == "code")
    succeed("undo", "nb.ipynb")
    assert call("edit", "nb.ipynb", "deep/other.ipynb", "delete", "0").code == 2
    succeed("edit", "nb.ipynb", "replace", "load", "x = 1")


def test_logs_and_diffs_of_several_notebooks(folder: Path) -> None:
    for name in ("nb.ipynb", "deep/other.ipynb"):
        succeed("edit", name, "insert", "y = 2")
    text = succeed("log", "nb.ipynb", "deep/other.ipynb").text
    assert text.count("==> ") == 2
    assert text.count("insert") >= 2
    assert succeed("diff", "*.ipynb").text.count("+y = 2") == 1
    (folder / "third.ipynb").write_bytes(OTHER)
    succeed("edit", "third.ipynb", "insert", "y = 2")
    text = succeed("diff", "nb.ipynb", "deep/other.ipynb", "third.ipynb").text
    assert text.count("+y = 2") == 3


def test_several_notebooks_are_upgraded_by_a_pattern(folder: Path) -> None:
    for name in ("old1.ipynb", "old2.ipynb"):
        (folder / name).write_bytes(samples.write(samples.code(None, "x"), minor=4))
    succeed("upgrade", "old*.ipynb")
    assert [read(name).version for name in ("old1.ipynb", "old2.ipynb")] == ["4.5", "4.5"]


# --- Earlier names -------------------------------------------------------------------------------


def test_the_log_of_a_renamed_notebook_follows_it_if_asked(folder: Path) -> None:
    succeed("edit", "nb.ipynb", "replace", "load", "total = 1")
    (folder / "nb.ipynb").rename(folder / "renamed.ipynb")
    answer = succeed("log", "renamed.ipynb")
    assert answer.text == ""
    assert "--follow" in answer.err
    (first,) = succeed("log", "renamed.ipynb", "--follow", "--json").data["entries"]
    assert first["path"] == "nb.ipynb"
    succeed("edit", "renamed.ipynb", "replace", "load", "total = 2")
    (folder / "renamed.ipynb").rename(folder / "again.ipynb")
    entries = succeed("log", "again.ipynb", "--follow", "--json").data["entries"]
    assert [entry.get("path") for entry in entries] == ["renamed.ipynb", "nb.ipynb"]
    assert "[nb.ipynb]" in succeed("log", "again.ipynb", "--follow").text
    assert len(succeed("log", "again.ipynb", "--follow", "-n", "1", "--json").data["entries"]) == 1


def test_a_copy_beside_its_original_is_no_earlier_name(folder: Path) -> None:
    succeed("edit", "nb.ipynb", "replace", "load", "total = 1")
    (folder / "copy.ipynb").write_bytes((folder / "nb.ipynb").read_bytes())
    assert succeed("log", "copy.ipynb", "--follow", "--json").data["entries"] == []


# --- The width of a terminal ---------------------------------------------------------------------


def test_rows_of_log_and_stale_fit_a_terminal_and_are_whole_in_a_pipe() -> None:
    cells = tuple(CellChange("edited", f"a-long-name-{n}", "code", n, n) for n in range(4))
    entry = Entry(
        id="0a1b2c3d",
        number=1,
        kind="edit",
        actor="mcp:somebody",
        label="replace",
        when="2026-05-31T12:00:00.000Z",
        before="",
        after="",
        cells=cells,
    )
    assert len(_log_row([entry], 80)) == 81
    assert _log_row([entry], 80).endswith("…\n")
    assert "a-long-name-3" in _log_row([entry], None)
    why = "It uses `total`, which cell load has defined anew since this cell ran the last time."
    row = CellStaleness(1, "sum", "stale", why, [], [])
    assert max(map(len, _stale_row(row, 80).splitlines())) <= 80
    assert "".join(_stale_row(row, 80).split()) == "".join(_stale_row(row, None).split())
    assert why in _stale_row(row, None)


# --- Scripts in the percent format ---------------------------------------------------------------


def test_a_notebook_and_its_script_are_kept_in_step(folder: Path) -> None:
    succeed("sync", "nb.ipynb", "nb.py")
    script = folder / "nb.py"
    text = script.read_text()
    assert '\n# %% [markdown] id="intro"\n# # Sales\n#\n# What we sold.\n\n# %% id="load"\n' in text
    before = (folder / "nb.ipynb").read_bytes()
    assert "the same already" in succeed("sync", "nb.ipynb", "nb.py").err
    assert (script.read_text(), (folder / "nb.ipynb").read_bytes()) == (text, before)
    # Both sides change, each another cell.
    script.write_text(
        text.replace("total = 42", "total = 43").replace("# not yet run", "%pip list")
    )
    succeed("edit", "nb.ipynb", "replace", "plot", "z")
    succeed("sync", "nb.ipynb", "nb.py")
    sources = {cell.id: cell.source for cell in read("nb.ipynb").cells}
    assert (sources["load"], sources["plot"]) == ("total = 43\nprint(total)", "z")
    assert sources["later"] == "%pip list"
    assert "\n# %pip list\n" in script.read_text()
    assert '# %% id="plot"\nz\n' in script.read_text()
    assert read("nb.ipynb").cell("load").outputs  # they stay
    # Both sides change one cell.
    script.write_text(script.read_text().replace("\nz\n", "\nfrom the script\n"))
    succeed("edit", "nb.ipynb", "replace", "plot", "from the notebook")
    answer = call("sync", "nb.ipynb", "nb.py", "--json")
    assert (answer.code, answer.error["code"]) == (6, "CONFLICT")


def test_a_script_of_another_program_becomes_a_notebook(folder: Path) -> None:
    text = 'import os\n\n# %% [markdown]\n"""\n# Title\n"""\n\n# %% tags=["a"]\nx = 1\n\n\n'
    (folder / "made.py").write_text(text)
    succeed("write", "made.ipynb", "--percent", "--from", "made.py")
    cells = read("made.ipynb").cells
    told = [(cell.type, cell.source) for cell in cells]
    assert told == [("code", "import os"), ("markdown", "# Title"), ("code", "x = 1")]
    assert cells[2].metadata == {"tags": ["a"]}
    script = succeed("read", "made.ipynb", "--percent").text
    assert json.loads(script.partition("id=")[2].split()[0]) == cells[0].id
    edited = script.replace('tags=["a"]', 'tags=["b"]').replace("x = 1", "x = 2")
    succeed("write", "made.ipynb", "--percent", stdin=edited)
    assert read("made.ipynb").cells[2].metadata == {"tags": ["b"]}
    assert read("made.ipynb").cells[2].id == cells[2].id
    wrong = succeed("read", "made.ipynb", "--percent").text.replace('tags=["b"]', "tags=[b")
    answer = call("write", "made.ipynb", "--percent", "--json", stdin=wrong)
    assert (answer.code, answer.error["code"]) == (3, "INVALID_TEXT")


def test_a_notebook_without_ids_finds_its_cells_by_their_sources(folder: Path) -> None:
    old = [samples.code(None, source, samples.STREAM) for source in ("a", "b", "c")]
    (folder / "old.ipynb").write_bytes(samples.write(*old, minor=4))
    script = succeed("read", "old.ipynb", "--percent").text
    assert "id=" not in script
    succeed("write", "old.ipynb", "--percent", stdin=script.replace("\nb\n", "\nB\n"))
    cells = read("old.ipynb").cells
    assert [cell.source for cell in cells] == ["a", "B", "c"]
    assert all(cell.outputs for cell in cells)
