"""The shape of a tool, of its caller, and of its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cellwright.tools.schemas import schema_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel

    from cellwright.errors import CellwrightError
    from cellwright.kernel.session import Ask
    from cellwright.outputs.images import Picture
    from cellwright.workspace.requests import Effect, Mode
    from cellwright.workspace.workspace import AsyncWorkspace

    Progress = Callable[[dict[str, Any]], object]
    Tag = Literal["requires-notebook", "read-only", "destructive"]

EFFECTS_OF_MODES: dict[Mode, frozenset[Effect]] = {
    "ask": frozenset({"read"}),
    "edit": frozenset({"read"}),
    "agent": frozenset({"read", "edit", "run"}),
}
"""Which mode allows what; `edit_mode_edits` adds `edit` to mode `edit`."""

STRENGTH: tuple[Effect, ...] = ("read", "edit", "run")
"""The effects; who may have one may have those before it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says.

    `text` is within its budget. `data` holds small facts for programs, never output nor base64.
    `images` are for models that can see.
    """

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    images: tuple[Picture, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls a tool, and what it can do for it meanwhile.

    `active` is the notebook that a person looks at, where a door knows it; tools of profiles that
    name no notebook mean that one. `selected` has the cells that are `selected` or `active`
    (being edited) there, by handle.
    """

    workspace: AsyncWorkspace
    progress: Progress | None = None
    ask: Ask | None = None
    active: str | None = None
    selected: Mapping[str, str] = field(default_factory=dict)

    @property
    def mode(self) -> Mode:
        """What is allowed."""
        return self.workspace.mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool.

    `effects` says what it may do: one effect, or one for each value of the parameter `action`;
    `words` then says what each of them does. `options` are further parameters whose values have
    effects of their own. `reference` is its name behind a `#` in a person's prompt. `refused`
    words an error in the way of the tool's profile.
    """

    name: str
    description: str
    model: type[BaseModel]
    call: Callable[[Caller, Any], Awaitable[Answer]]
    effects: Effect | Mapping[str, Effect]
    words: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Effect]] = field(default_factory=dict)
    reference: str = ""
    title: str = ""
    tags: frozenset[Tag] = frozenset()
    action: str = "action"
    refused: Callable[[CellwrightError], Answer] | None = None

    def effect(self, arguments: Mapping[str, Any]) -> Effect:
        """What a call with these arguments would do, the strongest of it."""
        found = [
            choices.get(str(arguments.get(name)), "run") for name, choices in self._choices.items()
        ]
        found += [self.effects] if isinstance(self.effects, str) else []
        return max(found, key=STRENGTH.index)

    @property
    def least(self) -> Effect:
        """The weakest thing that it can do."""
        every = [self.effects] if isinstance(self.effects, str) else self.effects.values()
        return min(every, key=STRENGTH.index)

    def actions(self, allowed: frozenset[Effect]) -> list[str] | None:
        """The actions that are allowed; None if it has no actions."""
        if isinstance(self.effects, str):
            return None
        return [action for action, effect in self.effects.items() if effect in allowed]

    def is_allowed(self, allowed: frozenset[Effect]) -> bool:
        """Whether anything of it is allowed."""
        actions = self.actions(allowed)
        return bool(actions) if actions is not None else self.effects in allowed

    def told(self, allowed: frozenset[Effect]) -> str:
        """Its description, with the actions that are allowed."""
        actions = self.actions(allowed) or ()
        told = "; ".join(f"{name}: {self.words[name]}" for name in actions if name in self.words)
        return f"{self.description} {told}." if told else self.description

    def schema(self, allowed: frozenset[Effect]) -> dict[str, Any]:
        """The JSON schema of its parameters, with what is allowed among their values."""
        schema = schema_of(self.model)
        for name, choices in self._choices.items():
            values = [value for value, effect in choices.items() if effect in allowed]
            schema["properties"][name]["enum"] = values
        return schema

    @property
    def _choices(self) -> dict[str, Mapping[str, Effect]]:
        own = {} if isinstance(self.effects, str) else {self.action: self.effects}
        return {**own, **self.options}
