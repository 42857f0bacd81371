"""What a reader saw: the order, ids and hashes of all cells, and one short name for it."""

from __future__ import annotations

from cellwright.document._file_slots import survey
from cellwright.document._survey import hash_cell
from cellwright.document.refs import Resolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document._slots import Slot
    from cellwright.document._survey import Survey

__all__ = ["Snapshot", "hash_cell"]


class Snapshot:
    """The ordered ids and hashes of a notebook's cells, and the revision that names them.

    Outputs, counts and metadata are no part of it, so that a running cell makes nobody's base
    stale. One that was remembered is made from the revision, the ids and the hashes.
    """

    __slots__ = ("_hashes", "_resolver", "_revision", "_survey", "ids")

    def __init__(self, revision: str, ids: Sequence[str | None], hashes: Sequence[str]) -> None:
        self.ids = ids
        self._revision: str | None = revision
        self._hashes: Sequence[str] | None = hashes
        self._survey: Survey | None = None
        self._resolver: Resolver | None = None

    @classmethod
    def of(cls, slots: Sequence[Slot]) -> Snapshot:
        """What there is to see of these cells now."""
        found = survey(slots)
        snapshot = cls("", found.ids, ())
        snapshot._revision = snapshot._hashes = None
        snapshot._survey = found
        return snapshot

    @property
    def hashes(self) -> Sequence[str]:
        """A short hash of the type and source of each cell."""
        if self._hashes is None:
            assert self._survey is not None  # noqa: S101  # one of the two there is
            self._hashes = self._survey.hashes()
        return self._hashes

    @property
    def revision(self) -> str:
        """A short hash over the ordered ids, types and sources."""
        if self._revision is None:
            assert self._survey is not None  # noqa: S101  # one of the two there is
            self._revision = self._survey.revision
        return self._revision

    @property
    def resolver(self) -> Resolver:
        """Finds cells as they stood then."""
        if self._resolver is None:
            self._resolver = Resolver(self.ids)
        return self._resolver
