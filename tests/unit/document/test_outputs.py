"""What a code cell printed, showed or raised, as typed values."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cellwright import Display, ErrorOutput, Output, Result, Stream
from cellwright.document.outputs import Unknown, parse_output
from tests.unit.document.samples import IMAGE, book, code, markdown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]},
            Stream("stdout", "a\nb"),
        ),
        ({"output_type": "stream", "name": "stderr", "text": "a"}, Stream("stderr", "a")),
        ({"output_type": "stream", "name": "stdout", "text": []}, Stream("stdout", "")),
        (
            {
                "output_type": "display_data",
                "data": {"text/plain": ["a\n", "b"], "image/png": "QUJD\n"},
                "metadata": {"image/png": {"width": 3}},
            },
            Display({"text/plain": "a\nb", "image/png": "QUJD\n"}, {"image/png": {"width": 3}}),
        ),
        (
            {
                "output_type": "execute_result",
                "data": {"text/html": ["<b>", "</b>"]},
                "metadata": {},
                "execution_count": 7,
            },
            Result({"text/html": "<b></b>"}, {}, 7),
        ),
        (
            {"output_type": "execute_result", "data": {}, "metadata": {}, "execution_count": None},
            Result({}, {}, None),
        ),
        (
            {"output_type": "error", "ename": "E", "evalue": "why", "traceback": ["a", "\x1b[0mb"]},
            ErrorOutput("E", "why", ("a", "\x1b[0mb")),
        ),
        (
            {"output_type": "error", "ename": "E", "evalue": "", "traceback": []},
            ErrorOutput("E", ""),
        ),
    ],
)
def test_an_output_becomes_the_type_it_says_it_is(value: dict[str, Any], expected: Output) -> None:
    assert parse_output(value) == expected
    assert type(parse_output(value)) is type(expected)
    assert book(code("x", "aa", outputs=[value])).cells[0].outputs == (expected,)


@pytest.mark.parametrize(
    "mime", ["application/json", "application/vnd.x+json", "application/+json"]
)
def test_a_list_that_is_json_is_not_joined(mime: str) -> None:
    for data in (["a", "b"], [], [1, "a"], [["a"]], {"a": ["b", "c"]}, None, 5):
        value = {"output_type": "display_data", "data": {mime: data}, "metadata": {}}
        assert parse_output(value) == Display({mime: data})


@pytest.mark.parametrize(
    "mime", ["text/plain", "image/svg+xml", "application/javascript", "model/gltf+json", "x/json"]
)
def test_lines_of_every_other_type_are_joined(mime: str) -> None:
    value = {"output_type": "display_data", "data": {mime: ["a\n", "b"]}, "metadata": {}}
    assert parse_output(value) == Display({mime: "a\nb"})


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        "text",
        [],
        {},
        {"output_type": None},
        {"output_type": "pyout"},
        {"output_type": "update_display_data", "data": {}, "metadata": {}},
        {"output_type": ["stream"]},
        {"output_type": "stream", "name": "stdout", "text": None},
        {"output_type": "stream", "name": "stdout", "text": 5},
        {"output_type": "stream", "name": "stdout", "text": ["a", 5]},
        {"output_type": "stream", "name": "stdout", "text": {"a": "b"}},
        {"output_type": "display_data", "metadata": {}},
        {"output_type": "display_data", "data": [], "metadata": {}},
        {"output_type": "execute_result", "data": None},
    ],
    ids=repr,
)
def test_what_does_not_fit_is_kept_as_it_is(value: Any) -> None:
    assert parse_output(value) == Unknown(value)
    assert book(code("x", "aa", outputs=[value])).cells[0].outputs == (Unknown(value),)


def test_what_is_missing_has_a_default() -> None:
    assert parse_output({"output_type": "stream", "text": "a"}) == Stream("stdout", "a")
    assert parse_output({"output_type": "display_data", "data": {}}) == Display({}, {})
    assert parse_output({"output_type": "error"}) == ErrorOutput("", "")


def test_a_result_is_a_display_and_not_the_other_way_round() -> None:
    assert isinstance(Result({}), Display)
    assert Result({}) != Display({})


@pytest.mark.parametrize(
    "output", [Stream("stdout", ""), Display({}), Result({}), ErrorOutput("", ""), Unknown(None)]
)
def test_an_output_cannot_be_changed(output: Output) -> None:
    field = dataclasses.fields(output)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(output, field, "changed")


@pytest.mark.parametrize("outputs", [None, {}, 5, "text"])
def test_outputs_that_are_no_list_are_none(outputs: Any) -> None:
    assert book(code("x", "aa", outputs=outputs)).cells[0].outputs == ()


def test_text_has_no_outputs() -> None:
    assert book(markdown("x", "aa", attachments=IMAGE)).cells[0].outputs == ()
