"""What each verb asks, step by step, whoever waits for the answers and however.

A generator yields requests, gets their results, and returns what the verb does.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from cellwright_kernel.errors import OutOfRange
from cellwright_kernel.views import Cell, CellLike, shape_of


class Ask(NamedTuple):
    """One request."""

    method: str
    params: Mapping[str, Any] = MappingProxyType({})


Steps = Generator[Ask, "dict[str, Any]", Any]


def cell_count() -> Steps:
    """How many cells there are."""
    result = yield Ask("get_cell_count")
    return int(result["count"])


def cell_range(start: int, end: int | None) -> Steps:
    """Some cells."""
    start, end = yield from _range(start, end)
    result = yield Ask("get_cell_range", {"start": start, "end": end})
    return [Cell.of(shape, start + i) for i, shape in enumerate(result["cells"])]


def splice(start: int, delete_count: int, cells: CellLike | Iterable[CellLike]) -> Steps:
    """Replace cells."""
    start = yield from _place(start)
    given = [cells] if isinstance(cells, (str, dict, Cell)) else cells
    shapes = [shape_of(cell) for cell in given]
    result = yield Ask(
        "splice_cell_range", {"start": start, "delete_count": delete_count, "cells": shapes}
    )
    where = result.get("affected_range") or {}
    return range(int(where.get("start", start)), int(where.get("end", start + len(shapes))))


def insert(cell: CellLike, at: int | None) -> Steps:
    """Insert a cell; the index it has now."""
    place = (yield from cell_count()) if at is None else at
    affected = yield from splice(place, 0, [cell])
    return affected.start


def get_metadata() -> Steps:
    """The notebook's metadata."""
    result = yield Ask("get_notebook_metadata")
    return result["metadata"]


def set_metadata(metadata: dict[str, Any], *, merge: bool) -> Steps:
    """Change the notebook's metadata."""
    yield Ask("set_notebook_metadata", {"metadata": metadata, "merge": merge})


def run(start: int, end: int | None) -> Steps:
    """Run cells."""
    start, end = yield from _range(start, end)
    yield Ask("execute_cell_range", {"start": start, "end": end})


def find(cell_id: str | None) -> Steps:
    """The index of the cell with an id."""
    if cell_id is not None:
        for cell in (yield from cell_range(0, (yield from cell_count()))):
            if cell.id == cell_id:
                return cell.index
    raise OutOfRange("It is not known which cell this is", "OUT_OF_BOUNDS")


def _range(start: int, end: int | None) -> Steps:
    """One cell if there is no end; negative numbers count from the end of the notebook."""
    if start < 0 or (end is not None and end < 0):
        count = yield from cell_count()
        start = start + count if start < 0 else start
        end = end + count if end is not None and end < 0 else end
    return start, start + 1 if end is None else end


def _place(start: int) -> Steps:
    if start < 0:
        start += yield from cell_count()
    return start
