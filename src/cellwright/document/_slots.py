"""The cells of a notebook as pieces of bytes, decoded when looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import overload

from cellwright.document._json.index import BOM
from cellwright.document._json.scan import (
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    decode_string,
    elements,
    members,
)
from cellwright.document._survey import Survey, hash_cell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CELL_TYPES = frozenset({"code", "markdown", "raw"})


class Facts:
    """What names a cell and what it says; `problem` tells why it is no valid cell."""

    __slots__ = ("id", "problem", "source", "type")

    def __init__(self, id_: str | None, type_: str, source: str, problem: str | None) -> None:
        self.id = id_
        self.type = type_
        self.source = source
        self.problem = problem


class Slot:
    """The bytes of one cell, somewhere in a buffer; never changed."""

    __slots__ = ("_facts", "_hash", "buffer", "end", "start")

    def __init__(self, buffer: bytes, start: int, end: int, facts: Facts | None = None) -> None:
        self.buffer = buffer
        self.start = start
        self.end = end
        self._facts = facts
        self._hash: str | None = None

    @classmethod
    def of(cls, raw: bytes) -> Slot:
        """A slot of its own for the bytes of a new cell."""
        return cls(raw, 0, len(raw))

    @property
    def raw(self) -> bytes:
        """The cell as it stands in the file."""
        return self.buffer[self.start : self.end]

    def member(self, key: str) -> bytes | None:
        """A member of the cell as it stands in the file."""
        raw = self.raw
        if raw[0] != OPEN_OBJECT:
            return None
        found = [m for m in members(raw, 0) if m.key == key]
        return raw[found[-1].start : found[-1].end] if found else None

    @property
    def output_types(self) -> list[str]:
        """The `output_type` of every output, without a look at anything else in it."""
        raw = self.member("outputs")
        if raw is None or raw[0] != OPEN_ARRAY:
            return []
        return [
            decode_string(raw, member.start, member.end)
            for start, _ in elements(raw, 0)
            if raw[start] == OPEN_OBJECT
            for member in members(raw, start)
            if member.key == "output_type" and raw[member.start] == QUOTE
        ]

    @property
    def facts(self) -> Facts:
        """Id, type and source, decoded once."""
        if self._facts is None:
            self._facts = _read_facts(self.raw)
        return self._facts

    @property
    def said(self) -> str:
        """The source; of a broken cell, which has none to speak of, all its bytes."""
        return f"\0{self.raw.decode()}" if self.facts.problem else self.facts.source

    @property
    def row(self) -> tuple[str | None, str, str]:
        """Id, type and what it says, for a survey."""
        return self.facts.id, self.facts.type, self.said

    @property
    def hash(self) -> str:
        """A short hash of type and source."""
        if self._hash is None:
            self._hash = hash_cell(self.facts.type, self.said)
        return self._hash


def _read_facts(raw: bytes) -> Facts:
    if raw[0] != OPEN_OBJECT:
        return Facts(None, "unknown", "", "not an object")
    spans = {m.key: (m.start, m.end) for m in members(raw, 0)}

    def value(key: str) -> object:
        start, end = spans.get(key, (0, 0))
        try:
            return json.loads(raw[start:end]) if end else None
        except (ValueError, RecursionError):
            return None

    id_, kind, source = value("id"), value("cell_type"), value("source")
    id_ = id_ if isinstance(id_, str) else None
    text = ""
    problem = None
    if isinstance(source, str):
        text = source
    elif isinstance(source, list) and all(isinstance(line, str) for line in source):
        text = "".join(source)
    else:
        problem = "its source is neither a string nor a list of strings"
        if "source" not in spans:
            problem = "it has no source"
    if not isinstance(kind, str):
        kind, problem = "unknown", "it has no cell_type"
    elif kind not in CELL_TYPES:
        problem = f"its cell_type is {kind!r}"
    return Facts(id_, kind, text, problem)


class FileSlots(Sequence[Slot]):
    """The cells of a file, some perhaps replaced, each made a slot when it is looked at.

    A file of ten thousand cells is edited one cell at a time; making an object of each would
    cost more than the edit.
    """

    __slots__ = ("_cache", "_replaced", "buffer", "ends", "starts")

    def __init__(
        self,
        buffer: bytes,
        starts: list[int],
        ends: list[int],
        cache: _Cache,
        replaced: Mapping[int, Slot] | None = None,
    ) -> None:
        self.buffer = buffer
        self.starts = starts
        self.ends = ends
        self._cache = cache
        self._replaced: Mapping[int, Slot] = replaced or {}

    @classmethod
    def of_file(
        cls, buffer: bytes, starts: list[int], ends: list[int], *, strict: bool
    ) -> FileSlots:
        """The cells that stand there; `strict` if msgspec took the file."""
        return cls(buffer, starts, ends, _Cache(strict=strict))

    def replacing(self, slots: Mapping[int, Slot]) -> FileSlots:
        """The same cells but for some; what is shared stays the same object."""
        replaced = {**self._replaced, **slots}
        return FileSlots(self.buffer, self.starts, self.ends, self._cache, replaced)

    def pieces(self) -> Iterator[tuple[int, int, Slot]]:
        """Where something else stands now: start and end in the file, and what."""
        for i in sorted(self._replaced):
            yield self.starts[i], self.ends[i], self._replaced[i]

    def survey(self) -> Survey:
        """What names all cells and what they say, as fast as it can be had."""
        known = self._cache.survey(self.buffer)
        if known is None:
            return Survey.of(slot.row for slot in self)
        if not self._replaced:
            return known
        return known.replacing({i: slot.row for i, slot in self._replaced.items()})

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Slot: ...
    @overload
    def __getitem__(self, index: slice) -> list[Slot]: ...
    def __getitem__(self, index: int | slice) -> Slot | list[Slot]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self.starts)
        slot = self._replaced.get(index) or self._cache.slots.get(index)
        if slot is None:
            slot = Slot(self.buffer, self.starts[index], self.ends[index], self._cache.known(index))
            self._cache.slots[index] = slot
        return slot


def survey(slots: Sequence[Slot]) -> Survey:
    """The ids, types and sources of all cells."""
    if isinstance(slots, FileSlots):
        return slots.survey()
    return Survey.of(slot.row for slot in slots)


class _Cache:
    """What has been found out about the cells of a file; shared by all that was made of it."""

    __slots__ = ("_strict", "_survey", "slots")

    def __init__(self, *, strict: bool) -> None:
        self.slots: dict[int, Slot] = {}
        self._strict = strict
        self._survey: Survey | None = None

    def survey(self, buffer: bytes) -> Survey | None:
        """All cells of the file in one go; None if they have to be looked at one by one."""
        if self._survey is None and self._strict:
            self._strict = False
            from cellwright.document._json.fast import cell_facts

            try:
                facts = cell_facts(memoryview(buffer)[len(BOM) * buffer.startswith(BOM) :])
            except (ValueError, RecursionError):
                return None  # some cell is not a valid one
            types = [fact.cell_type for fact in facts]
            if CELL_TYPES.issuperset(types):
                join = "".join
                sources = [join(fact.source) for fact in facts]
                self._survey = Survey([fact.id for fact in facts], types, sources)
        return self._survey

    def known(self, index: int) -> Facts | None:
        """The facts of one cell, if those of all have been found out already."""
        found = self._survey
        if found is None:
            return None
        return Facts(found.ids[index], found.types[index], found.sources[index], None)
