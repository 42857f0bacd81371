"""Which cells a sentence means; people count them from 1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cellwright.assistant.context import NotebookContext
    from cellwright.document.snapshot import CellRef

ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
]
_TO = r"-|–|to|through"


def _find(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_quoted = _find(r"\bcells?\s+[`'\"]([^`'\"\n]+)[`'\"]").search
_numbered = _find(rf"\bcells?\s+(\d+(?:\s*(?:,\s*and|,|and|&|{_TO})\s*\d+)*)\b").findall
_ordinal = _find(rf"\b(last|{'|'.join(ORDINALS)})\s+(?:code\s+|markdown\s+)?cell\b").search
_named = _find(r"\bcells?\s+([A-Za-z0-9][\w-]*)").search
_this_cell = _find(
    r"\b(?:this|that|the|current|active)\s+cell\b|\b(?:these|selected)\s+cells?\b"
).search
_all = _find(r"\b(?:all|every|everything|each|entire|whole|notebook)\b").search
_this = _find(r"\b(?:this|these|it|here|selected)\b").search
_range = _find(rf"(\d+)\s*(?:{_TO})\s*(\d+)|(\d+)").finditer


class Unclear(Exception):
    """A sentence does not tell which cell is meant; the message says what to say instead."""


@dataclass(frozen=True, slots=True)
class Meant:
    """The cells that a sentence means, as tools take them; none if it names none."""

    refs: tuple[CellRef, ...] = ()
    is_all: bool = False


def cells_meant(text: str, context: NotebookContext) -> Meant:
    """The cells that a sentence means.

    Raises:
        Unclear: it names a cell that is not there, or one that nobody has selected.
    """
    found = _quoted(text)
    if found:
        return Meant((found[1],))
    numbers = _numbered(text)
    if numbers:
        return Meant(_numbers(" ".join(numbers), context.cell_count))
    found = _ordinal(text)
    if found:
        word = found[1].lower()
        number = context.cell_count if word == "last" else ORDINALS.index(word) + 1
        return Meant((index_of(number, context.cell_count),))
    found = _named(text)
    if found and any(found[1] == cell.id for cell in context.known):
        return Meant((found[1],))
    if _this_cell(text):
        return Meant(selected(context))
    if _all(text):
        return Meant(tuple(range(context.cell_count)), is_all=True)
    return Meant(selected(context)) if _this(text) else Meant()


def index_of(number: int, count: int) -> int:
    """The index of the cell with that number."""
    if 1 <= number <= count:
        return number - 1
    cells = "1 cell" if count == 1 else f"{count} cells"
    raise Unclear(f"There is no cell {number}: the notebook has {cells}, counted from 1.")


def selected(context: NotebookContext) -> tuple[CellRef, ...]:
    """The cell that is being edited, or else those that are selected."""
    cells = context.selected_cells
    found = [cell.id for cell in cells if cell.selection == "active"] or [cell.id for cell in cells]
    if not found:
        raise Unclear("No cell is selected. Select one, or give its number, such as `cell 2`.")
    return tuple(found)


def _numbers(text: str, count: int) -> tuple[int, ...]:
    found: list[int] = []
    for first, last, single in (match.groups() for match in _range(text)):
        low, high = index_of(int(first or single), count), index_of(int(last or single), count)
        found += range(low, high + 1)
    return tuple(dict.fromkeys(found))
