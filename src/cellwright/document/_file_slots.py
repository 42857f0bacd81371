"""The cells of a file, looked at only as far as it takes, and then all of them in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from cellwright.document._json.index import BOM
from cellwright.document._slots import Facts, Slot
from cellwright.document._survey import Survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Who looks at one cell of many will look at its neighbours: this many are decoded together.
_PAGE = 64


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

    __slots__ = ("_page", "_strict", "_survey", "slots")

    def __init__(self, *, strict: bool) -> None:
        self.slots: dict[int, Slot] = {}
        self._strict = strict
        self._survey: Survey | None = None
        self._page: tuple[int, list[str]] = (-1, [])

    def survey(self, buffer: bytes) -> Survey | None:
        """All cells of the file in one go; None if they have to be looked at one by one."""
        if self._survey is None and self._strict:
            self._strict = False
            from cellwright.document._json.fast import no_collection

            with no_collection():
                try:
                    self._survey = _survey(buffer)
                except (ValueError, RecursionError):
                    return None  # some cell is not a valid one
        return self._survey

    def known(self, index: int) -> Facts | None:
        """The facts of one cell, if those of all have been found out already."""
        found = self._survey
        if found is None:
            return None
        page, place = divmod(index, _PAGE)
        last, sources = self._page
        if last != page:
            sources = found.texts(slice(page * _PAGE, (page + 1) * _PAGE))
            self._page = page, sources
        return Facts(found.ids[index], found.types[index], sources[place], None)


def _survey(buffer: bytes) -> Survey:
    """All cells of a file that msgspec took; raises if one is not valid."""
    from cellwright.document._json.fast import cell_facts, texts

    facts = cell_facts(memoryview(buffer)[len(BOM) * buffer.startswith(BOM) :])
    sources = [fact.source for fact in facts]
    found = Survey(
        [fact.id for fact in facts],
        [fact.cell_type for fact in facts],
        lambda cells: texts(sources[cells]),
    )
    _ = found.revision  # kept, and shows that every source is a text
    return found
