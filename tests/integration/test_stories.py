"""Stories of people at a terminal and their helpers, as processes on real files."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright import Workspace
from tests.conftest import require_tool
from tests.property.checks import assert_only_cell_changed
from tests.unit.cli import samples
from tests.unit.cli.calling import call, process, succeed

if TYPE_CHECKING:
    from cellwright import Book

NAME = "nb.ipynb"
STYLES = {
    "as Jupyter writes": samples.SALES,
    "minified": samples.write(*json.loads(samples.SALES)["cells"], indent=None),
    "four spaces and CRLF": samples.write(*json.loads(samples.SALES)["cells"], indent=4).replace(
        b"\n", b"\r\n"
    ),
    "a BOM and no newline at the end": b"\xef\xbb\xbf" + samples.SALES.rstrip(b"\n"),
    "no ids": samples.write(
        *({k: v for k, v in cell.items() if k != "id"} for cell in json.loads(samples.SALES)["cells"]),
        minor=4,
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "ada")
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / NAME).write_bytes(samples.SALES)
    return tmp_path


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / NAME


@pytest.fixture
def journal(places: Path) -> Path:
    """Where the journal will be."""
    return places / "state" / "cellwright" / "journal.sqlite3"


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line in a shell in which `cellwright` is the command."""
    ours = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{ours}{os.pathsep}{os.environ['PATH']}"}
    words = [require_tool("sh"), "-c", line]
    return subprocess.run(words, env=env, capture_output=True, timeout=100, check=False)


def outside(path: Path, *edits: dict[str, Any]) -> None:
    """Change a notebook as a program would that knows nothing of us."""
    notebook = cellwright.Notebook(path.read_bytes())
    notebook.apply(edits)
    path.write_bytes(notebook.to_bytes())


def revision(name: str = NAME) -> str:
    found: str = succeed("read", name, "--json").data["revision"]
    return found


def log() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = succeed("log", NAME, "--json").data["entries"]
    return entries


# --- The text view -------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
def test_sed_changes_only_the_bytes_of_the_cell_it_touched(style: str, path: Path) -> None:
    """The whole point: `read | sed | write` is an edit of one cell."""
    path.write_bytes(STYLES[style])
    done = shell(
        f"cellwright read {NAME} | sed 's/total = 42/total = 43/' | cellwright write {NAME}"
    )
    assert (done.returncode, done.stdout) == (0, b"")
    after = path.read_bytes()
    assert_only_cell_changed(STYLES[style], after, 1)
    assert b"total = 43" in after
    assert b"42\\n" in after, "outputs stay"


@pytest.mark.parametrize("style", STYLES)
def test_writing_back_what_was_read_touches_nothing(style: str, path: Path) -> None:
    path.write_bytes(STYLES[style])
    before = path.stat()
    done = shell(f"cellwright read {NAME} | cellwright write {NAME}")
    assert done.stderr == b"Nothing changed\n"
    after = path.stat()
    assert path.read_bytes() == STYLES[style]
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_with_a_stale_base_a_change_elsewhere_is_merged(path: Path) -> None:
    base = revision()
    text = process("read", NAME).text
    outside(path, {"op": "insert", "source": "theirs", "id": "theirs", "at": 0})
    outside(path, {"op": "replace", "cell": "results", "source": "## Theirs"})
    mine = text.replace("total = 42", "total = 43")
    answer = process("write", NAME, "--base", base, "--json", stdin=mine)
    assert [cell["handle"] for cell in answer.data["cells"]] == ["load"]
    cells = succeed("read", NAME, "--json").data["cells"]
    assert [cell["id"] for cell in cells[:3]] == ["theirs", "intro", "load"]
    assert cells[2]["source"] == "total = 43\nprint(total)"
    assert cells[4]["source"] == "## Theirs"


def test_with_a_stale_base_a_change_of_the_same_cell_is_a_conflict_that_shows_both(
    path: Path,
) -> None:
    base = revision()
    text = process("read", NAME).text
    outside(path, {"op": "replace", "cell": "load", "source": "total = 'theirs'"})
    before = path.read_bytes()
    mine = text.replace("total = 42", "total = 'mine'")

    answer = process("write", NAME, "--base", base, stdin=mine)

    assert answer.code == 6
    assert answer.out == b""
    assert answer.err.startswith("error: ")
    assert "cell load" in answer.err
    assert "total = 'theirs'" in answer.err
    assert "total = 'mine'" in answer.err
    assert path.read_bytes() == before
    error = process("write", NAME, "--base", base, "--json", stdin=mine).error
    assert error["code"] == "CONFLICT"
    [cell] = error["cells"]
    assert cell["handle"] == "load"
    assert cell["base"] in (None, "total = 42\nprint(total)")
    assert cell["current"] == "total = 'theirs'"
    assert cell["other"] == "total = 'mine'\nprint(total)"


def test_a_base_that_nobody_remembers_is_refused(path: Path) -> None:
    text = process("read", NAME).text
    answer = process("write", NAME, "--base", "feedfeedfeed", stdin=text.replace("42", "43"))
    assert answer.code == 6
    assert "feedfeedfeed" in answer.err
    assert path.read_bytes() == samples.SALES


def test_a_base_is_remembered_across_processes_and_many_changes(path: Path) -> None:
    base = revision()
    for number in range(5):
        succeed("edit", NAME, "replace", "sum", f"{number}")
        revision()
    answer = process("edit", NAME, "replace", "1", "mine", "--base", base)
    assert answer.code == 0
    assert json.loads(path.read_bytes())["cells"][1]["source"] == ["mine"]
    refused = process("edit", NAME, "replace", "sum", "mine", "--base", base)
    assert refused.code == 6


def test_text_for_a_missing_notebook_makes_one(folder: Path) -> None:
    done = shell(
        "printf '# %%%% [markdown]\\n# New\\n# %%%% [code]\\nx = 1\\n' | cellwright write made.ipynb"
    )
    assert done.returncode == 0
    made = json.loads((folder / "made.ipynb").read_bytes())
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert [(cell["cell_type"], cell["source"]) for cell in made["cells"]] == [
        ("markdown", ["# New"]),
        ("code", ["x = 1"]),
    ]
    assert succeed("log", "made.ipynb", "--json").data["entries"][0]["kind"] == "create"


def test_a_dry_run_shows_the_diff_and_changes_nothing(path: Path, folder: Path) -> None:
    text = process("read", NAME).text.replace("total = 42", "total = 43")
    answer = process("write", NAME, "--dry-run", "--backup", stdin=text)
    assert answer.code == 0
    assert answer.text.splitlines()[2:] == [
        "@@ cell load (code, index 1) edited @@",
        "-total = 42",
        "+total = 43",
        " print(total)",
    ]
    assert path.read_bytes() == samples.SALES
    assert [item.name for item in folder.iterdir()] == [NAME]
    assert log() == []


def test_a_backup_is_a_copy_beside_the_file(folder: Path) -> None:
    for command in (
        f"cellwright edit {NAME} delete notes --backup",
        f"cellwright read {NAME} | sed s/42/43/ | cellwright write {NAME} --backup",
    ):
        assert shell(command).returncode == 0
    assert (folder / "nb.backup.ipynb").read_bytes() == samples.SALES
    assert b"as is" not in (folder / "nb.backup-2.ipynb").read_bytes()
    assert b"total = 42" in (folder / "nb.backup-2.ipynb").read_bytes()


def test_a_large_notebook_is_read_in_parts(folder: Path) -> None:
    cells = [samples.markdown("top", "# Top")]
    for number in range(300):
        cells += [
            samples.markdown(f"h{number}", f"## Part {number}\n\nWords."),
            samples.code(f"c{number}", "\n".join(f"x{i} = {number}" for i in range(16))),
        ]
    (folder / "large.ipynb").write_bytes(samples.write(*cells))
    rows = process("read", "large.ipynb:outline").text.splitlines()
    row = next(row for row in rows if row.endswith("## Part 123"))
    lines = row.split()[0]
    first, last = map(int, lines.split("-"))
    section = process("read", "large.ipynb:section=Part 123").text.splitlines()
    assert len(section) == last - first + 1 == 21
    assert process("read", f"large.ipynb:{lines}").text.splitlines() == section
    assert section[1] == "## Part 123"
    assert section[-1] == "x15 = 123"


# --- Undo ----------------------------------------------------------------------------------------


def test_undo_and_redo_work_across_processes(path: Path) -> None:
    process("edit", NAME, "replace", "load", "x", "--clear-outputs")
    cleared = path.read_bytes()
    assert samples.STREAM["text"][0].strip().encode() not in cleared.split(b'"sum"')[0]
    process("edit", NAME, "delete", "plot")
    deleted = path.read_bytes()

    assert process("undo", NAME).code == 0
    assert path.read_bytes() == cleared
    assert process("undo", NAME).code == 0
    assert path.read_bytes() == samples.SALES, "outputs are back, to the byte"
    nothing = process("undo", NAME, "--json")
    assert (nothing.code, nothing.error["code"]) == (3, "NOTHING_TO_UNDO")

    assert process("redo", NAME).code == 0
    assert path.read_bytes() == cleared
    assert process("redo", NAME).code == 0
    assert path.read_bytes() == deleted
    assert [entry["kind"] for entry in log()] == ["redo", "redo", "undo", "undo", "edit", "edit"]


def test_a_person_takes_back_their_own_change_and_not_the_agents(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process("edit", NAME, "replace", "load", "ada")
    with Workspace(folder, actor="mcp:agent") as agent:
        agent.open(NAME).edit([{"op": "replace", "cell": "sum", "source": "agent"}])
    monkeypatch.setenv("LOGNAME", "bob")
    process("edit", NAME, "replace", "results", "bob")

    monkeypatch.setenv("LOGNAME", "ada")
    assert process("undo", NAME).code == 0
    sources = [cell["source"] for cell in succeed("read", NAME, "--json").data["cells"]]
    assert sources[1:4] == ["total = 42\nprint(total)", "agent", "bob"]
    assert process("undo", NAME).code == 3, "ada has no other change"
    assert [entry["actor"] for entry in log()] == ["cli:ada", "cli:bob", "mcp:agent", "cli:ada"]

    theirs = log()[2]["id"]
    assert process("undo", NAME, theirs).code == 0, "any change can be taken back by its id"
    with Workspace(folder, actor="mcp:agent") as agent, pytest.raises(cellwright.CellwrightError):
        agent.open(NAME).undo()


def test_undo_is_refused_when_the_cell_changed_since(path: Path) -> None:
    process("edit", NAME, "replace", "sum", "mine")
    outside(path, {"op": "replace", "cell": "sum", "source": "theirs"})
    before = path.read_bytes()
    answer = process("undo", NAME)
    assert answer.code == 6
    assert "cell sum" in answer.err
    assert "theirs" in answer.err
    assert path.read_bytes() == before
    outside(path, {"op": "replace", "cell": "sum", "source": "mine"})
    assert process("undo", NAME).code == 0, "back as it was, it can be undone"


def test_undo_looks_at_sources_and_never_at_outputs_and_says_what_it_cannot_undo(
    path: Path,
) -> None:
    """The cell was run meanwhile: that is no reason to refuse, and its first outputs come back."""
    process("edit", NAME, "replace", "sum", "total + 1")
    value = json.loads(path.read_bytes())
    value["cells"][2] |= {"outputs": [samples.STREAM] * 3, "execution_count": 99}
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    answer = process("undo", NAME)
    assert answer.code == 0
    assert "kernel are not undone" in answer.err
    assert json.loads(path.read_bytes()) == json.loads(samples.SALES)


def random_edit(rng: random.Random, book: Book, number: int) -> list[dict[str, Any]]:
    """One or two edits of any kind that this notebook allows."""
    cells = book.read().cells
    edits: list[dict[str, Any]] = []
    for part in range(rng.choice([1, 1, 2])):
        kinds = ["insert", "set_metadata", "clear_outputs"]
        if cells:
            kinds += ["replace", "replace", "delete", "move", "set_type", "metadata", "split"]
        if len(cells) > 1:
            kinds.append("merge")
        kind = rng.choice(kinds)
        cell = rng.randrange(len(cells)) if cells else 0
        source = f"edit {number}.{part}\n" * rng.randrange(4)
        shapes: dict[str, dict[str, Any]] = {
            "insert": {"op": "insert", "source": source, "at": rng.randint(0, len(cells))},
            "set_metadata": {"op": "set_metadata", "metadata": {f"key{number}": [number, None]}},
            "clear_outputs": {"op": "clear_outputs"},
            "replace": {"op": "replace", "cell": cell, "source": source},
            "delete": {"op": "delete", "cell": cell},
            "move": {"op": "move", "cell": cell, "at": rng.randint(0, len(cells))},
            "set_type": {
                "op": "set_type",
                "cell": cell,
                "type": rng.choice(["code", "markdown", "raw"]),
            },
            "metadata": {"op": "set_metadata", "cell": cell, "metadata": {"tags": [f"t{number}"]}},
            "split": {"op": "split", "cell": cell, "line": 1},
            "merge": {"op": "merge", "cells": [max(cell - 1, 0), max(cell, 1)]},
        }
        edits.append(shapes[kind])
    return edits


@pytest.mark.parametrize(
    "style",
    [
        "as Jupyter writes",
        "no ids",
        *(
            pytest.param(style, marks=pytest.mark.all)
            for style in STYLES
            if style not in ("as Jupyter writes", "no ids")
        ),
    ],
)
def test_undo_of_50_random_edits_in_reverse_gives_the_original_bytes_back(
    style: str, folder: Path, path: Path
) -> None:
    """To the byte, at every step on the way, and forward again."""
    rng = random.Random(style)
    path.write_bytes(STYLES[style])
    states = [path.read_bytes()]
    with Workspace(folder, actor="test:ada") as workspace:
        book = workspace.open(NAME)
        tries = 0
        while len(states) <= 50:
            tries += 1
            # Two edits of one list may not go together; then nothing is applied.
            with suppress(cellwright.CellwrightError):
                if book.edit(random_edit(rng, book, tries)).changed:
                    states.append(path.read_bytes())
            assert path.read_bytes() == states[-1]
        assert tries < 100, "most of them must have been edits"
        for state in reversed(states[:-1]):
            book.undo()
            assert path.read_bytes() == state
        with pytest.raises(cellwright.CellwrightError):
            book.undo()
        for state in states[1:]:
            book.redo()
            assert path.read_bytes() == state


# --- History -------------------------------------------------------------------------------------


def test_the_journal_keeps_every_change_who_made_it_and_every_revision_given_out(
    folder: Path,
) -> None:
    read = revision()
    selected = process("read", f"{NAME}:outline", "--json").data["revision"]
    process("edit", NAME, "replace", "sum", "ada", "--label", "for tea")
    with Workspace(folder, actor="mcp:agent") as agent:
        seen = agent.open(NAME).read().revision
        agent.open(NAME).edit([{"op": "delete", "cell": "notes"}], label="tidy up")
    process("undo", NAME)
    entries = [(entry["kind"], entry["actor"], entry["label"]) for entry in log()]
    assert entries == [
        ("undo", "cli:ada", ""),
        ("edit", "mcp:agent", "tidy up"),
        ("edit", "cli:ada", "for tea"),
    ]
    assert [entry["number"] for entry in log()] == [3, 2, 1]
    assert read == selected != seen
    # Each of them can still be a base: cell 4 is the one that whoever read it saw there.
    for base in (read, seen):
        answer = process("edit", NAME, "replace", "4", f"from {base}", "--base", base, "--json")
        assert [cell["handle"] for cell in answer.data["cells"]] == ["plot"]
        succeed("undo", NAME)


def test_what_others_changed_shows_up_as_outside(path: Path) -> None:
    process("edit", NAME, "delete", "notes", "--label", "tidy")
    outside(path, {"op": "replace", "cell": "load", "source": "theirs"})
    outside(path, {"op": "delete", "cell": "later"})
    rows = process("log", NAME).text.splitlines()
    assert len(rows) == 2
    assert re.search(r"  outside +\S+.* deleted later, edited load$", rows[0])
    assert re.search(r"  edit +cli:ada  tidy  deleted notes$", rows[1])
    assert process("undo", NAME).code == 0, "our own change, whatever came after it"
    assert [entry["kind"] for entry in log()] == ["undo", "outside", "edit"]


def test_blame_tells_who_touched_which_cell(path: Path) -> None:
    process("edit", NAME, "replace", "sum", "mine", "--label", "round up")
    outside(path, {"op": "replace", "cell": "load", "source": "theirs"})
    rows = process("blame", NAME).text.splitlines()
    assert len(rows) == 7
    assert re.search(r"^ +1  load +code +[0-9a-f]{8}  \S+  outside", rows[1])
    assert re.search(r"^ +2  sum +code +[0-9a-f]{8}  \S+  cli:ada  round up$", rows[2])
    assert rows[0].endswith("before the first recorded change")


def test_any_earlier_state_is_brought_back_to_the_byte(path: Path) -> None:
    states = {"first": path.read_bytes()}
    for number in range(3):
        answer = process("edit", NAME, "replace", "sum", f"{number}", "--clear-outputs", "--json")
        states[answer.data["change"]] = path.read_bytes()
    listed = [row.split()[0] for row in process("backup", NAME).text.splitlines()]
    assert listed == [*reversed(states)]
    for name, data in states.items():
        assert process("backup", NAME, "--restore", name).code == 0
        assert path.read_bytes() == data
    unknown = process("backup", NAME, "--restore", "12345678", "--json")
    assert (unknown.code, unknown.error["code"]) == (3, "CHANGE_NOT_FOUND")


def test_a_notebook_that_was_deleted_can_be_brought_back(path: Path) -> None:
    """The states are in the journal, wherever the file has gone."""
    change = succeed("edit", NAME, "delete", "notes", "--json").data["change"]
    data = path.read_bytes()
    path.unlink()
    assert process("backup", NAME, "--restore", change).code == 0
    assert path.read_bytes() == data
    path.unlink()
    assert process("backup", NAME, "--restore", "first").code == 0
    assert path.read_bytes() == samples.SALES


# --- When the journal cannot be used -------------------------------------------------------------


def break_journal(journal: Path, how: str) -> None:
    if how == "garbage":
        succeed("edit", NAME, "replace", "later", "x")
        journal.write_bytes(b"this is no database" * 500)
        for suffix in ("-wal", "-shm"):
            Path(f"{journal}{suffix}").unlink(missing_ok=True)
    elif how == "torn":
        succeed("edit", NAME, "replace", "later", "x")
        data = journal.read_bytes()
        journal.write_bytes(data[: len(data) // 2] + b"\xff" * 4096)
        for suffix in ("-wal", "-shm"):
            Path(f"{journal}{suffix}").unlink(missing_ok=True)
    elif how == "a folder in its place":
        journal.mkdir(parents=True)
    elif how == "a file in place of its folder":
        journal.parent.write_bytes(b"")
    else:
        journal.parent.symlink_to("/dev/null/nowhere")


WAYS = [
    "garbage",
    "torn",
    "a folder in its place",
    "a file in place of its folder",
    "a link to nowhere in place of its folder",
]


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("how", WAYS)
def test_a_journal_that_cannot_be_used_never_blocks_an_edit(
    how: str, as_json: bool, path: Path, journal: Path
) -> None:
    break_journal(journal, how)
    before = path.read_bytes()
    if as_json:
        answer = process("edit", NAME, "replace", "sum", "mine", "--json")
        assert answer.err == ""
        assert any("journal" in warning for warning in answer.data["warnings"])
    else:
        answer = process("edit", NAME, "replace", "sum", "mine")
        assert answer.code == 0
        assert re.search(r"^warning: .*journal", answer.err, re.MULTILINE)
        assert "Traceback" not in answer.err
    assert_only_cell_changed(before, path.read_bytes(), 2)
    read = process("read", NAME)
    assert read.code == 0
    assert read.text.splitlines()[8] == "mine"


@pytest.mark.parametrize("how", ["garbage", "torn"])
def test_a_broken_journal_is_kept_aside_and_a_new_one_begun(
    how: str, path: Path, journal: Path
) -> None:
    break_journal(journal, how)
    broken = journal.read_bytes()
    process("edit", NAME, "replace", "sum", "mine")
    aside = [item for item in journal.parent.iterdir() if ".broken-" in item.name]
    assert [item.read_bytes() for item in aside if not item.name.endswith(("-wal", "-shm"))] == [
        broken
    ]
    second = process("edit", NAME, "replace", "sum", "mine again")
    assert "warning" not in second.err
    assert process("undo", NAME).code == 0
    assert json.loads(path.read_bytes())["cells"][2]["source"] == ["mine"]


def test_without_a_journal_history_says_so_and_the_doctor_too(path: Path, journal: Path) -> None:
    break_journal(journal, "a file in place of its folder")
    for words in (["log", NAME], ["undo", NAME], ["backup", NAME], ["diff", NAME]):
        answer = process(*words, "--json")
        assert (answer.code, answer.error["code"]) == (3, "JOURNAL_UNAVAILABLE")
    doctor = process("doctor", "--json")
    assert doctor.code == 1
    assert doctor.json["data"]["problems"] == ["journal"]
    assert path.read_bytes() == samples.SALES


# --- Where one may go ----------------------------------------------------------------------------


def test_a_root_confines_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("root", "root-evil", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / NAME).write_bytes(samples.SALES)
    (tmp_path / "root" / "link.ipynb").symlink_to(tmp_path / "other" / NAME)
    (tmp_path / "root" / "out").symlink_to(tmp_path / "other")
    monkeypatch.chdir(tmp_path / "root")
    for way in (
        "../other/nb.ipynb",
        "../root-evil/nb.ipynb",
        f"{tmp_path}/root-evil/nb.ipynb",
        f"{tmp_path}/other/nb.ipynb",
        "link.ipynb",
        "out/nb.ipynb",
        "out/made.ipynb",
        "./.././other/nb.ipynb",
    ):
        for words in (
            ["read", way],
            ["edit", way, "delete", "notes", "--create"],
            ["write", way],
            ["new", way],
            ["diff", NAME, way],
            ["log", way],
        ):
            answer = call(*words, "--root", ".", "--json", stdin="# %% [code]\nx\n")
            assert (answer.code, answer.error["code"]) in [
                (3, "OUTSIDE_ROOT"),
                (3, "CHANGE_NOT_FOUND"),
            ], words
    assert process("edit", "link.ipynb", "delete", "notes", "--root", ".").code == 3
    assert process("edit", NAME, "delete", "notes", "--root", ".").code == 0
    for name in ("root-evil", "other"):
        assert [item.name for item in (tmp_path / name).iterdir()] == [NAME]
        assert (tmp_path / name / NAME).read_bytes() == samples.SALES


@pytest.mark.parametrize("mode", ["ask", "edit"])
def test_a_mode_that_forbids_edits_lets_none_through(mode: str, path: Path, folder: Path) -> None:
    process("edit", NAME, "replace", "sum", "mine")
    before = path.read_bytes()
    for line in (
        f"edit {NAME} delete notes",
        f"edit {NAME} delete notes --dry-run",
        f"write {NAME}",
        f"undo {NAME}",
        f"redo {NAME}",
        f"backup {NAME} --restore first",
        f"upgrade {NAME}",
        "new made.ipynb",
    ):
        answer = call("--mode", mode, *shlex.split(line), stdin="# %% [code]\nx\n")
        assert answer.code == 5, line
        assert "agent" in answer.err
    for line in (f"read {NAME}", f"log {NAME}", f"blame {NAME}", f"diff {NAME}", f"backup {NAME}"):
        assert call("--mode", mode, *shlex.split(line)).code == 0, line
    assert process("--mode", mode, "edit", NAME, "delete", "notes").code == 5
    assert path.read_bytes() == before
    assert [item.name for item in folder.iterdir()] == [NAME]
