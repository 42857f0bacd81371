"""`Value`: records that are cheap to define, frozen, comparable, and plain data on request."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellwright.workspace.api.values import KW_ONLY, Value, to_plain


class Point(Value):
    """Two numbers."""

    x: int
    y: int = 0


class Shape(Point):
    """More of them; the corners come back as points."""

    OPTIONAL = frozenset({"label"})

    _: KW_ONLY
    corners: list[Point]
    inner: Point | None = None
    label: str | None = None


def test_fields_are_given_by_place_or_by_name() -> None:
    shape = Shape(1, corners=[Point(2)])
    assert (shape.x, shape.y, shape.corners, shape.label) == (1, 0, [Point(2, 0)], None)
    assert Shape.FIELDS == ("x", "y", "corners", "inner", "label")
    assert Shape.list_parameters()[1:3] == [("y", "positional", 0), ("corners", "keyword", ...)]


@pytest.mark.parametrize(
    ("args", "given", "message"),
    [
        ((), {}, "Point needs `x`"),
        ((1, 2, 3), {}, "takes 2 positional arguments, not 3"),
        ((1,), {"z": 1}, "has no `z`"),
        ((1,), {"x": 1}, "the same field twice"),
    ],
)
def test_what_does_not_fit_is_a_type_error_that_says_why(
    args: tuple[int, ...], given: dict[str, int], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Point(*args, **given)


def test_fields_behind_the_mark_are_given_by_name_alone() -> None:
    with pytest.raises(TypeError, match="2 positional"):
        Shape(1, 2, [])  # type: ignore[misc]


def test_a_value_is_frozen_and_equal_to_its_like() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="Point is frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del point.x
    assert point == Point(1, 0)
    assert point != Point(2)
    assert point != Shape(1, corners=[])
    assert point.replace(y=5) == Point(1, 5)
    assert Shape.extend(point, corners=[]) == Shape(1, 0, corners=[])
    assert repr(Shape(1, corners=[point])) == "Shape(x=1, corners=[Point(x=1)])"
    with pytest.raises(TypeError):
        hash(point)


def test_a_value_becomes_plain_data_and_comes_back() -> None:
    shape = Shape(1, corners=[Point(2), Point(3)], inner=Point(4))
    plain = {
        "x": 1,
        "y": 0,
        "corners": [{"x": 2, "y": 0}, {"x": 3, "y": 0}],
        "inner": {"x": 4, "y": 0},
    }
    assert shape.to_json() == plain  # without the label, which is optional
    assert Shape.from_json({**plain, "of a later version": 1}) == shape
    assert Shape(1, corners=[]).to_json()["inner"] is None


def test_data_that_comes_back_is_in_order_and_complete_or_refused() -> None:
    back = Shape.from_json({"corners": [], "y": 3, "inner": None, "x": 1})
    assert list(vars(back)) == list(Shape.FIELDS)
    assert list(vars(Shape(corners=[], x=1))) == list(Shape.FIELDS)
    with pytest.raises(TypeError, match="Shape needs `x`"):
        Shape.from_json({"corners": [], "inner": None, "label": None, "of a later version": 1})


def test_paths_and_sequences_inside_are_plain_too() -> None:
    found = to_plain({"a": (Path("b"), [Point(1)]), "c": None})
    assert found == {"a": ["b", [{"x": 1, "y": 0}]], "c": None}
