"""Large notebooks are read in blocks of cells, and saved in a thread; nothing else differs.

Meanwhile the revision is worked out, and the file compared with what was read.
"""

from __future__ import annotations

import json
import os
import stat
from itertools import product
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright.config.directories import runtime_directory
from cellwright.document import files
from cellwright.document._bytes.slots import FileSlots, Slot, SurveyMaker, join_sources
from cellwright.document._json import fast
from cellwright.document._json.index import index_in_blocks
from cellwright.document.disk import save
from cellwright.document.disk.save import run_side_by_side
from cellwright.errors import CellwrightError
from tests.unit.document.samples import code, markdown, write

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = write(*(code("x = 1\n" * 40, f"id-{i}") for i in range(4000)))
EDIT = {"op": "replace", "cell": 2000, "source": "y = 'é'"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "large.ipynb"
    path.write_bytes(LARGE)
    assert len(LARGE) >= files._LARGE
    return path


@pytest.mark.parametrize("mode", [0o640, 0o606, 0o2664, 0o4755, 0o6755, 0o1666])
def test_the_mode_is_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    kept = stat.S_IMODE(path.stat().st_mode)  # without some bits where they may not be set
    cellwright.edit(path, EDIT)
    assert stat.S_IMODE(path.stat().st_mode) == kept
    assert cellwright.read(path).cells[2000].source == "y = 'é'"


def test_the_revision_is_known_when_the_save_is_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook, change = cellwright.edit(path, EDIT)
    from cellwright.document._json import fast

    def again(*_: object) -> list[Any]:
        raise AssertionError("it was worked out before")

    monkeypatch.setattr(fast, "cell_facts", again)
    monkeypatch.setattr(fast, "decode_block", again)
    revisions = (change.before.snapshot.revision, notebook.revision)
    monkeypatch.undo()
    read = cellwright.read(path)
    assert revisions == (cellwright.Notebook(LARGE).revision, read.revision)
    assert revisions[0] != revisions[1]


def test_the_bytes_are_on_the_disk_before_the_file_is_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, int]] = []
    fsync, rename = os.fsync, os.rename

    def sync(descriptor: int) -> None:
        fsync(descriptor)
        steps.append(("fsync", os.fstat(descriptor).st_ino))

    def move(old: str, new: str) -> None:
        steps.append(("rename", os.lstat(old).st_ino))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", move)
    cellwright.edit(path, EDIT)
    inode = path.stat().st_ino
    folder = path.parent.stat().st_ino
    assert steps == [("fsync", inode), ("rename", inode), ("fsync", folder)]


def test_a_change_while_the_disk_is_busy_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is compared meanwhile; what changes after that is seen before it is replaced."""
    other = LARGE.replace(b'"id-7"', b'"id-x"')  # as long, and with the old time of its content
    assert len(other) == len(LARGE)
    compare = save._compare_early

    def compare_and_change(real: str, expected: Any, temp: int) -> Any:
        while (found := compare(real, expected, temp)) is None:
            os.utime(temp)  # until the clock of the file system has moved on
        times = path.stat()
        path.write_bytes(other)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return found

    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    monkeypatch.setattr(save, "_compare_early", compare_and_change)
    with pytest.raises(CellwrightError) as caught:
        cellwright.write(notebook)
    assert caught.value.code == "CONFLICT"
    assert path.read_bytes() == other
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_early_look_proves_nothing_about_a_file_that_was_just_changed(
    path: Path, tmp_path: Path
) -> None:
    """Its next change may have the same time."""
    with (tmp_path / "temp").open("wb") as temp:
        path.chmod(0o600)
        assert save._compare_early(str(path), [LARGE], temp.fileno()) is None


def test_the_old_file_is_let_go_of_although_no_thread_can_be_started(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(*_: object) -> None:
        raise RuntimeError

    held = save._hold(str(path))
    monkeypatch.setattr(save, "start_new_thread", refuse)
    save._release_later(held)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(held)


@pytest.mark.parametrize("fails", [False, True])
def test_the_old_file_is_let_go_of_when_all_is_done(
    path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Else the fsync of the folder waits until its blocks are freed."""
    steps: list[str] = []
    held: list[int] = []
    sync, hold, holds = save._sync_folder, save._hold, save.file_holds

    def sync_folder(folder: str) -> None:
        os.fstat(held[0])  # it is still open
        steps.append("fsync of the folder")
        if fails:
            raise OSError(5, "Input/output error")
        sync(folder)

    def read_back(path: str, parts: save.Parts) -> bool:
        if "fsync of the folder" in steps:
            steps.append("read back")
        return holds(path, parts)

    monkeypatch.setattr(save, "file_holds", read_back)
    monkeypatch.setattr(save, "_sync_folder", sync_folder)
    monkeypatch.setattr(save, "_hold", lambda name: held.append(hold(name)) or held[0])
    monkeypatch.setattr(
        save, "_release_later", lambda each: (steps.append("release"), os.close(each))
    )
    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    if fails:
        with pytest.raises(CellwrightError, match="Input/output error"):
            cellwright.write(notebook)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(held[0])
    else:
        cellwright.write(notebook)
    assert steps == ["fsync of the folder", *([] if fails else ["read back"]), "release"]


def test_the_old_file_is_freed_after_the_locks_of_the_save_are_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To remove them would take long while the file system frees its blocks."""
    held: list[int] = []
    may_free, is_freed = Event(), Event()
    hold, close = save._hold, save.close

    def note_close(descriptor: int) -> None:
        close(descriptor)
        if descriptor in held:
            is_freed.set()

    monkeypatch.setattr(save, "_hold", lambda name: held.append(hold(name)) or held[0])
    monkeypatch.setattr(save.time, "sleep", lambda _: may_free.wait(30))
    monkeypatch.setattr(save, "close", note_close)
    notebook = cellwright.read(path)
    notebook.apply([EDIT])
    cellwright.write(notebook)
    locks = list(Path(runtime_directory()).glob("*.l*"))
    assert (os.fstat(held[0]).st_nlink, is_freed.is_set(), locks) == (0, False, [])
    may_free.set()
    assert is_freed.wait(30)


# --- In blocks -----------------------------------------------------------------------------------


def test_a_large_file_is_read_in_blocks_and_cells_are_found_when_needed() -> None:
    noted: list[Any] = []
    found = index_in_blocks(LARGE, 0, noted.append)
    assert found is not None
    assert found.blocks is not None
    assert len(noted) > 3
    assert sum(map(len, noted)) == found.blocks.count == 4000
    start, end = found.blocks.span(2000)
    assert b'"id-2000"' in LARGE[start:end]
    assert LARGE[start:end] == cellwright.Notebook(LARGE).cells[2000].raw


FALSE_CUTS = {
    "outputs that are indented like cells": b"""{
 "cells": [
  {"cell_type": "code", "source": "a", "outputs": [
  {"p": 1
  },
  {"q": 2
  }
  ]},
  {"cell_type": "code", "source": "b"}
 ], "nbformat": 4}""",
    "a second list of objects": b"""{
 "cells": [
  {"cell_type": "code", "source": "a"
  },
  {"cell_type": "code", "source": "b"
  }
 ], "more": [
  {"cell_type": "code", "source": "c"
  },
  {"cell_type": "code", "source": "d"
  }
 ], "nbformat": 4}""",
    "no end": b'{\n "cells": [\n  {"cell_type": "code", "source": "a"\n  },\n  {',
    "a beginning that is no JSON": b'{"x": tru, "cells": [\n  {"cell_type": "code", "source": ""}]}',
    "bytes that are not UTF-8": b"""{"cells": [
  {"cell_type": "code", "source": "", "x": "\xff"
  },
  {"cell_type": "code", "source": ""}]}""",
    "bytes at the end that are not UTF-8": b"""{"cells": [
  {"cell_type": "code", "source": ""
  },
  {"cell_type": "code", "source": ""}], "x": "\xff"}""",
}


@pytest.mark.parametrize("data", FALSE_CUTS.values(), ids=FALSE_CUTS)
def test_a_block_that_is_no_list_of_cells_is_not_believed(data: bytes) -> None:
    assert index_in_blocks(data, 0, lambda _: None, 0) is None


def test_sources_that_are_not_kept_are_decoded_again() -> None:
    survey = SurveyMaker(0)
    survey._room = 0
    found = index_in_blocks(LARGE, 0, survey.note)
    assert found is not None
    assert found.blocks is not None
    slots = FileSlots.of_blocks(LARGE, found.blocks, survey)
    assert [slot.row for slot in slots] == [
        slot.row for slot in cellwright.Notebook(LARGE).state.layout.slots
    ]
    other = slots.with_replaced({600: Slot.of(slots[601].raw)}).survey()
    assert other.revision != slots.survey().revision
    assert other.texts(slice(599, 602)) == [slots[599].text, slots[601].text, slots[601].text]


TEXTS = {
    "plain": "word " * 60,
    "characters of two to four bytes": "é€😀" * 60,
    "escapes": '\\n"\\\\' * 60,
    "backslashes": "\\\\" * 300,
    "what looks like half a pair": "\\\\ud83d\\\\u00e9" * 40,
    "lines": "first line\n\nthird line, which is longer\n" * 20,
}


@pytest.mark.parametrize("indent", [1, 2, None])
@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("escaped", [False, True])
def test_a_long_source_is_decoded_and_hashed_in_pieces_at_every_place(
    indent: int | None, as_list: bool, escaped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "_PIECE", 20)
    for text in TEXTS.values():
        for shift in range(20):
            source = "x" * shift + text
            shape = source.splitlines(keepends=True) if as_list else source
            cell = {"source": shape, "cell_type": "raw", "id": "a"}
            written = json.dumps(cell, indent=indent, ensure_ascii=escaped).encode()
            (found,) = fast.decode_large_cell(memoryview(written))
            assert join_sources([found]) == [source]


def test_no_call_decodes_or_hashes_a_long_source_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of another library keeps all threads waiting until it is over."""
    longest = 0

    def watch(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def watched(data: Any) -> Any:
            nonlocal longest
            longest = max(longest, len(data))
            return call(data)

        return watched

    long = ("word " * 2**20, "a line\n" * 2**19)
    for name in ("_text", "_strings", "_source", "_block", "encode"):
        monkeypatch.setattr(fast, name, watch(getattr(fast, name)))
    for source, is_first in product(long, (True, False)):
        cells = [markdown(source, "m"), code("x = 1", "c")]
        notebook = cellwright.Notebook(write(*(cells if is_first else cells[::-1])))
        for state in (notebook, cellwright.Notebook.of_state(notebook.state)):
            assert len({cell.hash for cell in state.cells}) == 2
            state.apply({"op": "replace", "cell": "c", "source": "x = 2"})
            assert state.revision
        assert 1000 < longest <= 2**20 + 2


# --- Side by side --------------------------------------------------------------------------------


class Broken(Exception):
    """What goes wrong here."""


def test_both_are_done_when_it_returns() -> None:
    done: list[str] = []
    run_side_by_side(lambda: done.append("disk"), lambda: done.append("work"))
    assert sorted(done) == ["disk", "work"]


def test_an_error_of_either_is_raised_when_both_are_over() -> None:
    done: list[str] = []

    def fail() -> None:
        done.append("failed")
        raise Broken

    with pytest.raises(Broken):
        run_side_by_side(fail, lambda: done.append("work"))
    assert sorted(done) == ["failed", "work"]
    with pytest.raises(Broken):
        run_side_by_side(lambda: done.append("disk"), fail)
    assert sorted(done) == ["disk", "failed", "failed", "work"]
