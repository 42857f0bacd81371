"""The command `show`: what it prints at three widths, on a terminal, into a pipe, and as JSON.

The golden files are written anew like those of the other commands, then read as a diff:

    CELLWRIGHT_TEST_GOLDEN=write ./dev test tests/unit/cli/test_show.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from cellwright.workspace import status
from cellwright.workspace.verbs import reading
from tests.unit.cli import samples
from tests.unit.cli import show_samples as make
from tests.unit.cli.calling import call, succeed
from tests.unit.cli.show_rendering import SGR

GOLDEN = Path(__file__).parent / "golden"
WRITES = os.environ.get("CELLWRIGHT_TEST_GOLDEN") == "write"
WIDTHS = (60, 100, 200)


@pytest.fixture
def sales(folder: Path) -> Path:
    path = folder / "sales.ipynb"
    path.write_bytes(make.everything())
    return path


def golden(name: str, text: str) -> str:
    """What a golden file holds, after writing it if that was asked for."""
    path = GOLDEN / name
    if WRITES:
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


# -- what it looks like -------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.usefixtures("sales")
def test_a_notebook_looks_as_it_did(width: int) -> None:
    text = succeed("show", "sales.ipynb", "--width", str(width)).text
    assert text == golden(f"show-{width}.txt", text)


@pytest.mark.parametrize("width", [60, 61, 79, 120, 200])
@pytest.mark.usefixtures("sales")
def test_no_line_is_wider_than_asked_for(width: int) -> None:
    for flags in ([], ["--expanded"]):
        text = succeed("show", "sales.ipynb", "--width", str(width), *flags).text
        assert max(map(cell_len, text.splitlines())) == width  # the lines right of the heads


@pytest.mark.usefixtures("sales")
def test_json_has_cells_with_their_outputs_in_short() -> None:
    data = succeed("show", "sales.ipynb", "--json").data
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    assert text == golden("show.json", text)


@pytest.mark.usefixtures("sales")
def test_json_of_several_notebooks_is_a_list_of_them() -> None:
    one = succeed("show", "sales.ipynb", "--json", "--cells", "2").data
    two = succeed("show", "sales.ipynb", "nb.ipynb", "--json", "--cells", "2").data
    assert list(two) == ["notebooks"]
    assert two["notebooks"][0] == one
    assert [book["path"] for book in two["notebooks"]] == ["sales.ipynb", "nb.ipynb"]


@pytest.mark.usefixtures("sales")
def test_json_is_whole_when_expanded_and_has_no_outputs_when_not_wanted() -> None:
    short = succeed("show", "sales.ipynb", "--json", "--cells", "3").data["cells"][0]
    whole = succeed("show", "sales.ipynb", "--json", "--cells", "3", "--expanded").data["cells"][0]
    none = succeed("show", "sales.ipynb", "--json", "--cells", "3", "--no-outputs").data["cells"][0]
    assert short["outputs"][0]["hidden"] == {"lines": 115}
    assert whole["outputs"][0]["hidden"] == {}
    assert whole["outputs"][0]["text"].count("\n") == 129
    assert none["outputs"] == []


# -- what is asked for --------------------------------------------------------------------------


@pytest.mark.usefixtures("sales")
def test_cells_are_chosen_by_id_handle_and_index() -> None:
    text = succeed("show", "sales.ipynb", "--cells", "cell05,cell-2", "--cells=-1").text
    heads = [line.split()[:2] for line in text.splitlines() if line.endswith("──")]
    assert heads == [["5", "cell05"], ["2", "cell02"], ["10", "cell10"]]


@pytest.mark.usefixtures("sales")
def test_an_unknown_cell_is_an_error() -> None:
    answer = call("show", "sales.ipynb", "--cells", "nowhere")
    assert answer.code == 3
    assert answer.text == ""
    assert (
        call("show", "sales.ipynb", "--cells", "9,99", "--json").error["code"] == "CELL_NOT_FOUND"
    )


@pytest.mark.usefixtures("sales")
def test_outputs_can_be_left_out() -> None:
    text = succeed("show", "sales.ipynb", "--no-outputs").text
    assert "│" not in text.partition("mystery")[0]
    assert "load()" in text


@pytest.mark.usefixtures("sales")
def test_several_notebooks_each_have_a_heading() -> None:
    text = succeed("show", "sales.ipynb", "nb.ipynb").text
    assert text.startswith("sales.ipynb  11 cells")
    assert "\n\n\nnb.ipynb  " in text


@pytest.mark.usefixtures("sales")
def test_a_missing_notebook_does_not_keep_the_others_from_being_shown() -> None:
    answer = call("show", "gone.ipynb", "sales.ipynb")
    assert answer.code == 3
    assert "gone.ipynb" in answer.err
    assert answer.text.lstrip().startswith("sales.ipynb")
    assert call("show", "gone.ipynb").text == ""


def test_a_notebook_can_come_from_stdin(folder: Path) -> None:
    del folder
    text = succeed("show", "-", stdin=make.everything()).text
    assert text.startswith("stdin  11 cells")
    assert succeed("show", "-", "--json", stdin=make.everything()).data["path"] == "-"


def test_an_old_notebook_is_shown_by_handles(folder: Path) -> None:
    (folder / "old.ipynb").write_bytes(make.notebook([make.code("x = 1")], {}, minor=2))
    assert " 0  cell-0  code [1]  ✓ ok ──" in succeed("show", "old.ipynb").text


def test_an_empty_notebook_is_only_a_heading(folder: Path) -> None:
    (folder / "empty.ipynb").write_bytes(make.notebook([], {}))
    assert succeed("show", "empty.ipynb").text == "empty.ipynb  0 cells · nbformat 4.5\n"


@pytest.mark.parametrize("flag", [["--width", "5"], ["--images", "ascii"], []])
def test_wrong_usage_is_told(flag: list[str], folder: Path) -> None:
    del folder
    words = ["nb.ipynb", *flag] if flag else []
    assert call("show", *words).code == 2


# -- where it goes ------------------------------------------------------------------------------


@pytest.mark.usefixtures("sales")
def test_a_pipe_gets_plain_text_of_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = succeed("show", "sales.ipynb").text
    assert "\x1b" not in text
    assert "▀" not in text
    assert max(map(cell_len, text.splitlines())) == 80
    monkeypatch.setenv("COLUMNS", "66")
    assert max(map(cell_len, succeed("show", "sales.ipynb").text.splitlines())) == 66


@pytest.mark.usefixtures("sales")
def test_colours_can_be_forced_and_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "3")
    colored = succeed("show", "sales.ipynb").text
    assert "\x1b[36m" in colored
    assert "▀" in colored
    assert "\x1b" not in SGR.sub("", colored)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in succeed("show", "sales.ipynb", "--images", "blocks").text


@pytest.mark.usefixtures("sales")
def test_colours_change_nothing_but_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = succeed("show", "sales.ipynb").text
    monkeypatch.setenv("FORCE_COLOR", "3")
    colored = succeed("show", "sales.ipynb", "--images", "none").text
    # Code within a line of prose has a colour or its signs.
    assert SGR.sub("", colored) == plain.replace("`pandas`", "pandas")


def test_the_first_cells_are_shown_before_the_rest_is_described(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "long.ipynb"
    path.write_bytes(samples.write(*(samples.code(f"c{n}", f"x = {n}") for n in range(200))))
    asked: list[int | None] = []
    describe = status.describe_notebook

    def count(*args: Any, cells: Any = None, **options: Any) -> Any:
        asked.append(None if cells is None else len(cells))
        return describe(*args, cells=cells, **options)

    monkeypatch.setattr(reading, "describe_notebook", count)
    text = succeed("show", "long.ipynb").text
    assert "c199" in text
    assert asked == [50, None]
    asked.clear()
    succeed("show", "long.ipynb", "--cells", "190,191")
    assert asked == [2]
