"""What the journal tells: entries of the log, backups, and who touched which cell last."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from cellwright.document.change import CellChange


_CELL = ("kind", "handle", "type", "before", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change of a notebook, as it was recorded.

    `number` counts the changes of this notebook from 1, and is their order: `when` (ISO 8601,
    UTC) is what the clock said. `kind` is `edit`, `create`, `undo`, `redo`, `restore`, `outside`
    or `run`. `before` and `after` are revisions. `concerns` is the change that was undone, redone
    or restored (of several that were undone as one, their ids with spaces between), and
    `undone_by` the undo that holds for this one. `edits` are the JSON shapes of the edits, if it
    was made of edits and they are not large.
    """

    id: str
    number: int
    kind: str
    actor: str
    label: str
    when: str
    before: str
    after: str
    cells: tuple[CellChange, ...] = field(compare=False)
    undone_by: str | None = None
    concerns: str | None = None
    edits: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The shape that every door shows."""
        return {
            "id": self.id,
            "number": self.number,
            "kind": self.kind,
            "actor": self.actor,
            "label": self.label,
            "when": self.when,
            "before": self.before,
            "after": self.after,
            "cells": [{name: getattr(cell, name) for name in _CELL} for cell in self.cells],
            "undone_by": self.undone_by,
            "concerns": self.concerns,
        }

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the entry that `to_json` made into data."""
        from cellwright.document.change import CellChange

        cells = tuple(CellChange(*(cell[name] for name in _CELL)) for cell in shape["cells"])
        return cls(**{**shape, "cells": cells})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A state that can be given back to the byte: after a change, or, as `first`, before ours.

    `id` is what `Journal.state` takes.
    """

    id: str
    number: int
    kind: str
    actor: str
    label: str
    when: str
    revision: str

    def to_json(self) -> dict[str, Any]:
        """The shape that every door shows."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> Self:
        """Return the backup that `to_json` made into data."""
        return cls(**shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    """A cell of the newest state, and the change that last touched its source or type.

    All about the change is None if the cell has been as it is since before the first entry.
    """

    index: int
    handle: str
    change: str | None = None
    kind: str | None = None
    actor: str | None = None
    label: str | None = None
    when: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The shape that every door shows."""
        return {name: getattr(self, name) for name in self.__slots__}


def iso(milliseconds: int) -> str:
    """A moment since 1970 as a text, in UTC."""
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"
