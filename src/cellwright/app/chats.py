"""Opens a chat for a door: its model, workspaces, permissions, its record, and what it completes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from functools import cache

from cellwright.app.workspaces import name_actor, open_chat_workspaces
from cellwright.assistant.availability import FILE_TOOLS
from cellwright.assistant.chat import Chat
from cellwright.assistant.conversation import Conversation
from cellwright.assistant.models.providers import DIRECT, choose_model
from cellwright.assistant.permissions import Permissions
from cellwright.assistant.prompt_files import PromptFolder
from cellwright.assistant.requests import ChatState
from cellwright.assistant.transcripts import Transcript, Transcripts, is_same_folder
from cellwright.config.directories import state_directory
from cellwright.config.loading import load
from cellwright.errors import ModelError, WorkspaceError
from cellwright.journal.history import format_time
from cellwright.outputs.sanitize import one_line
from cellwright.workspace.api.requests import find_mode
from cellwright.workspace.paths import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from cellwright.assistant.conversation import Watcher
    from cellwright.workspace.api.requests import Mode


def chat_folder() -> Path:
    """The folder of this user's chats; other users cannot read it."""
    folder = state_directory() / "assistant"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def open_transcripts() -> Transcripts:
    """The chats of this user; they are saved without keys."""
    from cellwright.kernel.environment import build_kernel_environment

    _, withheld = build_kernel_environment(os.environ)
    return Transcripts(chat_folder() / "chats", hide=[os.environ[name] for name in withheld])


def open_chat(
    root: str,
    *,
    cwd: str,
    actor: str,
    mode: Mode = "ask",
    engine: bool = False,
    model: str | None = None,
    saves: bool = True,
    repeats_outputs: bool = True,
    warn: Callable[[str], object] = str,
) -> Conversation:
    """Open a new chat; the caller closes it in the end.

    Args:
        root: no path may lead out of it.
        cwd: relative paths begin there.
        actor: who is asking, as `door:name`.
        mode: what the assistant may do at first.
        engine: whether kernels live in the engine, which is started if needed.
        model: a name such as `anthropic:claude`; by default that of the settings.
        saves: whether a transcript is kept, unless the settings forbid it.
        repeats_outputs: whether the built-in model repeats the outputs of cells that ran; for
            doors that do not show them.
        warn: gets a sentence if the engine cannot be reached.

    Raises:
        CellwrightError: there is no such model, or a setting is wrong.
    """
    settings = load(cwd)
    chosen = choose_model(model, settings, repeats_outputs=repeats_outputs)
    workspaces = open_chat_workspaces(root, cwd=cwd, actor=actor, engine=engine, warn=warn)
    chat = Chat(
        workspaces,
        chosen,
        file_tools=FILE_TOOLS,
        permissions=Permissions(chat_folder() / "allowed.json"),
        prompts=PromptFolder.of(settings),
        edit_mode_edits=settings.edit_mode_edits,
        context_in_system_prompt=settings.assistant_context_in_system_prompt,
    )
    return Conversation(
        chat=chat,
        state=ChatState(cwd=cwd, mode=mode),
        settings=settings,
        transcript=Transcript(root=root),
        transcripts=open_transcripts() if saves and settings.assistant_transcripts else None,
    )


@cache
def serve_chats(root: str) -> Conversations:
    """Return the chats that a server has for a folder; the same to all who ask.

    They use the engine, as the tabs do: what the assistant changes is to arrive in them.
    """
    return Conversations(root, actor=name_actor("chat"), engine=True)


class Conversations:
    """The chats of one folder, for a server whose pages come and go.

    Args:
        root: the folder; no path may lead out of it.
        actor: who is asking, as `door:name`.
        engine: whether kernels live in the engine, which is started if needed.
    """

    def __init__(self, root: str, *, actor: str, engine: bool) -> None:
        self.root = root
        self._actor = actor
        self._uses_engine = engine
        self._open: dict[str, Conversation] = {}
        self._turn = asyncio.Lock()
        self._listeners: list[Watcher] = []
        self._hidden: set[str] = set()

    def listen(self, listener: Watcher) -> Callable[[], None]:
        """Let someone know of chats that are deleted; returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def hide(self, text: str) -> None:
        """Never write a text, such as a key, into a transcript."""
        self._hidden.add(text)
        for each in self._open.values():
            if each.transcripts is not None:
                each.transcripts.hide(text)

    async def list(self) -> list[dict[str, Any]]:
        """List the chats, the newest first; those of other doors are among them."""
        found = await asyncio.to_thread(open_transcripts().find_all, self.root)
        rows = {each.id: each for each in found if not each.is_empty}
        for each in self._open.values():
            if each.log:
                rows[each.id] = each.update_transcript()
        return [
            {
                "id": each.id,
                "title": one_line(each.title),
                "updated": format_time(int((each.saved or time.time()) * 1000)),
                "mode": each.mode,
                "model": one_line(each.model),
                "messages": len(each.messages),
            }
            for each in sorted(rows.values(), key=lambda each: each.saved, reverse=True)
        ]

    async def open(self, name: str | None = None) -> Conversation:
        """Open a chat by its id, or a new one.

        Raises:
            WorkspaceError: there is no such chat here.
            ChatBusy: a turn of it runs in another program.
        """
        async with self._turn:
            found = self._open.get(name) if name is not None else None
            if found is not None and not found.is_outdated:
                return found
            earlier = None
            if name is not None:
                earlier = await asyncio.to_thread(self._load, name)
            if found is None:
                found = self._make(earlier)
            if earlier is not None:
                await found.resume(earlier)
            self._open[found.id] = found
            return found

    def get(self, name: object) -> Conversation:
        """Return a chat that is open."""
        if not isinstance(name, str) or name not in self._open:
            raise WorkspaceError("The chat is not open", hint="Open it first")
        return self._open[name]

    async def rename(self, name: str, title: str) -> str:
        """Give a chat a title, and return it."""
        found = await self.open(name)
        found.rename(title)
        return one_line(found.title)

    async def delete(self, name: str) -> None:
        """Delete a chat; the edits of its turns stay.

        Raises:
            WorkspaceError: there is no such chat here.
        """
        found = self._open.pop(name, None)
        if found is not None:
            found.transcripts = None
            await found.close()
        else:
            await asyncio.to_thread(self._load, name)
        await asyncio.to_thread(open_transcripts().delete, name)
        for listener in list(self._listeners):
            listener("deleted", {"chat": name})

    async def close(self) -> None:
        """Stop all turns."""
        for each in self._open.values():
            await each.close()
        self._open.clear()

    def _load(self, name: str) -> Transcript:
        """Load a chat of this folder; one of another folder does not exist here."""
        try:
            found = open_transcripts().load(name)
        except WorkspaceError:
            found = None
        if found is None or not is_same_folder(found.root, self.root):
            raise WorkspaceError(f"There is no chat `{name}` here")
        return found

    def _make(self, earlier: Transcript | None) -> Conversation:
        """Make a chat; where the model of an earlier one is gone, that of the settings answers."""
        names = [earlier.model] if earlier is not None and earlier.model != DIRECT else []
        for name in [*names, None, DIRECT]:
            try:
                found = open_chat(
                    self.root,
                    cwd=self.root,
                    actor=self._actor,
                    engine=self._uses_engine,
                    model=name,
                    repeats_outputs=False,
                )
                break
            except ModelError as error:
                problem = error
        else:
            raise problem
        if earlier is not None:
            found.state.mode = find_mode(earlier.mode) or "ask"
        if found.transcripts is not None:
            found.transcripts.hide(*self._hidden)
        found.ask_watchers()
        return found


_MOST_FILES = 5_000
_FRESH = 3.0


class FileNames:
    """The files below a folder, notebooks first; listed again after some seconds."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._found: list[str] = []
        self._when = -_FRESH

    async def find(self) -> list[str]:
        """The names of the files, relative to the folder."""
        if time.monotonic() - self._when > _FRESH:
            self._found = await asyncio.to_thread(self._walk)
            self._when = time.monotonic()
        return self._found

    def _walk(self) -> list[str]:
        found: list[str] = []
        for folder, folders, files in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
            shown = [name for name in sorted(files) if not name.startswith(".")]
            base = os.path.relpath(folder, self._folder)
            found += [name if base == "." else f"{base}/{name}" for name in shown]
            if len(found) >= _MOST_FILES:
                break
        found.sort(key=lambda name: (not name.endswith(".ipynb"), name.count("/"), name))
        return found[:_MOST_FILES]


def match_names(names: list[str], half: str, most: int = 200) -> list[str]:
    """Names that begin with `half`, then file names that do, then names that contain it."""
    low = half.lower()
    begins = [name for name in names if name.lower().startswith(low)]
    inside = [name for name in names if name.lower().rpartition("/")[2].startswith(low)]
    holds = [name for name in names if low in name.lower()]
    return list(dict.fromkeys([*begins, *inside, *holds]))[:most]
