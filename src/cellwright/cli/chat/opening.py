"""Everything that a chat needs, put together from a command line and the settings."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cellwright.assistant.permissions import Permissions
from cellwright.assistant.prompt_files import PromptFolder
from cellwright.assistant.providers.choosing import choose_model
from cellwright.assistant.transcripts import Transcript, Transcripts
from cellwright.assistant.workspaces import Workspaces
from cellwright.cli.chat.desk import MODES, Desk
from cellwright.cli.chat.doing import relative, require_file
from cellwright.cli.chat.pane import PaneChat
from cellwright.cli.output import Output
from cellwright.config.directories import state_directory
from cellwright.config.loading import load
from cellwright.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.config.settings import Settings
    from cellwright.workspace.requests import Mode
    from cellwright.workspace.workspace import AsyncWorkspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line asks for."""

    root: str | None
    cwd: str
    mode: Mode | None
    actor: str
    uses_engine: bool
    notebooks: tuple[str, ...] = ()
    open: str | None = None
    attach: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    cell: str | None = None
    model: str | None = None
    resume: str | None = None
    keeps: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What came of them."""

    chat: PaneChat
    desk: Desk
    settings: Settings
    transcript: Transcript
    transcripts: Transcripts | None
    folder: Path


async def open_chat(wishes: Wishes) -> Opened:
    """Have all that a chat needs.

    Raises:
        CellwrightError: something that was named is not there, or not allowed.
    """
    root, cwd = places(wishes.root, wishes.cwd)
    settings = load(cwd)
    folder = _private(state_directory() / "assistant")
    transcripts = Transcripts(folder / "chats", hide=_secrets())
    resumed, notebooks = _resumed(wishes, transcripts, root)
    model = choose_model(wishes.model or _model_of(resumed), settings)
    workspaces = await _workspaces(root, cwd, wishes)
    chat = PaneChat(
        workspaces,
        model,
        permissions=Permissions(folder / "allowed.json"),
        prompts=PromptFolder.of(settings),
        edit_mode_edits=settings.edit_mode_edits,
        context_in_system_prompt=settings.assistant_context_in_system_prompt,
    )
    desk = Desk(cwd=cwd, mode=wishes.mode or "ask", cell=wishes.cell)
    try:
        await _lay_out(desk, wishes, notebooks, workspaces)
        if resumed is not None:
            _take_up(chat, desk, resumed, wishes)
    except BaseException:
        await workspaces.close()
        raise
    return Opened(
        chat=chat,
        desk=desk,
        settings=settings,
        transcript=resumed or Transcript(root=root),
        transcripts=transcripts if wishes.keeps and settings.assistant_transcripts else None,
        folder=folder,
    )


def _private(folder: Path) -> Path:
    """A folder that only its owner can look into, if it can be made."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def places(root: str | None, cwd: str) -> tuple[str, str]:
    """The root, and the folder in it where relative names begin."""
    if root is None:
        real = os.path.realpath(cwd)
        if real in ("/", os.path.realpath(os.path.expanduser("~"))):  # noqa: PTH111
            raise click.UsageError(
                f"{real} is much to hand out; name it with --root if you mean it"
            )
        return cwd, cwd
    if not os.path.isdir(root):  # noqa: PTH112
        raise click.UsageError(f"--root {root} is no folder")
    inside = f"{os.path.realpath(cwd)}/".startswith(f"{os.path.realpath(root).rstrip('/')}/")
    return root, cwd if inside else root


async def _lay_out(
    desk: Desk, wishes: Wishes, notebooks: tuple[str, ...], workspaces: Workspaces
) -> None:
    """Put on the desk what was named; names on a command line begin in its own folder."""
    workspace = await workspaces.get(desk.mode)
    named = [_moved(name, wishes.cwd, desk.cwd) for name in notebooks]
    for name in named:
        await workspace.open(name).load()
        desk.attach(name)
    if wishes.open is not None:
        desk.open = _moved(wishes.open, wishes.cwd, desk.cwd)
        await workspace.open(desk.open).load()
    elif named:
        desk.open = named[0]
    for name in wishes.attach:
        if name.startswith("#"):
            desk.attach(name)
            continue
        place = _moved(name, wishes.cwd, desk.cwd)
        workspace.open(place)  # raises if it lies outside the root
        require_file(place, desk.cwd)
        desk.attach(place)
    if wishes.cell is not None or wishes.select:
        await _point(desk, wishes, workspace)


def _moved(name: str, start: str, cwd: str) -> str:
    """A name that begins in one folder, as it is from another."""
    return relative(os.path.join(start, os.path.expanduser(name)), cwd)  # noqa: PTH111, PTH118


async def _point(desk: Desk, wishes: Wishes, workspace: AsyncWorkspace) -> None:
    """Select cells, and find the one that the chat takes place in."""
    from cellwright.workspace.runs.choice import choose_cells

    if desk.open is None:
        raise click.UsageError("--select and --cell need a notebook that is open")
    notebook = await workspace.open(desk.open).load()
    refs = [ref for word in wishes.select for ref in word.split(",") if ref]
    desk.selected = tuple(cell.handle for cell in choose_cells(notebook, refs))
    if wishes.cell is not None:
        desk.cell = notebook.cell(wishes.cell).handle


def _resumed(
    wishes: Wishes, transcripts: Transcripts, root: str
) -> tuple[Transcript | None, tuple[str, ...]]:
    """The chat to go on with, and the notebooks that were named.

    The id of a chat may be left out, so that what stands behind `--resume` can be a notebook.
    """
    if wishes.resume is None:
        return None, wishes.notebooks
    if wishes.resume and not transcripts.has(wishes.resume) and wishes.resume.endswith(".ipynb"):
        return transcripts.load(root=root), (wishes.resume, *wishes.notebooks)
    return transcripts.load(wishes.resume or None, root), wishes.notebooks


def _take_up(chat: PaneChat, desk: Desk, resumed: Transcript, wishes: Wishes) -> None:
    chat.history += resumed.messages
    chat.turns += resumed.turns
    if wishes.cell is None:
        desk.take(resumed.desk)
    if wishes.mode is None and resumed.mode in MODES:
        desk.mode = MODES[MODES.index(resumed.mode)]


def _model_of(resumed: Transcript | None) -> str | None:
    """The model that a chat was held with; the built-in one gives way to what the settings say."""
    return resumed.model if resumed is not None and resumed.model != "direct" else None


async def _workspaces(root: str, cwd: str, wishes: Wishes) -> Workspaces:
    """Workspaces in the engine, if there is to be one, or in this process."""
    from cellwright.mcp.workspaces import wants_engine

    here = Workspaces(root, cwd=cwd, actor=wishes.actor)
    if not (wishes.uses_engine and wants_engine()):
        return here
    from cellwright.engine.aio import connect

    async def in_engine(mode: Mode) -> AsyncWorkspace:
        return await connect(root, cwd=cwd, mode=mode, actor=wishes.actor)

    there = Workspaces(root, cwd=cwd, actor=wishes.actor, connect=in_engine)
    try:
        await there.get(wishes.mode or "ask")
    except (EngineError, OSError) as error:
        # Aloud, also where the answer is JSON: state that was kept elsewhere is not seen here.
        Output(as_json=False).warn([f"{error}; working in this process alone"])
        return here
    return there


def _secrets() -> list[str]:
    """The values of variables that hold keys."""
    from cellwright.kernel.environment import build_kernel_environment

    _, withheld = build_kernel_environment(os.environ)
    return [os.environ[name] for name in withheld]
