"""The output events of a running cell, the same for every kernel.

Kernels produce them; sinks, collectors and renderers take them. Text from a kernel is not
sanitized here: the code that shows it does that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A piece of text on `stdout` or `stderr`; a piece may end anywhere."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class DisplayEvent:
    """A display in one or several MIME types, or with `is_update` new content for earlier ones.

    `is_result` marks the value of a cell's last expression; only that has an `execution_count`.
    """

    data: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    display_id: str | None = None
    is_update: bool = False
    is_result: bool = False
    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class RawPiece:
    """A piece of an output that is too large to be decoded, as the kernel sent it.

    After the last piece comes the output itself, with the beginnings of its texts.
    """

    data: bytes


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An exception that ended the cell, with the kernel's own traceback."""

    ename: str
    evalue: str
    traceback: tuple[str, ...] = ()


ANSWERED_ERROR = 64 * 2**10
"""The most characters of an error in an answer; the notebook, or an artifact, has more."""


def bound_error(event: ErrorEvent, most: int) -> ErrorEvent:
    """The error in about so many characters: both ends of its message, the end of its traceback."""
    if error_size(event) <= most:
        return event
    evalue = _cut_middle(event.evalue, most // 4)
    left = most - len(evalue)
    lines: list[str] = []
    for line in reversed(event.traceback):
        short = _cut_middle(line, most // 4)
        left -= len(short)
        if left < 0:
            break
        lines.insert(0, short)
    missing = len(event.traceback) - len(lines)
    if missing:
        lines.insert(0, f"[{missing} lines before this one are left out]")
    return ErrorEvent(_cut_middle(event.ename, most // 4), evalue, tuple(lines))


def error_size(event: ErrorEvent) -> int:
    """How many characters an error has."""
    return len(event.ename) + len(event.evalue) + sum(map(len, event.traceback))


def _cut_middle(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    note = f"[… {len(text) - most:,} characters left out …]"
    half = max(0, most - len(note)) // 2
    return text[:half] + note + text[len(text) - half :]


@dataclass(frozen=True, slots=True)
class ClearEvent:
    """A request to clear all output so far; with `wait`, only when new output comes."""

    wait: bool = False


OutputEvent: TypeAlias = StreamEvent | DisplayEvent | RawPiece | ErrorEvent | ClearEvent
