"""The seam to a notebook, wherever it lives: in a file, in a browser's tab, in a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot

    RanStatus = Literal["ok", "error", "timed_out", "cancelled", "died"]


@dataclass(frozen=True, slots=True)
class Ran:
    """A cell that was run: its handle, how it ended, and what to call that if not well.

    `reason` is the name of the exception, such as `ZeroDivisionError`, or a few words.
    """

    cell: str
    status: RanStatus
    reason: str = ""
    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class Presence:
    """Where a person is in the notebook, by handles; nowhere if nobody has it open."""

    active: str | None = None
    selected: tuple[str, ...] = ()


class NotebookHost(Protocol):
    """One notebook and its kernel.

    Cells are named by their handles: the id, or `cell-N` where there is none. What goes wrong is
    raised as a `CellwrightError`, and then nothing was changed; `ModeForbids` if the mode of
    whoever asks does not allow it.
    """

    async def snapshot(self) -> Notebook:
        """The notebook as it is now; the caller's own copy."""
        ...

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Check and apply edits in one step, all or nothing, and read back what came of it.

        References mean the cells of `base`; changes made elsewhere since then stay.

        Raises:
            Conflict: a cell concerned is not as `base` knew it; nothing was applied.
            InvalidEdit, InvalidMetadata: what was asked for would not be a valid notebook.
        """
        ...

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[Ran]:
        """Run code cells in order, and stop after the first that does not end well.

        Outputs land in the notebook. Returns those that ran; handles mean the cells of `base`.
        Without `nested` it waits for its turn at the kernel, as any run does. With it, a cell
        that runs now waits for these: each is sent to the kernel at once, past the queue, with
        `{"nbmp_request": nested}` in the metadata of its execute request.
        """
        ...

    async def save(self) -> None:
        """Have the notebook written to where it lives, if its owner has not done so already."""
        ...

    async def presence(self) -> Presence:
        """Where a person is in the notebook."""
        ...
