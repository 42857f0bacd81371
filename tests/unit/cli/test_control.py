"""Nothing that a notebook holds drives the terminal, whichever command shows it.

Colours are forced on, since click takes all escape sequences out of what goes to a pipe.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli import samples
from tests.unit.cli.calling import Answer, call, succeed

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\r\x7f"
NAME = f"n\x1b[31m{chr(10)}error: forged\x9b.ipynb"
OURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def evil(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook whose name, ids and sources hold escape sequences."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("LOGNAME", f"eve{EVIL}")
    cells = [
        samples.code(f"a{EVIL}\nerror: forged", f"x = '{EVIL}'"),
        samples.markdown(f"b{EVIL}", f"# {EVIL}Heading"),
        samples.code("c", "y"),
    ]
    path = folder / NAME
    path.write_bytes(samples.write(*cells))
    return path


def assert_tame(answer: Answer) -> None:
    """Only colours of ours, line feeds and tabs; no line but ours begins with `error:`."""
    for text in (answer.out.decode("utf-8", "surrogatepass"), answer.err):
        rest = OURS.sub("", text)
        wild = [c for c in rest if c not in "\n\t" and not c.isprintable()]
        assert wild == [], repr(text)
        assert "\x1b[31m\nerror" not in text
        assert not re.search(r"^error: forged", rest, re.MULTILINE), text


COMMANDS = [
    ["read", ":outline"],
    ["edit", "replace", "0", "z", "--dry-run"],
    ["edit", "replace", "0", "z", "--diff"],
    ["edit", "delete", "0"],
    ["edit", "move", "0", "--at", "2"],
    ["edit", "insert", "z", "--after", "0"],
    ["edit", "insert", "z", "--label", EVIL],
    ["edit", "replace", "0", EVIL, "--expect", "0123"],
    ["edit", "clear-outputs"],
    ["edit", "delete", EVIL],
    ["edit", "replace-text", "0", "nothing", "z"],
    ["edit", "replace", "2", "z", "--backup"],
    ["edit", "apply", EVIL],
    ["edit", EVIL],
    ["write", "--from", EVIL],
    ["log"],
    ["log", "--limit", EVIL],
    ["diff", "first"],
    ["diff", EVIL],
    ["undo"],
    ["undo", EVIL],
    ["undo", "--dry-run"],
    ["redo", EVIL],
    ["blame"],
    ["backup"],
    ["backup", "--restore", "first"],
    ["backup", "--restore", EVIL],
    ["upgrade"],
    ["new"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: ascii(" ".join(words)))
def test_no_command_lets_a_control_sequence_through(words: list[str], evil: Path) -> None:
    succeed("edit", evil.name, "replace", "-1", f"y = {EVIL!r}", "--label", f"because{EVIL}\nx")
    name, *rest = words
    if rest[:1] == [":outline"]:
        rest = []
        place = f"{evil.name}:outline"
    else:
        place = evil.name
    assert_tame(call(name, place, *rest))


@pytest.mark.parametrize(
    "words",
    [
        [EVIL],
        ["read", f"{EVIL}.ipynb"],
        ["read", f"nb.ipynb:{EVIL}"],
        ["read", f"nb.ipynb:section={EVIL}"],
        ["read", "nb.ipynb", f"--{EVIL}"],
        ["new", f"made{EVIL}.ipynb"],
        ["config", EVIL],
        ["read", "nb.ipynb", "--root", EVIL],
        ["completion", EVIL],
    ],
    ids=ascii,
)
@pytest.mark.usefixtures("evil")
def test_what_was_typed_is_not_echoed_raw(words: list[str]) -> None:
    assert_tame(call(*words))


def test_a_conflict_shows_both_sides_tamely(evil: Path) -> None:
    answer = call("edit", evil.name, "replace", "0", f"yours {EVIL}", "--expect", "0123")
    assert answer.code == 6
    assert_tame(answer)
    assert "yours" in answer.err


def test_data_in_a_pipe_is_exact_all_the_same(evil: Path) -> None:
    """A pipe is no terminal: who edits the text must get what is in the file."""
    assert f"x = '{EVIL}'".encode() in succeed("read", evil.name).out
    assert json.loads(succeed("read", evil.name, "--json").out)["data"]["path"] == evil.name


@pytest.mark.parametrize(
    "name", [b"a b.ipynb", b"new\nline.ipynb", b"caf\xe9.ipynb", b"-dash.ipynb", b"a:1.ipynb"]
)
def test_any_name_of_a_file_will_do(name: bytes, folder: Path) -> None:
    path = os.fsdecode(name)
    target = os.fsencode(folder) + b"/" + name
    with open(target, "wb") as file:  # noqa: PTH123  # a name in bytes
        file.write(samples.SALES)
    dash = ["--"] if path.startswith("-") else []
    assert succeed("read", *dash, path).text.startswith("# %% [markdown] cell:0")
    data = succeed("read", "--json", *dash, path).data
    assert os.fsencode(data["path"]) == name
    if not dash:
        succeed("edit", path, "delete", "notes")
        assert len(succeed("log", path).text.splitlines()) == 1
        assert succeed("read", f"{path}:1").text == "# %% [markdown] cell:0\n"
    succeed("undo", *dash, path) if not dash else None
    with open(target, "rb") as file:  # noqa: PTH123
        assert file.read() == samples.SALES
