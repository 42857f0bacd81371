"""What a tool answered, taken apart: our words, texts of the notebook, cuts and pointers.

Answers are made for models. Texts of a notebook stand in them between two lines that hold a number
made for that answer, so that what a cell prints is told from what the tool says.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.tools.tool import ToolResult

_fence = re.compile(r"<data ([0-9a-f]{8}): ([^<>\n]*)>\n(.*?)\n?</data \1>", re.DOTALL)
_pointer = re.compile(r"\bartifact://([A-Za-z0-9_-]{4,40})")
_CUT = "LEFT OUT: "
_ERRORS = ("error:", "Error:")

NOTHING: Any = object()
"""Stands for no value, where any value may be one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer: our own words, or a text of the notebook with its name."""

    text: str
    name: str | None = None


def pieces_of(text: str) -> list[Piece]:
    """The parts of an answer, in order; lines about cuts are not among them."""
    found: list[Piece] = []
    position = 0
    for fence in _fence.finditer(text):
        found.append(Piece(_uncut(text[position : fence.start()])))
        found.append(Piece(fence[3], fence[2]))
        position = fence.end()
    found.append(Piece(_uncut(text[position:])))
    return [piece for piece in found if piece.name is not None or piece.text.strip()]


def cuts_of(text: str) -> list[str]:
    """What the tool says it has left out; a cell cannot say that for it."""
    lines = _fence.sub("", text).splitlines()
    return [line.removeprefix(_CUT) for line in lines if line.startswith(_CUT)]


def pointers_of(answer: ToolResult) -> list[str]:
    """The artifacts that an answer points to: by its facts, its pictures and its own words."""
    found = [picture.artifact for picture in answer.images if picture.artifact]
    rows = answer.data.get("cells") or answer.data.get("executions") or ()
    told = [row.get("artifact") for row in rows if isinstance(row, dict)]
    found += [artifact for artifact in told if isinstance(artifact, str)]
    found += _pointer.findall(_fence.sub("", answer.text))
    return list(dict.fromkeys(found))


def is_failure(answer: ToolResult) -> bool:
    """Whether an answer tells of an error, by its flag or by how its text begins."""
    return answer.is_error or answer.text.startswith(_ERRORS)


def as_json(text: str) -> Any:
    """The object or list that a text is, for a tree; `NOTHING` if it is none."""
    text = text.strip()
    if not text.startswith(("{", "[")) or len(text) > 1_000_000:
        return NOTHING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING


def _uncut(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith(_CUT)).strip("\n")
