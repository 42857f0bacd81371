"""All edits of one turn, as one thing that can be looked at and taken back, whole or by cell."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cellwright.errors import CellwrightError, InvalidEdit, NothingToUndo

if TYPE_CHECKING:
    from collections.abc import Collection

    from cellwright.workspace.workspace import AsyncWorkspace


@dataclass(slots=True)
class Edited:
    """One change of a notebook, by its id in the history, and the cells that it touched."""

    path: str
    change: str
    cells: tuple[str, ...] = ()
    is_undone: bool = False

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "path": self.path,
            "change": self.change,
            "cells": list(self.cells),
            "undone": self.is_undone,
        }


@dataclass(slots=True)
class ChangeSet:
    """The edits of a turn, the oldest first."""

    prompt: str
    edits: list[Edited] = field(default_factory=list)

    @property
    def notebooks(self) -> list[str]:
        """The notebooks that were edited."""
        return list(dict.fromkeys(edit.path for edit in self.edits))

    @property
    def cells(self) -> list[tuple[str, str]]:
        """The cells whose edits stand, each with its notebook."""
        standing = [edit for edit in self.edits if not edit.is_undone]
        return list(dict.fromkeys((edit.path, cell) for edit in standing for cell in edit.cells))

    @property
    def is_undone(self) -> bool:
        """Whether nothing of it is left."""
        return all(edit.is_undone for edit in self.edits)

    def to_json(self) -> dict[str, Any]:
        """As data."""
        edits = [edit.to_json() for edit in self.edits]
        return {"prompt": self.prompt, "edits": edits, "undone": self.is_undone}

    async def diff(self, workspace: AsyncWorkspace) -> str:
        """What the turn did to the sources of its notebooks."""
        parts = []
        for path in self.notebooks:
            ids = [edit.change for edit in self.edits if edit.path == path]
            shown = await workspace.open(path).diff(f"{ids[0]}^", ids[-1])
            parts.append(shown["diff"])
        return "\n".join(parts)

    async def undo(self, workspace: AsyncWorkspace, cells: Collection[str] | None = None) -> None:
        """Take it back, with the outputs that were there; or, if that fails, nothing of it.

        Each notebook is saved once. What the kernel has done stays done.

        Args:
            workspace: who takes it back; one that may edit.
            cells: take back only what was done to these cells.

        Raises:
            NothingToUndo: it has been taken back, or did nothing to these cells.
            InvalidEdit: one change touched such a cell together with another.
            Conflict: somebody has changed one of the cells since.
        """
        chosen = [edit for edit in self.edits if not edit.is_undone and _concerns(edit, cells)]
        if not chosen:
            raise NothingToUndo("undo: the turn changed nothing there that still stands")
        undone: list[tuple[str, str]] = []
        try:
            for path in dict.fromkeys(edit.path for edit in chosen):
                ids = [edit.change for edit in chosen if edit.path == path]
                with contextlib.suppress(NothingToUndo):  # taken back by somebody before
                    done = await workspace.open(path).undo(ids)
                    undone.append((path, done["change"]))
        except CellwrightError:
            for path, change in undone:
                with contextlib.suppress(CellwrightError):  # the first failure is the one to tell
                    await workspace.open(path).undo(change)
            raise
        for edit in chosen:
            edit.is_undone = True


def _concerns(edit: Edited, cells: Collection[str] | None) -> bool:
    if cells is None:
        return True
    inside = [cell for cell in edit.cells if cell in cells]
    if inside and len(inside) < len(edit.cells):
        others = ", ".join(cell for cell in edit.cells if cell not in cells)
        raise InvalidEdit(f"The change of {inside[0]} also touched {others}", hint="Name them all")
    return bool(inside)


def edited_by(path: str, data: dict[str, Any]) -> Edited | None:
    """The change that a tool's answer tells of; None if it changed nothing."""
    change = data.get("change")
    if not isinstance(change, str):
        return None
    cell = data.get("cellId")
    rows = data.get("cells") if cell is None else [{"handle": cell}]
    handles = [row.get("handle") for row in rows or () if isinstance(row, dict)]
    return Edited(path, change, tuple(str(handle) for handle in handles if handle))
