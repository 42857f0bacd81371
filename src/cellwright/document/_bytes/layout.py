"""A notebook as pieces of bytes: a skeleton without cells, the cells, and the gaps between them.

A layout is never changed in place. An edited notebook is a new `Layout` that shares every
untouched cell with the old one, so comparing, undoing and saving touch only what differs.
"""

from __future__ import annotations

from itertools import pairwise

from cellwright.document._bytes.slots import FileSlots, SurveyMaker
from cellwright.document._json.index import BOM, index_notebook
from cellwright.document._json.scan import Member, members, skip_space
from cellwright.document._json.writing import Style, change_members, escapes_unicode
from cellwright.errors import InvalidNotebook, UnsupportedVersion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from cellwright.document._bytes.slots import Slot


class Layout:
    """All the bytes of a notebook.

    `skeleton` is the file with an empty `cells` array, which opens before `cut`. `gaps[i]` is
    before cell i and `gaps[-1]` after the last one, so there is always one more gap than cells.
    As long as cells are only replaced, `slots` are `FileSlots` and the gaps those of the file.
    """

    __slots__ = ("_close", "_escapes", "_gaps", "_members", "_open", "cut", "skeleton", "slots")

    def __init__(
        self,
        skeleton: bytes,
        slots: Sequence[Slot],
        gaps: Sequence[bytes] | None,
        *,
        within: tuple[int, int] = (-1, -1),
        members: dict[str, Member] | None = None,
        escapes: bool | None = None,
    ) -> None:
        self.skeleton = skeleton
        self.slots = slots
        self._gaps = gaps
        self._open, self._close = within
        self._members = members
        self._escapes = escapes
        cells = self.members.get("cells")
        self.cut = cells.start + 1 if cells else -1

    @classmethod
    def of_file(cls, data: bytes) -> Layout:
        """Split a file into its pieces; raises `InvalidNotebook` or a subclass."""
        survey = SurveyMaker(len(data))
        found = index_notebook(data, survey.note)
        if found.cells_open < 0:
            if "cells" in found.members:
                raise InvalidNotebook("`cells` is not an array")
            # nbformat 2 and 3 keep their cells in worksheets.
            return cls(data, (), (b"",))
        within = (found.cells_open + 1, found.cells_close)
        if found.blocks is not None:
            slots = FileSlots.of_blocks(data, found.blocks, survey)
        else:
            slots = FileSlots.of_file(data, found.starts, found.ends, strict=found.strict)
        skeleton = data[: within[0]] + data[within[1] :]
        shift = within[0] - within[1]
        members = {
            key: Member(
                key,
                m.key_start + shift * (m.key_start > within[0]),
                m.key_end + shift * (m.key_start > within[0]),
                m.start + shift * (m.key_start > within[0]),
                m.end + shift * (m.end > within[0]),
            )
            for key, m in found.members.items()
        }
        return cls(skeleton, slots, None, within=within, members=members)

    def with_replaced(self, slots: Mapping[int, Slot]) -> Layout:
        """The same layout with some cells replaced."""
        if isinstance(self.slots, FileSlots):
            return self._like(self.skeleton, self.slots.with_replaced(slots), self._gaps)
        changed = list(self.slots)
        for i, slot in slots.items():
            changed[i] = slot
        return self._like(self.skeleton, changed, self._gaps)

    def with_cells(self, slots: Sequence[Slot], gaps: Sequence[bytes]) -> Layout:
        """The same layout with other cells."""
        return self._like(self.skeleton, slots, gaps)

    def with_skeleton(self, skeleton: bytes) -> Layout:
        """The same cells in another skeleton, which must have an empty `cells` array."""
        return self._like(skeleton, self.slots, self._gaps)

    def with_member(self, key: str, value: bytes) -> Layout:
        """The same layout with another value for one of the notebook's own members."""
        style, skeleton, start = self.outer_style(), self.skeleton, self.start
        end = skeleton.rindex(b"}") + 1
        whole = change_members(skeleton[start:end], {key: value}, style, style.unit, "the notebook")
        return self.with_skeleton(skeleton[:start] + whole + skeleton[end:])

    def _like(self, skeleton: bytes, slots: Sequence[Slot], gaps: Sequence[bytes] | None) -> Layout:
        return Layout(
            skeleton,
            slots,
            gaps,
            within=(self._open, self._close),
            members=self._members if skeleton is self.skeleton else None,
            escapes=self._escapes,
        )

    @property
    def members(self) -> dict[str, Member]:
        """The members of the skeleton, by key."""
        if self._members is None:
            self._members = {m.key: m for m in members(self.skeleton, self.start)}
        return self._members

    @property
    def start(self) -> int:
        """Where the top-level object of the notebook opens."""
        return skip_space(self.skeleton, len(BOM) if self.skeleton.startswith(BOM) else 0)

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor format version; raises if it is missing or not supported."""

        def number(key: str) -> Any:
            member = self.members.get(key)
            raw = self.skeleton[member.start : member.end] if member else b"null"
            return (
                int(raw) if raw.isdigit() and len(raw) < 10 else raw[:20].decode(errors="replace")
            )

        major, minor = number("nbformat"), number("nbformat_minor")
        if major == "null":
            raise InvalidNotebook("There is no `nbformat` version", hint="Is this file a notebook?")
        minor = 0 if minor == "null" else minor
        if not isinstance(major, int) or not isinstance(minor, int):
            raise InvalidNotebook(f"The nbformat version {major}.{minor} is not a pair of integers")
        if not 2 <= major <= 4:
            raise UnsupportedVersion(f"{major}.{minor}")
        return major, minor

    @property
    def gaps(self) -> Sequence[bytes]:
        """The bytes before each cell, and after the last."""
        if self._gaps is None:
            assert isinstance(self.slots, FileSlots)  # noqa: S101  # others bring their gaps
            data, starts, ends = self.slots.buffer, self.slots.starts, self.slots.ends
            self._gaps = [
                data[end:start]
                for end, start in zip([self._open, *ends], [*starts, self._close], strict=True)
            ]
        return self._gaps

    def parts(self) -> Iterator[bytes | memoryview]:
        """The bytes of the file in order, in as few pieces as there are changes."""
        if self.cut < 0:
            yield self.skeleton
        elif isinstance(self.slots, FileSlots):
            yield self.skeleton[: self.cut]
            view, at = memoryview(self.slots.buffer), self._open
            for start, end, slot in self.slots.pieces():
                yield view[at:start]
                yield slot.raw
                at = end
            yield view[at : self._close]
            yield self.skeleton[self.cut :]
        else:
            yield from self._woven_parts()

    def _woven_parts(self) -> Iterator[bytes | memoryview]:
        yield self.skeleton[: self.cut]
        buffer, start, end = b"", 0, 0
        for slot, gap in zip(self.slots, self.gaps, strict=False):
            if slot.buffer is buffer and buffer[end : slot.start] == gap:
                end = slot.end  # still the same stretch of the same file
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
        return b"".join(self.parts())

    def escapes_unicode(self) -> bool:
        """Whether the file writes non-ASCII characters as escapes."""
        if self._escapes is None:
            self._escapes = all(map(_is_ascii, self.parts())) and escapes_unicode(self.to_bytes())
        return self._escapes

    def outer_style(self) -> Style:
        """The style of the top level."""
        style = Style.of_object(self.skeleton[self.start :].rstrip(), self.escapes_unicode)
        return style or Style(escapes_unicode=self.escapes_unicode)


def _is_ascii(part: bytes | memoryview) -> bool:
    # In blocks, so that a large file is not copied; stops at the first other byte.
    return all(bytes(part[at : at + 65536]).isascii() for at in range(0, len(part), 65536))


def place_gaps(layout: Layout, origins: Sequence[int | None]) -> list[bytes]:
    """The gaps between cells that come from these old places, or are new (None).

    Cells that were neighbours before keep their separator. Others get the one that was before
    the second of them, or one like the separators nearby.
    """
    gaps = layout.gaps
    count = len(layout.slots)
    if not origins:
        return [b""]
    if not count:
        style = layout.outer_style()
        line = style.newline + style.unit * 2 if style.newline else b""
        between = b"," + line if style.newline else style.comma
        end = style.newline + style.unit if style.newline else b""
        return [line, *[between] * (len(origins) - 1), end]
    usual = b"," + gaps[0] if gaps[0] else layout.outer_style().comma
    usual = gaps[1] if count > 1 else usual
    placed = [gaps[0]]
    for before, after in pairwise(origins):
        if after:
            placed.append(gaps[after])
        elif before is not None and before + 1 < count:
            placed.append(gaps[before + 1])
        else:
            placed.append(usual)
    return [*placed, gaps[-1]]
