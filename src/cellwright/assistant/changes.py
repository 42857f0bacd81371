"""What a turn changes: its edits, which can be taken back whole or by cell, and its proposals."""

from __future__ import annotations

import contextlib
import difflib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cellwright.errors import CellwrightError, InvalidEdit, NothingToUndo

if TYPE_CHECKING:
    from collections.abc import Collection

    from cellwright.assistant.context import NotebookContext
    from cellwright.workspace.workspace import AsyncWorkspace


_block = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE).findall


@dataclass(slots=True)
class TurnEdit:
    """One change of a notebook or a file: its id in the history, and the cells that it touched."""

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
    edits: list[TurnEdit] = field(default_factory=list)

    @property
    def notebooks(self) -> list[str]:
        """The notebooks that were edited."""
        return list(dict.fromkeys(edit.path for edit in self.edits))

    @property
    def cells(self) -> list[tuple[str, str]]:
        """The cells with edits that were not taken back, each with its notebook."""
        left = [edit for edit in self.edits if not edit.is_undone]
        return list(dict.fromkeys((edit.path, cell) for edit in left for cell in edit.cells))

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
            parts.append(shown.diff)
        return "\n".join(parts)

    async def undo(self, workspace: AsyncWorkspace, cells: Collection[str] | None = None) -> None:
        """Take it back, with the outputs that were there; or, if that fails, nothing of it.

        Each notebook is saved once. What the kernel has done stays done.

        Args:
            workspace: one that may edit.
            cells: take back only what was done to these cells.

        Raises:
            NothingToUndo: it was taken back before, or did nothing to these cells.
            InvalidEdit: one change touched such a cell together with another.
            Conflict: one of the cells was changed since.
        """
        chosen = [edit for edit in self.edits if not edit.is_undone and _concerns(edit, cells)]
        if not chosen:
            raise NothingToUndo("undo: the turn changed nothing there that is left")
        undone: list[tuple[str, str]] = []
        try:
            for path in dict.fromkeys(edit.path for edit in chosen):
                ids = [edit.change for edit in chosen if edit.path == path]
                with contextlib.suppress(NothingToUndo):  # taken back before
                    done = await workspace.open(path).undo(ids)
                    undone.append((path, done.change or ""))
        except CellwrightError:
            for path, change in undone:
                with contextlib.suppress(CellwrightError):  # the first failure is the one to raise
                    await workspace.open(path).undo(change)
            raise
        for edit in chosen:
            edit.is_undone = True


def _concerns(edit: TurnEdit, cells: Collection[str] | None) -> bool:
    if cells is None:
        return True
    inside = [cell for cell in edit.cells if cell in cells]
    if inside and len(inside) < len(edit.cells):
        others = ", ".join(cell for cell in edit.cells if cell not in cells)
        raise InvalidEdit(f"The change of {inside[0]} also touched {others}", hint="Name them all")
    return bool(inside)


def read_edit(path: str, data: dict[str, Any]) -> TurnEdit | None:
    """The change that the data of a tool's result names; None if it changed nothing."""
    change = data.get("change")
    if not isinstance(change, str):
        return None
    cell = data.get("cellId")
    rows = data.get("cells") if cell is None else [{"handle": cell}]
    handles = [row.get("handle") for row in rows or () if isinstance(row, dict)]
    return TurnEdit(path, change, tuple(str(handle) for handle in handles if handle))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A new source for one cell; nothing has been changed yet.

    `base` is the revision of the notebook that the model was shown.
    """

    path: str
    cell: str
    base: str
    old: str
    new: str
    prompt: str = ""

    @property
    def diff(self) -> str:
        """What accepting it would change."""
        lines = difflib.unified_diff(
            self.old.splitlines(), self.new.splitlines(), self.cell, self.cell, lineterm=""
        )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {"path": self.path, "cell": self.cell, "source": self.new, "diff": self.diff}

    async def accept(self, workspace: AsyncWorkspace) -> ChangeSet:
        """Make it the source of the cell.

        Raises:
            Conflict: the cell was changed since; it stays as it is.
        """
        edit = {"op": "replace", "cell": self.cell, "source": self.new}
        done = await workspace.open(self.path).edit([edit], base=self.base, label="inline chat")
        changes = ChangeSet(self.prompt)
        if done.change is not None:
            cells = tuple(cell.handle for cell in done.cells)
            changes.edits.append(TurnEdit(self.path, done.change, cells))
        return changes


def find_proposal(text: str, context: NotebookContext | None, prompt: str = "") -> Proposal | None:
    """What an answer proposes for the cell that is being edited: its last fenced block.

    None if there is no such cell, no block, or nothing new in it.
    """
    cells = (
        [cell for cell in context.selected_cells if cell.selection == "active"] if context else []
    )
    blocks = _block(text)
    if context is None or not cells or not blocks:
        return None
    (cell,), new = cells[:1], blocks[-1][1].removesuffix("\n")
    if new == cell.content:
        return None
    return Proposal(
        path=context.path,
        cell=cell.id,
        base=context.revision,
        old=cell.content,
        new=new,
        prompt=prompt,
    )
