"""Parameters that several tools share, in the same words, and how near misses of models are read."""

from __future__ import annotations

import json
import types
from functools import cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)

from cellwright.errors import CellwrightError

DEADLINE = 45.0
"""Seconds until a result comes although cells still run: clients give up after a minute."""

MAY_BE_EMPTY = "may be empty"
"""Marks an optional text that may be empty; any other that is empty is taken as not given."""


def _check_name(name: str) -> str:
    """A name that the system can take: without a NUL, and with a UTF-8 form."""
    try:
        if b"\0" in name.encode():
            raise ValueError("it holds a NUL")
    except UnicodeEncodeError:
        raise ValueError("it holds a surrogate") from None
    return name


def parse_json_text(value: Any) -> Any:
    """What a text says as JSON, if that is an object or a list; else the value itself."""
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if isinstance(found, (dict, list)):
            return found
    return value


CellName = StrictStr | StrictInt
Flag = StrictBool
Name = Annotated[str, AfterValidator(_check_name)]
Path = Annotated[Name, Field(description="Notebook, relative to the root")]
OptionalPath = Annotated[
    Name | None, Field(description="Notebook, relative to the root; default: the active one")
]
Cells = Annotated[
    list[CellName] | None, Field(description="Cell ids or 0-based indices; ranges as '2-5'")
]
# A text for models: not every API takes an object whose names the schema does not list.
JsonObject = Annotated[
    dict[str, Any], BeforeValidator(parse_json_text), WithJsonSchema({"type": "string"})
]
MaxTokens = Annotated[int, Field(ge=200, le=100_000, description="Budget of the answer")]
Timeout = Annotated[
    float | None, Field(ge=0, le=1e6, description="Seconds per cell; 0 for no limit")
]


class Params(BaseModel):
    """Parameters of a tool: unknown ones are refused, since a typo would be lost silently.

    What models send instead of the right shape is understood where it can mean one thing only.
    Some APIs make a model give every parameter: an optional one that is null or empty was not given.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _understand(cls, value: Any) -> Any:
        value = parse_json_text(value)
        if not isinstance(value, dict):
            return value
        shapes = _find_shapes(cls)
        return {
            name: shapes[name].read(item) if name in shapes else item
            for name, item in value.items()
            if name not in shapes or not shapes[name].is_absent(item)
        }


class _Shape(NamedTuple):
    """What a parameter may be, as far as near misses need to know it."""

    kinds: frozenset[Any]
    items: frozenset[Any]
    is_optional: bool
    may_be_empty: bool
    least: float

    def is_absent(self, value: Any) -> bool:
        """Whether a value says that the parameter was not given."""
        if not self.is_optional:
            return False
        if value is None or (value in ("", [], {}) and not self.may_be_empty):
            return True
        return type(value) in (int, float) and value == 0 < self.least

    def read(self, value: Any) -> Any:
        if list not in self.kinds:
            return _read_scalar(value, self.kinds)
        value = parse_json_text(value)
        if not isinstance(value, list):
            is_list_of_cells = isinstance(value, str) and {str, int} <= self.items
            value = [part.strip() for part in value.split(",")] if is_list_of_cells else [value]
        return [_read_scalar(item, self.items) for item in value]


def _read_scalar(value: Any, kinds: frozenset[Any]) -> Any:
    if bool in kinds and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    if {str, int} <= kinds and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


@cache
def _find_shapes(model: type[BaseModel]) -> dict[str, _Shape]:
    shapes = {}
    for name, field in model.model_fields.items():
        kinds = _flatten(field.annotation)
        items = frozenset(
            kind for each in kinds for item in _items_of(each) for kind in _flatten(item)
        )
        bounds = [float(str(bound.ge)) for bound in field.metadata if isinstance(bound, Ge)]
        shapes[name] = _Shape(
            frozenset(get_origin(each) or each for each in kinds),
            items,
            not field.is_required(),
            MAY_BE_EMPTY in field.metadata,
            max(bounds, default=0),
        )
    return shapes


def _items_of(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is list else ()


def _flatten(annotation: Any) -> frozenset[Any]:
    """The types of which a value may be."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _flatten(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return frozenset().union(*map(_flatten, get_args(annotation)))
    return frozenset([annotation])


class InvalidParameters(CellwrightError, ValueError):
    """Parameters that a tool cannot take; nothing was done."""

    code = "INVALID_PARAMETERS"
