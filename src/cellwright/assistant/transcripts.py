"""Saved chats: written while they are held, resumed later, and exported as Markdown."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import re
import secrets
import tempfile
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from cellwright.assistant.changes import ChangeSet, Proposal, TurnEdit
from cellwright.assistant.models.model import ChatMessage, ToolCall, Usage
from cellwright.errors import InvalidEdit, WorkspaceError
from cellwright.outputs.sanitize import make_all_visible
from cellwright.tools.wording import code_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


MOST_KEPT = 50
"""Transcripts that are kept; the oldest make room."""

ENDINGS = ("done", "failed", "stopped", "lost")
"""The events that end a turn; every turn has exactly one of them."""

ASKED = ("prompt", "files", "tools", "cell")
"""What a turn was asked with, as people see it."""

_VERSION = 1
_HIDDEN = "⟦a key was here⟧"
_SHORTEST_SECRET = 8
_log = logging.getLogger("cellwright.assistant")
_id = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}").fullmatch
# How keys of model providers look, wherever they were pasted.
_key = re.compile(r"\b(?:sk|pk|xai|gsk)-[A-Za-z0-9_-]{16,}")


def _new_id() -> str:
    """An id for a chat: when it began, and something that tells two of them apart."""
    return f"{dt.datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"  # noqa: DTZ005  # the person's own time


@dataclass(slots=True, kw_only=True)
class Transcript:
    """One chat, as far as it went.

    `root` is the folder it was held in, `desk` what was open, selected and attached at its end.
    `log` has its turns as people saw them, `owner` marks the process in which one of them runs,
    `name` is the title if a person gave it one, and `saved` is when the file was written.
    """

    id: str = field(default_factory=_new_id)
    root: str = ""
    model: str = ""
    mode: str = "ask"
    desk: dict[str, Any] = field(default_factory=dict)
    messages: list[ChatMessage] = field(default_factory=list)
    turns: list[ChangeSet] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    name: str = ""
    owner: str = ""
    saved: float = 0.0

    @property
    def title(self) -> str:
        """Its name, or else the first question, on one line."""
        asked = (message.text for message in self.messages if message.role == "user")
        logged = (str(turn.get("prompt", "")) for turn in self.log)
        return " ".join((self.name or next(logged, "") or next(asked, "")).split())[:200]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was asked yet."""
        return not (self.messages or self.turns or self.log)

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(message.role == "user" for message in self.messages)

    def to_json(self) -> dict[str, Any]:
        """As data; pictures are only counted."""
        return {
            "version": _VERSION,
            "id": self.id,
            "root": self.root,
            "model": self.model,
            "mode": self.mode,
            "desk": self.desk,
            "messages": [_message_to_json(message) for message in self.messages],
            "turns": [turn.to_json() for turn in self.turns],
            "log": self.log,
            "usage": self.usage.to_json(),
            "name": self.name,
            "owner": self.owner,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Transcript:
        """From data that `to_json` made.

        Raises:
            ValueError, LookupError, TypeError: it is something else.
        """
        if data["version"] != _VERSION:
            raise ValueError(f"version {data['version']}")
        return cls(
            id=str(data["id"]),
            root=str(data["root"]),
            model=str(data["model"]),
            mode=str(data["mode"]),
            desk=dict(data["desk"]),
            messages=[_message_from_json(each) for each in data["messages"]],
            turns=[_turn_from_json(each) for each in data["turns"]],
            log=[dict(each) for each in data.get("log", ())],
            # Of chats from before it was kept, the cost is not known.
            usage=Usage(**data.get("usage", {"cost": None})),
            name=str(data.get("name", "")),
            owner=str(data.get("owner", "")),
        )


@dataclass(slots=True, kw_only=True)
class TurnRecord:
    """One turn as people see it.

    `asked` is what the person sent: `prompt`, `files`, `tools`, `cell` and `editor`. `start` counts
    the messages of the chat before it.
    """

    number: int
    asked: dict[str, Any]
    start: int
    events: list[dict[str, Any]] = field(default_factory=list)
    changes: ChangeSet | None = None
    proposal: Proposal | None = None

    @property
    def is_ended(self) -> bool:
        """Whether it has ended; undoing or accepting may follow the end."""
        return any(event["event"] in ENDINGS for event in self.events)

    def to_json(self) -> dict[str, Any]:
        """As data for those who watch."""
        asked = {name: make_all_visible(self.asked.get(name)) for name in ASKED}
        return {"turn": self.number, **asked, "events": [dict(event) for event in self.events]}

    def to_log(self, turns: Sequence[ChangeSet]) -> dict[str, Any]:
        """As a transcript keeps it; of pictures only that they were there."""
        return {
            "turn": self.number,
            **self.asked,
            "events": [_without_pictures(event) for event in self.events],
            "start": self.start,
            "changes": next((at for at, each in enumerate(turns) if each is self.changes), None),
            "proposal": self.proposal and asdict(self.proposal),
        }

    @classmethod
    def from_log(cls, data: Mapping[str, Any], turns: Sequence[ChangeSet]) -> TurnRecord:
        """From data that `to_log` made."""
        at = data["changes"]
        return cls(
            number=int(data["turn"]),
            asked={name: data[name] for name in (*ASKED, "editor")},
            start=int(data["start"]),
            events=[dict(event) for event in data["events"]],
            changes=turns[at] if isinstance(at, int) and at < len(turns) else None,
            proposal=Proposal(**data["proposal"]) if data["proposal"] else None,
        )


class Transcripts:
    """The chats of one person.

    Args:
        folder: where they are; only the user can read it.
        hide: texts that are never written, such as keys; whatever looks like a key is not
            written either.
    """

    def __init__(self, folder: Path, hide: Iterable[str] = ()) -> None:
        self.folder = folder
        self._hide: list[str] = []
        self.hide(*hide)

    def hide(self, *texts: str) -> None:
        """Never write these texts from now on."""
        found = {*self._hide, *(text for text in texts if len(text) >= _SHORTEST_SECRET)}
        self._hide = sorted(found, key=len, reverse=True)

    def save(self, transcript: Transcript) -> Path:
        """Save a chat atomically."""
        path = self._place(transcript.id)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps(
            self.without_keys(transcript.to_json()), ensure_ascii=False, indent=1, default=str
        )
        with tempfile.NamedTemporaryFile(  # it has mode 0600
            "w", encoding="utf-8", errors="backslashreplace", dir=self.folder, delete=False
        ) as file:
            file.write(text)
        os.replace(file.name, path)  # noqa: PTH105
        transcript.saved = self.saved_at(transcript.id)
        for old in self._files()[MOST_KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def load(self, name: str | None = None, root: str | None = None) -> Transcript:
        """A chat by its id, or the last one; of those in a folder, if that is given.

        Raises:
            WorkspaceError: there is none.
        """
        for path in self._files() if name is None else [self._place(name)]:
            try:
                found = _read(path)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, LookupError, TypeError) as error:
                _log.warning("%s cannot be read: %s", path, error)
                continue
            if name is not None or root is None or is_same_folder(found.root, root):
                return found
        known = ", ".join(path.stem for path in self._files()[:3])
        what = f"There is no chat `{name}`" if name else "There is no chat to resume here"
        raise WorkspaceError(what, hint=f"The last ones are {known}" if known else None)

    def find_all(self, root: str | None = None) -> list[Transcript]:
        """All chats that can be read, the newest first; of those in a folder, if that is given."""
        found = []
        for path in self._files():
            try:
                each = _read(path)
            except (OSError, ValueError, LookupError, TypeError):
                continue
            if root is None or is_same_folder(each.root, root):
                found.append(each)
        return found

    def delete(self, name: str) -> None:
        """Delete a chat; the edits of its turns stay."""
        self._place(name).unlink(missing_ok=True)

    def saved_at(self, name: str) -> float:
        """When a chat was saved last; 0 if it is not there."""
        try:
            return self._place(name).stat().st_mtime
        except OSError:
            return 0.0

    def has(self, name: str) -> bool:
        """Whether there is a chat of that id."""
        return bool(_id(name)) and self._place(name).exists()

    def without_keys(self, value: Any) -> Any:
        """A value of JSON without keys."""
        if isinstance(value, dict):
            return {
                self.without_keys(name): self.without_keys(each) for name, each in value.items()
            }
        if isinstance(value, list):
            return [self.without_keys(each) for each in value]
        if not isinstance(value, str):
            return value
        for text in self._hide:
            value = value.replace(text, _HIDDEN)
        return _key.sub(_HIDDEN, value)

    def _place(self, name: str) -> Path:
        if not _id(name):
            raise InvalidEdit(
                f"`{name}` is not the id of a chat", hint="Such as 20260102-150405-0f3a"
            )
        return self.folder / f"{name}.json"

    def _files(self) -> list[Path]:
        """The files, the newest first."""
        try:
            found = [path for path in self.folder.glob("*.json") if _id(path.stem)]
            return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))[::-1]
        except OSError:
            return []


def is_same_folder(one: str, other: str) -> bool:
    """Whether two names lead to one folder, also through links."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _read(path: Path) -> Transcript:
    found = Transcript.from_json(json.loads(path.read_text(encoding="utf-8")))
    found.saved = path.stat().st_mtime
    return found


def to_markdown(transcript: Transcript) -> str:
    """A chat as Markdown, for a person."""
    parts = [f"# Chat {transcript.id}", f"Model `{transcript.model}`."]
    for message in transcript.messages:
        if message.role == "user":
            parts.append(f"## You\n\n{message.text}")
        elif message.role == "assistant":
            parts += [f"## Assistant\n\n{message.text}"] if message.text.strip() else []
            for call in message.calls:
                arguments = json.dumps(
                    dict(call.arguments), ensure_ascii=False, default=str, indent=1
                )
                parts.append(f"### Call of `{call.name}`\n\n{code_block(arguments, 'json')}")
        elif message.role == "tool":
            title = "It failed" if message.is_error else "It answered"
            parts.append(f"{title}:\n\n{code_block(message.shown or message.text)}")
    return "\n\n".join(parts) + "\n"


def _message_to_json(message: ChatMessage) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role, "text": message.text}
    if message.calls:
        found["calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
            for call in message.calls
        ]
    if message.call_id is not None:
        found |= {"call_id": message.call_id, "is_error": message.is_error}
        found["data"] = dict(message.data)
    if message.shown:
        found["shown"] = message.shown
    if message.images:
        found["images"] = len(message.images)
    return found


def _message_from_json(data: Mapping[str, Any]) -> ChatMessage:
    calls: Sequence[Mapping[str, Any]] = data.get("calls", ())
    if data["role"] not in ("user", "assistant", "tool"):
        raise ValueError(f"a message by {data['role']}")
    return ChatMessage(
        role=data["role"],
        text=str(data["text"]),
        calls=tuple(
            ToolCall(str(call["id"]), str(call["name"]), dict(call["arguments"])) for call in calls
        ),
        call_id=data.get("call_id"),
        is_error=bool(data.get("is_error", False)),
        data=dict(data.get("data", {})),
        shown=str(data.get("shown", "")),
    )


def _turn_from_json(data: Mapping[str, Any]) -> ChangeSet:
    edits = [
        TurnEdit(
            str(edit["path"]),
            str(edit["change"]),
            tuple(map(str, edit["cells"])),
            bool(edit["undone"]),
        )
        for edit in data["edits"]
    ]
    return ChangeSet(str(data["prompt"]), edits)


def _without_pictures(event: dict[str, Any]) -> dict[str, Any]:
    if not event.get("images"):
        return event
    kept = [{name: image[name] for name in image if name != "data"} for image in event["images"]]
    return {**event, "images": kept}


def derive_log(transcript: Transcript) -> list[TurnRecord]:
    """The turns of a chat that was saved without a log, from its messages."""
    from cellwright.assistant.chat import TurnEndEvent

    found: list[TurnRecord] = []
    left = list(transcript.turns)
    for at, message in enumerate(transcript.messages):
        if message.role == "user":
            asked: dict[str, Any] = {
                "prompt": message.text,
                "files": [],
                "tools": [],
                "cell": None,
                "editor": None,
            }
            found.append(TurnRecord(number=len(found) + 1, asked=asked, start=at))
            if left and message.text.startswith(left[0].prompt):
                found[-1].changes = left.pop(0)
        if found:
            found[-1].events += make_all_visible(_derive_events(message, found[-1]))
    for record in found:
        texts = [event["text"] for event in record.events if event["event"] == "text"]
        end = TurnEndEvent(text=texts[-1] if texts else "", changes=record.changes)
        record.events.append(make_all_visible(end.to_json()))
    return found


def _derive_events(message: ChatMessage, record: TurnRecord) -> list[dict[str, Any]]:
    if message.role == "user":
        shown = {name: record.asked[name] for name in ASKED}
        return [{"event": "asked", "turn": record.number, **shown, "replaces": []}]
    if message.role == "assistant":
        text = [{"event": "text", "text": message.text}] if message.text else []
        from cellwright.assistant.chat import ToolCallEvent

        more: dict[str, Any] = {"effect": "read", "notebook": None, "cells": [], "started": None}
        calls = [ToolCallEvent(call).to_json() for call in message.calls]
        return [*text, *({**call, "title": call["name"], **more} for call in calls)]
    names = [
        event["name"] for event in record.events if event.get("id") == message.call_id is not None
    ]
    return [
        {
            "event": "tool_result",
            "id": message.call_id,
            "name": names[0] if names else "",
            "text": message.shown or message.text,
            "data": dict(message.data),
            "is_error": message.is_error,
            "images": [],
            "seconds": None,
            "cells": [],
        }
    ]
