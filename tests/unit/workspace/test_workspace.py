"""The folder somebody works in: what is allowed there, what is made, what is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from cellwright import Workspace
from cellwright.errors import CellwrightError
from cellwright.workspace.api.answers import NotebookRow
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
