"""The cells of a notebook as pieces of bytes, decoded when looked at."""

from __future__ import annotations

import json

from cellwright.document._json.scan import (
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    decode_string,
    elements,
    members,
)
from cellwright.document._survey import hash_cell

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
