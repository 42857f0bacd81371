"""What a running cell says, piece by piece, whichever kernel it runs in.

Kernels produce these; sinks, collectors and renderers take them. A kernel's own words are kept
as they are: making text harmless is the business of whoever shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@dataclass(frozen=True, slots=True)
class StreamText:
    """A piece of text on `stdout` or `stderr`; pieces may end anywhere."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
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
class Raised:
    """An exception that ended the cell, with the traceback as the kernel worded it."""

    ename: str
    evalue: str
    traceback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cleared:
    """All output so far is to go; with `wait`, only when something new comes."""

    wait: bool = False


OutputEvent: TypeAlias = StreamText | Shown | Raised | Cleared
