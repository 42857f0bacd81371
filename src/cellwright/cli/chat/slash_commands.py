"""Slash commands of a chat: which there are, how a line is parsed, and what each does."""

from __future__ import annotations

import difflib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from cellwright.assistant.context import render_context
from cellwright.assistant.models.direct import DirectModel
from cellwright.assistant.transcripts import Transcripts, to_markdown
from cellwright.cli.chat.review import TurnReview
from cellwright.cli.chat.state import WrongCommand, require_file, shorten_path
from cellwright.errors import AlreadyExists, CellNotFound, NothingToUndo
from cellwright.outputs.sanitize import one_line
from cellwright.workspace.api.requests import find_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.assistant.availability import ToolOffer
    from cellwright.assistant.chat import Chat
    from cellwright.assistant.requests import ChatRequest
    from cellwright.assistant.transcripts import Transcript
    from cellwright.cli.chat.session import ChatSession
    from cellwright.cli.questions import Asker
    from cellwright.document.cells import Cell
    from cellwright.tools.tool import Tool

NO_MODEL = (
    "No language model is set up. The built-in assistant carries out commands such as `run cell 2`. "
    "/model, --model or the setting assistant_model selects a language model."
)
_MODES = {
    "ask": "the assistant reads notebooks",
    "edit": "the assistant reads notebooks, and proposes changes",
    "agent": "the assistant reads, changes and runs notebooks; it asks before it runs or deletes",
}


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """How a command is written, and what it does."""

    usage: str
    about: str


COMMANDS = {
    "open": SlashCommand("/open [NB]", "open a notebook, as in an editor; alone: close it"),
    "select": SlashCommand("/select [CELLS]", "select cells by id, number or range; alone: none"),
    "attach": SlashCommand("/attach FILE|#TOOL", "attach a file or a tool to your prompts"),
    "detach": SlashCommand("/detach [FILE|#TOOL]", "remove an attachment; alone: all"),
    "mode": SlashCommand("/mode [ask|edit|agent]", "what the assistant may do"),
    "model": SlashCommand("/model [NAME]", "which model answers, as provider:name or direct"),
    "tools": SlashCommand("/tools", "which tools are available now, and why others are not"),
    "context": SlashCommand("/context", "what the model would get now"),
    "review": SlashCommand(
        "/review [reject CELL]", "the changes of the last turn, by cell; accept or reject each"
    ),
    "undo": SlashCommand("/undo", "undo the changes of the last turn, outputs included"),
    "expand": SlashCommand("/expand [N]", "show a card in full; Ctrl-O: the last one"),
    "chats": SlashCommand(
        "/chats [N | rename N TITLE | delete N]",
        "list earlier chats here; with a number, continue that one",
    ),
    "save": SlashCommand("/save [FILE]", "save the chat as Markdown, or as JSON in a .json file"),
    "help": SlashCommand("/help [COMMAND]", "this list"),
    "quit": SlashCommand("/quit", "leave; so does Ctrl-D"),
}
_KEYS = (
    ("@file, #tool", "in a prompt: attaches a file, names a tool; Tab completes them"),
    ("Enter, Alt-Enter", "sends the prompt; starts a new line"),
    ("Ctrl-C", "interrupts the kernel while a cell runs, otherwise the turn"),
)
_ALIASES = {"exit": "quit", "q": "quit", "?": "help"}


class UnknownCommand(WrongCommand):
    """There is no slash command of that name."""

    def __init__(self, name: str) -> None:
        near = difflib.get_close_matches(name, COMMANDS, n=2, cutoff=0.6)
        names = " or ".join(f"/{each}" for each in near)
        hint = f"Did you mean {names}?" if near else "/help lists the commands"
        super().__init__(f"There is no command `/{name}`", hint=hint)


def is_command(line: str) -> bool:
    """Whether a line is a command; a sentence that begins with a path is not."""
    if not line.startswith("/"):
        return False
    first = line.split(maxsplit=1)[0]
    return "/" not in first[1:]


def parse_command(line: str) -> tuple[str, list[str]]:
    """Split a line into the name of a command and its words; quotes keep words together.

    Raises:
        UnknownCommand: there is no command of that name.
        WrongCommand: a quote is not closed.
    """
    name, _, rest = line.removeprefix("/").partition(" ")
    name = _ALIASES.get(name.strip().lower(), name.strip().lower())
    if name not in COMMANDS:
        raise UnknownCommand(name)
    try:
        return name, shlex.split(rest)
    except ValueError:
        raise WrongCommand(f"A quote is not closed in `{line}`") from None


def help_rows(name: str | None = None) -> list[tuple[str, str]]:
    """All commands and keys with what they do; or one command."""
    if name is not None:
        wanted = name.removeprefix("/")
        if wanted not in COMMANDS:
            raise UnknownCommand(wanted)
        return [(COMMANDS[wanted].usage, COMMANDS[wanted].about)]
    return [*((command.usage, command.about) for command in COMMANDS.values()), ("", ""), *_KEYS]


class SlashCommands:
    """Carries out the slash commands of one session, each in a method of its name."""

    def __init__(self, session: ChatSession, asker: Asker | None) -> None:
        self._session = session
        self._state = session.state
        self._display = session.display
        self._chat = session.chat
        self._reviews = TurnReview(session.opened, session.display, asker)

    async def run(self, name: str, words: list[str]) -> None:
        """Carry out a command.

        Raises:
            CellwrightError: it failed, or its words are wrong.
        """
        await getattr(self, f"_{name}")(words)

    async def _open(self, words: list[str]) -> None:
        state = self._state
        if not words:
            state.open, state.selected, state.cell = None, (), None
            self._display.print_note("No notebook is open")
            return
        name = self._resolve(_require_one(words, "/open NB"))
        workspace = await self._chat.workspaces.get(state.mode)
        notebook = await workspace.open(name).load()
        state.open, state.selected, state.cell = name, (), None
        hint = "" if name in state.files else f"; /attach {name} lets the assistant see it"
        self._display.print_note(f"{one_line(name)} is open, {len(notebook.cells):,} cells{hint}")

    async def _select(self, words: list[str]) -> None:
        from cellwright.workspace.runs.choice import choose_cells

        state = self._state
        if state.open is None:
            raise WrongCommand("No notebook is open", hint="/open NB opens one")
        if not words:
            state.selected = ()
            self._display.print_note("Nothing is selected")
            return
        workspace = await self._chat.workspaces.get(state.mode)
        notebook = await workspace.open(state.open).load()
        refs = [ref for word in words for ref in word.split(",") if ref]
        try:
            cells = choose_cells(notebook, refs, first=1)
        except CellNotFound as error:
            count = len(notebook.cells)
            hint = error.hint if error.near else f"The notebook has the cells 1 to {count}"
            raise WrongCommand(error.message, hint=hint) from None
        state.selected = tuple(cell.handle for cell in cells)
        self._display.print_note(f"Selected {', '.join(map(_describe_cell, cells))}")

    async def _attach(self, words: list[str]) -> None:
        state = self._state
        if not words:
            raise WrongCommand("A name is missing", hint="/attach FILE or /attach #TOOL")
        for word in words:
            if word.startswith("#"):
                await self._attach_tool(word)
                continue
            name = self._resolve(word)
            workspace = await self._chat.workspaces.get(state.mode)
            workspace.open(name)  # raises if it is outside the root
            require_file(name, state.cwd)
            status = "attached" if state.attach(name) else "is already attached"
            hint = ""
            if name.endswith(".ipynb") and name != state.open:
                hint = f"; /open {name} makes it the open notebook"
            self._display.print_note(f"{one_line(name)} {status}{hint}")

    async def _attach_tool(self, word: str) -> None:
        tool = find_tool(word, self._chat)
        self._state.attach(f"#{tool.reference}")
        _, offer = await self._chat.look(self._state.build_request(""))
        why = "" if tool in offer.there else ", but it is not available now; /tools says why"
        self._display.print_note(f"#{tool.reference} attached{why}")

    async def _detach(self, words: list[str]) -> None:
        state = self._state
        if not words:
            state.files.clear()
            state.tools.clear()
            self._display.print_note("Nothing is attached")
            return
        for word in words:
            name = word if word.startswith("#") else self._resolve(word)
            if not state.detach(name):
                names = ", ".join(state.attachments) or "nothing"
                raise WrongCommand(f"`{name}` is not attached", hint=f"Attached: {names}")
            self._display.print_note(f"{one_line(name)} is no longer attached")

    async def _mode(self, words: list[str]) -> None:
        state = self._state
        if words:
            name = _require_one(words, "/mode ask|edit|agent").lower()
            mode = find_mode(name)
            if mode is None:
                raise WrongCommand(f"There is no mode `{name}`", hint="ask, edit or agent")
            state.mode = mode
        about = _MODES[state.mode]
        if state.mode == "edit" and self._chat.edit_mode_edits:
            about = "the assistant reads and changes notebooks"
        self._display.print_note(f"Mode {state.mode}: {about}")

    async def _model(self, words: list[str]) -> None:
        if words:
            from cellwright.assistant.models.providers import choose_model

            name = _require_one(words, "/model PROVIDER:NAME")
            model = choose_model(name, self._session.settings)
            prepare = getattr(model, "prepare", None)
            if prepare is not None:
                await prepare()  # raises if its key is missing; the old model stays
            self._session.set_model(model)
        self._display.print_note(describe_model(self._chat))

    async def _tools(self, words: list[str]) -> None:
        del words
        detection, offer = await self._chat.look(self._state.build_request(""))
        self._display.print_table(tool_rows(offer))
        if detection.reason:
            self._display.print_note(f"Notebook mode is off. {detection.reason}")

    async def _context(self, words: list[str]) -> None:
        del words
        request = self._state.build_request("")
        self._display.print_text(await describe_context(self._chat, request))

    async def _review(self, words: list[str]) -> None:
        await self._reviews.run(words)

    async def _undo(self, words: list[str]) -> None:
        del words
        newest = self._chat.find_newest_changes()
        count = len(newest.cells) if newest is not None else 0
        try:
            changes = await self._session.opened.undo()
        except NothingToUndo:
            raise WrongCommand(
                "There is nothing to undo: no turn of this chat has changes left",
                hint="`cellwright log` lists the changes of a notebook",
            ) from None
        names = ", ".join(map(one_line, changes.notebooks))
        cells = "1 cell" if count == 1 else f"{count} cells"
        self._display.print_note(
            f"Undid the turn's changes to {cells} of {names}; variables in kernels are not undone"
        )

    async def _expand(self, words: list[str]) -> None:
        cards = self._session.turns.cards
        if not cards:
            raise WrongCommand("There is no card yet")
        number = _require_one(words, "/expand N") if words else str(len(cards))
        if not number.isdecimal() or not 1 <= int(number) <= len(cards):
            raise WrongCommand(f"There is no card {number}", hint=f"1 to {len(cards)}")
        self._display.expand_card(cards[int(number) - 1])

    async def _chats(self, words: list[str]) -> None:
        session = self._session
        store = session.opened.transcripts
        if store is None:
            raise WrongCommand("Chats are not saved", hint="The setting assistant_transcripts")
        found = [
            each for each in store.find_all(session.opened.transcript.root) if not each.is_empty
        ]
        if not words:
            rows = [(f"{number}  {each.id}", each.title) for number, each in enumerate(found, 1)]
            self._display.print_table(rows)
            self._display.print_note(
                "/chats N continues one" if rows else "There is no earlier chat here"
            )
            return
        verb, rest = words[0], words[1:]
        is_verb = verb in ("rename", "delete")
        name = _require_one(rest[:1] if is_verb else words, COMMANDS["chats"].usage)
        chosen = [each for number, each in enumerate(found, 1) if name in (str(number), each.id)]
        if not chosen:
            raise WrongCommand(f"There is no chat {name}", hint="/chats lists them")
        if not is_verb:
            await session.opened.resume(chosen[0])
            self._display.print_note(
                f"Continuing chat {chosen[0].id}, {chosen[0].questions} questions so far"
            )
        elif verb == "rename":
            title = _require_one([" ".join(rest[1:])] if rest[1:] else [], "/chats rename N TITLE")
            self._rename_chat(chosen[0], title, store)
        elif chosen[0].id == session.opened.id:
            raise WrongCommand("This chat is the one you are in", hint="Delete it from another one")
        else:
            store.delete(chosen[0].id)
            self._display.print_note(f"Deleted chat {chosen[0].id}; its changes stay")

    def _rename_chat(self, chosen: Transcript, title: str, store: Transcripts) -> None:
        opened = self._session.opened
        if chosen.id == opened.id:
            opened.rename(title)
        else:
            chosen.name = title
            store.save(chosen)
        self._display.print_note(f"Chat {chosen.id} is called {one_line(title)} now")

    async def _save(self, words: list[str]) -> None:
        session = self._session
        name = (
            _require_one(words, "/save FILE")
            if words
            else f"chat-{session.opened.transcript.id}.md"
        )
        path = save_transcript(session.opened.update_transcript(), name, session.opened.transcripts)
        self._display.print_note(f"Saved as {one_line(path)}")

    async def _help(self, words: list[str]) -> None:
        self._display.print_table(help_rows(words[0] if words else None))

    async def _quit(self, words: list[str]) -> None:
        del words
        self._session.is_closed = True

    def _resolve(self, name: str) -> str:
        return shorten_path(name.removeprefix("@"), self._state.cwd)


def _require_one(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise WrongCommand("Give exactly one word", hint=usage)
    return words[0]


def _describe_cell(cell: Cell) -> str:
    return f"cell {cell.index + 1} ({one_line(cell.handle[:60])})"


def describe_model(chat: Chat) -> str:
    """Say which model answers."""
    if isinstance(chat.model, DirectModel):
        return f"Model {chat.model.name}. {NO_MODEL}"
    return f"Model {one_line(chat.model.name)}"


def tool_rows(offer: ToolOffer) -> list[tuple[str, str]]:
    """The available tools with what they do, and the others with why they are not available."""
    rows = []
    for tool in offer.known:
        is_available = tool in offer.there
        name = f"#{tool.reference}" if tool.reference else tool.name
        about = tool.description if is_available else _explain_absence(tool, offer)
        rows.append((f"{'✓' if is_available else '–'} {name}", about))
    return rows


def _explain_absence(tool: Tool, offer: ToolOffer) -> str:
    if not tool.is_allowed(offer.toolbox.allowed):
        needed = "edit" if tool.effects == "edit" and offer.edit_mode_edits else "agent"
        return f"not in mode {offer.request.mode}; /mode {needed} has it"
    return offer.why_not(tool)


async def describe_context(chat: Chat, request: ChatRequest) -> str:
    """Describe what the model would get with a prompt now."""
    detection, offer = await chat.look(request)
    context = detection.context
    mode = "inline" if request.location == "cell" else request.mode
    system = chat.prompts.system_prompt(
        mode, has_notebook=context is not None, may_edit=chat.edit_mode_edits
    )
    lines = [
        f"system prompt  {len(system.text):,} characters of {', '.join(system.names)}",
        f"tools          {', '.join(offer.names) or 'none'}",
        f"conversation   {len(chat.history):,} messages",
    ]
    if context is None:
        return "\n".join([*lines, f"notebook       none. {detection.reason}"])
    state = render_context(context)
    lines.append(f"notebook       {len(state):,} characters about {one_line(context.path)}:")
    return "\n".join([*lines, "", state])


def save_transcript(transcript: Transcript, name: str, transcripts: Transcripts | None) -> str:
    """Save a chat in a file, as JSON if its name ends so, else as Markdown; returns its path.

    Raises:
        AlreadyExists: the file exists; it is left unchanged.
        WrongCommand: it cannot be written.
    """
    path = Path(name).expanduser()
    store = transcripts or Transcripts(path.parent)
    if path.suffix.lower() == ".json":
        data = store.without_keys(transcript.to_json())
        text = json.dumps(data, ensure_ascii=False, indent=1, default=str) + "\n"
    else:
        text = store.without_keys(to_markdown(transcript))
    try:
        with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError:
        raise AlreadyExists(name) from None
    except OSError as error:
        raise WrongCommand(f"`{name}` cannot be written: {error.strerror}") from None
    return str(path)


def find_tool(word: str, chat: Chat) -> Tool:
    """The tool that `#name` means; raises `WrongCommand`."""
    known = {tool.reference.lower(): tool for tool in chat.tools if tool.reference}
    tool = known.get(word[1:].lower())
    if tool is None:
        near = difflib.get_close_matches(word[1:].lower(), known, n=1, cutoff=0.5)
        hint = f"Did you mean #{known[near[0]].reference}?" if near else "/tools lists them"
        raise WrongCommand(f"There is no tool `{one_line(word)}`", hint=hint)
    return tool
