"""The system prompt: files with instructions, chosen by mode, put together in order.

A file's head says for which modes it is (`mode`, one or a list; without it, all), where it stands
(`order`, default 0), what it is for (`description`), and in which circumstances it is read
(`requires`, `unless`): whether the chat is about a `notebook`, and whether mode `edit` may change
it (`edits`). So nothing in a text depends on a condition.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, get_args

from cellwright.assistant.front_matter import BadFrontMatter, split
from cellwright.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cellwright.assistant.front_matter import Value
    from cellwright.config.settings import Settings

PromptMode: TypeAlias = Literal["ask", "edit", "agent", "inline"]
"""What a file can be for: a mode of the chat pane, or inline chat in a cell."""

OURS = Path(__file__).parent / "prompts" / "chat"
"""The files that come with the package."""

_log = logging.getLogger("cellwright.assistant.prompts")
_MODES: tuple[str, ...] = get_args(PromptMode)
_CIRCUMSTANCES = ("notebook", "edits")
_LONGEST = 200_000  # bytes; more is no prompt


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
        user: a folder with files of the user's own; one with the name of ours takes its place.
        disabled: names of files that a mode does without.
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
        """What a model is told in a mode.

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
        """Every file that can be read; of those that cannot, a warning tells."""
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
        ValueError: its head cannot be read, or it is not text; what ours says in a file of that
            name holds on.
    """
    if path.stat().st_size > _LONGEST:
        raise ValueError("it is too long for a prompt")
    values, text = split(path.read_text(encoding="utf-8"))
    modes = _words(values, "mode", _MODES) if "mode" in values else _MODES
    order, description = values.get("order", "0"), values.get("description", "")
    if isinstance(order, list) or isinstance(description, list):
        raise BadFrontMatter("order and description are no lists")
    try:
        number = float(order)
    except ValueError:
        raise BadFrontMatter(f"order {order!r} is no number") from None
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
        told = ", ".join(unknown) or "nothing"
        raise BadFrontMatter(f"{name} is {told}, not one of {', '.join(known)}")
    return tuple(words)
