"""JSON outputs as trees: so many levels and items, the rest counted."""

from __future__ import annotations

import json

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.layout import DIM
from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cellwright.cli.render.limits import Limits

_KEY = Style(color="blue")
_STRING = Style(color="green")
_NUMBER = Style(color="cyan")
_WORD = Style(color="magenta")
_LONGEST_TEXT = 200


def json_tree(value: Any, limits: Limits) -> list[Text]:
    """The lines of a tree; objects and arrays below the last level are only named."""
    return [_leaf(value), *_children(value, limits, 1, "")]


def _children(value: Any, limits: Limits, level: int, guide: str) -> Iterator[Text]:
    if level > limits.json_depth or not isinstance(value, (dict, list)):
        return
    items = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
    shown = items[: limits.json_items]
    if len(items) - len(shown) == 1:  # the notice would take as much room
        shown = items
    hidden = len(items) - len(shown)
    for number, (key, item) in enumerate(shown):
        is_last = number == len(shown) - 1 and not hidden
        line = Text().append(guide + ("└─ " if is_last else "├─ "), DIM)
        if key is not None:
            line.append(one_line(_cut(str(key))), _KEY).append(": ", DIM)
        yield line.append_text(_leaf(item))
        yield from _children(item, limits, level + 1, guide + ("   " if is_last else "│  "))
    if hidden:
        yield Text(f"{guide}└─ … {hidden:,} more", DIM)


def _leaf(value: Any) -> Text:
    """A value, or what an object or array holds."""
    if isinstance(value, dict):
        return Text(f"{{}} {len(value):,} {'key' if len(value) == 1 else 'keys'}", DIM)
    if isinstance(value, list):
        return Text(f"[] {len(value):,} {'item' if len(value) == 1 else 'items'}", DIM)
    if isinstance(value, str):
        return Text(one_line(json.dumps(_cut(value), ensure_ascii=False)), _STRING)
    style = _WORD if value is None or isinstance(value, bool) else _NUMBER
    return Text(_cut(json.dumps(value)), style)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
