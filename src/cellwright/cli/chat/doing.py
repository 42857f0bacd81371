"""What the commands of a chat do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cellwright.assistant.requests import resolve_file
from cellwright.cli.chat.desk import MODES
from cellwright.cli.chat.review import Reviews
from cellwright.cli.chat.slash import WrongCommand, help_rows
from cellwright.cli.chat.telling import tell_context, tell_model, tool_rows
from cellwright.errors import NothingToUndo
from cellwright.outputs.sanitize import one_line

if TYPE_CHECKING:
    from cellwright.cli.chat.asking import Asker
    from cellwright.cli.chat.sitting import Sitting
    from cellwright.document.cells import Cell

_MEANS = {
    "ask": "it reads notebooks",
    "edit": "it reads notebooks, and proposes changes",
    "agent": "it reads, changes and runs notebooks, and asks before it runs or deletes",
}


class Doing:
    """Carries commands out, for one sitting."""

    def __init__(self, sitting: Sitting, asker: Asker | None) -> None:
        self._sitting = sitting
        self._reviews = Reviews(sitting.chat, sitting.display, asker)

    async def do(self, name: str, words: list[str]) -> None:
        """Carry one out.

        Raises:
            CellwrightError: it cannot be done, or was not written right.
        """
        await getattr(self, f"_{name}")(words)

    async def _open(self, words: list[str]) -> None:
        sitting, desk = self._sitting, self._sitting.desk
        if not words:
            desk.open, desk.selected, desk.cell = None, (), None
            sitting.display.note("No notebook is open")
            return
        name = self._named(_only(words, "/open NB"))
        workspace = await sitting.chat.workspaces.get(desk.mode)
        notebook = await workspace.open(name).load()
        desk.open, desk.selected, desk.cell = name, (), None
        hint = "" if name in desk.files else f"; /attach {name} lets the assistant see it"
        sitting.display.note(f"{one_line(name)} is open, {len(notebook.cells):,} cells{hint}")

    async def _select(self, words: list[str]) -> None:
        from cellwright.workspace.runs.choice import choose_cells

        sitting, desk = self._sitting, self._sitting.desk
        if desk.open is None:
            raise WrongCommand("No notebook is open", hint="/open NB opens one")
        if not words:
            desk.selected = ()
            sitting.display.note("Nothing is selected")
            return
        workspace = await sitting.chat.workspaces.get(desk.mode)
        notebook = await workspace.open(desk.open).load()
        refs = [ref for word in words for ref in word.split(",") if ref]
        cells = choose_cells(notebook, refs)
        desk.selected = tuple(cell.handle for cell in cells)
        sitting.display.note(f"Selected {', '.join(map(_named_cell, cells))}")

    async def _attach(self, words: list[str]) -> None:
        sitting, desk = self._sitting, self._sitting.desk
        if not words:
            raise WrongCommand("Nothing was named", hint="/attach FILE or /attach #TOOL")
        for word in words:
            if word.startswith("#"):
                await self._attach_tool(word)
                continue
            name = self._named(word)
            workspace = await sitting.chat.workspaces.get(desk.mode)
            workspace.open(name)  # raises if it lies outside the root
            require_file(name, desk.cwd)
            new = desk.attach(name)
            told = "attached" if new else "is attached already"
            hint = ""
            if name.endswith(".ipynb") and name != desk.open:
                hint = f"; /open {name} makes it the notebook that the chat is about"
            sitting.display.note(f"{one_line(name)} {told}{hint}")

    async def _attach_tool(self, word: str) -> None:
        from difflib import get_close_matches

        sitting, desk = self._sitting, self._sitting.desk
        known = {tool.reference.lower(): tool for tool in sitting.chat.tools if tool.reference}
        tool = known.get(word[1:].lower())
        if tool is None:
            near = get_close_matches(word[1:].lower(), known, n=1, cutoff=0.5)
            hint = f"Did you mean #{known[near[0]].reference}?" if near else "/tools lists them"
            raise WrongCommand(f"There is no tool `{word}`", hint=hint)
        desk.attach(f"#{tool.reference}")
        _, offer = await sitting.chat.look(desk.request(""))
        is_there = tool in offer.there
        why = "" if is_there else ", but it is not available now; /tools says why"
        sitting.display.note(f"#{tool.reference} attached{why}")

    async def _detach(self, words: list[str]) -> None:
        sitting, desk = self._sitting, self._sitting.desk
        if not words:
            desk.files.clear()
            desk.tools.clear()
            sitting.display.note("Nothing is attached")
            return
        for word in words:
            name = word if word.startswith("#") else self._named(word)
            if not desk.detach(name):
                there = ", ".join(desk.attached) or "nothing"
                raise WrongCommand(f"`{name}` is not attached", hint=f"There is {there}")
            sitting.display.note(f"{one_line(name)} is not attached any more")

    async def _mode(self, words: list[str]) -> None:
        sitting, desk = self._sitting, self._sitting.desk
        if words:
            mode = _only(words, "/mode ask|edit|agent").lower()
            if mode not in MODES:
                raise WrongCommand(f"There is no mode `{mode}`", hint="ask, edit or agent")
            desk.mode = MODES[MODES.index(mode)]
        means = _MEANS[desk.mode]
        if desk.mode == "edit" and sitting.chat.edit_mode_edits:
            means = "it reads and changes notebooks"
        sitting.display.note(f"Mode {desk.mode}: {means}")

    async def _model(self, words: list[str]) -> None:
        sitting = self._sitting
        if words:
            from cellwright.assistant.models.model.providers import choose_model

            name = _only(words, "/model PROVIDER:NAME")
            model = choose_model(name, sitting.settings)
            ready = getattr(model, "prepare", None)
            if ready is not None:
                await ready()  # a key that is missing is told now, and the old model stays
            sitting.use(model)
        sitting.display.note(tell_model(sitting.chat))

    async def _tools(self, words: list[str]) -> None:
        del words
        sitting = self._sitting
        detection, offer = await sitting.chat.look(sitting.desk.request(""))
        sitting.display.table(tool_rows(offer))
        if detection.reason:
            sitting.display.note(f"Notebook mode is off. {detection.reason}")

    async def _context(self, words: list[str]) -> None:
        del words
        sitting = self._sitting
        sitting.display.tell(await tell_context(sitting.chat, sitting.desk.request("")))

    async def _review(self, words: list[str]) -> None:
        await self._reviews.run(words)
        self._sitting.save()

    async def _undo(self, words: list[str]) -> None:
        del words
        sitting = self._sitting
        newest = next((turn for turn in reversed(sitting.chat.turns) if not turn.is_undone), None)
        count = len(newest.cells) if newest is not None else 0
        try:
            changes = await sitting.chat.undo()
        except NothingToUndo:
            nothing = "There is nothing to take back: no turn of this chat changed anything"
            raise WrongCommand(
                nothing, hint="What stands in a notebook, `cellwright log` tells"
            ) from None
        names = ", ".join(map(one_line, changes.notebooks))
        cells = "1 cell" if count == 1 else f"{count} cells"
        sitting.display.note(
            f"Took back what the turn did to {cells} of {names}; what kernels did stays done"
        )
        sitting.save()

    async def _expand(self, words: list[str]) -> None:
        cards = self._sitting.turns.cards
        if not cards:
            raise WrongCommand("There is no card yet")
        number = _only(words, "/expand N") if words else str(len(cards))
        if not number.isdecimal() or not 1 <= int(number) <= len(cards):
            raise WrongCommand(f"There is no card {number}", hint=f"1 to {len(cards)}")
        self._sitting.display.expand(cards[int(number) - 1])

    async def _save(self, words: list[str]) -> None:
        from cellwright.cli.chat.saving import save_as

        sitting = self._sitting
        name = _only(words, "/save FILE") if words else f"chat-{sitting.transcript.id}.md"
        path = save_as(sitting.describe(), name, sitting.transcripts)
        sitting.display.note(f"Saved as {one_line(path)}")

    async def _help(self, words: list[str]) -> None:
        self._sitting.display.table(help_rows(words[0] if words else None))

    async def _quit(self, words: list[str]) -> None:
        del words
        self._sitting.is_over = True

    def _named(self, name: str) -> str:
        """A file as tools name it: relative to the folder we are in, if it lies there."""
        return relative(name.removeprefix("@"), self._sitting.desk.cwd)


def relative(name: str, cwd: str) -> str:
    """A name relative to a folder, if it lies there; else as it is."""
    place = resolve_file(name, cwd)
    if place is None:
        raise WrongCommand(f"`{one_line(name)}` is no name of a file")
    clean = os.path.normpath(place)
    inside = clean.startswith(f"{cwd.rstrip('/')}/")
    return os.path.relpath(clean, cwd) if inside else clean


def require_file(name: str, cwd: str) -> None:
    """Raise `WrongCommand` unless there is such a file."""
    if not os.path.isfile(os.path.join(cwd, name)):  # noqa: PTH113, PTH118
        raise WrongCommand(f"There is no file `{one_line(name)}`")


def _only(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise WrongCommand("One word was expected", hint=usage)
    return words[0]


def _named_cell(cell: Cell) -> str:
    return f"cell {cell.index + 1} ({one_line(cell.handle[:60])}, index {cell.index})"
