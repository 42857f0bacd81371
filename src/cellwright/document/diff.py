"""A change as a unified diff that speaks of cells."""

from __future__ import annotations

import json
import re
from difflib import unified_diff

from cellwright.document._json.index import BOM
from cellwright.document._json.scan import OPEN_ARRAY, elements
from cellwright.document._surgery import decode
from cellwright.errors import TooDeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cellwright.document._slots import Slot
    from cellwright.document.change import CellChange, Change

_FIRST_LINE = re.compile(r"@@ -[01][ ,]")


def unified(change: Change, path: str, other: str, context: int) -> str:
    """The diff of a change; the hunks of each cell stand under a line that names it."""
    lines: list[str] = []
    if change.before.layout.skeleton != change.after.layout.skeleton:
        rows = list(_skeleton_rows(change, context))
        if rows:
            lines += ["@@ notebook @@", *rows]
    for cell in change.cells:
        lines += [f"@@ {_title(cell)} @@", *_cell_rows(change, cell, context)]
    if not lines:
        return ""
    return "\n".join([f"--- a/{_name(path)}", f"+++ b/{_name(other)}", *lines]) + "\n"


def _title(cell: CellChange) -> str:
    if cell.kind == "deleted":
        place = f"was at index {cell.before}"
    elif cell.before is None or cell.before == cell.after:
        place = f"index {cell.after}"
    else:
        place = f"index {cell.before} -> {cell.after}"
    return f"cell {_name(cell.handle)} ({_name(cell.type)}, {place}) {cell.kind}"


def _name(text: str) -> str:
    """A name from outside, which must not start a line of its own."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cell_rows(change: Change, cell: CellChange, context: int) -> Iterator[str]:
    old = change.before.layout.slots[cell.before] if cell.before is not None else None
    new = change.after.layout.slots[cell.after] if cell.after is not None else None
    if old and new and old.facts.type != new.facts.type:
        yield f"-[{old.facts.type}]"
        yield f"+[{new.facts.type}]"
    yield from _hunks(_source(old), _source(new), context)
    if old and new:
        yield from _hunks(_shown(old.member("metadata")), _shown(new.member("metadata")), context)
        if old.member("outputs") != new.member("outputs"):
            yield f"-outputs: {_count(old)}"
            yield f"+outputs: {_count(new)}"


def _skeleton_rows(change: Change, context: int) -> Iterator[str]:
    before, after = change.before.layout.skeleton, change.after.layout.skeleton
    yield from _hunks(_shown_top(before), _shown_top(after), context)


def _hunks(old: list[str], new: list[str], context: int) -> Iterator[str]:
    # The first two rows of difflib are file names, which the caller has written once.
    rows = list(unified_diff(old, new, lineterm="", n=context))[2:]
    # A hunk that starts at the first line needs no other head than the cell's own.
    yield from rows[1:] if rows and _FIRST_LINE.match(rows[0]) else rows


def _source(slot: Slot | None) -> list[str]:
    if slot is None:
        return []
    if slot.facts.problem:
        return slot.raw.decode(errors="replace").split("\n")
    return slot.facts.source.split("\n") if slot.facts.source else []


def _shown(raw: bytes | None) -> list[str]:
    """JSON in lines; what nobody can decode as it stands in the file."""
    if raw is None:
        return []
    try:
        value = decode(raw, "The value")
    except TooDeep:
        return raw.decode(errors="replace").split("\n")
    return json.dumps(value, indent=1, ensure_ascii=False).split("\n")


def _shown_top(skeleton: bytes) -> list[str]:
    """The notebook without its cells, of which the skeleton has none."""
    lines = _shown(skeleton.removeprefix(BOM))
    return [line for line in lines if not line.startswith(' "cells":')]


def _count(slot: Slot) -> str:
    raw = slot.member("outputs")
    count = sum(1 for _ in elements(raw, 0)) if raw and raw[0] == OPEN_ARRAY else 0
    return f"{count} kept" if count else "none"
