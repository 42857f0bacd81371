"""The scanner accepts exactly what Python's json accepts, and says where it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellwright.document._json.scan import (
    check,
    decode_string,
    elements,
    members,
    skip_space,
    skip_string,
    skip_value,
)
from cellwright.errors import InvalidJson
from tests.property import strategies
from tests.unit.document.test_scan import accepted, accepted_by_python

# Texts that are JSON, and then not quite: a piece taken out, doubled, or something put in.
PIECES = [
    *'"\\{}[]:, \n\t\r',
    *"0123456789.-+eE",
    "\\u",
    "\\ud83d",
    '\\"',
    "null",
    "true",
    "NaN",
    "-Infinity",
    "\x00",
    "\x1f",
    "\x7f",
    "é",
    '""',
    "[]",
    "{}",
    ',"a":',
    "\ufeff",
    "\u2028",
]
json_texts = st.builds(
    lambda value, style: strategies.write(value, style).decode().removeprefix("\ufeff"),
    strategies.json_values,
    strategies.styles,
)


@st.composite
def almost_json(draw: st.DrawFn) -> str:
    text = draw(json_texts)
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(start + 3, len(text))))
        text = text[:start] + draw(st.sampled_from(["", "", *PIECES])) + text[end:]
    return text


@given(almost_json())
def test_exactly_what_python_accepts_is_accepted(text: str) -> None:
    assert accepted(text) == accepted_by_python(text)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_soup_of_tokens_is_judged_as_python_judges_it(text: str) -> None:
    assert accepted(text) == accepted_by_python(text)


def test_no_nesting_is_too_deep() -> None:
    for depth in (1000, 100_000):
        check(b"[" * depth + b"]" * depth)
        check(b'{"a":' * depth + b"1" + b"}" * depth)
        with pytest.raises(InvalidJson):
            check(b"[" * depth + b"]" * (depth - 1) + b"}")
        with pytest.raises(InvalidJson):
            check(b"[" * depth)


# --- The walkers, on what was checked ------------------------------------------------------------


@given(st.dictionaries(strategies.text, strategies.json_values, max_size=4), strategies.styles)
def test_members_and_their_places_are_found(value: dict[str, Any], style: strategies.Style) -> None:
    data = strategies.write(value, style)
    start = skip_space(data, 3 if style.bom else 0)
    loaded = json.loads(data.decode("utf-8-sig"), parse_float=str, parse_int=str)
    found = list(members(data, start))
    assert {member.key for member in found} == set(loaded)
    for member in found:
        assert json.loads(data[member.key_start : member.key_end]) == member.key
        part = json.loads(data[member.start : member.end], parse_float=str, parse_int=str)
        assert part == loaded[member.key]
    assert skip_value(data, start) == len(data.rstrip())


@given(st.lists(strategies.json_values, max_size=4), strategies.styles)
def test_elements_and_their_places_are_found(value: list[Any], style: strategies.Style) -> None:
    data = strategies.write(value, style)
    start = skip_space(data, 3 if style.bom else 0)
    loaded = json.loads(data.decode("utf-8-sig"), parse_float=str, parse_int=str)
    found = [
        json.loads(data[a:b], parse_float=str, parse_int=str) for a, b in elements(data, start)
    ]
    assert found == loaded


@given(strategies.text, st.booleans())
def test_a_string_is_found_and_decoded(text: str, escape: bool) -> None:
    style = strategies.Style(None, "\n", ":", ",", escape, False, 0, False, "", "")
    data = strategies.write(text, style) + b' , "more"'
    end = skip_string(data, 0)
    assert data[end:] == b' , "more"'
    assert decode_string(data, 0, end) == text
