"""Reviews: the person accepts or rejects a turn's changes, or the proposed source of a cell."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from cellwright.cli.chat.display import DisplayedChange, JsonDisplay
from cellwright.cli.chat.state import WrongCommand
from cellwright.cli.chat.turn import language_of_notebook
from cellwright.cli.questions import SIGN
from cellwright.errors import CellNotFound, CellwrightError
from cellwright.outputs.sanitize import one_line
from cellwright.tools.profiles.plain_files import is_notebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cellwright.assistant.changes import ChangeSet, Proposal
    from cellwright.assistant.conversation import Conversation
    from cellwright.cli.chat.display import ChatDisplay
    from cellwright.cli.chat.turn import TurnOutcome
    from cellwright.cli.questions import Asker
    from cellwright.workspace.api.answers import CellChangeView

_TURN_KEYS = {"a": "accept", "r": "reject", "s": "skip", "q": "stop"}
_PROPOSAL_KEYS = {"a": "accept", "r": "reject", "f": "refine"}
_VERBS = {"inserted": "Added", "deleted": "Deleted", "moved": "Moved"}


@dataclass(frozen=True, slots=True)
class ReviewedCell:
    """A cell that a turn changed, and its change to show."""

    path: str
    cell: str
    change: DisplayedChange
    number: str = ""  # counted from 1, as it is shown


class TurnReview:
    """Reviews the changes of the newest turn whose changes are not all undone."""

    def __init__(
        self, conversation: Conversation, display: ChatDisplay, asker: Asker | None
    ) -> None:
        self._conversation = conversation
        self._chat = conversation.chat
        self._display = display
        self._asker = asker
        self._accepted: set[tuple[int, str, str]] = set()

    async def run(self, words: list[str]) -> None:
        """Carry out `/review` with its words.

        Raises:
            WrongCommand: there is nothing to review.
            CellNotFound: the turn has not changed that cell.
        """
        changes = self._chat.find_newest_changes()
        if changes is None:
            raise WrongCommand("There is nothing to review: no turn has changes left")
        cells = await self._list_cells(changes)
        verb = words[0].lower() if words else ""
        if verb in ("accept", "reject"):
            for each in _choose_cells(cells, words[1:]):
                await self._decide(changes, each, verb)
            return
        if words:
            cells = _choose_cells(cells, words)
        left = [each for each in cells if self._key(changes, each) not in self._accepted]
        if not left:
            self._display.print_note("All changes are accepted")
        for number, each in enumerate(left, 1):
            self._display.print_change(replace(each.change, position=f"{number} of {len(left)}"))
            if self._asker is None:
                continue
            key = await self._asker.key(_TURN_KEYS)
            if key in (None, "q"):
                return
            if key in ("a", "r"):
                await self._decide(changes, each, _TURN_KEYS[key or ""])

    async def _list_cells(self, changes: ChangeSet) -> list[ReviewedCell]:
        workspace = await self._chat.workspaces.get("ask")
        remaining = set(changes.cells)
        found: list[ReviewedCell] = []
        for path in changes.notebooks:
            ids = [edit.change for edit in changes.edits if edit.path == path]
            shown = await workspace.open(path).diff(f"{ids[0]}^", ids[-1])
            language = await self._find_language(path)
            for fact, part in zip(shown.cells, split_diff(shown.diff), strict=False):
                if (path, fact.handle) in remaining:
                    change = _describe_change(path, fact, part, language)
                    number = str(_place_of(fact) + 1) if is_notebook(path) else ""
                    found.append(ReviewedCell(path, fact.handle, change, number))
        return found

    async def _find_language(self, path: str) -> str:
        workspace = await self._chat.workspaces.get("ask")
        if not is_notebook(path):
            return "text"
        try:
            return language_of_notebook(await workspace.open(path).load())
        except CellwrightError:
            return "python"

    async def _decide(self, changes: ChangeSet, each: ReviewedCell, verb: str) -> None:
        name = one_line(each.cell[:80])
        if verb == "accept":
            self._accepted.add(self._key(changes, each))
            self._display.print_note(f"accepted {name}")
            return
        try:
            await self._conversation.undo(changes, cells=[each.cell])
        except CellwrightError as error:
            self._display.print_error(error)
        else:
            self._display.print_note(f"rejected {name}: restored as before the turn")

    def _key(self, changes: ChangeSet, each: ReviewedCell) -> tuple[int, str, str]:
        return self._chat.turns.index(changes), each.path, each.cell


def split_diff(diff: str) -> list[str]:
    """Split the diff of a notebook into one part for each cell.

    Every line of a cell begins with a sign, so that none can look like the head of a part.
    """
    found: list[list[str]] = []
    is_cell = False
    for line in diff.splitlines():
        if line.startswith("@@ cell "):
            found.append([line])
            is_cell = True
        elif line.startswith("@@ notebook "):
            is_cell = False
        elif is_cell:
            found[-1].append(line)
    return ["\n".join(part) for part in found]


def _place_of(fact: CellChangeView) -> int:
    return fact.after if fact.after is not None else fact.before or 0


def _describe_change(path: str, fact: CellChangeView, diff: str, language: str) -> DisplayedChange:
    what = f"cell {_place_of(fact) + 1}" if is_notebook(path) else "file"
    return DisplayedChange(
        action=f"{_VERBS.get(fact.kind, 'Updated')} {what}",
        name=one_line(fact.handle[:80]),
        kind=one_line(fact.type[:20]),
        path=one_line(path[:200]),
        diff=diff,
        language=language,
    )


def _choose_cells(cells: list[ReviewedCell], names: list[str]) -> list[ReviewedCell]:
    if not names:
        return cells
    known = {each.number: each for each in cells if each.number}
    known |= {each.cell: each for each in cells}
    for name in names:
        if name not in known:
            raise CellNotFound(name, near=[each.cell for each in cells[:3]])
    return [known[name] for name in names]


class ProposalReview:
    """Shows the source that an answer proposes for a cell, and applies it if it is accepted.

    Args:
        conversation: its answers propose it.
        display: where it is shown.
        asker: asks the person; None in a pipe.
        accept: whether proposals are accepted in advance.
        ask: asks the model again.
    """

    def __init__(
        self,
        conversation: Conversation,
        display: ChatDisplay,
        asker: Asker | None,
        *,
        accept: bool,
        ask: Callable[[str], Awaitable[TurnOutcome]],
    ) -> None:
        self._conversation = conversation
        self._chat = conversation.chat
        self._display = display
        self._asker = asker
        self._accept = accept
        self._ask = ask

    async def decide(self, outcome: TurnOutcome) -> TurnOutcome:
        """Let the person decide about the proposal of a turn; returns the last turn.

        Raises:
            Conflict: the cell was changed in the meantime; it is left unchanged.
        """
        while outcome.done is not None and outcome.done.proposal is not None:
            proposal = outcome.done.proposal
            self._display.print_change(await self._describe(proposal))
            if self._accept:
                await self._apply(proposal)
                return outcome
            if self._asker is None:
                self._display.print_note("Nothing was changed; --accept applies the proposal")
                return outcome
            key = await self._asker.key(_PROPOSAL_KEYS)
            if key == "a":
                await self._apply(proposal)
                return outcome
            wish = await self._asker.line(f"    refine {SIGN} ") if key == "f" else None
            if not wish:
                self._display.print_note("rejected: the cell is unchanged")
                return outcome
            outcome = await self._ask(wish)
        return outcome

    async def _describe(self, proposal: Proposal) -> DisplayedChange:
        workspace = await self._chat.workspaces.get("ask")
        kind, language, number = "code", "python", ""
        with contextlib.suppress(CellwrightError):
            notebook = await workspace.open(proposal.path).load()
            cell = notebook.cell(proposal.cell)
            kind, language, number = cell.type, language_of_notebook(notebook), f" {cell.index + 1}"
        return DisplayedChange(
            action=f"Proposed for cell{number}",
            name=one_line(proposal.cell[:80]),
            kind=one_line(kind[:20]),
            path=one_line(proposal.path[:200]),
            diff=proposal.diff,
            language=language,
        )

    async def _apply(self, proposal: Proposal) -> None:
        changes = await self._conversation.accept()
        if isinstance(self._display, JsonDisplay):
            self._display.print_event("accepted", changes=changes.to_json())
        name = one_line(proposal.cell[:80])
        self._display.print_note(f"accepted: cell {name} has its new source; /undo restores it")
