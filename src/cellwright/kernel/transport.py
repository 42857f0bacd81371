"""The seam between sessions and the kernels that run the code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from cellwright.kernel.events import CommMessage, IdleEvent, KernelEvent, KernelExit


@dataclass(frozen=True, slots=True)
class Launch:
    """What a kernel is started with.

    `env` is the whole environment of the new process, not an addition to ours.
    """

    cwd: str
    env: Mapping[str, str]
    python: str | None = None
    kernel_name: str | None = None


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a kernel reports about itself once it is ready.

    `display_name` is that of its kernelspec, and `language_info` is as the kernel sent it, for
    the metadata of notebooks.
    """

    name: str
    transport: str
    language: str = "python"
    implementation: str = ""
    pid: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    display_name: str = ""
    language_info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Code:
    """One cell to execute.

    `env` is applied before the cell runs: a string sets a variable, None removes it.
    `allow_stdin` says that the caller can answer `InputRequested`. If there is no answer after
    all, the cell gets an empty one, or fails where `input_raises`. `metadata` is sent with the
    request, for kernels that look at it. A display of more than `most_bytes`, if that is more than
    what any cell may show, is not decoded: its kernel's bytes come in pieces, then its beginning.
    """

    source: str
    cwd: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    silent: bool = False
    store_history: bool = True
    allow_stdin: bool = False
    input_raises: bool = False
    cell_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    most_bytes: int = 0


class Transport(Protocol):
    """One kernel, wherever it runs. Sessions give it one cell at a time.

    After `start`, `execute` yields the events of one cell and always ends with one `Finished`,
    also when the kernel dies. An interrupted cell ends through that same stream: `interrupt`
    only sends the request. All methods may be called while `execute` is being iterated, also
    `execute` itself, for a cell that the running one waits for.
    """

    @property
    def info(self) -> KernelInfo:
        """What the kernel is; valid once `start` has returned."""
        ...

    @property
    def is_alive(self) -> bool:
        """Whether the kernel can still answer, as far as is known without asking it."""
        ...

    @property
    def exit(self) -> KernelExit | None:
        """How the kernel ended; None while it lives."""
        ...

    async def start(self) -> None:
        """Start the kernel, or attach to one, and return when it is ready for a cell.

        Raises:
            KernelError: it could not be started; nothing of it is left.
        """
        ...

    def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run one cell. Leaving the iterator early does not stop the cell; interrupt does."""
        ...

    def idle_events(self) -> AsyncIterator[IdleEvent]:
        """Yield what the kernel says between cells, or for an earlier cell; for one reader."""
        ...

    async def ping(self, within: float) -> bool:
        """Ask an idle kernel whether it answers in so many seconds; a busy one is not asked."""
        ...

    async def answer_input(self, text: str | None) -> None:
        """Answer the `InputRequested` that was yielded last; None makes the cell fail there."""
        ...

    async def send_comm(self, message: CommMessage) -> None:
        """Send a message on a comm to the kernel."""
        ...

    async def interrupt(self) -> None:
        """Ask the kernel to stop the running cell; does nothing when none runs."""
        ...

    async def restart(self) -> bool:
        """Restart a kernel that was attached to, and return true; its variables are lost.

        Returns false for a kernel that we started: it is shut down and another one is started.

        Raises:
            KernelError: it could not be restarted.
        """
        ...

    async def shutdown(self, *, now: bool = False) -> None:
        """End the kernel and everything it started; `now` without asking it first.

        A kernel that was attached to, rather than started, is left running. May be called twice.
        """
        ...
