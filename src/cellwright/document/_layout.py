"""A notebook as pieces of bytes: a skeleton without cells, the cells, and what separates them.

Nothing here is ever changed in place. An edited notebook is a new `Layout` that shares every
untouched cell with the one before, so that comparing, undoing and saving touch only what differs.
"""

from __future__ import annotations

import json
import sys
from hashlib import blake2b

from cellwright.document._json.index import BOM, index
from cellwright.document._json.scan import OPEN_OBJECT, members, skip_space
from cellwright.document._json.style import Style, escapes_unicode
from cellwright.errors import InvalidNotebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cellwright.document._json.scan import Member

CELL_TYPES = ("code", "markdown", "raw")


class Facts:
    """What names a cell and what it says; `problem` tells why it is no valid cell."""

    __slots__ = ("id", "problem", "source", "type")

    def __init__(self, id_: str | None, type_: str, source: str, problem: str | None) -> None:
        self.id = id_
        self.type = type_
        self.source = source
        self.problem = problem


class Slot:
    """The bytes of one cell, somewhere in a buffer."""

    __slots__ = ("_facts", "_hash", "buffer", "end", "start")

    def __init__(self, buffer: bytes, start: int, end: int) -> None:
        self.buffer = buffer
        self.start = start
        self.end = end
        self._facts: Facts | None = None
        self._hash: str | None = None

    @classmethod
    def of(cls, raw: bytes) -> Slot:
        """A slot of its own for the bytes of a new cell."""
        return cls(raw, 0, len(raw))

    @property
    def raw(self) -> bytes:
        """The cell as it stands in the file."""
        return self.buffer[self.start : self.end]

    @property
    def facts(self) -> Facts:
        """Id, type and source, decoded once."""
        if self._facts is None:
            self._facts = _read_facts(self)
        return self._facts

    @property
    def hash(self) -> str:
        """A short hash of type and source."""
        if self._hash is None:
            facts = self.facts
            # A broken cell has no source to speak of: any change of its bytes counts.
            text = facts.source.encode("utf-8", "surrogatepass") if not facts.problem else self.raw
            self._hash = blake2b(facts.type.encode() + b"\0" + text, digest_size=6).hexdigest()
        return self._hash


def _read_facts(slot: Slot) -> Facts:
    # Loaded already if this file or one before was large; not worth loading for a small one.
    fast = sys.modules.get("cellwright.document._json.fast")
    if fast is not None:
        try:
            found = fast.facts(memoryview(slot.buffer)[slot.start : slot.end])
        except (ValueError, RecursionError):
            pass  # the careful way below can say what is wrong
        else:
            source = found.source
            if found.cell_type in CELL_TYPES:
                text = source if isinstance(source, str) else "".join(source)
                return Facts(found.id, found.cell_type, text, None)
    return _read_facts_carefully(slot.raw)


def _read_facts_carefully(raw: bytes) -> Facts:
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


class Layout:
    """All the bytes of a notebook.

    `skeleton` is the file with an empty `cells` array, which is cut at `cut`. `gaps[i]` stands
    before cell i and `gaps[-1]` after the last one, so there is always one more than cells.
    """

    __slots__ = ("_escapes", "_members", "_whole", "cut", "gaps", "skeleton", "slots")

    def __init__(
        self,
        skeleton: bytes,
        cut: int,
        slots: Sequence[Slot],
        gaps: Sequence[bytes],
        whole: bytes | None = None,
        *,
        members: dict[str, Member] | None = None,
        escapes: bool | None = None,
    ) -> None:
        self.skeleton = skeleton
        self.cut = cut
        self.slots = slots
        self.gaps = gaps
        self._whole = whole
        self._members = members
        self._escapes = escapes

    @classmethod
    def of_file(cls, data: bytes) -> Layout:
        """Take a file apart; raises `InvalidNotebook` or one of its kinds."""
        found = index(data)
        if found.cells_open < 0:
            if "cells" in found.members:
                raise InvalidNotebook("`cells` is not an array")
            # nbformat 2 and 3 keep their cells in worksheets.
            return cls(data, -1, (), (b"",), data)
        cut = found.cells_open + 1
        spans = found.spans
        slots = [Slot(data, start, end) for start, end in spans]
        gaps = [data[cut : found.cells_close]]
        if spans:
            gaps = [data[cut : spans[0][0]]]
            usual = b""
            end = spans[0][1]
            for start, next_end in spans[1:]:
                gap = data[end:start]
                if gap == usual:  # one object for all, since most files have but one separator
                    gap = usual
                else:
                    usual = gap
                gaps.append(gap)
                end = next_end
            gaps.append(data[end : found.cells_close])
        return cls(data[:cut] + data[found.cells_close :], cut, slots, gaps, data)

    def with_cells(self, slots: Sequence[Slot], gaps: Sequence[bytes]) -> Layout:
        """The same skeleton around other cells."""
        return Layout(
            self.skeleton, self.cut, slots, gaps, members=self._members, escapes=self._escapes
        )

    def with_skeleton(self, skeleton: bytes) -> Layout:
        """The same cells in another skeleton, which must have an empty `cells` array."""
        layout = Layout(skeleton, 0, self.slots, self.gaps, escapes=self._escapes)
        layout.cut = layout.members["cells"].start + 1
        return layout

    @property
    def members(self) -> dict[str, Member]:
        """The members of the skeleton, by key."""
        if self._members is None:
            self._members = {m.key: m for m in members(self.skeleton, self._start())}
        return self._members

    def _start(self) -> int:
        return skip_space(self.skeleton, len(BOM) if self.skeleton.startswith(BOM) else 0)

    def parts(self) -> Iterator[bytes | memoryview]:
        """The bytes of the file in order, in as few pieces as there are changes."""
        if self._whole is not None:
            yield self._whole
            return
        yield self.skeleton[: self.cut]
        buffer, start, end = b"", 0, 0
        for slot, gap in zip(self.slots, self.gaps, strict=False):
            if slot.buffer is buffer and buffer[end : slot.start] == gap:
                end = slot.end
                continue
            if end:
                yield memoryview(buffer)[start:end]
            yield gap
            buffer, start, end = slot.buffer, slot.start, slot.end
        if end:
            yield memoryview(buffer)[start:end]
        yield self.gaps[-1]
        yield self.skeleton[self.cut :]

    def to_bytes(self) -> bytes:
        """The whole file."""
        return self._whole if self._whole is not None else b"".join(self.parts())

    def escapes_unicode(self) -> bool:
        """Whether the file writes non-ASCII characters as escapes."""
        if self._escapes is None:
            self._escapes = escapes_unicode(self.to_bytes())
        return self._escapes

    def outer_style(self) -> Style:
        """The style of the top level."""
        style = Style.of_object(self.skeleton[self._start() :].rstrip(), self.escapes_unicode)
        return style or Style(escapes_unicode=self.escapes_unicode)
