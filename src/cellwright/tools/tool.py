"""The shape of a tool, of its caller, and of its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

from cellwright.workspace.caller import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel

    from cellwright.errors import CellwrightError
    from cellwright.kernel.session import Ask
    from cellwright.outputs.images import ModelImage
    from cellwright.workspace.api.requests import Effect, Mode
    from cellwright.workspace.workspace import AsyncBook, AsyncWorkspace

    Progress = Callable[[dict[str, Any]], object]
    Tag = Literal["requires-notebook", "read-only", "destructive"]

_FOR_PROGRAMS = ("title", "additionalProperties")
_NOTHING: tuple[Any, ...] = (None, "", [], {})

EFFECT_ORDER: tuple[Effect, ...] = ("read", "edit", "run")
"""The effects, the weakest first; a mode that allows one allows those before it."""


def allowed_effects(mode: Mode, *, edit_mode_edits: bool = False) -> frozenset[Effect]:
    """What a mode allows; `edit_mode_edits` says whether mode `edit` may change notebooks."""
    allowed = cast("frozenset[Effect]", ALLOWED[mode])
    return allowed | {"edit"} if mode == "edit" and edit_mode_edits else allowed


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A part of a result's text.

    Without a `name` it is a line of ours. With one it is a text of the notebook; `cell` is then the
    handle of the cell it belongs to, if it belongs to one, and `label` is what is said before it
    where there are several.
    """

    text: str
    name: str | None = None
    cell: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers.

    `text` is for models, within its budget. `data` holds small facts for programs, never output
    nor base64. `images` are for models that can see. The rest is for those who show the result to
    a person: `parts` is the text taken apart, empty if all of it is a line of ours; `left_out` is
    what it says at its end about what is missing; `artifacts` are the ids of artifacts it names.
    """

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    images: tuple[ModelImage, ...] = ()
    is_error: bool = False
    parts: tuple[ResultPart, ...] = field(default=(), compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)
    artifacts: tuple[str, ...] = field(default=(), compare=False)

    @property
    def plain_text(self) -> str:
        """The text for a person: without the fences that models need."""
        if not self.parts:
            return self.text
        has_labels = sum(part.name is not None for part in self.parts) > 1
        lines = []
        for part in self.parts:
            lines += [part.label, part.text] if has_labels and part.label else [part.text]
        return "\n".join([*lines, *(f"LEFT OUT: {what}" for what in self.left_out)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    """Who calls a tool, and what it can do for it meanwhile.

    `active` is the notebook that a person looks at, where a door knows it; tools of profiles that
    name no notebook mean that one. `selected` has the cells that are `selected` or `active`
    (being edited) there, by handle. `is_shared` says that others may have the same name, so that
    no change is known to be this caller's own.
    """

    workspace: AsyncWorkspace
    progress: Progress | None = None
    ask: Ask | None = None
    active: str | None = None
    selected: Mapping[str, str] = field(default_factory=dict)
    is_shared: bool = False

    async def find_book(self, path: str | None) -> AsyncBook | None:
        """The notebook that is named, else the active one, else none.

        Where the door knows of none, it is the open one where a person was last.
        """
        found = path or self.active
        if not found:
            rows = await self.workspace.list(opened=True)
            found = rows[0].path if rows else None
        return self.workspace.open(found) if found else None

    def run_options(self) -> dict[str, Any]:
        """What the verbs that run code are given about this caller."""
        ask = {} if self.ask is None else {"ask": self.ask}
        return {"progress": self.progress, **ask}


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
    call: Callable[[ToolCaller, Any], Awaitable[ToolResult]]
    effects: Effect | Mapping[str, Effect]
    words: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Effect]] = field(default_factory=dict)
    reference: str = ""
    title: str = ""
    tags: frozenset[Tag] = frozenset()
    refused: Callable[[CellwrightError], ToolResult] | None = None

    def effect(self, arguments: Mapping[str, Any]) -> Effect:
        """What a call with these arguments would do, the strongest of it."""
        found = [
            choices.get(str(arguments.get(name)), "run") for name, choices in self._choices.items()
        ]
        found += [self.effects] if isinstance(self.effects, str) else []
        return max(found, key=EFFECT_ORDER.index)

    @property
    def weakest_effect(self) -> Effect:
        """The weakest thing that it can do."""
        every = [self.effects] if isinstance(self.effects, str) else self.effects.values()
        return min(every, key=EFFECT_ORDER.index)

    def possible_effects(self, allowed: frozenset[Effect]) -> frozenset[Effect]:
        """All that it can do, of what is allowed."""
        own: set[Effect] = {self.effects} if isinstance(self.effects, str) else set()
        return allowed & own.union(*(choices.values() for choices in self._choices.values()))

    def is_allowed(self, allowed: frozenset[Effect]) -> bool:
        """Whether anything of it is allowed."""
        return self.weakest_effect in allowed

    def describe(self, allowed: frozenset[Effect]) -> str:
        """Its description, with the actions that are allowed."""
        if isinstance(self.effects, str):
            return self.description
        actions = [action for action, effect in self.effects.items() if effect in allowed]
        words = "; ".join(f"{name}: {self.words[name]}" for name in actions if name in self.words)
        return f"{self.description} {words}." if words else self.description

    def schema(self, allowed: frozenset[Effect]) -> dict[str, Any]:
        """The JSON schema of its parameters, with what is allowed among their values."""
        schema = schema_of(self.model)
        for name, choices in self._choices.items():
            values = [value for value, effect in choices.items() if effect in allowed]
            schema["properties"][name]["enum"] = values
        return schema

    @property
    def _choices(self) -> dict[str, Mapping[str, Effect]]:
        own = {} if isinstance(self.effects, str) else {"action": self.effects}
        return {**own, **self.options}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model's parameters, short and flat; a copy that may be changed.

    It keeps to what the API of every model takes: no `additionalProperties` (Gemini refuses a
    boolean), one type for each value, and no object without named properties (OpenAI's strict
    mode refuses it).
    """
    from copy import deepcopy

    return deepcopy(_build_schema(model))


@cache
def _build_schema(model: type[BaseModel]) -> dict[str, Any]:
    whole = model.model_json_schema()
    shapes = whole.pop("$defs", {})
    schema: dict[str, Any] = _simplify(whole, shapes)
    schema.pop("description", None)  # the tool has one
    return schema


def _simplify(value: Any, shapes: dict[str, Any]) -> Any:
    """The schema without what only programs need, such as titles and references."""
    if isinstance(value, list):
        return [_simplify(item, shapes) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        rest = {name: item for name, item in value.items() if name != "$ref"}
        shape = {**shapes[value["$ref"].rpartition("/")[2]], **rest}
        if "description" in shape:  # of a docstring, what follows its first line is for us
            shape["description"] = shape["description"].partition("\n")[0]
        return _simplify(shape, shapes)
    kept: dict[str, Any] = {}
    for name, item in value.items():
        if name == "properties":
            kept[name] = {key: _simplify(field, shapes) for key, field in item.items()}
        elif name == "anyOf":
            kept |= _without_null(item, shapes)
        elif name not in _FOR_PROGRAMS and not (name == "default" and item in _NOTHING):
            kept[name] = _simplify(item, shapes)
    return kept


def _without_null(choices: list[Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """Optional parameters are left out rather than null; null is understood all the same."""
    left = [_simplify(choice, shapes) for choice in choices if choice != {"type": "null"}]
    if left == [{"type": "string"}, {"type": "integer"}]:  # a text can say both
        return {"type": "string"}
    return dict(left[0]) if len(left) == 1 else {"anyOf": left}
