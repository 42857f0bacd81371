"""Everything a kernel may say while it runs a cell, and how a run ends.

What belongs to a cell's output is defined in `cellwright.outputs.events`; here is the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from cellwright.outputs.events import OutputEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Started:
    """The kernel has begun with the cell."""

    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class InputRequested:
    """The cell waits for a line on its standard input; `answer_input` gives it one."""

    prompt: str = ""
    password: bool = False


@dataclass(frozen=True, slots=True)
class CommMessage:
    """A message on a comm, of kind `open`, `msg` or `close`.

    `channel` is the one it is sent on: some kernels listen to `control` alone while a cell runs.
    `is_ours` is false for what a kernel says in answer to another client, who will see to it.
    """

    kind: Literal["open", "msg", "close"]
    comm_id: str
    target: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    buffers: tuple[bytes, ...] = ()
    channel: Literal["shell", "control"] = "shell"
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class Missed:
    """A part of the run was not seen, and why; the run itself went on."""

    reason: str


@dataclass(frozen=True, slots=True)
class KernelExit:
    """How a kernel's process ended: by a signal, or with an exit code; neither if unknown."""

    code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False

    def __str__(self) -> str:
        if self.signal is not None:
            from signal import Signals

            try:
                name = f"{Signals(self.signal).name}, signal {self.signal}"
            except ValueError:
                name = f"signal {self.signal}"
            return f"killed by {name}" + ("; likely out of memory" if self.out_of_memory else "")
        if self.code is not None:
            return f"exited with code {self.code}"
        return "gone without an exit code"


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every run, exactly once.

    `ok` and `error` are the kernel's own verdict. `cancelled` means that it was interrupted, and
    lives. `died` means that it ended before the cell did; `exit` says how.
    """

    status: Literal["ok", "error", "cancelled", "died"]
    execution_count: int | None = None
    exit: KernelExit | None = None


KernelEvent: TypeAlias = OutputEvent | Started | InputRequested | CommMessage | Missed | Finished
