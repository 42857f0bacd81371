"""The ids, types and sources of all cells, side by side, and what they hash to."""

from __future__ import annotations

import json
import sys
from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# Cells are hashed in blocks, so that after an edit of one only its block is hashed again.
_BLOCK = 512


class Survey:
    """What names all cells and what they say.

    `texts` gives what a range of cells says: the sources of a large file are better read again
    when they are asked for than kept.
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

    @classmethod
    def of(cls, rows: Iterable[tuple[str | None, str, str]]) -> Survey:
        """From the id, type and source of each cell."""
        found = list(rows)
        sources = [row[2] for row in found]
        return cls([row[0] for row in found], [row[1] for row in found], sources.__getitem__)

    def replacing(self, rows: Mapping[int, tuple[str | None, str, str]]) -> Survey:
        """The same but for some cells; what is hashed for one need not be for the other."""

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
            row = (self.ids[cells], self.types[cells], self.texts(cells))
            self._digests[block] = blake2b(_spell(row), digest_size=16).digest()
        return self._digests[block]


def _spell(row: tuple[object, ...]) -> bytes:
    """Compact JSON, the same whichever library writes it."""
    if "msgspec" in sys.modules:
        try:
            from cellwright.document._json.fast import spell

            return spell(row)
        except (ImportError, UnicodeEncodeError):
            pass  # not to be had after all, or there is a lone surrogate
    text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def hash_cell(cell_type: str, source: str) -> str:
    """The short hash of a cell of that type and source."""
    text = f"{cell_type}\0{source}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
