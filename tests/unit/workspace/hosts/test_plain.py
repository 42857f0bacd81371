"""Plain files: written inside the root only, with a history, and not where a mode forbids it."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from cellwright.errors import CellwrightError, DurabilityUnconfirmed
from cellwright.workspace.hosts import plain

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    root = tmp_path / "root"
    with Workspace(root, cwd=str(root), actor="test:ada") as workspace:
        yield workspace


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def fail(workspace: Workspace, path: str, text: str, base: str | None = None) -> str:
    with pytest.raises(CellwrightError) as caught:
        workspace.open(path).write_file(text, base=base)
    return caught.value.code


TEXTS = ["one\n", "two\r\nthree", "", "\ufeffünï\u2028code\x00\n\n", "  \n"]


def test_every_text_comes_back_and_undo_redo_and_diff_work(workspace: Workspace) -> None:
    file = workspace.open("new/folder/notes.md")
    base = None
    for text in TEXTS:
        done = file.write_file(text, base=base)
        assert done.changed
        assert done.change is not None
        assert Path(file.path).read_bytes() == text.encode()
        base = digest(text)
    assert "+  " in file.diff("first").diff
    assert [entry.actor for entry in file.log()] == ["test:ada"] * len(TEXTS)
    for text in reversed(TEXTS[:-1]):
        file.undo()
        assert file.raw() == text.encode()
    file.undo()  # that it was made
    assert not os.path.lexists(file.path)
    file.redo()
    assert file.raw() == TEXTS[0].encode()
    file.redo()
    assert file.raw() == TEXTS[1].encode()


def test_what_another_program_wrote_is_not_overwritten(workspace: Workspace) -> None:
    file = workspace.open("notes.md")
    file.write_file("mine\n")
    assert fail(workspace, "notes.md", "again\n") == "CONFLICT"
    Path(file.path).write_text("theirs\n")
    assert fail(workspace, "notes.md", "mine 2\n", digest("mine\n")) == "CONFLICT"
    with pytest.raises(CellwrightError) as caught:
        file.undo()
    assert caught.value.code == "CONFLICT"
    assert file.raw() == b"theirs\n"
    assert [entry.kind for entry in file.log()] == ["outside", "create"]


def test_a_notebook_and_bytes_that_are_no_text_are_refused(workspace: Workspace) -> None:
    Path(workspace.cwd, "data.bin").write_bytes(b"\xff\xfe")
    assert fail(workspace, "data.bin", "x", "0" * 64) == "UNREADABLE_FILE"
    assert fail(workspace, "made.ipynb", "{}") == "INVALID_EDIT"
    assert fail(workspace, "a.md", "\ud800") == "NOT_SAVED"
    assert [each.name for each in Path(workspace.cwd).iterdir()] == ["data.bin"]


@pytest.mark.parametrize("moment", ["folders", "load", "store"])
def test_a_folder_that_becomes_a_link_leads_nowhere(
    moment: str, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is swapped for a link at each step of a write."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir()
    name = {"folders": "_make_folders", "load": "_load", "store": "_store"}[moment]
    real = getattr(plain.PlainFileHost, name)

    def swap_first(*args: object) -> object:
        if not (root / "sub").is_symlink():
            (root / "sub").rename(root / "away")
            (root / "sub").symlink_to(outside)
        return real(*args)

    book = workspace.open("sub/deep/notes.md" if moment == "folders" else "sub/notes.md")
    monkeypatch.setattr(plain.PlainFileHost, name, swap_first)
    try:
        book.write_file("x\n")
    except CellwrightError:
        assert not (root / "away" / "notes.md").exists()
    else:
        assert (root / "away" / "notes.md").read_text() == "x\n"
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".github/workflows/ci.md",
            ".hidden.md",
            "sub/.vscode/notes.txt",
            "run.sh",
            "conftest.py",
        ),
        *("pyproject.toml", "Makefile", "package.json", "requirements-dev.txt", "CMakeLists.txt"),
        *("AGENTS.md", "tool.txt"),
    ],
)
def test_below_agent_no_write_reaches_what_others_obey(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_EDIT_MODE_EDITS", "true")
    (tmp_path / "tool.txt").write_text("#!/bin/sh\n")
    (tmp_path / "tool.txt").chmod(0o755)
    base = digest("#!/bin/sh\n") if path == "tool.txt" else None
    with Workspace(tmp_path, cwd=str(tmp_path), mode="edit") as workspace:
        assert fail(workspace, path, "x\n", base) == "MODE_FORBIDS"
        assert workspace.open("sub/notes.md").write_file("x\n").changed
        assert workspace.open("nb.ipynb").edit([], create=True).changed
        with pytest.raises(CellwrightError) as caught:
            workspace.open(".jupyter/nb.ipynb").edit([], create=True)
        assert caught.value.code == "MODE_FORBIDS"
    with Workspace(tmp_path, cwd=str(tmp_path), mode="agent") as workspace:
        assert workspace.open(path).write_file("x\n", base=base).changed


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_what_fails_after_the_rename_leaves_the_history_right(
    workspace: Workspace, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_folder: str) -> None:
        raise error

    file = workspace.open("notes.md")
    monkeypatch.setattr("cellwright.document.disk.save._sync_folder", fail)
    with pytest.raises(type(error)) as caught:
        file.write_file("text")
    assert Path(file.path).read_text() == "text"
    assert [entry.kind for entry in file.log()] == ["create"]
    if isinstance(caught.value, DurabilityUnconfirmed):
        assert caught.value.revision is not None
