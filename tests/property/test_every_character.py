"""A stream is made harmless wherever it is cut, in memory that does not grow."""

from __future__ import annotations

import sys

import pytest

from cellwright.outputs import sanitize
from cellwright.outputs.sanitize import Sanitizer, unsafe
from tests.unit.outputs.hostile import FORBIDDEN


def clean(*pieces: str, keep_rewrites: bool = False) -> str:
    stream = Sanitizer(keep_rewrites=keep_rewrites)
    return "".join([*map(stream.feed, pieces), stream.finish()])


@pytest.mark.parametrize(
    "text",
    [
        "\x9d" * 60_000,
        ("\x9d" * 4000 + "\n") * 15,
        "\x1b" * 60_000,
        "\x1b[" * 30_000,
        "\x1b]" * 30_000,
        ("\x1b[" + "1" * 4000 + "\n") * 15,
        "\u0334" * 60_000,
        ("\U0001f3f4" + "\U000e0067" * 9) * 6000,
    ],
    ids=["strings", "short strings", "escapes", "CSI", "OSC", "numbers", "marks", "flags"],
)
def test_no_text_takes_long(text: str) -> None:
    """A scan that is not linear would run into the timeout of the test."""
    assert FORBIDDEN.search(clean(text)) is None
    assert clean(text[:20_000], text[20_000:]) == clean(text)


def test_what_passes_without_a_look_holds_nothing_unsafe() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    plain = sanitize._stream_patterns(keep_rewrites=False).plain
    quick = "".join(found[0] for found in plain.finditer(every))
    assert len(quick) > 120_000
    assert unsafe.search(quick) is None
    plain = sanitize._stream_patterns(keep_rewrites=True).plain
    rewritten = "".join(found[0] for found in plain.finditer(every))
    assert set(rewritten) - set(quick) == {"\r", "\b"}


def test_no_character_at_all_is_let_through_that_could_harm() -> None:
    for start in range(0, sys.maxunicode + 1, 4096):
        text = " ".join(map(chr, range(start, start + 4096)))
        assert FORBIDDEN.search(clean(text)) is None
