"""A file that holds the same bytes as before is not parsed again; any other is."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from cellwright.document import files
from cellwright.document.files import Recent
from cellwright.errors import DurabilityUnconfirmed, NotebookNotFound, NotebookTooLarge

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.document.change import Change
    from cellwright.document.notebook import Notebook

CELL = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}


def make(path: Path, *sources: str) -> Path:
    cells = [{**CELL, "id": f"c{i}", "source": [text]} for i, text in enumerate(sources)]
    whole = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return path


def sources(notebook: Notebook) -> list[str]:
    return [cell.source for cell in notebook.cells]


def test_the_same_bytes_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, recent = make(tmp_path / "a.ipynb", "x = 1"), Recent()
    first = files.read(path, recent=recent)

    def refuse(*_: object) -> None:
        raise AssertionError("it was parsed again")

    monkeypatch.setattr("cellwright.document._bytes.layout.index_notebook", refuse)
    assert files.read(path, recent=recent).state is first.state
    with pytest.raises(AssertionError):
        files.read(path)


def test_a_reader_who_edits_leaves_the_others_alone(tmp_path: Path) -> None:
    path, recent = make(tmp_path / "a.ipynb", "x = 1"), Recent()
    one, other = files.read(path, recent=recent), files.read(path, recent=recent)
    one.apply({"op": "replace", "cell": 0, "source": "x = 2"})
    assert sources(other) == ["x = 1"]
    assert sources(files.read(path, recent=recent)) == ["x = 1"]
    assert sources(one) == ["x = 2"]


def test_a_change_that_keeps_size_and_times_is_seen(tmp_path: Path) -> None:
    path, recent = make(tmp_path / "a.ipynb", "x = 1"), Recent()
    files.read(path, recent=recent)
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(b"x = 1"))
        file.write(b"x = 7")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert sources(files.read(path, recent=recent)) == ["x = 7"]


def test_what_an_update_has_written_is_what_the_next_one_finds(tmp_path: Path) -> None:
    path, recent = make(tmp_path / "a.ipynb", "x = 1", "y = 2", "z = 3"), Recent()
    for number in range(5):
        edit = {"op": "replace", "cell": number % 3, "source": f"w = {number}"}
        notebook, _ = files.update(path, lambda n, e=edit: n.apply(e), recent=recent)  # type: ignore[misc]
        assert files.read(path, recent=recent).state is notebook.state
        assert notebook.to_bytes() == path.read_bytes()
        assert notebook.revision == files.read(path).revision
    assert sources(files.read(path)) == ["w = 3", "w = 4", "w = 2"]


def test_cells_that_come_and_go_are_seen_too(tmp_path: Path) -> None:
    path, recent = make(tmp_path / "a.ipynb", "x = 1", "y = 2"), Recent()
    for edit in (
        {"op": "insert", "source": "new", "at": 0},
        {"op": "delete", "cell": 1},
        {"op": "move", "cell": 0, "at": 1},
    ):
        notebook, _ = files.update(path, lambda n, e=edit: n.apply(e), recent=recent)  # type: ignore[misc]
        assert sources(files.read(path, recent=recent)) == sources(files.read(path))
        assert sources(notebook) == sources(files.read(path))


def test_a_save_that_fails_is_not_remembered(tmp_path: Path) -> None:
    path, recent = make(tmp_path / "a.ipynb", "x = 1"), Recent()
    files.read(path, recent=recent)
    path.chmod(0o400)
    with pytest.raises(Exception, match="read-only"):
        files.update(
            path, lambda n: n.apply({"op": "replace", "cell": 0, "source": "no"}), recent=recent
        )
    assert sources(files.read(path, recent=recent)) == ["x = 1"]


def test_no_more_is_kept_than_allowed(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"{name}.ipynb", f"{name} = 1") for name in "abc"]
    recent = Recent(most=2)
    states = [files.read(path, recent=recent).state for path in paths]
    found = [recent.find(str(path), path.read_bytes()) for path in paths]
    assert found == [None, *states[1:]]
    size = paths[0].stat().st_size
    small = Recent(most_bytes=size)
    for path in paths:
        files.read(path, recent=small)
    assert [small.find(str(p), p.read_bytes()) is None for p in paths] == [True, True, False]
    tiny = Recent(most_bytes=size - 1)
    files.read(paths[0], recent=tiny)
    assert tiny.find(str(paths[0]), paths[0].read_bytes()) is None


def test_old_notebooks_and_patchworks_are_not_kept(tmp_path: Path) -> None:
    old = tmp_path / "old.ipynb"
    old.write_text(json.dumps({"worksheets": [{"cells": []}], "nbformat": 3, "nbformat_minor": 0}))
    recent = Recent()
    files.read(old, recent=recent)
    assert recent.find(str(old), old.read_bytes()) is None
    path = make(tmp_path / "a.ipynb", *(f"x{i} = 1" for i in range(120)))
    notebook = files.read(path, recent=recent)
    notebook.apply([{"op": "replace", "cell": i, "source": "y"} for i in range(0, 120, 2)])
    files.write(notebook)
    recent.keep(str(path), notebook.state)
    assert recent.find(str(path), path.read_bytes()) is notebook.state
    notebook.apply([{"op": "replace", "cell": i, "source": "z"} for i in range(1, 120, 2)])
    recent.keep(str(path), notebook.state)
    files.write(notebook)
    assert recent.find(str(path), path.read_bytes()) is None


@pytest.mark.parametrize("error", [MemoryError(), OSError(5, "Input/output error"), ValueError()])
def test_what_fails_after_the_save_is_one_error_that_names_the_new_bytes(
    tmp_path: Path, error: Exception
) -> None:
    path = make(tmp_path / "a.ipynb", "x = 1")

    def fail() -> None:
        raise error

    edit = {"op": "replace", "cell": 0, "source": "x = 2"}
    with pytest.raises(DurabilityUnconfirmed) as caught:
        files.update(path, lambda notebook: notebook.apply(edit), saved=fail)
    now = files.read(path)
    assert sources(now) == ["x = 2"]
    assert caught.value.revision == now.revision


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_change_is_announced_before_the_file_is_replaced(tmp_path: Path, size: int) -> None:
    path = make(tmp_path / "a.ipynb", "x = 1", "y" * size)
    old = path.read_bytes()
    heard: list[object] = []

    def announce(change: Change) -> None:
        heard.append(("saving", change.after.snapshot.revision, path.read_bytes() == old))

    edit = {"op": "replace", "cell": 0, "source": "x = 2"}
    notebook, _ = files.update(
        path,
        lambda notebook: notebook.apply(edit),
        saving=announce,
        saved=lambda: heard.append("saved"),
        failed=lambda: heard.append("failed"),
    )
    assert heard == [("saving", notebook.revision, True), "saved"]
    assert path.read_bytes() == notebook.to_bytes()


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_change_that_cannot_be_announced_is_not_saved(tmp_path: Path, size: int) -> None:
    path = make(tmp_path / "a.ipynb", "x = 1", "y" * size)
    old = path.read_bytes()
    failed: list[bool] = []

    def refuse(_: Change) -> None:
        raise KeyboardInterrupt

    edit = {"op": "replace", "cell": 0, "source": "x = 2"}
    with pytest.raises(KeyboardInterrupt):
        files.update(
            path,
            lambda notebook: notebook.apply(edit),
            saving=refuse,
            failed=lambda: failed.append(True),
        )
    assert (path.read_bytes(), failed) == (old, [True])
    assert [each.name for each in tmp_path.iterdir()] == ["a.ipynb"]


def test_a_large_file_with_the_same_bytes_is_not_even_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, recent = make(tmp_path / "a.ipynb", "x = 1", "y" * 1_000_000), Recent()
    first = files.read(path, recent=recent)
    loaded: list[str] = []
    load = files.load_file

    def note(place: str, limit: int) -> bytes:
        loaded.append(place)
        return load(place, limit)

    monkeypatch.setattr(files, "load_file", note)
    again = files.read(path, recent=recent)
    assert again.state is first.state
    assert again.origin is not None
    assert again.origin.layout is first.state.layout
    assert not loaded
    # The same length, and the same times.
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"x = 1", b"x = 2"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert sources(files.read(path, recent=recent))[0] == "x = 2"
    assert len(loaded) == 1
    with pytest.raises(NotebookTooLarge):
        files.read(path, recent=recent, max_bytes=1000)
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(NotebookNotFound):
        files.read(path, recent=recent)
