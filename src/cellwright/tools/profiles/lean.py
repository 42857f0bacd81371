"""Cells as the protocol has them, small enough for a model: no base64, pictures beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cellwright.outputs.describe import CHARACTERS_PER_TOKEN, describe
from cellwright.tools.fence import readable
from cellwright.tools.page import IMAGES

if TYPE_CHECKING:
    from cellwright.outputs.images import ModelImage

_LONGEST = 8000
_NEEDED = ("cell_type", "id", "source", "execution_count")


def lean(result: dict[str, Any], tokens: int) -> tuple[dict[str, Any], tuple[ModelImage, ...], str]:
    """A result without base64 and within so many tokens, its pictures, and what was left out."""
    cells = result.get("cells")
    if not isinstance(cells, list):
        shown = _plain(result)
        if len(json.dumps(shown, ensure_ascii=False)) > tokens * CHARACTERS_PER_TOKEN:
            names = [name for value in shown.values() if isinstance(value, dict) for name in value]
            return {"names": names[:100]}, (), "the values, which are too long"
        return shown, (), ""
    pictures: list[ModelImage] = []
    kept: list[Any] = []
    room = tokens * CHARACTERS_PER_TOKEN
    for place, cell in enumerate(cells):
        outputs = cell.get("outputs") or []
        if len(pictures) < IMAGES and any("data" in output for output in outputs):
            pictures += describe(outputs, 100, images=IMAGES - len(pictures)).images
        shape = _plain(cell)
        size = len(json.dumps(shape, ensure_ascii=False))
        if size > room and kept:
            left = f"{len(cells) - place} cells; ask for the range from {place} of it on"
            return {"cells": kept}, tuple(pictures), left
        if size > room:
            kept.append({name: shape[name] for name in _NEEDED if name in shape})
            return {"cells": kept}, tuple(pictures), "metadata and outputs, which are too long"
        room -= size
        kept.append(shape)
    return {"cells": kept}, tuple(pictures), ""


def _plain(value: Any) -> Any:
    """The value with long texts cut, and with nothing that is no text."""
    if isinstance(value, str):
        shown = readable(value)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}⟦… {len(shown):,} in all⟧"
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {
            readable(str(name))[:200]: _about(name, item) if _is_binary(name) else _plain(item)
            for name, item in value.items()
        }
    return value


def _is_binary(name: Any) -> bool:
    return isinstance(name, str) and (
        name.startswith(("image/", "audio/", "video/")) or name == "application/pdf"
    )


def _about(mime: Any, value: Any) -> Any:
    if mime == "image/svg+xml":
        return _plain(value)
    size = len("".join(value) if isinstance(value, list) else str(value))
    return f"⟦{size:,} characters left out⟧"
