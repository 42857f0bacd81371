"""Other programs save in place: for a moment a file is empty, half there, or missing."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright import Workspace
from cellwright.document import files
from cellwright.errors import InvalidJson, NotebookNotFound
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE = samples.SALES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "nb.ipynb"
    path.write_bytes(WHOLE)
    return path


def empty(path: Path) -> None:
    path.write_bytes(b"")


def halve(path: Path) -> None:
    path.write_bytes(WHOLE[: len(WHOLE) // 2])


def remove(path: Path) -> None:
    path.unlink()


def complete(path: Path) -> threading.Thread:
    """Finish the save in a moment, as the other program does."""
    thread = threading.Timer(0.1, path.write_bytes, [WHOLE])
    thread.start()
    return thread


@pytest.mark.parametrize("begin", [empty, halve, remove])
def test_a_save_that_is_under_way_is_waited_for(path: Path, begin: Callable[[Path], None]) -> None:
    begin(path)
    saver = complete(path)
    assert cellwright.read(path).to_bytes() == WHOLE
    saver.join()
    begin(path)
    saver = complete(path)
    with Workspace(path.parent, cwd=str(path.parent)) as workspace:
        answer = workspace.open("nb.ipynb").edit([{"op": "replace", "cell": "load", "source": "x"}])
    saver.join()
    assert answer.changed


def test_a_save_that_does_not_end_is_an_error_that_says_so_and_may_be_tried_again(
    path: Path,
) -> None:
    halve(path)
    with pytest.raises(InvalidJson) as caught:
        cellwright.read(path)
    assert caught.value.retryable
    assert "may be saving" in str(caught.value.hint)


def test_a_file_that_was_there_and_is_missing_may_come_back(path: Path) -> None:
    with Workspace(path.parent, cwd=str(path.parent)) as workspace:
        book = workspace.open("nb.ipynb")
        book.read()
        remove(path)
        with pytest.raises(NotebookNotFound) as caught:
            book.read()
        assert caught.value.retryable
        assert "may be saving" in str(caught.value.hint)
        with pytest.raises(NotebookNotFound) as caught:
            workspace.open("none.ipynb").read()
        assert not caught.value.retryable


def test_what_was_broken_long_ago_is_not_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.time, "sleep", lambda _seconds: pytest.fail("it waits"))
    halve(path)
    os.utime(path, (1, 1))
    with pytest.raises(InvalidJson) as caught:
        cellwright.read(path)
    assert not caught.value.retryable
    os.utime(path.parent, (1, 1))
    with pytest.raises(NotebookNotFound):
        cellwright.read(path.parent / "none.ipynb")


def test_readers_beside_a_program_that_saves_in_place_never_fail(path: Path) -> None:
    """As jupyter_server does: open for writing, which empties the file, then write in pieces."""
    is_over = threading.Event()

    def save() -> None:
        while not is_over.wait(0.02):
            with path.open("wb", buffering=0) as file:
                for at in range(0, len(WHOLE), 400):
                    file.write(WHOLE[at : at + 400])

    saver = threading.Thread(target=save)
    saver.start()
    try:
        for _ in range(20):
            assert cellwright.read(path).to_bytes() == WHOLE
    finally:
        is_over.set()
        saver.join()
