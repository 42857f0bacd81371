"""Edits as data: typed classes, and their JSON shape, which every interface uses.

All references of a list are resolved once, against the notebook before the list; `at: N` means
before the cell that had index N. `expect` is the hash that the cell must still have.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from cellwright.errors import InvalidEdit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cellwright.document.snapshot import CellRef

_DEEPEST = 200


def is_list(value: object) -> bool:
    """Whether it is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_count(value: object) -> bool:
    """Whether it is an integer from 0 on, not a bool."""
    return type(value) is int and value >= 0


def is_json_object(value: object) -> bool:
    """Whether it is an object whose keys are all strings, and which is not nested too deeply."""
    if not isinstance(value, dict):
        return False
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        keys = [key for item in level if isinstance(item, dict) for key in item]
        if not all(isinstance(key, str) for key in keys):
            return False
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list, tuple))
        ]
        if not level:
            return True
    return False


def is_ref(value: object) -> bool:
    """Whether it can refer to a cell."""
    return isinstance(value, str) or type(value) is int


_A_REF = ("a cell id, `cell-N` or an index", is_ref)
_A_TEXT = ("a string", lambda value: isinstance(value, str))
RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "cell": _A_REF,
    "after": _A_REF,
    "before": _A_REF,
    "at": ("an index from 0 on", is_count),
    "source": _A_TEXT,
    "old": ("a string that is not empty", lambda value: isinstance(value, str) and value != ""),
    "new": _A_TEXT,
    "id": _A_TEXT,
    "expect": _A_TEXT,
    "type": ("code, markdown or raw", lambda value: value in ("code", "markdown", "raw")),
    "outputs": ("keep or clear", lambda value: value in ("keep", "clear")),
    "count": ("an integer from 1 on", lambda value: is_count(value) and value > 0),
    "line": ("an integer from 1 on", lambda value: is_count(value) and value > 0),
    "merge": ("true or false", lambda value: isinstance(value, bool)),
    "metadata": ("a JSON object", is_json_object),
    "cells": ("a list of cells", lambda value: is_list(value) and all(map(is_ref, value))),
}


class Edit:
    """One change to a notebook; see the subclasses."""

    __slots__ = ()
    op: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is None and field.default is None:
                continue
            allowed, test = RULES[field.name]
            if not test(value):
                raise InvalidEdit(f"`{field.name}` of `{self.op}` must be {allowed}")
            if isinstance(value, list):  # so that an edit equals the one parsed from its JSON
                object.__setattr__(self, field.name, tuple(value))

    def to_json(self) -> dict[str, Any]:
        """The JSON shape, without the fields that have their default."""
        shape: dict[str, Any] = {"op": self.op}
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value != field.default:
                shape[field.name] = list(value) if isinstance(value, tuple) else value
        return shape


@dataclass(frozen=True, slots=True)
class Replace(Edit):
    """Replace the source of a cell; `outputs` says whether to `keep` or `clear` its outputs."""

    op = "replace"
    cell: CellRef
    source: str
    type: str | None = None
    outputs: str = "keep"
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class ReplaceText(Edit):
    """Replace a text inside a cell; it must occur exactly `count` times, once by default."""

    op = "replace_text"
    cell: CellRef
    old: str
    new: str
    count: int = 1
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Insert(Edit):
    """Add a cell `after` or `before` another, or `at` an index; otherwise at the end."""

    op = "insert"
    source: str = ""
    type: str = "code"
    id: str | None = None
    metadata: Mapping[str, Any] | None = None
    after: CellRef | None = None
    before: CellRef | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Delete(Edit):
    """Remove a cell."""

    op = "delete"
    cell: CellRef
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Move(Edit):
    """Put a cell `after` or `before` another, or `at` an index."""

    op = "move"
    cell: CellRef
    after: CellRef | None = None
    before: CellRef | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Split(Edit):
    """Divide a cell: its first `line` lines stay, the rest becomes a new cell after it."""

    op = "split"
    cell: CellRef
    line: int
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class MergeCells(Edit):
    """Join neighbouring cells into the first, which keeps its id, type and outputs."""

    op = "merge"
    cells: Sequence[CellRef]


@dataclass(frozen=True, slots=True)
class SetType(Edit):
    """Make a cell code, markdown or raw; text has no outputs."""

    op = "set_type"
    cell: CellRef
    type: str
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class SetMetadata(Edit):
    """Merge into (RFC 7396) or replace the metadata of a cell, or of the notebook."""

    op = "set_metadata"
    metadata: Mapping[str, Any]
    cell: CellRef | None = None
    merge: bool = True


@dataclass(frozen=True, slots=True)
class ClearOutputs(Edit):
    """Drop the outputs and execution counts of some cells, or of all."""

    op = "clear_outputs"
    cells: Sequence[CellRef] | None = None


@dataclass(frozen=True, slots=True)
class Splice(Edit):
    """Replace `delete_count` cells at `start` with whole cells in nbformat's shape."""

    op = "splice"
    start: int
    delete_count: int = 0
    cells: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for name in ("start", "delete_count"):
            if not is_count(getattr(self, name)):
                raise InvalidEdit(f"`{name}` of `splice` must be an integer from 0 on")
        if not is_list(self.cells) or not all(map(is_json_object, self.cells)):
            raise InvalidEdit("`cells` of `splice` must be a list of cells")
        object.__setattr__(self, "cells", tuple(self.cells))


@dataclass(frozen=True, slots=True)
class SetOutputs(Edit):
    """Set the outputs and the count of a code cell after a run; callers cannot send this edit."""

    op = "set_outputs"
    cell: CellRef
    outputs: Sequence[Mapping[str, Any]]
    execution_count: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", tuple(self.outputs))


@dataclass(frozen=True, slots=True)
class SetWidgets(Edit):
    """Set the state of the notebook's widgets after a run; callers cannot send this edit.

    Unlike `SetMetadata` it keeps nulls, which are values of a widget.
    """

    op = "set_widgets"
    metadata: Mapping[str, Any]


EDITS: dict[str, type[Edit]] = {
    kind.op: kind
    for kind in (
        Replace,
        ReplaceText,
        Insert,
        Delete,
        Move,
        Split,
        MergeCells,
        SetType,
        SetMetadata,
        ClearOutputs,
        Splice,
    )
}


def parse_edit(value: Edit | Mapping[str, Any], position: int | None = None) -> Edit:
    """Return the edit, or make one from its JSON shape; raises `InvalidEdit`."""
    if isinstance(value, Edit):
        return value
    if not isinstance(value, dict):
        raise InvalidEdit("an edit is an object with `op`", position=position)
    op = value.get("op")
    kind = EDITS.get(op) if isinstance(op, str) else None
    if kind is None:
        raise InvalidEdit(
            f"unknown op {op!r}",
            position=position,
            hint=f"One of {', '.join(EDITS)}{_suggest(str(op), EDITS)}",
        )
    all_fields = fields(kind)  # type: ignore[arg-type]  # a dataclass
    known = [field.name for field in all_fields]
    given = {key: item for key, item in value.items() if key != "op"}
    for key in given:
        if key not in known:
            raise InvalidEdit(
                f"`{kind.op}` has no field `{key}`",
                position=position,
                hint=f"Its fields are {', '.join(known)}{_suggest(str(key), known)}",
            )
    # Notebooks write a source as a list of lines, so models often send one.
    if is_list(given.get("source")) and all(isinstance(x, str) for x in given["source"]):
        given["source"] = "".join(given["source"])
    try:
        return kind(**given)
    except TypeError:
        missing = [
            f"`{field.name}`"
            for field in all_fields
            if field.default is MISSING and field.name not in given
        ]
        raise InvalidEdit(f"`{kind.op}` needs {', '.join(missing)}", position=position) from None
    except InvalidEdit as error:
        raise InvalidEdit(error.message, position=position, hint=error.hint) from None


def _suggest(word: str, known: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1)
    return f"; did you mean `{near[0]}`?" if near else ""
