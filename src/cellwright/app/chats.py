"""Opens a chat for a door: its model, workspaces, permissions, and the record of it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from cellwright.app.workspaces import open_chat_workspaces
from cellwright.assistant.availability import FILE_TOOLS
from cellwright.assistant.chat import Chat
from cellwright.assistant.models.providers import choose_model
from cellwright.assistant.permissions import Permissions
from cellwright.assistant.prompt_files import PromptFolder
from cellwright.assistant.requests import ChatState
from cellwright.assistant.transcripts import Transcript, Transcripts
from cellwright.config.directories import state_directory
from cellwright.config.loading import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright.config.settings import Settings
    from cellwright.workspace.api.requests import Mode


@dataclass(slots=True, kw_only=True)
class OpenedChat:
    """A chat and what belongs to it.

    Args:
        chat: the conversation.
        state: what is open, selected and attached.
        settings: the settings of its folder.
        transcript: the record of the chat.
        transcripts: where the record is saved; None if it is not.
    """

    chat: Chat
    state: ChatState
    settings: Settings
    transcript: Transcript
    transcripts: Transcripts | None = None

    def update_transcript(self) -> Transcript:
        """Bring the transcript up to date and return it."""
        found = self.transcript
        found.model, found.mode = self.chat.model.name, self.state.mode
        found.desk = self.state.to_json()
        found.messages, found.turns = list(self.chat.history), list(self.chat.turns)
        return found

    def save(self) -> None:
        """Save the transcript, if there is something to save and it is wanted.

        Raises:
            OSError: it cannot be written.
        """
        if self.transcripts is not None and (self.chat.history or self.chat.turns):
            self.transcripts.save(self.update_transcript())

    def resume(self, transcript: Transcript) -> None:
        """Take an earlier chat up again, in place of this one."""
        self.transcript = transcript
        self.chat.history[:] = transcript.messages
        self.chat.turns[:] = transcript.turns
        self.state.restore(transcript.desk)


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
    warn: Callable[[str], object] = str,
) -> OpenedChat:
    """Open a new chat; the caller closes `chat.workspaces` in the end.

    Args:
        root: no path may lead out of it.
        cwd: relative paths begin there.
        actor: who is asking, as `door:name`.
        mode: what the assistant may do at first.
        engine: whether kernels live in the engine, which is started if needed.
        model: a name such as `anthropic:claude`; by default that of the settings.
        saves: whether a transcript is kept, unless the settings forbid it.
        warn: gets a sentence if the engine cannot be reached.

    Raises:
        CellwrightError: there is no such model, or a setting is wrong.
    """
    settings = load(cwd)
    chosen = choose_model(model, settings)
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
    return OpenedChat(
        chat=chat,
        state=ChatState(cwd=cwd, mode=mode),
        settings=settings,
        transcript=Transcript(root=root),
        transcripts=open_transcripts() if saves and settings.assistant_transcripts else None,
    )
