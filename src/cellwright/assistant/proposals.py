"""The new source that an answer proposes for the cell it was asked in: to accept, or to leave."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellwright.assistant.changes import ChangeSet, edited_by

if TYPE_CHECKING:
    from cellwright.assistant.context import NotebookContext
    from cellwright.workspace.workspace import AsyncWorkspace

_block = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE).findall


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A new source for one cell; nothing has been changed yet.

    `base` is the revision of the notebook that the model was told of.
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
            Conflict: the cell has been changed since; it stays as it is.
        """
        edit = {"op": "replace", "cell": self.cell, "source": self.new}
        done = await workspace.open(self.path).edit([edit], base=self.base, label="inline chat")
        changes = ChangeSet(self.prompt)
        made = edited_by(self.path, done)
        if made is not None:
            changes.edits.append(made)
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
