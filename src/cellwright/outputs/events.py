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
class ErrorEvent:
    """An exception that ended the cell, with the kernel's own traceback."""

    ename: str
    evalue: str
    traceback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClearEvent:
    """A request to clear all output so far; with `wait`, only when new output comes."""

    wait: bool = False


OutputEvent: TypeAlias = StreamEvent | DisplayEvent | ErrorEvent | ClearEvent
