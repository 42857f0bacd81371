"""The chat inside a cell: an answer proposes a new source, and the person decides about it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from cellwright.cli.chat.asking import SIGN
from cellwright.cli.chat.display import CellChange, JsonDisplay
from cellwright.cli.chat.turn import language_in
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cellwright.assistant.changes import Proposal
    from cellwright.assistant.chat import Chat
    from cellwright.cli.chat.asking import Asker
    from cellwright.cli.chat.display import Display
    from cellwright.cli.chat.turn import Outcome

_KEYS = {"a": "accept", "r": "reject", "f": "refine"}


class Proposals:
    """Shows what was proposed, and makes it so if that is wanted.

    Args:
        chat: whose answers they are.
        display: where they are shown.
        asker: who decides; nobody in a pipe.
        accept: whether it was decided beforehand.
        ask: asks the model again.
    """

    def __init__(
        self,
        chat: Chat,
        display: Display,
        asker: Asker | None,
        *,
        accept: bool,
        ask: Callable[[str], Awaitable[Outcome]],
    ) -> None:
        self._chat = chat
        self._display = display
        self._asker = asker
        self._accept = accept
        self._ask = ask

    async def decide(self, outcome: Outcome) -> Outcome:
        """Show the proposal of a turn and have it decided; returns the last turn that it took.

        Raises:
            Conflict: the cell has been changed meanwhile; it stays as it is.
        """
        while outcome.done is not None and outcome.done.proposal is not None:
            proposal = outcome.done.proposal
            self._display.change(await self._described(proposal))
            if self._accept:
                await self._make_it_so(proposal)
                return outcome
            if self._asker is None:
                self._display.note("Proposed, and nothing was changed; --accept makes it so")
                return outcome
            key = await self._asker.key(_KEYS)
            if key == "a":
                await self._make_it_so(proposal)
                return outcome
            wish = await self._asker.line(f"    refine {SIGN} ") if key == "f" else None
            if not wish:
                self._display.note("rejected: the cell is as it was")
                return outcome
            outcome = await self._ask(wish)
        return outcome

    async def _described(self, proposal: Proposal) -> CellChange:
        workspace = await self._chat.workspaces.get("ask")
        kind, language, number = "code", "python", ""
        with contextlib.suppress(CellwrightError):
            notebook = await workspace.open(proposal.path).load()
            cell = notebook.cell(proposal.cell)
            kind, language, number = cell.type, language_in(notebook), f" {cell.index + 1}"
        return CellChange(
            action=f"Proposed for cell{number}",
            name=one_line(proposal.cell[:80]),
            kind=one_line(kind[:20]),
            path=one_line(proposal.path[:200]),
            diff=proposal.diff,
            language=language,
        )

    async def _make_it_so(self, proposal: Proposal) -> None:
        changes = await self._chat.accept(proposal)
        if isinstance(self._display, JsonDisplay):
            self._display.line("accepted", changes=changes.to_json())
        name = one_line(proposal.cell[:80])
        self._display.note(f"accepted: cell {name} has its new source; /undo takes it back")
