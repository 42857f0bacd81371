"""The folder somebody works in: what is allowed there, what is made, what is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from cellwright import Workspace
from cellwright.errors import CellwrightError
from cellwright.workspace.api.answers import NotebookRow
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable

INSERT = {"op": "insert", "source": "x"}

READING: dict[str, Callable[[Workspace], Any]] = {
    "read": lambda w: w.open("nb.ipynb").read(),
    "select": lambda w: w.open("nb.ipynb").select("1-3"),
    "raw": lambda w: w.open("nb.ipynb").select("raw"),
    "log": lambda w: w.open("nb.ipynb").log(),
    "blame": lambda w: w.open("nb.ipynb").blame(),
    "backups": lambda w: w.open("nb.ipynb").backups(),
    "diff": lambda w: w.open("nb.ipynb").diff("first"),
    "list": lambda w: w.list(),
}
EDITING: dict[str, Callable[[Workspace], Any]] = {
    "edit": lambda w: w.open("nb.ipynb").edit([INSERT]),
    "dry run": lambda w: w.open("nb.ipynb").edit([INSERT], dry_run=True),
    "create": lambda w: w.create("made.ipynb"),
    "edit of a new one": lambda w: w.open("made.ipynb").edit([INSERT], create=True),
    "write": lambda w: w.open("nb.ipynb").write("# %% [code]\nx"),
    "upgrade": lambda w: w.open("nb.ipynb").upgrade(),
    "undo": lambda w: w.open("nb.ipynb").undo(),
    "forget": lambda w: w.forget(),
    "write_file": lambda w: w.open("made.md").write_file("x"),
    "redo": lambda w: w.open("nb.ipynb").redo(),
    "restore": lambda w: w.open("nb.ipynb").restore("first"),
}


@pytest.fixture
def edited(folder: Path) -> Path:
    """The notebook, with one change of ours on record."""
    with Workspace(folder, actor="python:caller") as workspace:
        workspace.open("nb.ipynb").edit([INSERT])
    return folder / "nb.ipynb"


@pytest.mark.parametrize("mode", ["ask", "edit", "agent"])
@pytest.mark.parametrize("verb", READING)
@pytest.mark.usefixtures("edited")
def test_every_mode_may_read(verb: str, mode: Any, folder: Path) -> None:
    with Workspace(folder, mode=mode) as workspace:
        assert READING[verb](workspace)


@pytest.mark.parametrize("mode", ["ask", "edit"])
@pytest.mark.parametrize("verb", EDITING)
def test_only_agent_may_edit(verb: str, mode: Any, edited: Path) -> None:
    before = edited.read_bytes()
    with Workspace(edited.parent, mode=mode) as workspace, pytest.raises(CellwrightError) as caught:
        EDITING[verb](workspace)
    assert caught.value.code == "MODE_FORBIDS"
    assert "agent" in str(caught.value.hint)
    assert edited.read_bytes() == before
    assert [item.name for item in edited.parent.iterdir()] == ["nb.ipynb"]
    with Workspace(edited.parent) as workspace:
        assert len(workspace.open("nb.ipynb").log()) == 1


def test_there_are_three_modes(folder: Path) -> None:
    with pytest.raises(CellwrightError):
        Workspace(folder, mode="god")  # type: ignore[arg-type]


# --- Making notebooks ----------------------------------------------------------------------------


def test_a_new_notebook_has_no_cells_and_is_valid(workspace: Workspace, folder: Path) -> None:
    answer = workspace.create("made.ipynb")
    assert (answer.changed, answer.saved, answer.cells) == (True, True, [])
    made = (folder / "made.ipynb").read_text(encoding="utf-8")
    assert json.loads(made) == {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    assert made.endswith("}\n")
    nbformat.validate(nbformat.reads(made, 4))


def test_a_new_notebook_names_its_kernel(workspace: Workspace, folder: Path) -> None:
    workspace.create("made.ipynb", kernel="python3")
    notebook = nbformat.read(folder / "made.ipynb", 4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("what", ["file", "folder", "link", "dangling link"])
def test_what_is_there_already_is_never_replaced_by_a_new_notebook(
    what: str, workspace: Workspace, folder: Path
) -> None:
    place = folder / "made.ipynb"
    if what == "file":
        place.write_text("mine", encoding="utf-8")
    elif what == "folder":
        place.mkdir()
    else:
        place.symlink_to("nb.ipynb" if what == "link" else "nothing.ipynb")
    with pytest.raises(CellwrightError) as caught:
        workspace.create("made.ipynb")
    assert caught.value.code == "ALREADY_EXISTS"
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES
    assert not (folder / "nothing.ipynb").exists()


def test_a_notebook_that_appears_meanwhile_is_not_changed_by_making_one(
    workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else makes it between the look and the save."""
    with monkeypatch.context() as patch:
        patch.setattr("os.path.lexists", lambda _: False)
        with pytest.raises(CellwrightError) as caught:
            workspace.create("nb.ipynb", kernel="other")
    assert caught.value.code == "ALREADY_EXISTS"
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


def test_a_notebook_in_a_folder_that_is_not_there_is_not_made(workspace: Workspace) -> None:
    with pytest.raises(CellwrightError) as caught:
        workspace.create("nowhere/made.ipynb")
    assert caught.value.code == "NOT_SAVED"


# --- Finding notebooks ---------------------------------------------------------------------------


def test_the_notebooks_below_are_listed_in_order(workspace: Workspace, folder: Path) -> None:
    for name in ("b/two.ipynb", "a/one.ipynb", "a/.hidden.ipynb", ".git/x.ipynb", "b/text.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"12345")
    for name in (".ipynb_checkpoints", "node_modules", "__pycache__"):
        (folder / name).mkdir()
        (folder / name / "copy.ipynb").write_bytes(b"")
    (folder / "dangling.ipynb").symlink_to("nowhere")
    (folder / "folder.ipynb").mkdir()
    assert workspace.list() == [
        NotebookRow("nb.ipynb", len(samples.SALES)),
        NotebookRow("a/one.ipynb", 5),
        NotebookRow("b/two.ipynb", 5),
    ]


def test_a_workspace_can_be_closed_and_used_again(workspace: Workspace) -> None:
    book = workspace.open("nb.ipynb")
    book.edit([INSERT])
    workspace.close()
    assert len(book.log()) == 1


# --- What hints say can be done ------------------------------------------------------------------

OLD = {
    "metadata": {},
    "nbformat": 3,
    "nbformat_minor": 0,
    "worksheets": [{"cells": [{"cell_type": "markdown", "metadata": {}, "source": "# A"}]}],
}
TWICE = {"op": "replace_text", "cell": "load", "old": "total", "new": "sum"}


def _give_own_file(folder: Path) -> None:
    shutil.copyfile(folder / "linked.ipynb", folder / "copy.ipynb")
    (folder / "copy.ipynb").rename(folder / "linked.ipynb")


# What raises an error, and what its hint says to do then, in Python.
FOLLOWED: dict[str, tuple[Callable[[Workspace], Any], Callable[[Workspace, Any], Any]]] = {
    "NOTEBOOK_NOT_FOUND": (
        lambda w: w.open("new.ipynb").edit([INSERT]),
        lambda w, _: w.open("new.ipynb").edit([INSERT], create=True),
    ),
    "NEEDS_UPGRADE": (
        lambda w: w.open("old.ipynb").edit([INSERT]),
        lambda w, _: (w.open("old.ipynb").upgrade(), w.open("old.ipynb").edit([INSERT])),
    ),
    "CELL_NOT_FOUND": (
        lambda w: w.open("nb.ipynb").edit([{"op": "delete", "cell": "lod"}]),
        lambda w, error: w.open("nb.ipynb").edit([{"op": "delete", "cell": error.near[0]}]),
    ),
    "TEXT_MISMATCH": (
        lambda w: w.open("nb.ipynb").edit([TWICE]),
        lambda w, _: w.open("nb.ipynb").edit([{**TWICE, "count": 2}]),
    ),
    "UNKNOWN_REVISION": (
        lambda w: w.open("nb.ipynb").edit([INSERT], base="0" * 12),
        lambda w, _: w.open("nb.ipynb").edit([INSERT], base=w.open("nb.ipynb").read().revision),
    ),
    "HARD_LINKED": (
        lambda w: w.open("linked.ipynb").edit([INSERT]),
        lambda w, _: (_give_own_file(Path(w.cwd)), w.open("linked.ipynb").edit([INSERT])),
    ),
    "CHANGE_NOT_FOUND": (
        lambda w: w.open("nb.ipynb").undo("0a1b2c3d"),
        lambda w, _: w.open("nb.ipynb").undo(w.open("nb.ipynb").log()[0].id),
    ),
    "NOTHING_TO_UNDO": (
        lambda w: w.open("nb.ipynb").undo(),
        lambda w, _: w.open("nb.ipynb").undo(w.open("nb.ipynb").log()[0].id),
    ),
    "SESSION_NOT_FOUND": (
        lambda w: w.kernel("shutdown", session="none"),
        lambda w, _: w.sessions() == [],
    ),
    "RUN_NOT_FOUND": (lambda w: w.cancel("r0"), lambda w, _: w.runs() == []),
    "ALREADY_EXISTS": (
        lambda w: w.create("nb.ipynb"),
        lambda w, _: w.open("nb.ipynb").edit([INSERT]),
    ),
    "INVALID_SELECTOR": (
        lambda w: w.open("nb.ipynb").select("section=Salez"),
        lambda w, _: w.open("nb.ipynb").select("outline"),
    ),
    "INVALID_EDIT": (
        lambda w: w.open("nb.ipynb").write_file("x"),
        lambda w, _: w.open("nb.ipynb").write("# %% [code]\nx"),
    ),
    "OUTSIDE_ROOT": (
        lambda w: w.open("/elsewhere.ipynb").read(),
        lambda w, _: Workspace("/", cwd=w.cwd).open("nb.ipynb").read(),
    ),
}


@pytest.mark.parametrize("code", FOLLOWED)
def test_what_a_hint_says_can_be_done_in_python(code: str, edited: Path) -> None:
    folder = edited.parent
    (folder / "old.ipynb").write_text(json.dumps(OLD))
    (folder / "linked.ipynb").write_bytes(samples.SALES)
    (folder / "second-name.ipynb").hardlink_to(folder / "linked.ipynb")
    provoke, follow = FOLLOWED[code]
    with Workspace(folder, actor="test:ada") as workspace:
        with pytest.raises(CellwrightError) as caught:
            provoke(workspace)
        assert (caught.value.code, bool(caught.value.hint)) == (code, True)
        assert follow(workspace, caught.value)
