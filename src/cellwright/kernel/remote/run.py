"""One cell on a remote kernel: what its messages mean, and when it is over.

Nothing here waits or sends. A cell is over when its reply and its `idle` have come. After a gap
in the connection it is also over when a request that was sent behind it, the fence, has its own:
kernels answer in order. And it is over when another process answers than the one it was sent to.
"""

from __future__ import annotations

from cellwright.kernel import messages
from cellwright.kernel.events import InputRequested, Missed, Started
from cellwright.outputs.events import ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.remote.framing import Message

    Status = Literal["ok", "error", "cancelled"]

DEATHS = frozenset({"dead", "restarting", "autorestarting", "terminating"})
"""States of a kernel whose process is gone, also if its server starts another in its place."""

_ABOUT_THE_KERNEL = frozenset({"status", "shutdown_reply"})
_HELD_BACK = ("IOPub data rate exceeded", "IOPub message rate exceeded")


class CellRun:
    """What is known of a cell so far.

    Args:
        identity: the id of its request.
        session: our own session, by which a server's words are told from a kernel's.
        process: whose answers are the kernel's, if that is known: a restarted one has another.
    """

    def __init__(self, identity: str, session: str, process: str | None) -> None:
        self.identity = identity
        self.process = process
        self.is_interrupted = False
        self.is_abandoned = False
        self.has_died = False
        self.was_seen = False
        self.fences: set[str] = set()
        self.input_request: Mapping[str, Any] | None = None
        self.count: int | None = None
        self.error: ErrorEvent | None = None
        self._session = session
        self._reply: Mapping[str, Any] | None = None
        self._is_idle = False
        self._fence_replied = False
        self._fence_idle = False

    @property
    def is_over(self) -> bool:
        """Whether the kernel is done with the cell, or can no longer be."""
        return (
            self.has_died
            or self.is_abandoned
            or (self._reply is not None and self._is_idle)
            or (self._fence_replied and self._fence_idle)
        )

    @property
    def status(self) -> Status | None:
        """The kernel's verdict; None when it was not seen."""
        if self._reply is not None:
            said = self._reply.get("status")
            if said == "ok":
                return "ok"
            ename = str(self._reply.get("ename") or "")
        elif self.error is not None:
            said, ename = "error", self.error.ename
        else:
            return None
        if self.is_interrupted and (said in {"abort", "aborted"} or "interrupt" in ename.lower()):
            return "cancelled"
        return "error"

    def wants(self, message: Message) -> bool:
        """Whether a message has to do with the cell, or with the life of its kernel."""
        return (
            message.parent_id == self.identity
            or message.parent_id in self.fences
            or message.kind in _ABOUT_THE_KERNEL
        )

    def take(self, message: Message) -> Iterator[KernelEvent]:
        """Learn from a message, and tell what it means for who watches the cell."""
        is_ours = message.parent_id == self.identity
        if message.parent_id in self.fences:
            self._take_fence(message)
        elif message.channel == "iopub":
            yield from self._take_iopub(message, is_ours=is_ours)
        elif is_ours and message.kind == "execute_reply":
            self._note_process(message)
            self._reply = message.content
            self.count = messages.count(message.content) or self.count
            yield from messages.pages(message.content)
        elif is_ours and message.kind == "input_request":
            self.input_request = message.header
            yield InputRequested(
                prompt=str(message.content.get("prompt", "")),
                password=bool(message.content.get("password")),
            )

    def last_words(self) -> Iterator[KernelEvent]:
        """What only the reply tells: an error that was not published, as some kernels do it."""
        reply = self._reply or {}
        if reply.get("status") == "error" and self.error is None:
            self.error = messages.raised(reply)
            yield self.error

    def _take_iopub(self, message: Message, *, is_ours: bool) -> Iterator[KernelEvent]:
        if message.kind == "status":
            self._take_state(str(message.content.get("execution_state", "")), is_ours=is_ours)
        elif message.kind == "shutdown_reply":
            self.has_died = True
        elif is_ours:
            self.was_seen = True
            event = messages.event(message.kind, message.content, message.metadata, message.buffers)
            if isinstance(event, StreamEvent) and self._is_held_back(message, event):
                yield Missed(
                    "The server held output back, as more came than its limit "
                    f"({event.text.splitlines()[0].rstrip('.')})"
                )
                return
            if isinstance(event, Started):
                self.count = event.execution_count or self.count
            elif isinstance(event, ErrorEvent):
                self.error = event
            if event is not None:
                yield event

    def _take_state(self, state: str, *, is_ours: bool) -> None:
        if is_ours:
            self.was_seen = True
            self._is_idle = state == "idle"
        elif state in DEATHS or state == "starting":
            # One that starts while a cell runs was restarted under it by somebody else.
            self.has_died = True

    def _take_fence(self, message: Message) -> None:
        if message.channel == "shell":
            self._note_process(message)
            self._fence_replied = True
        elif message.kind == "status" and message.content.get("execution_state") == "idle":
            self._fence_idle = True

    def _note_process(self, message: Message) -> None:
        process = str(message.header.get("session", ""))
        if self.process is not None and process != self.process and self.fences:
            self.has_died = True
        self.process = process

    def _is_held_back(self, message: Message, event: StreamEvent) -> bool:
        # Written by the server in the cell's name, with our own session where a kernel has its.
        return message.header.get("session") == self._session and event.text.startswith(_HELD_BACK)
