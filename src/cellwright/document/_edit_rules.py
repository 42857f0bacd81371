"""What the fields of an edit may hold, and the words that say so."""

from __future__ import annotations

from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DEEPEST = 200
# The fields that have no default, by op.
NEEDED = {
    "replace": ("cell", "source"),
    "replace_text": ("cell", "old", "new"),
    "delete": ("cell",),
    "move": ("cell",),
    "split": ("cell", "line"),
    "merge": ("cells",),
    "set_type": ("cell", "type"),
    "set_metadata": ("metadata",),
    "splice": ("start",),
}


def is_list(value: object) -> bool:
    """A list, as JSON or as Python has it."""
    return isinstance(value, (list, tuple))


def is_count(value: object) -> bool:
    """An integer from 0 on; no bool."""
    return type(value) is int and value >= 0


def is_json_object(value: object) -> bool:
    """An object whose keys are all strings, and which is not nested beyond reason."""
    if not isinstance(value, dict):
        return False
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        keys = [key for item in level if isinstance(item, dict) for key in item]
        if not all(isinstance(key, str) for key in keys):
            return False
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list, tuple))
        ]
        if not level:
            return True
    return False


def is_ref(value: object) -> bool:
    """What can point at a cell."""
    return isinstance(value, str) or type(value) is int


_A_REF = ("a cell id, `cell-N` or an index", is_ref)
_A_TEXT = ("a string", lambda value: isinstance(value, str))
RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "cell": _A_REF,
    "after": _A_REF,
    "before": _A_REF,
    "at": ("an index from 0 on", is_count),
    "source": _A_TEXT,
    "old": ("a string that is not empty", lambda value: isinstance(value, str) and value != ""),
    "new": _A_TEXT,
    "id": _A_TEXT,
    "expect": _A_TEXT,
    "type": ("code, markdown or raw", lambda value: value in ("code", "markdown", "raw")),
    "outputs": ("keep or clear", lambda value: value in ("keep", "clear")),
    "count": ("an integer from 1 on", lambda value: is_count(value) and value > 0),
    "line": ("an integer from 1 on", lambda value: is_count(value) and value > 0),
    "merge": ("true or false", lambda value: isinstance(value, bool)),
    "metadata": ("a JSON object", is_json_object),
    "cells": ("a list of cells", lambda value: is_list(value) and all(map(is_ref, value))),
}
