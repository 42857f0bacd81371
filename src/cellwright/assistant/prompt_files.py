"""The system prompt: files with instructions, chosen by mode, put together in order.

A file's head says for which modes it is (`mode`, one or a list; without it, all), its place
(`order`, default 0), what it is for (`description`), and in which circumstances it is used
(`requires`, `unless`): whether the chat is about a `notebook`, and whether mode `edit` may change
it (`edits`). So no text needs conditions. A head is the part of YAML that such heads use: `name:
value`, lists as `[a, b]` or one item a line behind a dash, quotes, comments.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, get_args

from cellwright.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cellwright.config.settings import Settings


PromptMode: TypeAlias = Literal["ask", "edit", "agent", "inline"]
"""What a file can be for: a mode of the chat pane, or inline chat in a cell."""

OURS = Path(__file__).parent / "prompts" / "chat"
"""The files that come with the package."""

_log = logging.getLogger("cellwright.assistant.prompts")
_MODES: tuple[str, ...] = get_args(PromptMode)
_CIRCUMSTANCES = ("notebook", "edits")
_LONGEST = 200_000  # bytes
Value = str | list[str]
_head = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE).match
_opening = re.compile(r"\A\ufeff?---[ \t]*(?:\n|\Z)").match
_pair = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?").fullmatch
_item = re.compile(r"\s*-\s+(.+)").fullmatch
_comment = re.compile(r"(?:^|\s)#.*$").sub
_QUOTES = "\"'"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """One file of instructions; `name` is its path below the folder."""

    name: str
    text: str
    modes: tuple[str, ...] = _MODES
    order: float = 0
    description: str = ""
    requires: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The text of a system prompt, and the files that it is made of, in order."""

    text: str
    files: tuple[PromptFile, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        return [file.name for file in self.files]


class PromptFolder:
    """The prompt files there are.

    Args:
        user: a folder with files of the user; one with the name of ours replaces it.
        disabled: names of files that are not used in a mode.
    """

    def __init__(
        self,
        user: Path | None = None,
        disabled: Mapping[PromptMode, Collection[str]] | None = None,
    ) -> None:
        self.folders = [OURS, *([] if user is None else [user])]
        self.disabled = disabled or {}

    @classmethod
    def of(cls, settings: Settings) -> PromptFolder:
        """The files that a person wants.

        Raises:
            InvalidSetting: there is no such folder, or no such mode.
        """
        user = Path(settings.assistant_prompts).expanduser() if settings.assistant_prompts else None
        if user is not None and not user.is_dir():
            _refuse(settings, "assistant_prompts", str(user), "a folder")
        disabled: dict[PromptMode, list[str]] = {}
        for entry in settings.assistant_prompts_off:
            mode, colon, name = entry.rpartition(":")
            if (colon and mode not in _MODES) or not name:
                _refuse(settings, "assistant_prompts_off", entry, "name.md or mode:name.md")
            for each in get_args(PromptMode):
                if not colon or each == mode:
                    disabled.setdefault(each, []).append(name)
        return cls(user, disabled)

    def system_prompt(
        self, mode: PromptMode, *, has_notebook: bool, may_edit: bool = False
    ) -> SystemPrompt:
        """The system prompt of a mode.

        Args:
            mode: the mode.
            has_notebook: whether there is a notebook to talk about.
            may_edit: whether mode `edit` may change it.
        """
        holds = {"notebook"} if has_notebook else set()
        holds |= {"edits"} if may_edit and mode == "edit" else set()
        left_out = {name.removesuffix(".md") for name in self.disabled.get(mode, ())}
        chosen = [
            file
            for file in self._files().values()
            if mode in file.modes
            and file.requires <= holds
            and not file.unless & holds
            and file.name.removesuffix(".md") not in left_out
        ]
        chosen.sort(key=lambda file: (file.order, file.name))
        for file in chosen:
            _log.debug("mode %s loads %s (order %g)", mode, file.name, file.order)
        return SystemPrompt("\n\n".join(file.text for file in chosen), tuple(chosen))

    def _files(self) -> dict[str, PromptFile]:
        """Every file that can be read; the others are logged as a warning."""
        found: dict[str, PromptFile] = {}
        for folder in self.folders:
            for path in sorted(folder.rglob("*.md")):
                name = path.relative_to(folder).as_posix()
                try:
                    found[name] = read_prompt(name, path)
                except (OSError, ValueError) as error:
                    _log.warning("prompt file %s is left out: %s", path, error)
        return found


def _refuse(settings: Settings, name: str, value: str, expected: str) -> NoReturn:
    raise InvalidSetting(name, value, settings.origin(name).place, expected)


def read_prompt(name: str, path: Path) -> PromptFile:
    """Read one file.

    Raises:
        ValueError: its head cannot be read, or it is not text.
    """
    if path.stat().st_size > _LONGEST:
        raise ValueError("it is too long for a prompt")
    values, text = split_front_matter(path.read_text(encoding="utf-8"))
    modes = _words(values, "mode", _MODES) if "mode" in values else _MODES
    order, description = values.get("order", "0"), values.get("description", "")
    if isinstance(order, list) or isinstance(description, list):
        raise BadFrontMatter("order and description must not be lists")
    try:
        number = float(order)
    except ValueError:
        raise BadFrontMatter(f"order {order!r} is not a number") from None
    return PromptFile(
        name=name,
        text=text.strip(),
        modes=modes,
        order=number,
        description=description,
        requires=frozenset(_words(values, "requires", _CIRCUMSTANCES)),
        unless=frozenset(_words(values, "unless", _CIRCUMSTANCES)),
    )


def _words(values: Mapping[str, Value], name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The words that a head gives for a name, one or several, each of them known."""
    given = values.get(name, [])
    words = [given] if isinstance(given, str) else given
    unknown = [word for word in words if word not in known]
    if unknown or (name in values and not words):
        given = ", ".join(unknown) or "nothing"
        raise BadFrontMatter(f"{name} is {given}, not one of {', '.join(known)}")
    return tuple(words)


class BadFrontMatter(ValueError):
    """A head that cannot be read."""


def split_front_matter(text: str) -> tuple[dict[str, Value], str]:
    """The values of the head, and the text below it; no values if there is no head.

    Raises:
        BadFrontMatter: there is a head, and it says something that cannot be read.
    """
    text = text.replace("\r\n", "\n")
    found = _head(text)
    if found is None:
        if _opening(text):
            raise BadFrontMatter("it does not end")
        return {}, text.lstrip("\ufeff")
    return _parse_head(found[1]), text[found.end() :]


def _parse_head(head: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    name = ""
    for line in head.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item, pair = _item(line), _pair(line)
        if item is not None and name:
            there = values[name] or []
            if isinstance(there, str):
                raise BadFrontMatter(f"{name} has a value and a list")
            values[name] = [*there, _parse_text(item[1])]
        elif pair is not None:
            name = pair[1]
            if name in values:
                raise BadFrontMatter(f"{name} is there twice")
            values[name] = _parse_value(pair[2] or "")
        else:
            raise BadFrontMatter(f"the line {line.strip()[:40]!r} means nothing")
    return values


def _parse_value(text: str) -> Value:
    text = text.strip()
    if text.startswith("["):
        inside = _comment("", text).strip()
        if not inside.endswith("]"):
            raise BadFrontMatter("a list does not end")
        return [_parse_text(item) for item in inside[1:-1].split(",") if item.strip()]
    return _parse_text(text)


def _parse_text(text: str) -> str:
    text = text.strip()
    if text[:1] and text[0] in _QUOTES:
        end = text.find(text[0], 1)
        if end < 0 or _comment("", text[end + 1 :]).strip():
            raise BadFrontMatter("a quote does not end")
        return text[1:end]
    return _comment("", text).strip()
