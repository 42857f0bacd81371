"""The ids, types and sources of all cells, side by side, and what they hash to."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Cells are hashed in blocks, so that after an edit of one only its block is hashed again.
_BLOCK = 512


class Survey:
    """What names all cells and what they say."""

    __slots__ = ("_before", "_digests", "_touched", "ids", "sources", "types")

    def __init__(self, ids: list[str | None], types: list[str], sources: list[str]) -> None:
        self.ids = ids
        self.types = types
        self.sources = sources
        self._digests: dict[int, bytes] = {}
        self._before: Survey | None = None
        self._touched: frozenset[int] = frozenset()

    @classmethod
    def of(cls, rows: Iterable[tuple[str | None, str, str]]) -> Survey:
        """From the id, type and source of each cell."""
        found = list(rows)
        return cls([row[0] for row in found], [row[1] for row in found], [row[2] for row in found])

    def replacing(self, rows: Mapping[int, tuple[str | None, str, str]]) -> Survey:
        """The same but for some cells; what is hashed for one need not be for the other."""
        new = Survey(self.ids.copy(), self.types.copy(), self.sources.copy())
        for i, row in rows.items():
            new.ids[i], new.types[i], new.sources[i] = row
        new._before = self
        new._touched = frozenset(i // _BLOCK for i in rows)
        return new

    @property
    def revision(self) -> str:
        """A short hash over the ordered ids, types and sources."""
        count = len(self.ids)
        blocks = [self._digest(block) for block in range(-(-count // _BLOCK))]
        return blake2b(b"".join(blocks), digest_size=6).hexdigest()

    def hashes(self) -> list[str]:
        """A short hash of the type and source of each cell."""
        return list(map(hash_cell, self.types, self.sources))

    def _digest(self, block: int) -> bytes:
        if self._before is not None and block not in self._touched:
            return self._before._digest(block)  # noqa: SLF001  # its own kind
        if block not in self._digests:
            cells = slice(block * _BLOCK, (block + 1) * _BLOCK)
            self._digests[block] = _digest(self.ids[cells], self.types[cells], self.sources[cells])
        return self._digests[block]


def _digest(ids: list[str | None], types: list[str], sources: list[str]) -> bytes:
    # The lengths say where one text ends and the next begins, and -1 that there is no id.
    if None in ids:
        lengths = array("q", [-1 if id_ is None else len(id_) for id_ in ids])
        names = [id_ for id_ in ids if id_ is not None]
    else:
        names = cast("list[str]", ids)
        lengths = array("q", map(len, names))
    lengths.extend(map(len, sources))
    state = blake2b(lengths, digest_size=16)
    for text in ("\0".join(types), "".join(names), "".join(sources)):
        state.update(text.encode("utf-8", "surrogatepass"))
    return state.digest()


def hash_cell(cell_type: str, source: str) -> str:
    """The short hash of a cell of that type and source."""
    text = f"{cell_type}\0{source}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
