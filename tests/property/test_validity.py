"""Our rules for what may be written, held against nbformat's own schema."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from cellwright.document._bytes.validity import cell_problem, is_valid_id
from tests.unit.document.samples import IMAGE, code, markdown, raw
from tests.unit.document.test_validity import CELL_METADATA, MINORS, ODD, OUTPUTS, accepts

odd = st.sampled_from(ODD)


@st.composite
def bent(draw: st.DrawFn, value: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """The object, perhaps with a member or two missing, added or odd."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        key = draw(st.sampled_from(keys))
        if draw(st.booleans()):
            value[key] = draw(odd)
        else:
            value.pop(key, None)
    return value


@st.composite
def cells(draw: st.DrawFn, minor: int) -> dict[str, Any]:
    """A cell that is valid, or almost."""
    make = draw(st.sampled_from([code, markdown, raw]))
    cell = make("x\ny", "id" if minor >= 5 else None)
    if make is code:
        drawn = draw(st.lists(st.sampled_from(OUTPUTS), max_size=2))
        cell["outputs"] = [
            draw(bent(output, [*output, "x_own", "text", "data"])) for output in drawn
        ]
    elif draw(st.booleans()):
        cell["attachments"] = dict(IMAGE)
    cell["metadata"] = draw(bent({}, CELL_METADATA))
    return draw(bent(cell, [*cell, "id", "outputs", "attachments", "execution_count", "x_own"]))


@given(st.data())
def test_a_cell_has_a_problem_exactly_where_nbformat_sees_one(draw: Any) -> None:
    minor = draw.draw(st.sampled_from(MINORS))
    cell = draw.draw(cells(minor))
    assert (cell_problem(cell, minor) is None) == accepts(minor, cell)


@given(st.text(max_size=70) | st.text("abcXYZ019-_", max_size=70))
@example("a" * 64)
@example("a" * 65)
@example("a\n")
@example("é")
@example("٣")
def test_an_id_is_valid_exactly_where_nbformat_says_so(id_: str) -> None:
    assert is_valid_id(id_) == accepts(5, raw("", id_))
