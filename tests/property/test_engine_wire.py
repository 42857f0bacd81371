"""Frames on the engine's socket, whatever is in them and however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cellwright.engine import wire


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"")), max_size=8), st.data())
def test_any_chunking_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines) + b"half"
    frames = wire.Frames()
    found = []
    while whole:
        size = data.draw(st.integers(1, len(whole)))
        frames.feed(whole[:size])
        whole = whole[size:]
        while (line := frames.next()) is not None:
            found.append(line)
    assert found == lines


@given(st.text(st.characters()), st.floats(), st.integers())
def test_whatever_a_string_can_hold_survives(text: str, number: float, whole: int) -> None:
    message = {"text": text, "number": [repr(number)], "whole": whole}
    line = wire.encode(message)
    assert line.count(b"\n") == 1
    assert wire.decode(line) == message
