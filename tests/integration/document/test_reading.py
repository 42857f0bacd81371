"""Reading what a path may lead to: files of every kind, in bounded time and memory."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket must be short
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def make_file_as_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_bytes(DATA)


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a folder": (Path.mkdir, "UNREADABLE_FILE"),
    "a named pipe": (make_fifo, "UNREADABLE_FILE"),
    "a socket": (make_socket, "UNREADABLE_FILE"),
    "a device without end": (link_to("/dev/zero"), "UNREADABLE_FILE"),
    "an empty device": (link_to("/dev/null"), "UNREADABLE_FILE"),
    "a terminal": (link_to("/dev/tty"), "UNREADABLE_FILE"),
    "a file that lies about its size": (link_to("/proc/self/status"), "INVALID_JSON"),
    "a link to a folder": (link_to("."), "UNREADABLE_FILE"),
    "a link to itself": (link_to("notebook.ipynb"), "UNREADABLE_FILE"),
    "a link to nothing": (link_to("nothing"), "NOTEBOOK_NOT_FOUND"),
    "nothing": (lambda _path: None, "NOTEBOOK_NOT_FOUND"),
    "something in a file": (make_file_as_folder, "UNREADABLE_FILE"),
    "an empty file": (Path.touch, "INVALID_JSON"),
}


@pytest.mark.parametrize(("make", "code"), KINDS.values(), ids=KINDS)
def test_what_is_no_notebook_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], code: str
) -> None:
    path = tmp_path / "folder" / "notebook.ipynb"
    path.parent.mkdir()
    make(path)
    start = time.monotonic()
    for call in (
        cellwright.read,
        lambda path: cellwright.edit(path, {"op": "insert", "source": "x"}),
    ):
        with pytest.raises(CellwrightError) as caught:
            call(path)
        assert caught.value.code == code, caught.value
        assert len(str(caught.value).splitlines()) == 1
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a folder"])
def test_what_is_no_file_is_not_replaced_by_a_new_notebook(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "notebook.ipynb"
    KINDS[kind][0](path)
    before = path.lstat()
    calls: list[Callable[[], object]] = [
        lambda: cellwright.write(cellwright.Notebook(DATA), path),
        lambda: cellwright.edit(path, {"op": "insert", "source": "x"}, create=True),
    ]
    for call in calls:
        with pytest.raises(CellwrightError) as caught:
            call()
        assert caught.value.code in {"NOT_SAVED", "UNREADABLE_FILE"}
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a\0b", "\0", "n" * 256, "n/" * 3000])
def test_what_is_no_path_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CellwrightError) as caught:
        cellwright.read(name)
    assert caught.value.code in {"UNREADABLE_FILE", "NOTEBOOK_NOT_FOUND"}
    assert len(str(caught.value).splitlines()) == 1


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_file_of_two_gigabytes_is_refused_by_its_size(tmp_path: Path) -> None:
    path = sparse(tmp_path / "large.ipynb", 2 * 2**30)
    code = """
import resource, sys, cellwright
resource.setrlimit(resource.RLIMIT_AS, (300 * 2**20, 300 * 2**20))
try:
    cellwright.read(sys.argv[1])
except cellwright.CellwrightError as error:
    print(error.code, error)
"""
    start = time.monotonic()
    command = [sys.executable, "-c", code, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("NOTEBOOK_TOO_LARGE")
    assert "2,147,483,648" in said
    assert time.monotonic() - start < 60


def test_the_limit_is_the_callers_and_exact(tmp_path: Path) -> None:
    path = tmp_path / "notebook.ipynb"
    path.write_bytes(DATA)
    assert cellwright.read(path, max_bytes=len(DATA)).to_bytes() == DATA
    with pytest.raises(CellwrightError) as caught:
        cellwright.read(path, max_bytes=len(DATA) - 1)
    assert caught.value.code == "NOTEBOOK_TOO_LARGE"


def test_the_limit_holds_for_a_file_that_lies_about_its_size() -> None:
    with pytest.raises(CellwrightError) as caught:
        cellwright.read("/proc/self/status", max_bytes=10)
    assert caught.value.code == "NOTEBOOK_TOO_LARGE"


def test_a_large_file_of_nothing_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = sparse(tmp_path / "zeros.ipynb", 100 * 2**20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CellwrightError) as caught:
        cellwright.read(path)
    assert caught.value.code == "INVALID_JSON"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 3 * 100 * 2**10  # kilobytes; the file itself is the first hundred thousand


def test_reading_leaves_no_descriptor_open(tmp_path: Path) -> None:
    good = tmp_path / "good.ipynb"
    good.write_bytes(DATA)
    bad = tmp_path / "bad.ipynb"
    bad.write_bytes(b"{")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        cellwright.read(good)
        for path in (bad, tmp_path, tmp_path / "none"):
            with pytest.raises(CellwrightError):
                cellwright.read(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_reading_an_old_notebook_says_nothing_on_the_side(tmp_path: Path) -> None:
    """nbformat's conversion logs what it finds wrong; nobody asked."""
    path = tmp_path / "old.ipynb"
    path.write_bytes(b'{"metadata": {}, "nbformat": 3, "worksheets": [{"cells": []}]}')
    code = "import sys, cellwright; print(len(cellwright.read(sys.argv[1]).cells))"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
