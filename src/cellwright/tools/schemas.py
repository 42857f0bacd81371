"""JSON schemas as models read them: short, flat, and without what only programs need."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model's parameters; a copy that may be changed."""
    from copy import deepcopy

    return deepcopy(_made(model))


@cache
def _made(model: type[BaseModel]) -> dict[str, Any]:
    whole = model.model_json_schema()
    shapes = whole.pop("$defs", {})
    made: dict[str, Any] = _plain(whole, shapes)
    made.pop("description", None)  # the tool has one
    made["additionalProperties"] = False
    return made


def _plain(value: Any, shapes: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_plain(item, shapes) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        rest = {name: item for name, item in value.items() if name != "$ref"}
        return _plain({**shapes[value["$ref"].rpartition("/")[2]], **rest}, shapes)
    kept: dict[str, Any] = {}
    for name, item in value.items():
        if name == "properties":
            kept[name] = {key: _plain(field, shapes) for key, field in item.items()}
        elif name == "anyOf":
            kept |= _without_null(item, shapes)
        elif name != "title" and not (name == "default" and item in (None, "", [], {})):
            kept[name] = _plain(item, shapes)
    return kept


def _without_null(choices: list[Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """Optional parameters are left out rather than null; null is understood all the same."""
    left = [_plain(choice, shapes) for choice in choices if choice != {"type": "null"}]
    if len(left) == 1:
        return dict(left[0])
    if all(set(choice) == {"type"} for choice in left):
        return {"type": [choice["type"] for choice in left]}
    return {"anyOf": left}
