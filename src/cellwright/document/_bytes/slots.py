"""The cells of a notebook as pieces of bytes, decoded when they are first needed.

`Slot` is one cell. `FileSlots` are the cells of a file, and `Survey` has the ids, types and
sources of all cells, and what they hash to.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import overload

from cellwright.document._json.index import BOM, LARGE_CELL_BYTES
from cellwright.document._json.scan import (
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    decode_string,
    elements,
    list_members,
    members,
)
from cellwright.document.costs import LONG_TEXT, GarbagePause, blake2b, cut_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from msgspec import Raw

    from cellwright.document._json.fast import FullFacts
    from cellwright.document._json.index import CellBlocks

CELL_TYPES = frozenset({"code", "markdown", "raw"})
# A caller who needs one cell of many will need its neighbours: this many are decoded together.
_PAGE = 64
# All cells of a file of this size are decoded as fast as one of them.
_SMALL = 100_000
# Sources are kept in memory, besides the file, up to this part of its size.
_SHARE = 4
# Cells are hashed in blocks, so that after an edit of one only its block is hashed again.
_BLOCK = 512


class SlotFacts:
    """Id, type and source of a cell; `problem` says why it is not a valid cell, or is None."""

    __slots__ = ("id", "problem", "source", "type")

    def __init__(self, id_: str | None, type_: str, source: str, problem: str | None) -> None:
        self.id = id_
        self.type = type_
        self.source = source
        self.problem = problem


class Slot:
    """The bytes of one cell, somewhere in a buffer; never changed."""

    __slots__ = ("_count", "_facts", "_hash", "_members", "_output_types", "buffer", "end", "start")

    def __init__(self, buffer: bytes, start: int, end: int, facts: SlotFacts | None = None) -> None:
        self.buffer = buffer
        self.start = start
        self.end = end
        self._facts = facts
        self._hash: str | None = None
        self._members: Mapping[str, memoryview | Raw] | None = None
        self._output_types: list[str] | None = None
        self._count: int | None = -2

    @classmethod
    def of(cls, raw: bytes) -> Slot:
        """Make a slot of its own for the bytes of a new cell."""
        return cls(raw, 0, len(raw))

    @property
    def raw(self) -> bytes:
        """The bytes of the cell in the file."""
        return self.buffer[self.start : self.end]

    @property
    def is_object(self) -> bool:
        """Whether it is an object at all."""
        return self.buffer[self.start] == OPEN_OBJECT

    def member(self, key: str) -> bytes | None:
        """The bytes of one member of the cell; None if it has no such member."""
        if self._members is None:  # who asks for one member will ask for others
            self._members = self._find_members()
        found = self._members.get(key)
        return None if found is None else bytes(found)

    def _find_members(self) -> Mapping[str, memoryview | Raw]:
        if not self.is_object:
            return {}
        view = memoryview(self.buffer)
        if "msgspec" in sys.modules:
            try:
                from cellwright.document._json.fast import find_members

                return find_members(view[self.start : self.end])
            except (ImportError, ValueError, RecursionError):
                pass  # it is not strict JSON
        found = list_members(self.buffer, self.start, self.end)
        return {member.key: view[member.start : member.end] for member in found}

    @property
    def count(self) -> int | None:
        """The execution count, found once and without a decoder; -1 if that cannot tell."""
        if self._count == -2:
            raw = self.member("execution_count")
            self._count = -1
            if raw is None or raw == b"null":
                self._count = None
            elif raw.isdigit() and len(raw) < 10:
                self._count = int(raw)
        return self._count

    @property
    def output_types(self) -> list[str]:
        """The `output_type` of every output, without decoding anything else."""
        if self._output_types is None:
            self._output_types = self._find_output_types()
        return self._output_types

    def _find_output_types(self) -> list[str]:
        if "msgspec" in sys.modules:
            try:
                from cellwright.document._json.fast import output_types

                return output_types(memoryview(self.buffer)[self.start : self.end])
            except (ImportError, ValueError, RecursionError):
                pass  # it has no outputs, or some that are not valid
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
    def facts(self) -> SlotFacts:
        """Id, type and source, decoded once."""
        if self._facts is None:
            self._facts = _read_facts(self)
        return self._facts

    @property
    def text(self) -> str:
        """The text that is hashed: the source, or all bytes of a broken cell."""
        return f"\0{self.raw.decode()}" if self.facts.problem else self.facts.source

    @property
    def row(self) -> tuple[str | None, str, str]:
        """Id, type and text, for a survey."""
        return self.facts.id, self.facts.type, self.text

    @property
    def hash(self) -> str:
        """A short hash of type and source."""
        if self._hash is None:
            self._hash = hash_cell(self.facts.type, self.text)
        return self._hash


def _read_facts(slot: Slot) -> SlotFacts:
    if slot.end - slot.start >= LARGE_CELL_BYTES:
        try:
            from cellwright.document._json.fast import decode_large_cell

            (found,) = decode_large_cell(memoryview(slot.buffer)[slot.start : slot.end])
            return SlotFacts(found.id, found.cell_type, join_sources([found])[0], None)
        except (ImportError, ValueError, RecursionError):
            pass  # it is not valid
    if not slot.is_object:
        return SlotFacts(None, "unknown", "", "not an object")

    def value(key: str) -> object:
        raw = slot.member(key)
        try:
            return None if raw is None else json.loads(raw)
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
        if slot.member("source") is None:
            problem = "it has no source"
    if not isinstance(kind, str):
        kind, problem = "unknown", "it has no cell_type"
    elif kind not in CELL_TYPES:
        is_word = kind.isidentifier() and len(kind) <= 20
        problem = f"its cell_type is {repr(kind) if is_word else 'no word that is known'}"
    return SlotFacts(id_, kind, text, problem)


def hash_cell(cell_type: str, source: str) -> str:
    """A short hash of a cell's type and source."""
    if len(source) > LONG_TEXT:
        made = blake2b(f"{cell_type}\0".encode("utf-8", "surrogatepass"), digest_size=6)
        for piece in cut_text(source):
            made.update(piece.encode("utf-8", "surrogatepass"))
        return made.hexdigest()
    text = f"{cell_type}\0{source}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


class FileSlots(Sequence[Slot]):
    """The cells of a file, some perhaps replaced; a slot is made when it is first needed.

    In a file of ten thousand cells, making an object of each would cost more than an edit.
    """

    __slots__ = ("_cache", "_count", "_replaced", "buffer")

    def __init__(
        self,
        buffer: bytes,
        count: int,
        cache: _Cache,
        replaced: Mapping[int, Slot] | None = None,
    ) -> None:
        self.buffer = buffer
        self._count = count
        self._cache = cache
        self._replaced: Mapping[int, Slot] = replaced or {}

    @classmethod
    def of_file(
        cls, buffer: bytes, starts: list[int], ends: list[int], *, strict: bool
    ) -> FileSlots:
        """The cells of a file at these places; `strict` if msgspec accepted the file."""
        return cls(buffer, len(starts), _Cache((starts, ends), strict=strict))

    @classmethod
    def of_blocks(cls, buffer: bytes, blocks: CellBlocks, survey: SurveyMaker) -> FileSlots:
        """The cells of a file that was read in blocks, and what was noted about them."""
        return cls(buffer, blocks.count, _Cache(None, strict=True, blocks=blocks, survey=survey))

    @property
    def starts(self) -> list[int]:
        """Where each cell starts in the file, whether it was replaced or not."""
        return self._cache.spans()[0]

    @property
    def ends(self) -> list[int]:
        """Where each cell ends in the file."""
        return self._cache.spans()[1]

    @property
    def is_surveyed(self) -> bool:
        """Whether the revision takes no time."""
        return self._cache.is_surveyed

    def with_replaced(self, slots: Mapping[int, Slot]) -> FileSlots:
        """The same cells with some replaced; shared ones stay the same objects."""
        replaced = {**self._replaced, **slots}
        return FileSlots(self.buffer, self._count, self._cache, replaced)

    def differ_at(self, other: FileSlots) -> list[int] | None:
        """The only places where the two may differ; None if they are not of the same file."""
        if self._cache is not other._cache:
            return None
        places = self._replaced.keys() | other._replaced.keys()
        return sorted(i for i in places if self._replaced.get(i) is not other._replaced.get(i))

    def pieces(self) -> Iterator[tuple[int, int, Slot]]:
        """The replaced cells: start and end in the file, and the new cell."""
        for i in sorted(self._replaced):
            yield *self._cache.span(i), self._replaced[i]

    def survey(self) -> Survey:
        """The ids, types and texts of all cells, in the fastest way."""
        known = self._cache.survey(self.buffer)
        if known is None:
            return Survey.of(slot.row for slot in self)
        if not self._replaced:
            return known
        return known.with_replaced({i: slot.row for i, slot in self._replaced.items()})

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Slot]:
        replaced, known = self._replaced.get, self._cache.slots.get
        for index in range(self._count):
            yield replaced(index) or known(index) or self[index]

    @overload
    def __getitem__(self, index: int) -> Slot: ...
    @overload
    def __getitem__(self, index: slice) -> list[Slot]: ...
    def __getitem__(self, index: int | slice) -> Slot | list[Slot]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += self._count
        slot = self._replaced.get(index) or self._cache.slots.get(index)
        if slot is None:
            facts = self._cache.facts(index, self.buffer)
            slot = Slot(self.buffer, *self._cache.span(index), facts)
            self._cache.slots[index] = slot
        return slot


class _Cache:
    """What is known about the cells of a file; shared by all `FileSlots` made from it."""

    __slots__ = ("_blocks", "_page", "_spans", "_strict", "_survey", "slots")

    def __init__(
        self,
        spans: tuple[list[int], list[int]] | None,
        *,
        strict: bool,
        blocks: CellBlocks | None = None,
        survey: SurveyMaker | None = None,
    ) -> None:
        self.slots: dict[int, Slot] = {}
        self._spans = spans
        self._strict = strict
        self._blocks = blocks
        self._survey: Survey | None = None
        self._page: tuple[int, list[str]] = (-1, [])
        if survey is not None:
            self._survey = survey.finish(self._block_texts)

    @property
    def is_surveyed(self) -> bool:
        """Whether the revision takes no time."""
        return self._survey is not None and self._survey.is_hashed

    def span(self, index: int) -> tuple[int, int]:
        """Where a cell starts and ends in the file."""
        if self._spans is not None:
            return self._spans[0][index], self._spans[1][index]
        assert self._blocks is not None  # noqa: S101  # one of the two is there
        return self._blocks.span(index)

    def spans(self) -> tuple[list[int], list[int]]:
        """Where all cells start and end in the file."""
        if self._spans is None:
            assert self._blocks is not None  # noqa: S101  # one of the two is there
            self._spans = self._blocks.spans()
        return self._spans

    def _block_texts(self, cells: slice) -> list[str]:
        """The texts of a range of cells of a file in blocks."""
        assert self._blocks is not None  # noqa: S101  # only called for files in blocks
        at, stop, step = cells.indices(self._blocks.count)
        assert step == 1  # noqa: S101  # a range
        found: list[str] = []
        while at < stop:
            block, first = self._blocks.block_of(at)
            last, sources = self._page
            if last != block:
                sources = join_sources(self._blocks.decode(block))
                self._page = block, sources
            found += sources[at - first : stop - first]
            at = first + len(sources)
        return found

    def survey(self, buffer: bytes) -> Survey | None:
        """Survey all cells of the file at once; None if they must be decoded one by one."""
        if self._survey is None and self._strict:
            self._strict = False
            with GarbagePause():
                try:
                    self._survey = _survey_file(buffer)
                except (ValueError, RecursionError):
                    return None  # some cell is not valid
        return self._survey

    def facts(self, index: int, buffer: bytes) -> SlotFacts | None:
        """The facts of one cell, if all cells have been surveyed, or that takes no time."""
        found = self._survey
        if found is None and len(buffer) <= _SMALL:
            found = self.survey(buffer)
        if found is None:
            return None
        if self._blocks is not None:
            source = found.texts(slice(index, index + 1))[0]
            return SlotFacts(found.ids[index], found.types[index], source, None)
        page, place = divmod(index, _PAGE)
        last, sources = self._page
        if last != page:
            sources = found.texts(slice(page * _PAGE, (page + 1) * _PAGE))
            self._page = page, sources
        return SlotFacts(found.ids[index], found.types[index], sources[place], None)


def _survey_file(buffer: bytes) -> Survey:
    """Survey all cells of a file that msgspec accepted; raises if one is not valid."""
    from cellwright.document._json.fast import cell_facts, decode_sources

    facts = cell_facts(memoryview(buffer)[len(BOM) * buffer.startswith(BOM) :])
    sources = [fact.source for fact in facts]
    if len(buffer) <= _SMALL:
        texts: Callable[[slice], list[str]] = decode_sources(sources).__getitem__
    else:

        def texts(cells: slice) -> list[str]:
            return decode_sources(sources[cells])

    found = Survey([fact.id for fact in facts], [fact.cell_type for fact in facts], texts)
    _ = found.revision  # kept for later; also checks that every source is text
    return found


class SurveyMaker:
    """Makes a survey from the facts of cells that come in blocks.

    Texts that are large beside the rest of the file are hashed and not kept; others are hashed
    when the revision is needed, which may be while the disk is busy.
    """

    def __init__(self, file_size: int) -> None:
        self._ids: list[str | None] = []
        self._types: list[str] = []
        self._texts: list[str] = []
        self._digests: dict[int, bytes] = {}
        self._room = max(_SMALL, file_size // _SHARE)
        self._dropped = 0

    def note(self, facts: list[FullFacts]) -> None:
        """Take the facts of the next cells."""
        self._ids += [fact.id for fact in facts]
        self._types += [fact.cell_type for fact in facts]
        texts = join_sources(facts)
        self._texts += texts
        self._room -= sum(map(len, texts))
        while self._room < 0 and len(self._ids) - len(self._digests) * _BLOCK >= _BLOCK:
            self._hash_block()

    def _hash_block(self) -> None:
        block = len(self._digests)
        cells = slice(block * _BLOCK, (block + 1) * _BLOCK)
        texts = self._texts[cells.start - self._dropped : cells.stop - self._dropped]
        self._digests[block] = _hash_rows(self._ids[cells], self._types[cells], texts)
        del self._texts[: cells.stop - self._dropped]
        self._dropped = cells.stop

    def finish(self, texts: Callable[[slice], list[str]]) -> Survey:
        """The survey; `texts` returns those of a range of cells, if they were not kept."""
        if self._dropped and len(self._ids) > len(self._digests) * _BLOCK:
            self._hash_block()
        kept = texts if self._dropped else self._texts.__getitem__
        found = Survey(self._ids, self._types, kept)
        found.know(self._digests)
        return found


def join_sources(facts: list[FullFacts]) -> list[str]:
    """The sources of cells, each as one string."""
    join = "".join
    return [fact.source if type(fact.source) is str else join(fact.source) for fact in facts]


class Survey:
    """The ids, types and texts of all cells, and what they hash to.

    `texts` returns the texts of a range of cells. Those of a large file are decoded again when
    they are needed, rather than kept.
    """

    __slots__ = ("_before", "_digests", "_touched", "ids", "texts", "types")

    def __init__(
        self, ids: list[str | None], types: list[str], texts: Callable[[slice], list[str]]
    ) -> None:
        self.ids = ids
        self.types = types
        self.texts = texts
        self._digests: dict[int, bytes] = {}
        self._before: Survey | None = None
        self._touched: frozenset[int] = frozenset()

    def know(self, digests: dict[int, bytes]) -> None:
        """Take over what blocks hash to."""
        self._digests = digests

    @classmethod
    def of(cls, rows: Iterable[tuple[str | None, str, str]]) -> Survey:
        """Make a survey from the id, type and text of each cell."""
        found = list(rows)
        sources = [row[2] for row in found]
        return cls([row[0] for row in found], [row[1] for row in found], sources.__getitem__)

    def with_replaced(self, rows: Mapping[int, tuple[str | None, str, str]]) -> Survey:
        """The same with some cells replaced; blocks without such a cell are not hashed again."""

        def texts(cells: slice) -> list[str]:
            found = self.texts(cells).copy()
            for place, i in enumerate(range(*cells.indices(len(self.ids)))):
                if i in rows:
                    found[place] = rows[i][2]
            return found

        new = Survey(self.ids.copy(), self.types.copy(), texts)
        for i, row in rows.items():
            new.ids[i], new.types[i] = row[:2]
        new._before = self
        new._touched = frozenset(i // _BLOCK for i in rows)
        return new

    @property
    def is_hashed(self) -> bool:
        """Whether it is known what every block hashes to."""
        return len(self._digests) == len(self._blocks())

    @property
    def revision(self) -> str:
        """A short hash over the ordered ids, types and sources."""
        blocks = map(self._digest, range(len(self._blocks())))
        return blake2b(b"".join(blocks), digest_size=6).hexdigest()

    def hashes(self) -> list[str]:
        """A short hash of the type and source of each cell."""
        return [
            found
            for cells in self._blocks()
            for found in map(hash_cell, self.types[cells], self.texts(cells))
        ]

    def _blocks(self) -> list[slice]:
        return [slice(at, at + _BLOCK) for at in range(0, len(self.ids), _BLOCK)]

    def _digest(self, block: int) -> bytes:
        if self._before is not None and block not in self._touched:
            return self._before._digest(block)  # noqa: SLF001  # its own kind
        if block not in self._digests:
            cells = slice(block * _BLOCK, (block + 1) * _BLOCK)
            rows = self.ids[cells], self.types[cells], self.texts(cells)
            self._digests[block] = _hash_rows(*rows)
        return self._digests[block]


def survey_cells(slots: Sequence[Slot]) -> Survey:
    """The ids, types and sources of all cells."""
    if isinstance(slots, FileSlots):
        return slots.survey()
    return Survey.of(slot.row for slot in slots)


def _hash_rows(ids: list[str | None], types: list[str], texts: list[str]) -> bytes:
    """A hash over cells, written as compact JSON; long texts are written in pieces."""
    made = blake2b(digest_size=16)
    if sum(map(len, texts)) <= LONG_TEXT:
        made.update(_encode((ids, types, texts)))
        return made.digest()
    made.update(_encode((ids, types))[:-1])
    separator = b",["
    for text in texts:
        made.update(separator + b'"')
        for piece in cut_text(text):
            made.update(_encode(piece)[1:-1])
        made.update(b'"')
        separator = b","
    made.update(b"]]")
    return made.digest()


def _encode(value: object) -> bytes:
    """Compact JSON, the same with every library that writes it."""
    if "msgspec" in sys.modules:
        try:
            from cellwright.document._json.fast import encode

            return encode(value)
        except (ImportError, UnicodeEncodeError):
            pass  # msgspec cannot be imported, or there is a lone surrogate
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")
