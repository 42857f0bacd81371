"""A stream is made harmless wherever it is cut, in memory that does not grow."""

from __future__ import annotations

import time

import pytest

from cellwright.outputs.sanitize import (
    ERASE_LINE,
    ERASE_REST,
    LONGEST_SEQUENCE,
    Sanitizer,
    fold_repeats,
)
from tests.unit.outputs.hostile import FORBIDDEN, SEQUENCES

every_sequence = pytest.mark.parametrize(
    ("evil", "left"), [row[1:] for row in SEQUENCES], ids=[row[0] for row in SEQUENCES]
)


def clean(*pieces: str, keep_rewrites: bool = False) -> str:
    stream = Sanitizer(keep_rewrites=keep_rewrites)
    return "".join([*map(stream.feed, pieces), stream.finish()])


@every_sequence
def test_a_hostile_sequence_is_dropped_or_shown(evil: str, left: str) -> None:
    assert clean(f"a{evil}b") == f"a{left}b"
    assert FORBIDDEN.search(clean(f"a{evil}b")) is None


@every_sequence
def test_it_does_not_matter_where_a_sequence_is_cut(evil: str, left: str) -> None:
    text = f"a{evil}b{evil}\n"
    whole = clean(text)
    assert whole.startswith(f"a{left}b")
    for place in range(len(text) + 1):
        assert clean(text[:place], text[place:]) == whole, place
    assert clean(*text) == whole
    assert clean(*text, keep_rewrites=True) == clean(text, keep_rewrites=True)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b", "␛"),
        ("\x1b[12", "12"),
        ("\x1b]0;title", "0;title"),
        ("\x1bPq#", "q#"),
        ("\x1b(", "␛("),
        ("\x9b12", "<U+009B>12"),
        ("\x1b]0;title\x1b", "0;title␛"),
        ("\U0001f3f4\U000e0067", "\U0001f3f4<U+E0067>"),
        ("line\r", "line␍"),
    ],
)
def test_what_is_left_open_at_the_end_is_shown(text: str, seen: str) -> None:
    assert clean(text) == seen


def test_a_return_before_a_newline_is_part_of_it() -> None:
    assert clean("a\r", "\nb\r\nc\rd") == "a\nb\nc␍d"
    assert clean("\x1b]0;open\r", "\nb") == "0;open\nb"
    assert clean("\x1b[1\r", "x") == "1␍x"


def test_rewrites_are_left_to_those_who_carry_them_out() -> None:
    text = "1%\r2%\b\x1b[K\x1b[0K\x1b[2K\x00\x01"
    seen = f"1%\r2%\b{ERASE_REST}{ERASE_REST}{ERASE_LINE}␀␁"
    assert clean(text, keep_rewrites=True) == seen


@pytest.mark.parametrize("end", ["\x07", "\x1b\\", "\x9c", "\n", "\r\n", "\x1b[0m", ""])
def test_of_a_string_without_end_only_the_length_is_told(end: str) -> None:
    size = 3 * LONGEST_SEQUENCE
    text = f"a\x1b]0;{'x' * size}{end}b"
    left = "\n" if end.endswith("\n") else ""
    if end:
        assert clean(text) == f"a<{size + 4:,} characters for a terminal>{left}b"
    else:
        assert clean(text) == f"a<{size + 5:,} characters for a terminal>"
    assert clean(*text) == clean(text)


def test_the_longest_sequence_is_still_one() -> None:
    inside = "x" * LONGEST_SEQUENCE
    assert clean(f"a\x1b]{inside}\x07b") == "ab"
    assert clean(f"a\x1b]{inside}x\x07b") != "ab"


def test_numbers_without_end_are_text() -> None:
    numbers = "9" * (LONGEST_SEQUENCE + 1)
    assert clean(f"a\x1b[{numbers}mb") == f"a{numbers}mb"
    assert clean(f"a\x1b[{numbers}m"[:5000], "b") == f"a{numbers}mb"


def test_no_more_than_one_sequence_is_ever_held_back() -> None:
    stream = Sanitizer()
    most = 0
    stream.feed("\x1b]0;")
    for _ in range(2000):
        assert stream.feed("x" * 1000) == ""
        most = max(most, len(stream._held))
    assert most <= LONGEST_SEQUENCE + 2
    assert stream.finish() == "<2,000,004 characters for a terminal>"


def test_a_sanitizer_can_begin_anew() -> None:
    stream = Sanitizer()
    stream.feed("👩\x1b]0;x")
    assert stream.finish() == "0;x"
    assert stream.feed("\u200d") + stream.finish() == "<U+200D>"


def frames(*names: str) -> str:
    return "\n".join(f"  File 1, in {name}\n    call_{name}()" for name in names)


def test_frames_of_functions_that_call_each_other_are_folded() -> None:
    text = f"{frames('start')}\n{frames(*['a', 'b', 'c'] * 300)}\n{frames('end')}"
    assert fold_repeats(text) == (
        f"{frames('start', 'a', 'b', 'c')}\n[the same 6 lines 299 more times]\n{frames('end')}"
    )
    direct = f"{frames(*['a'] * 50)}\nRecursionError"
    assert fold_repeats(direct) == (
        f"{frames('a')}\n[the same 2 lines 49 more times]\nRecursionError"
    )


@pytest.mark.parametrize("text", ["", "\n" * 50, "a\nb\na\nb\na\nb\nc", frames("a", "b", "c")])
def test_what_does_not_repeat_itself_often_stays(text: str) -> None:
    assert fold_repeats(text) == text


@pytest.mark.parametrize(
    "text", ["\n".join(str(number % 61) for number in range(100_000)), "\n" * 500_000 + "x"]
)
def test_folding_a_long_text_is_quick(text: str) -> None:
    began = time.process_time()
    fold_repeats(text)
    assert time.process_time() - began < 5
