"""What a code cell printed, showed or raised, as typed values."""

from __future__ import annotations

import json
from typing import Any

import nbformat.v4
from hypothesis import given
from hypothesis import strategies as st

from cellwright import Display, ErrorOutput, Stream
from cellwright.document.outputs import Unknown, parse_output
from tests.property import strategies
from tests.unit.document.samples import book, code, fewer_examples


@given(strategies.outputs())
@fewer_examples
def test_lines_are_joined_as_nbformat_joins_them(value: dict[str, Any]) -> None:
    value = json.loads(strategies.write(value, PLAIN))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell()])
    notebook.cells[0].outputs = [nbformat.from_dict(value)]
    nbformat.v4.rwbase.rejoin_lines(notebook)
    (joined,) = notebook.cells[0].outputs
    found = parse_output(value)
    if isinstance(found, Stream):
        assert found.text == joined.text
    elif isinstance(found, Display):
        assert same(found.data, joined.data)
    else:
        assert isinstance(found, ErrorOutput)
        assert list(found.traceback) == joined.traceback


PLAIN = strategies.Style(None, "\n", ":", ",", True, False, 0, False, "", "")


def same(one: Any, two: Any) -> bool:
    """Also for infinities, which are not equal to themselves as NaN, but as text."""
    return json.dumps(one) == json.dumps(two)


@given(st.lists(strategies.outputs(), max_size=3))
@fewer_examples
def test_every_valid_output_is_known(outputs: list[dict[str, Any]]) -> None:
    outputs = json.loads(strategies.write(outputs, PLAIN))
    found = book(code("x", "aa")).cells[0].outputs
    assert found == ()
    parsed = [parse_output(output) for output in outputs]
    assert not any(isinstance(output, Unknown) for output in parsed)
