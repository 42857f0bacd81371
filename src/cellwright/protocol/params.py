"""Parameters of requests: what is taken for what, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cellwright.protocol.codes import Code, Refusal, metadata_refusal
from cellwright.protocol.wire import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_number = re.compile(r"\s*-?\d{1,15}\s*", re.ASCII).fullmatch
_MOST = 10**15


@dataclass(frozen=True, slots=True)
class Span:
    """A range of cells; `end` is not part of it."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SpliceParams:
    """Cells to go and cells to come."""

    start: int
    delete_count: int
    cells: tuple[Mapping[str, Any], ...]


def read_span(params: Mapping[str, Any], count: int) -> Span:
    """The range of a notebook of `count` cells that is asked for; `start == end` is empty."""
    start, end = params.get("start"), params.get("end")
    first, last = _integer(start), _integer(end)
    if first is None or last is None or not 0 <= first <= last:
        raise Refusal(
            Code.INVALID_RANGE,
            f"Invalid cell range: start={_plain(start)}, end={_plain(end)}",
        )
    if last > count:
        raise Refusal(
            Code.OUT_OF_BOUNDS,
            f"Cell range out of bounds: end={last} exceeds cell count of {count}",
        )
    return Span(first, last)


def read_splice(params: Mapping[str, Any], count: int) -> SpliceParams:
    """The splice that is asked for; `delete_count` and `cells` may be left out."""
    start = _integer(params.get("start"))
    if start is None:
        raise _bad_splice(f"start={_plain(params.get('start'))} is not an integer")
    if not 0 <= start <= count:
        raise _bad_splice(f"start={start} is out of bounds")
    given = params.get("delete_count")
    delete_count = 0 if given is None else _integer(given)
    if delete_count is None:
        raise _bad_splice(f"delete_count={_plain(given)} is not an integer")
    if delete_count < 0:
        raise _bad_splice(f"delete_count={delete_count} is negative")
    if start + delete_count > count:
        raise _bad_splice(
            f"delete_count={delete_count} is out of bounds: start={start} leaves {count - start} "
            f"of {count} cells"
        )
    cells = params.get("cells")
    if cells is None:
        cells = []
    if not isinstance(cells, list):
        raise Refusal(Code.INVALID_CELL_DATA, f"Invalid cell data: {shown(cells)} is not a list")
    return SpliceParams(start, delete_count, tuple(map(_cell, cells, range(len(cells)))))


def read_metadata(params: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The metadata to set, and whether to merge them; `merge` may be left out.

    To merge, null removes a field. In a replacement there is nothing to remove, so that a null
    stands for a field that is not there.
    """
    metadata, merge = params.get("metadata"), params.get("merge")
    if not isinstance(metadata, dict):
        raise metadata_refusal(f"{shown(metadata)} is not an object")
    if isinstance(merge, str) and merge.lower() in {"true", "false"}:
        merge = merge.lower() == "true"
    if merge is None:
        merge = True
    if not isinstance(merge, bool):
        raise metadata_refusal(f"merge={_plain(merge)} is neither true nor false")
    if not merge:
        metadata = {key: value for key, value in metadata.items() if value is not None}
    return metadata, merge


def _cell(value: Any, index: int) -> Mapping[str, Any]:
    """A cell as it came, if it is an object; the document drops its nulls and checks the rest."""
    if not isinstance(value, dict):
        raise Refusal(Code.INVALID_CELL_DATA, f"Invalid cell data at index {index}: not an object")
    count = value.get("execution_count")
    if isinstance(count, str) and (number := _integer(count)) is not None:
        return {**value, "execution_count": number}
    return value


def _bad_splice(reason: str) -> Refusal:
    return Refusal(Code.INVALID_SPLICE_PARAMS, f"Invalid splice parameters: {reason}")


def _integer(value: Any) -> int | None:
    """A number, also one written as a string or, without a fraction, as a float."""
    if isinstance(value, str) and _number(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST:
        return int(value)
    return value if type(value) is int and abs(value) < _MOST else None


def _plain(value: Any) -> str:
    """A value beside its name: numbers as they are, whatever they were written as."""
    number = _integer(value)
    return shown(value) if number is None else str(number)
