"""What a list of edits did to a notebook: its states before and after, the diff and the undo."""

from __future__ import annotations

import json
import re

from cellwright.document._bytes.slots import FileSlots
from cellwright.document._json.index import BOM
from cellwright.document._json.scan import OPEN_ARRAY, decode, elements
from cellwright.errors import TooDeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cellwright.document._bytes.layout import Layout
    from cellwright.document._bytes.slots import Slot
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import Snapshot


class CellChange:
    """What happened to one cell.

    `kind` is `inserted`, `deleted`, `edited` (source or type), `moved`, or `updated` (outputs or
    metadata). `before` and `after` are its index then and now, None where it did not exist;
    `handle` names it now, or named it before it was deleted.
    """

    __slots__ = ("after", "before", "handle", "kind", "type")

    def __init__(
        self, kind: str, handle: str, type_: str, before: int | None, after: int | None
    ) -> None:
        self.kind = kind
        self.handle = handle
        self.type = type_
        self.before = before
        self.after = after

    def __repr__(self) -> str:
        return f"<{self.kind} {self.handle}: {self.before} -> {self.after}>"


class Pieces:
    """A notebook as bytes: the file with an empty `cells` array, the cells, and their gaps.

    `gaps` has one more item than `cells`. A notebook too old to be edited has only `old`.
    """

    __slots__ = ("cells", "gaps", "old", "skeleton")

    def __init__(
        self,
        skeleton: bytes,
        cells: Sequence[bytes],
        gaps: Sequence[bytes],
        old: bytes | None = None,
    ) -> None:
        self.skeleton = skeleton
        self.cells = cells
        self.gaps = gaps
        self.old = old


class State:
    """The content of a notebook at one moment: a layout, and the snapshot of its cells.

    For an nbformat 2 or 3 notebook, `old` is the file as it is, and the layout its conversion.
    """

    __slots__ = ("_snapshot", "layout", "nbformat", "nbformat_minor", "old")

    def __init__(self, layout: Layout, old: bytes | None = None) -> None:
        self.layout = layout
        self.old = old
        self.nbformat, self.nbformat_minor = layout.version
        self._snapshot: Snapshot | None = None

    @classmethod
    def of_pieces(cls, pieces: Pieces) -> State:
        """The state that `pieces` split, byte for byte."""
        from cellwright.document._bytes.layout import Layout
        from cellwright.document._bytes.slots import Slot

        if pieces.old is not None:
            from cellwright.document.notebook import Notebook

            return Notebook(pieces.old).state
        slots = [Slot.of(raw) for raw in pieces.cells]
        return cls(Layout(pieces.skeleton, slots, pieces.gaps))

    def to_bytes(self) -> bytes:
        """The whole file."""
        return self.old if self.old is not None else self.layout.to_bytes()

    def holds_the_same(self, other: State) -> bool:
        """Whether both have the same bytes."""
        return self is other or self.to_bytes() == other.to_bytes()

    def pieces(self) -> Pieces:
        """All bytes of this state, in pieces that other states can share."""
        layout = self.layout
        if self.old is not None:
            return Pieces(b"", (), (), self.old)
        return Pieces(layout.skeleton, [slot.raw for slot in layout.slots], layout.gaps)

    @property
    def is_surveyed(self) -> bool:
        """Whether its revision is known, or worked out in no time."""
        return self._snapshot is not None or bool(getattr(self.layout.slots, "is_surveyed", False))

    @property
    def snapshot(self) -> Snapshot:
        """Ids and hashes, computed when first needed."""
        if self._snapshot is None:
            from cellwright.document.snapshot import Snapshot

            self._snapshot = Snapshot.of(self.layout.slots)
        return self._snapshot


class Change:
    """The step from one state of a notebook to another.

    `origins` has, for every cell after the change, the index it had before, or None if it is new.
    """

    __slots__ = ("_cells", "after", "before", "edits", "origins")

    def __init__(
        self,
        before: State,
        after: State,
        origins: Sequence[int | None],
        edits: Sequence[Edit] = (),
    ) -> None:
        self.before = before
        self.after = after
        self.origins = origins
        self.edits = tuple(edits)
        self._cells: list[CellChange] | None = None

    @classmethod
    def between(cls, before: State, after: State) -> Change:
        """The step between any two states, with cells paired as in a merge."""
        from cellwright.document.snapshot import align

        pairs = align(before.snapshot, after.snapshot)
        origins: list[int | None] = [None] * len(after.layout.slots)
        for i, j in pairs.items():
            origins[j] = i
        return cls(before, after, origins)

    def __bool__(self) -> bool:
        return self.before is not self.after

    def then(self, other: Change) -> Change:
        """This change and `other`, which was made right after it, as one change."""
        origins = [None if i is None else self.origins[i] for i in other.origins]
        return Change(self.before, other.after, origins, (*self.edits, *other.edits))

    def inverse(self) -> Change:
        """The change that undoes this one, with outputs and every byte.

        When it is applied, later edits of other cells stay, and a cell that was edited again is a
        `Conflict`.
        """
        if self.origins == range(len(self.before.layout.slots)):
            return Change(self.after, self.before, self.origins)
        back: list[int | None] = [None] * len(self.before.layout.slots)
        for after, before in enumerate(self.origins):
            if before is not None:
                back[before] = after
        return Change(self.after, self.before, back)

    @property
    def cells(self) -> list[CellChange]:
        """What happened to each changed cell, in the new order, deleted ones first."""
        if self._cells is None:
            self._cells = self._find_cells()
        return list(self._cells)

    def _find_cells(self) -> list[CellChange]:
        old, new = self.before.layout.slots, self.after.layout.slots
        origins = self.origins
        if isinstance(old, FileSlots) and isinstance(new, FileSlots):
            replaced = old.differ_at(new) if origins == range(len(old)) else None
            if replaced is not None:
                return [
                    CellChange(
                        "updated" if new[i].hash == old[i].hash else "edited",
                        self._handle(self.after, i),
                        new[i].facts.type,
                        i,
                        i,
                    )
                    for i in replaced
                    if new[i].raw != old[i].raw
                ]
        kept = set(origins)
        found = [
            CellChange("deleted", self._handle(self.before, i), old[i].facts.type, i, None)
            for i in range(len(old))
            if i not in kept
        ]
        in_order = longest_increasing([i for i in origins if i is not None])
        for j, i in enumerate(origins):
            if i is None:
                kind = "inserted"
            elif i in in_order and (new[j] is old[i] or new[j].raw == old[i].raw):
                continue
            elif new[j].hash != old[i].hash:
                kind = "edited"
            else:
                kind = "updated" if i in in_order else "moved"
            found.append(CellChange(kind, self._handle(self.after, j), new[j].facts.type, i, j))
        return found

    def _handle(self, state: State, index: int) -> str:
        return state.snapshot.resolver.handle(index)

    def diff(
        self, path: str = "notebook.ipynb", other: str | None = None, *, context: int = 3
    ) -> str:
        """A unified diff, cell by cell; empty if nothing changed.

        `path` and `other` are the file names before and after; `other` defaults to `path`.
        """
        return _render_diff(self, path, other or path, context)


def longest_increasing(values: list[int]) -> set[int]:
    """A longest subsequence that is in order: the values that did not move."""
    from bisect import bisect_left
    from operator import lt

    if all(map(lt, values, values[1:])):
        return set(values)
    tails: list[int] = []
    places: list[int] = []
    previous: dict[int, int | None] = {}
    for value in values:
        at = bisect_left(places, value)
        previous[value] = tails[at - 1] if at else None
        if at == len(places):
            places.append(value)
            tails.append(value)
        else:
            places[at] = value
            tails[at] = value
    chosen = set()
    last: int | None = tails[-1] if tails else None
    while last is not None:
        chosen.add(last)
        last = previous[last]
    return chosen


def _render_diff(change: Change, path: str, other: str, context: int) -> str:
    """The diff of a change; a line with its name comes before the hunks of each cell."""
    lines: list[str] = []
    if change.before.layout.skeleton != change.after.layout.skeleton:
        rows = list(_skeleton_hunks(change, context))
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
    """A name from the notebook or the caller, escaped so that it stays on one line."""
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
        was, now = old.member("metadata"), new.member("metadata")
        if was != now:
            yield from _hunks(_json_lines(was), _json_lines(now), context)
        if old.member("outputs") != new.member("outputs"):
            before, after = _count(old), _count(new)
            yield f"-outputs: {before or 'none'}"
            yield f"+outputs: {after or 'none'}{', changed' if before == after else ''}"


def _skeleton_hunks(change: Change, context: int) -> Iterator[str]:
    before, after = change.before.layout.skeleton, change.after.layout.skeleton
    yield from _hunks(_skeleton_lines(before), _skeleton_lines(after), context)


def _hunks(old: list[str], new: list[str], context: int) -> Iterator[str]:
    if not old or not new:  # a cell that came or went, which may have a million lines
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)
        return
    from difflib import unified_diff

    # The first two rows of difflib are the file names, which are printed once, at the top.
    rows = list(unified_diff(old, new, lineterm="", n=context))[2:]
    # A hunk that starts at the first line needs no header besides the cell's own.
    yield from rows[1:] if rows and re.match(r"@@ -[01][ ,]", rows[0]) else rows


def _source(slot: Slot | None) -> list[str]:
    if slot is None:
        return []
    if slot.facts.problem:
        return slot.raw.decode(errors="replace").split("\n")
    return slot.facts.source.split("\n") if slot.facts.source else []


def _json_lines(raw: bytes | None) -> list[str]:
    """JSON as indented lines; the bytes of the file if it is nested too deeply."""
    if raw is None:
        return []
    try:
        value = decode(raw, "The value")
    except TooDeep:
        return raw.decode(errors="replace").split("\n")
    return json.dumps(value, indent=1, ensure_ascii=False).split("\n")


def _skeleton_lines(skeleton: bytes) -> list[str]:
    """The notebook without its cells."""
    lines = _json_lines(skeleton.removeprefix(BOM))
    return [line for line in lines if not line.startswith(' "cells":')]


def _count(slot: Slot) -> int:
    """How many outputs a cell has."""
    raw = slot.member("outputs")
    return sum(1 for _ in elements(raw, 0)) if raw and raw[0] == OPEN_ARRAY else 0
