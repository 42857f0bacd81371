"""What goes to stdout, what to stderr, in which bytes and colours."""

from __future__ import annotations

import json
import sys
import unicodedata
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cellwright.cli.commands import git
from cellwright.cli.output import one_line, printable, read_input, uses_colors
from cellwright.errors import SystemRefused
from tests.unit.cli import samples
from tests.unit.cli.calling import call, succeed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("folder")

# --- What a notebook says must not drive the terminal --------------------------------------------

CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(st.characters(codec=None)))
@example("\x1b[31m\x9b\x07\r\x08\x7f\x85\u2028\u202e\ud800")
def test_printable_text_drives_no_terminal(text: str) -> None:
    shown = printable(text)
    bad = [c for c in shown if c not in "\n\t" and unicodedata.category(c) in CONTROLS]
    assert [c for c in bad if ord(c) <= 0xFFFF] == []
    assert shown.count("\n") == text.count("\n")


@given(st.text(st.characters(codec=None)))
@example("id\nerror: forged")
def test_a_name_on_one_line_stays_on_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert one_line(text).isprintable() or any(ord(c) > 0xFFFF for c in text)


@pytest.mark.parametrize("character", [*"\u200b\u2066\ufeff\xad\u3164", "\U000e0041", "\U000e0001"])
def test_what_a_person_cannot_see_is_named(character: str) -> None:
    assert printable(f"a{character}b") == f"a<U+{ord(character):04X}>b"


@pytest.mark.parametrize("text", ["total = 42\n\tif x:\n", "größer, 大きい, 🙂", ""])
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text


# --- Colours -------------------------------------------------------------------------------------


class Terminal:
    def isatty(self) -> bool:
        return True


class Pipe:
    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("no_color", "force_color", "terminal", "expected"),
    [
        (None, None, True, True),
        (None, None, False, False),
        ("1", None, True, False),
        ("", None, True, True),
        (None, "1", False, True),
        (None, "", False, False),
        ("1", "1", True, False),
    ],
)
def test_colours_are_for_terminals_unless_the_environment_says_otherwise(
    no_color: str | None,
    force_color: str | None,
    terminal: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("NO_COLOR", no_color), ("FORCE_COLOR", force_color)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert uses_colors(Terminal() if terminal else Pipe()) is expected


COLORED = [
    ["edit", "nb.ipynb", "replace", "sum", "total + 1"],
    ["edit", "nb.ipynb", "replace", "sum", "total + 1", "--dry-run"],
    ["edit", "nb.ipynb", "replace", "sum", "total + 1", "--diff"],
    ["diff", "nb.ipynb", "other.ipynb"],
    ["log", "nb.ipynb"],
    ["read", "nowhere.ipynb"],
    ["raed"],
    ["new", "made.ipynb"],
]


@pytest.mark.parametrize("words", COLORED, ids=" ".join)
def test_meaning_is_never_by_colour_alone(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words stand there without colours, and none are used in a pipe."""
    (folder / "other.ipynb").write_bytes(samples.SALES.replace(b"total", b"sum"))
    succeed("edit", "nb.ipynb", "delete", "notes")
    state = (folder / "nb.ipynb").read_bytes()

    def run() -> tuple[str, str]:
        (folder / "nb.ipynb").write_bytes(state)
        (folder / "made.ipynb").unlink(missing_ok=True)
        answer = call(*words)
        return answer.text, answer.err

    run()  # what was done to the file above is an outside change, once
    plain = run()
    assert "\x1b" not in "".join(plain)
    monkeypatch.setenv("FORCE_COLOR", "1")
    colored = run()
    assert "\x1b[" in "".join(colored)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(run())
    for one, other in zip(plain, colored, strict=True):
        lines = [line for line in click.unstyle(other).splitlines() if "Change:" not in line]
        if words[0] != "log":
            assert lines == [line for line in one.splitlines() if "Change:" not in line]


# --- stdin ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["-"], []], ids=["dash", "nothing"])
@pytest.mark.parametrize(
    ("stdin", "source"),
    [("x = 1\n", "x = 1"), ("x = 1", "x = 1"), ("x\n\n", "x\n"), ("", ""), ("\n", "")],
)
def test_a_source_comes_from_stdin_without_the_newline_that_ends_it(
    words: list[str], stdin: str, source: str
) -> None:
    succeed("edit", "nb.ipynb", "replace", "sum", *words, stdin=stdin)
    cells = succeed("read", "nb.ipynb", "--json").data["cells"]
    assert cells[2]["source"] == source


def test_edits_and_texts_come_from_a_file_or_from_stdin(folder: Path) -> None:
    edits = '[{"op": "delete", "cell": "notes"}]'
    (folder / "edits.json").write_text(edits, encoding="utf-8")
    (folder / "text.txt").write_text("# %% [code]\nx\n", encoding="utf-8")
    revisions = set()
    for words, stdin in (
        (["edit", "nb.ipynb", "apply", "edits.json"], ""),
        (["edit", "nb.ipynb", "apply", "-"], edits),
        (["edit", "nb.ipynb", "apply"], edits),
    ):
        revisions.add(succeed(*words, "--dry-run", "--json", stdin=stdin).data["revision"])
    assert len(revisions) == 1
    diffs = set()
    for words, stdin in (
        (["--from", "text.txt"], ""),
        (["--from", "-"], "# %% [code]\nx\n"),
        ([], "# %% [code]\nx\n"),
    ):
        diff = succeed("write", "nb.ipynb", *words, "--dry-run", stdin=stdin).text
        diffs.add(diff.rpartition("@@ cell ")[0])
    assert len(diffs) == 1


def test_input_that_is_no_utf_8_is_refused_with_its_place() -> None:
    answer = call("edit", "nb.ipynb", "replace", "sum", "-", stdin=b"caf\xe9\n")
    assert answer.code == 2
    assert "byte 3" in answer.err


def test_a_closed_stdin_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(click.UsageError):
        read_input("-")


def test_who_types_is_told_how_to_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = TextIOWrapper(BytesIO(b"x = 1\n"))
    monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", typed)
    assert read_input(None) == "x = 1\n"
    assert "Ctrl-D" in capsys.readouterr().err


# --- Bytes ---------------------------------------------------------------------------------------

SURROGATE = samples.write(samples.code("only", "x")).replace(b'"x"', rb'"x = \"\ud800\""')


def test_json_is_utf_8_even_if_a_source_is_not(folder: Path) -> None:
    (folder / "odd.ipynb").write_bytes(SURROGATE)
    for words in (["read", "odd.ipynb"], ["read", "odd.ipynb:cell=only"]):
        answer = succeed(*words, "--json")
        answer.out.decode()
        assert "\ud800" in json.loads(answer.out)["data"]["text"]
    dry = succeed("edit", "odd.ipynb", "delete", "only", "--dry-run", "--json")
    assert "\ud800" in dry.data["diff"]


def test_what_was_read_can_be_written_back_even_if_it_is_no_utf_8(folder: Path) -> None:
    (folder / "odd.ipynb").write_bytes(SURROGATE)
    text = succeed("read", "odd.ipynb").out
    assert not succeed("write", "odd.ipynb", "--json", stdin=text).data["changed"]
    edited = text.replace(b"x = ", b"y = ")
    assert succeed("write", "odd.ipynb", "--json", stdin=edited).data["changed"]
    assert succeed("read", "odd.ipynb").out == edited
    assert rb"\ud800" in (folder / "odd.ipynb").read_bytes()


def test_letters_of_all_scripts_stand_in_json_as_they_are(folder: Path) -> None:
    (folder / "letters.ipynb").write_bytes(samples.write(samples.code("only", "größer = '大'")))
    assert "größer = '大'".encode() in succeed("read", "letters.ipynb", "--json").out


def test_read_prints_one_terminator_after_the_last_cell(folder: Path) -> None:
    for source in ("x", "x\n", "x\n\n", ""):
        (folder / "one.ipynb").write_bytes(samples.write(samples.code("only", source)))
        text = "# %% [code] cell:0" + (f"\n{source}" if source else "")
        assert succeed("read", "one.ipynb").text == text + "\n"
        before = (folder / "one.ipynb").read_bytes()
        for written in (text, text + "\n"):
            if written == text + "\n" or not source.endswith("\n"):
                assert not succeed("write", "one.ipynb", "--json", stdin=written).data["changed"]
        assert (folder / "one.ipynb").read_bytes() == before


def test_a_notebook_without_cells_is_no_text_at_all(folder: Path) -> None:
    (folder / "empty.ipynb").write_bytes(samples.write())
    assert succeed("read", "empty.ipynb").out == b""
    assert not succeed("write", "empty.ipynb", "--json").data["changed"]


@pytest.mark.parametrize(
    "data",
    [
        samples.SALES,
        samples.SALES.rstrip(b"\n"),
        samples.SALES.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + samples.SALES,
        b'{"cells": [',
        b"caf\xe9 \xff\x00",
        b"",
        b"\n\n",
    ],
    ids=["as is", "no newline", "CRLF", "BOM", "broken", "no UTF-8", "empty", "blank"],
)
def test_raw_prints_the_file_to_the_byte_whatever_it_holds(data: bytes, folder: Path) -> None:
    """Only without `:raw` is a file treated as a notebook."""
    (folder / "any.ipynb").write_bytes(data)
    assert succeed("read", "any.ipynb:raw").out == data


def test_without_raw_a_file_is_treated_as_a_notebook(folder: Path) -> None:
    (folder / "any.ipynb").write_bytes(b'{"cells": [')
    assert call("read", "any.ipynb", "--json").error["code"] == "INVALID_JSON"
    assert call("read", "any.ipynb:1-2", "--json").error["code"] == "INVALID_JSON"
    assert succeed("read", "nb.ipynb").text.startswith("# %% [markdown] cell:0\n")
    assert succeed("read", "nb.ipynb:raw").text.startswith("{")


def test_a_text_for_git_that_cannot_be_printed_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "nb.ipynb").write_bytes(samples.SALES)

    printed: list[str] = []

    def refuse_once(text: str) -> None:  # afterwards stdout is discarded
        printed.append(text)
        if len(printed) == 1:
            raise SystemRefused("No space left on device (standard output)")

    monkeypatch.setattr(git, "write", refuse_once)
    assert call("git", "textconv", "nb.ipynb").code == 3
