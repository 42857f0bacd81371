"""How a caller points at a cell: an exact id, then `cell-N`, then an integer."""

from __future__ import annotations

import re

from cellwright.errors import AmbiguousCell, CellNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CellRef = str | int

_handle = re.compile(r"cell-(\d{1,9})", re.ASCII).fullmatch
_number = re.compile(r"-?\d{1,9}", re.ASCII).fullmatch
# Jupyter's ids are eight random hex digits, of which one in forty has no letter: that is no number.
_number_as_id = re.compile(r"-?\d{1,7}", re.ASCII).fullmatch


class Resolver:
    """Finds cells among ordered ids, where None stands for a cell without one."""

    __slots__ = ("_places", "ids")

    def __init__(self, ids: Sequence[str | None]) -> None:
        self.ids = ids
        self._places: dict[str, list[int]] = {}
        for i, id_ in enumerate(ids):
            if id_ is not None:
                self._places.setdefault(id_, []).append(i)

    def index(self, ref: CellRef) -> int:
        """The index of the one cell meant; never a guess.

        Raises:
            CellNotFound: no cell answers to it; the hint has near misses.
            AmbiguousCell: two cells have that id.
        """
        if isinstance(ref, str):
            places = self._places.get(ref)
            if places:
                if len(places) > 1:
                    raise AmbiguousCell(ref, places)
                return places[0]
            found = _handle(ref)
            if found and int(found[1]) < len(self.ids):
                return int(found[1])
            # Where ids are numbers, a number that is no id is more likely a cell that is gone
            # than a position.
            if _number(ref) and not any(map(_number_as_id, self._places)):
                return self._position(int(ref), ref)
        elif type(ref) is int:  # a bool is no index
            return self._position(ref, ref)
        raise CellNotFound(ref, near=self._near(ref), count=len(self.ids))

    def handle(self, index: int) -> str:
        """A text that finds exactly this cell: its id, or its position if that is ambiguous."""
        id_ = self.ids[index]
        if id_ is not None and len(self._places[id_]) == 1:
            return id_
        # Some cell may have been given that very text as its id; zeros in front find ours still.
        padded = (f"cell-{index:0{width}}" for width in range(1, 10))
        return next(handle for handle in padded if handle not in self._places)

    def _position(self, number: int, ref: CellRef) -> int:
        count = len(self.ids)
        if -count <= number < count:
            return number % count
        raise CellNotFound(ref, count=count)

    def _near(self, ref: object) -> list[str]:
        from difflib import get_close_matches

        known = list(self._places)
        text = str(ref)
        starts = [id_ for id_ in known if text and id_.startswith(text)]
        return list(dict.fromkeys(starts + get_close_matches(text, known)))[:3]
