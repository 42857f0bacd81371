"""What a reader saw: the order, ids and hashes of all cells, and one short name for it."""

from __future__ import annotations

from hashlib import blake2b

from cellwright.document.refs import Resolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Snapshot:
    """The ordered ids and hashes of a notebook's cells.

    Outputs, counts and metadata are no part of it, so that a running cell makes nobody's base
    stale.
    """

    __slots__ = ("_resolver", "_revision", "hashes", "ids")

    def __init__(self, ids: Sequence[str | None], hashes: Sequence[str]) -> None:
        self.ids = tuple(ids)
        self.hashes = tuple(hashes)
        self._revision: str | None = None
        self._resolver: Resolver | None = None

    @property
    def revision(self) -> str:
        """A short hash over the ordered ids and hashes."""
        if self._revision is None:
            # JSON-like quoting keeps an id that holds a separator from posing as two.
            rows = [
                f"{hash_} {id_!r}" if id_ is not None else hash_
                for id_, hash_ in zip(self.ids, self.hashes, strict=True)
            ]
            text = "\n".join(rows).encode("utf-8", "surrogatepass")
            self._revision = blake2b(text, digest_size=6).hexdigest()
        return self._revision

    @property
    def resolver(self) -> Resolver:
        """Finds cells as they stood then."""
        if self._resolver is None:
            self._resolver = Resolver(self.ids)
        return self._resolver
