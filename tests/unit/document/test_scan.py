"""The scanner accepts exactly what Python's json accepts, and says where it does not."""

from __future__ import annotations

import json

import pytest

from cellwright.document._bytes.slots import Slot
from cellwright.document._json import index
from cellwright.document._json.scan import (
    _measure_members,
    check,
    list_members,
    members,
    skip_string,
)
from cellwright.errors import InvalidJson, NotUtf8
from tests.cases import for_each


def accepted(text: str) -> bool:
    try:
        check(text.encode("utf-8", "surrogatepass"))
    except InvalidJson:
        return False
    return True


def accepted_by_python(text: str) -> bool:
    try:
        # An integer is kept as text: the limit on its digits is Python's, not JSON's.
        json.loads(text, parse_int=str)
    except json.JSONDecodeError:
        return False
    return True


GOOD = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-0.0",
    "10",
    "1.5",
    "1e5",
    "1E+5",
    "1e-005",
    "0e0",
    "123456789012345678901234567890",
    "NaN",
    "Infinity",
    "-Infinity",
    '""',
    '"a"',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t"',
    '"\\u00e9\\uD800\\udc00"',
    '"\\ud800"',
    '"é \U0001f600 \x7f \u2028"',
    "[]",
    "{}",
    "[ ]",
    "{ }",
    "[1]",
    "[[],[[]]]",
    '{"a":1}',
    '{"a":1,"a":2}',
    '{"":{}}',
    " \t\r\n[ 1 , 2 ] \t\r\n",
    '{ "a" : [ 1 , { "b" : null } ] }',
]
BAD = [
    "",
    " ",
    "nul",
    "nulll",
    "True",
    "None",
    "nan",
    "-NaN",
    "+1",
    "01",
    "-",
    "-a",
    ".5",
    "1.",
    "1.e5",
    "1e",
    "1e+",
    "0x1",
    "1_0",
    "1 2",
    "٣",
    "--1",
    "Infinit",
    "- Infinity",
    '"',
    '"a',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\u 123"',
    '"\\U0001f600"',
    '"a\nb"',
    '"a\tb"',
    '"\x00"',
    '"\x1f"',
    "'a'",
    "[",
    "]",
    "{",
    "}",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[,]",
    "[1 2]",
    "[1}",
    "{]",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,"a":1}',
    '{"a" 1}',
    '{"a",1}',
    "{a:1}",
    "{1:1}",
    "{null:1}",
    '{"a":1 "b":2}',
    '{"a":1]',
    '{"a":[1}',
    '{"a"::1}',
    "[]]",
    "{}{}",
    "[]x",
    "[] ,",
    "//x\n1",
    "[1]\x00",
    "[1]\x0c",
    "\ufeff1",
    "\u00a01",
    "1\u2028",
]


@for_each("text", GOOD)
def test_what_is_json_is_accepted(text: str) -> None:
    assert accepted_by_python(text)
    assert accepted(text)


@for_each("text", BAD)
def test_what_is_not_json_is_refused(text: str) -> None:
    assert not accepted_by_python(text)
    assert not accepted(text)


def test_no_integer_is_too_long() -> None:
    check(b"9" * 10_000)
    check(b"-1" + b"0" * 1_000_000 + b".5e400")


def test_a_long_string_needs_no_stack() -> None:
    check(b'"' + b"\\n" * 1_000_000 + b'"')
    with pytest.raises(InvalidJson):
        check(b'"' + b"\\n" * 1_000_000)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("x", 1, 1),
        ("  x", 1, 3),
        ("[1,\n 2,\n x]", 3, 2),
        ("[1,\r\n2 3]", 2, 3),
        ('{\n "a": 1,\n "b" 2\n}', 3, 6),
        ('{\n "a": 1,\n}', 3, 1),
        ('{\n "a": 1\n', 3, 1),
        ("[]\n[]", 2, 1),
        ('["é", x]', 1, 7),  # columns count characters, not bytes
        ('["漢字\U0001f600", x]', 1, 9),
        ('["é\n"]', 1, 2),  # of a string that is wrong, the place where it opens
        ('[\n"a\\qb"]', 2, 1),
        ('{"a": tru}', 1, 7),
        ('{"a": 01}', 1, 8),
        ("[1, 2", 1, 6),
        ("]", 1, 1),
        ("[1}", 1, 3),
    ],
    ids=repr,
)
def test_an_error_says_at_which_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(InvalidJson) as caught:
        check(text.encode())
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "INVALID_JSON",
        line,
        column,
    )
    assert "\n" not in str(caught.value)


def test_a_check_may_begin_anywhere() -> None:
    check(b"xx[1]", 2)
    with pytest.raises(InvalidJson) as caught:
        check(b"x\n[1", 2)
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_backslashes_before_a_quote_are_counted() -> None:
    for count in range(6):
        data = b'"' + b"\\\\" * count + b'\\"' + b'" "'
        assert skip_string(data, 0) == len(data) - 2
        data = b'"' + b"\\\\" * count + b'" "'
        assert skip_string(data, 0) == len(data) - 2


def test_a_character_on_the_edge_of_a_block_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_BLOCK", 8)
    for start in range(9):
        good = b"x" * start + "aé€😀".encode() * 5
        index.check_utf8(good)
        with pytest.raises(NotUtf8) as caught:
            index.check_utf8(good + b"\xff" + good)
        assert caught.value.offset == len(good)
    with pytest.raises(NotUtf8):
        index.check_utf8(b"x" * 8 + b"\x80" * 40)


LONG = json.dumps({"a\n": ['x]}"' * 30_000], "b": 1.5, "outputs": [{"output_type": "é"}], "c": {}})


@pytest.mark.parametrize("text", [LONG, json.dumps(json.loads(LONG), indent=1)])
def test_the_members_of_a_long_object_are_those_that_are_found_by_brackets(text: str) -> None:
    data = f"  {text}".encode()
    facts = [
        [(m.key, m.key_start, m.key_end, m.start, m.end) for m in found]
        for found in (
            _measure_members(data, 2, len(data)) or (),
            list_members(data, 2, len(data)),
            members(data, 2),
        )
    ]
    assert facts[0] == facts[1] == facts[2]
    assert len(facts[0]) == 4
    slot = Slot(data, 2, len(data))
    assert slot.member("b") == b"1.5"
    assert slot.output_types == ["é"]


def test_a_key_that_comes_twice_is_not_measured() -> None:
    data = b'{"a": [1, 2, 3], "b": 2, "a": 1}'
    assert _measure_members(data, 0, len(data)) is None
    assert [m.end for m in list_members(data, 0, len(data))] == [15, 23, 31]


def test_outputs_without_a_type_are_passed_over() -> None:
    slot = Slot.of(b'{"outputs": [1, {"output_type": "stream"}, {"output_type": 3}, {}]}')
    assert slot.output_types == ["stream"]
    assert Slot.of(b'{"outputs": 1}').output_types == Slot.of(b"{}").output_types == []
