"""The cells of a notebook as read-only views of their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from cellwright.document._json.scan import decode
from cellwright.errors import InvalidCell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cellwright.document._bytes.layout import Layout
    from cellwright.document._bytes.slots import Slot
    from cellwright.document.outputs import Output
    from cellwright.document.snapshot import Resolver


class Cell:
    """A read-only view of one cell; later edits of the notebook do not change it."""

    __slots__ = ("_slot", "handle", "index")

    def __init__(self, slot: Slot, index: int, handle: str) -> None:
        self._slot = slot
        self.index = index
        self.handle = handle

    @property
    def id(self) -> str | None:
        """The id in the file; None before nbformat 4.5, or where it is missing."""
        return self._slot.facts.id

    @property
    def type(self) -> str:
        """`code`, `markdown` or `raw`."""
        return self._slot.facts.type

    @property
    def source(self) -> str:
        """The text of the cell, always as one string."""
        return self._slot.facts.source

    @property
    def hash(self) -> str:
        """A short hash of type and source; pass it as `expect` of an edit."""
        return self._slot.hash

    @property
    def problem(self) -> str | None:
        """Why this cell is not valid, or None."""
        return self._slot.facts.problem

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the cell's metadata."""
        value = self._member("metadata")
        return value if isinstance(value, dict) else {}

    @property
    def execution_count(self) -> int | None:
        """The execution count of a code cell, if it has been run."""
        count = self._slot.count
        if count != -1:
            return count
        value = self._member("execution_count")
        return value if type(value) is int else None

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What the last run printed, displayed or raised; empty for text."""
        if self._slot.member("outputs") == b"[]":  # without a decoder, as above
            return ()
        from cellwright.document.outputs import parse_output

        value = self._member("outputs")
        return tuple(map(parse_output, value)) if isinstance(value, list) else ()

    @property
    def output_types(self) -> list[str]:
        """The types of the outputs, such as `stream` and `error`, without decoding the rest."""
        return self._slot.output_types

    @property
    def attachments(self) -> dict[str, Any]:
        """Files that the text of a cell refers to, as MIME bundles by name."""
        value = self._member("attachments")
        return value if isinstance(value, dict) else {}

    def mentions(self, text: bytes) -> bool:
        """Whether its bytes in the file have this anywhere."""
        slot = self._slot
        return slot.buffer.find(text, slot.start, slot.end) >= 0

    @property
    def raw(self) -> bytes:
        """The bytes of the cell in the file."""
        return self._slot.raw

    def to_dict(self) -> dict[str, Any]:
        """The cell in nbformat's shape, decoded again at every call."""
        if not self.raw.startswith(b"{"):
            raise InvalidCell(self.index, self.problem or "not an object")
        value: dict[str, Any] = decode(self.raw, f"Cell {self.index}")
        return value

    def _member(self, key: str) -> Any:
        raw = self._slot.member(key)
        return None if raw is None else decode(raw, f"`{key}` of cell {self.index}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.handle} at {self.index}>"


class CodeCell(Cell):
    """A cell that can be run."""

    __slots__ = ()


class MarkdownCell(Cell):
    """A cell of text."""

    __slots__ = ()


class RawCell(Cell):
    """A cell that Jupyter does not render or run."""

    __slots__ = ()


class BrokenCell(Cell):
    """An item in the list of cells that is not a valid cell; `problem` says why.

    It can be moved and deleted, and keeps its bytes.
    """

    __slots__ = ()


_CLASSES = {"code": CodeCell, "markdown": MarkdownCell, "raw": RawCell}


def _choose_class(slot: Slot) -> type[Cell]:
    facts = slot.facts
    return BrokenCell if facts.problem else _CLASSES[facts.type]


class Cells(Sequence[Cell]):
    """All cells in order; each is decoded when it is first needed."""

    __slots__ = ("_layout", "_resolver")

    def __init__(self, layout: Layout, resolver: Resolver) -> None:
        self._layout = layout
        self._resolver = resolver

    def __len__(self) -> int:
        return len(self._layout.slots)

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Cell, ...]: ...
    def __getitem__(self, index: int | slice) -> Cell | tuple[Cell, ...]:
        if isinstance(index, slice):
            return tuple(self._cell(i) for i in range(*index.indices(len(self))))
        count = len(self)
        if not -count <= index < count:
            raise IndexError(index)
        return self._cell(index % count)

    def __iter__(self) -> Iterator[Cell]:
        slots = self._layout.slots
        for index, (slot, handle) in enumerate(zip(slots, self._resolver.handles, strict=True)):
            yield _choose_class(slot)(slot, index, handle)

    def _cell(self, index: int) -> Cell:
        slot = self._layout.slots[index]
        return _choose_class(slot)(slot, index, self._resolver.handle(index))

    def __repr__(self) -> str:
        return f"<{len(self)} cells>"
