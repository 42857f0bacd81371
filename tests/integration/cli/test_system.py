"""What the system refuses is said as that: no room to print, no folder, no descriptors, odd names."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli import samples
from tests.unit.cli.calling import Answer, command

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = "/dev/full"

# Names what is imported after the notebook was replaced and before the command has answered.
WATCHED = """
import os, sys
after = []
def look(event, arguments):
    if event == "os.rename" and os.fsencode(arguments[1]).endswith(b".ipynb"):
        after.append("renamed")
    elif event == "import" and after:
        after.append(arguments[0])
sys.addaudithook(look)
from cellwright.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write("|" + " ".join(after))
sys.exit(code)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CELLWRIGHT_ENGINE", "never")
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


def call(*words: str, prepare: Callable[[], object] | None = None, out: str = "") -> Answer:
    with open(out or os.devnull, "wb") as file:  # noqa: PTH123
        done = subprocess.run(
            command(*words),
            stdin=subprocess.DEVNULL,
            stdout=file if out else subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=prepare,  # this process has one thread
            timeout=100,
            check=False,
        )
    return Answer(done.returncode, done.stdout or b"", done.stderr.decode(errors="replace"))


def assert_said(answer: Answer, word: str) -> None:
    assert answer.code == 3, answer
    assert word in answer.err
    assert "bug" not in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.skipif(not Path(FULL).exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [("read", "nb.ipynb"), ("log", "nb.ipynb", "--json"), ("-h",)])
def test_an_answer_that_cannot_be_printed_is_said(words: tuple[str, ...]) -> None:
    assert_said(call(*words, out=FULL), "No space left on device")


@pytest.mark.skipif(not Path(FULL).exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("edit", "nb.ipynb", "replace", "load", "x = 1"), 0),
        (("read", "no.ipynb"), 3),
        (("no",), 2),
    ],
)
def test_talk_that_cannot_be_printed_changes_no_exit_code(
    words: tuple[str, ...], code: int
) -> None:
    with open(FULL, "wb") as full:  # noqa: PTH123
        done = subprocess.run(command(*words), stderr=full, timeout=100, check=False)
    assert done.returncode == code


@pytest.mark.parametrize("words", [("read", "nb.ipynb"), ("new", "b.ipynb"), ("git", "install")])
def test_a_working_folder_that_was_deleted_is_said(words: tuple[str, ...], folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()

    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    assert_said(call(*words, prepare=leave), "working folder was deleted")


@pytest.mark.parametrize("most", [5, 6, 7, 8, 9, 12])
def test_few_descriptors_are_enough_or_are_said(most: int, folder: Path) -> None:
    before = (folder / "nb.ipynb").read_bytes()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    answer = call("edit", "nb.ipynb", "replace", "load", "x = 1", prepare=limit)
    if answer.code == 0:
        assert (folder / "nb.ipynb").read_bytes() != before
    else:
        assert_said(answer, "Too many open files")
        assert (folder / "nb.ipynb").read_bytes() == before
    assert most < 12 or answer.code == 0


def test_names_that_are_not_utf_8_work(folder: Path) -> None:
    odd = os.fsdecode(b"d\xff")
    (folder / odd).mkdir()
    (folder / odd / f"{odd}.ipynb").write_bytes(samples.SALES)

    def enter() -> None:
        os.chdir(odd)

    for words in (("read",), ("edit", "replace", "load", "x = 1"), ("log",), ("run",)):
        name, *rest = words
        answer = call(
            name, f"{odd}.ipynb", *rest, *(["load"] if name == "run" else []), prepare=enter
        )
        assert answer.code == 0, answer


EDITS = {
    "edit": ("edit", "nb.ipynb", "replace", "load", "x = 1", "--json"),
    "insert": ("edit", "nb.ipynb", "insert", "x = 1"),
    "write": ("write", "nb.ipynb", "--from", "text"),
    "new": ("new", "b.ipynb"),
    "undo": ("undo", "nb.ipynb"),
}


@pytest.mark.parametrize("name", EDITS)
def test_nothing_is_imported_between_the_rename_and_the_answer(name: str, folder: Path) -> None:
    """An import opens files, and what cannot be opened would turn a success into an error."""
    (folder / "text").write_text("# %% [code]\nx = 2\n")
    if name == "undo":
        assert call(*EDITS["edit"]).code == 0
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *EDITS[name]], capture_output=True, timeout=100, check=True
    )
    assert done.stderr.decode().rpartition("|")[2] == "renamed"
