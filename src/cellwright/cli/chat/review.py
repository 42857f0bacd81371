"""The changes of a turn, cell by cell: to keep, or to take back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cellwright.cli.chat.display import CellChange
from cellwright.cli.chat.slash import WrongCommand
from cellwright.errors import CellNotFound, CellwrightError
from cellwright.outputs.sanitize import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.assistant.changes import ChangeSet
    from cellwright.assistant.chat import Chat
    from cellwright.cli.chat.asking import Asker
    from cellwright.cli.chat.display import Display

_KEYS = {"a": "accept", "r": "reject", "s": "skip", "q": "stop"}


_VERBS = {"inserted": "Added", "deleted": "Deleted", "moved": "Moved"}


@dataclass(frozen=True, slots=True)
class CellReview:
    """What a turn did to one cell, and the same to be shown."""

    path: str
    cell: str
    change: CellChange


class Reviews:
    """Looks at the changes of the newest turn that has any left."""

    def __init__(self, chat: Chat, display: Display, asker: Asker | None) -> None:
        self._chat = chat
        self._display = display
        self._asker = asker
        self._accepted: set[tuple[int, str, str]] = set()

    async def run(self, words: list[str]) -> None:
        """`/review`, with what stands behind it.

        Raises:
            WrongCommand: there is nothing to review.
            CellNotFound: the turn has not changed that cell.
        """
        changes = self._newest()
        cells = await self._cells(changes)
        verb = words[0].lower() if words else ""
        if verb in ("accept", "reject"):
            for each in _chosen(cells, words[1:]):
                await self._decide(changes, each, verb)
            return
        if words:
            cells = _chosen(cells, words)
        left = [each for each in cells if self._key(changes, each) not in self._accepted]
        if not left:
            self._display.note("All of it has been accepted")
        for number, each in enumerate(left, 1):
            self._display.change(replace(each.change, place=f"{number} of {len(left)}"))
            if self._asker is None:
                continue
            key = await self._asker.key(_KEYS)
            if key in (None, "q"):
                return
            if key in ("a", "r"):
                await self._decide(changes, each, _KEYS[key or ""])

    def _newest(self) -> ChangeSet:
        found = next((turn for turn in reversed(self._chat.turns) if not turn.is_undone), None)
        if found is None:
            raise WrongCommand("There is nothing to review: no change of a turn stands")
        return found

    async def _cells(self, changes: ChangeSet) -> list[CellReview]:
        workspace = await self._chat.workspaces.get("ask")
        standing = set(changes.cells)
        found: list[CellReview] = []
        for path in changes.notebooks:
            ids = [edit.change for edit in changes.edits if edit.path == path]
            shown = await workspace.open(path).diff(f"{ids[0]}^", ids[-1])
            parts = sections(shown["diff"])
            language = await self._language(path)
            for fact, part in zip(shown["cells"], parts, strict=False):
                if (path, fact["handle"]) in standing:
                    change = _described(path, fact, part, language)
                    found.append(CellReview(path, fact["handle"], change))
        return found

    async def _language(self, path: str) -> str:
        from cellwright.cli.chat.turn import language_in

        workspace = await self._chat.workspaces.get("ask")
        try:
            return language_in(await workspace.open(path).load())
        except CellwrightError:
            return "python"

    async def _decide(self, changes: ChangeSet, each: CellReview, verb: str) -> None:
        name = one_line(each.cell[:80])
        if verb == "accept":
            self._accepted.add(self._key(changes, each))
            self._display.note(f"accepted {name}")
            return
        try:
            await self._chat.undo(changes, cells=[each.cell])
        except CellwrightError as error:
            self._display.problem(error)
        else:
            self._display.note(f"rejected {name}: it is as it was before the turn")

    def _key(self, changes: ChangeSet, each: CellReview) -> tuple[int, str, str]:
        return self._chat.turns.index(changes), each.path, each.cell


def sections(diff: str) -> list[str]:
    """The parts of a notebook's diff, one a cell.

    Every line of a cell begins with a sign, so that none can pass for the head of a section.
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


def _described(path: str, fact: Mapping[str, Any], diff: str, language: str) -> CellChange:
    index = fact["after"] if fact["after"] is not None else fact["before"]
    return CellChange(
        action=f"{_VERBS.get(fact['kind'], 'Updated')} cell {index + 1}",
        name=one_line(fact["handle"][:80]),
        kind=one_line(fact["type"][:20]),
        path=one_line(path[:200]),
        diff=diff,
        language=language,
    )


def _chosen(cells: list[CellReview], names: list[str]) -> list[CellReview]:
    if not names:
        return cells
    known = {each.cell: each for each in cells}
    for name in names:
        if name not in known:
            raise CellNotFound(name, near=list(known)[:3])
    return [known[name] for name in names]
