"""One cell on a remote kernel, from its request to its verdict, across lost connections.

A cell is over when its reply and its `idle` have come. After a gap in the connection it is also
over when a later request, the fence, has been answered: kernels answer in order. And it is over
when another process answers than the one it was sent to.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from dataclasses import dataclass

from cellwright.errors import KernelError
from cellwright.kernel import jupyter
from cellwright.kernel.events import Finished, InputRequested, KernelExit, Missed, Started
from cellwright.kernel.remote.websocket import ConnectionLost
from cellwright.outputs.events import ErrorEvent, RawPiece, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from typing import Any, Literal

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.remote.link import KernelLink
    from cellwright.kernel.remote.server import RemoteServer
    from cellwright.kernel.remote.websocket import RemoteMessage
    from cellwright.kernel.transport import Code

    Verdict = Literal["ok", "error", "cancelled"]

DEATHS = frozenset({"dead", "restarting", "autorestarting", "terminating"})
"""States of a kernel whose process is gone, also if its server starts another in its place."""
BYTES_HELD = 8 * 2**20
"""Bytes that may wait for the reader of a cell before nothing more is read from the server."""

_PATIENCE = 10.0
_LOOK_AFTER_GAP = 2.0
_FENCES_UNANSWERED = 5
_ABOUT_THE_KERNEL = frozenset({"status", "shutdown_reply"})
_HELD_BACK = ("IOPub data rate exceeded", "IOPub message rate exceeded")
_OUTCOME = "application/x-cellwright-outcome+json"
_LAST_CELL_QUERY = f"""
import hashlib
from IPython import get_ipython
shell = get_ipython()
result = getattr(shell, "last_execution_result", None)
info = getattr(result, "info", None)
source = getattr(info, "raw_cell", None) or ""
error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
shell.display_pub.publish({{{_OUTCOME!r}: {{
    "source": hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
    "count": getattr(result, "execution_count", None),
    "ename": type(error).__name__ if error is not None else None,
    "evalue": str(error)[:10000] if error is not None else None,
}}}})
"""


@dataclass(frozen=True, slots=True)
class Gap:
    """The connection was lost, and is back."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more will come: the kernel is gone, or out of reach."""

    reason: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Nothing more will come to this reader: another cell was started."""


class RemoteInbox:
    """The messages of a cell, for one reader; limited, so that a flood waits at the server.

    One message may be larger than the limit.
    """

    def __init__(self) -> None:
        self._items: deque[RemoteMessage | Gap | End] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._is_closed = False

    async def put(self, message: RemoteMessage) -> None:
        """Add a message, once there is room; a closed inbox drops it."""
        await self._drained.wait()
        if self._is_closed:
            return
        self._bytes += message.size
        if self._bytes > BYTES_HELD:
            self._drained.clear()
        self.put_now(message)

    def put_now(self, item: RemoteMessage | Gap | End) -> None:
        """Add something that cannot wait for room."""
        if not self._is_closed:
            self._items.append(item)
            self._filled.set()

    async def get(self, within: float) -> RemoteMessage | Gap | End | Closed | None:
        """Wait for the next item; None if there was none in so many seconds."""
        if not self._items and not self._is_closed:
            self._filled.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._filled.wait()
        if not self._items:
            return Closed() if self._is_closed else None
        item = self._items.popleft()
        self._bytes -= getattr(item, "size", 0)
        if self._bytes <= BYTES_HELD:
            self._drained.set()
        return item

    def close(self) -> list[RemoteMessage]:
        """Keep nothing from now on; returns the messages that were not read."""
        left = [item for item in self._items if not isinstance(item, Gap | End)]
        self._is_closed = True
        self._items.clear()
        self._bytes = 0
        self._drained.set()
        self._filled.set()
        return left


class RemoteCell:
    """What is known of a cell so far; nothing here waits or sends.

    Args:
        identity: the id of its request.
        session: our own session, which distinguishes the server's messages from the kernel's.
        process: the kernel process that the cell was sent to, if known; a restart changes it.
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
    def status(self) -> Verdict | None:
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

    def wants(self, message: RemoteMessage) -> bool:
        """Whether a message is about the cell, or about the life of its kernel."""
        return (
            message.parent_id == self.identity
            or message.parent_id in self.fences
            or message.kind in _ABOUT_THE_KERNEL
        )

    def take(self, message: RemoteMessage) -> Iterator[KernelEvent]:
        """Learn from a message, and yield its events."""
        is_ours = message.parent_id == self.identity
        if message.parent_id in self.fences:
            self._take_fence(message)
        elif message.channel == "iopub":
            yield from self._take_iopub(message, is_ours=is_ours)
        elif is_ours and message.kind == "execute_reply":
            self._note_process(message)
            self._reply = message.content
            self.count = jupyter.read_count(message.content) or self.count
            yield from jupyter.make_pages(message.content)
        elif is_ours and message.kind == "input_request":
            self.input_request = message.header
            yield InputRequested(
                prompt=str(message.content.get("prompt", "")),
                password=bool(message.content.get("password")),
            )

    def take_reply_error(self) -> Iterator[KernelEvent]:
        """Yield an error that is only in the reply: some kernels do not publish it."""
        reply = self._reply or {}
        if reply.get("status") == "error" and self.error is None:
            self.error = jupyter.make_raised(reply)
            yield self.error

    def _take_iopub(self, message: RemoteMessage, *, is_ours: bool) -> Iterator[KernelEvent]:
        if message.kind == "status":
            self._take_state(message, is_ours=is_ours)
        elif message.kind == "shutdown_reply":
            self.has_died = True
        elif is_ours:
            self.was_seen = True
            yield from jupyter.cut_raw(message.raw)
            event = jupyter.make_event(
                message.kind, message.content, message.metadata, message.buffers
            )
            if isinstance(event, StreamEvent) and self._is_held_back(message, event):
                yield Missed(
                    "The server held output back, because more came than its limit allows "
                    f"({event.text.splitlines()[0].rstrip('.')})"
                )
                return
            if isinstance(event, Started):
                self.count = event.execution_count or self.count
            elif isinstance(event, ErrorEvent):
                self.error = event
            if event is not None:
                yield event

    def _take_state(self, message: RemoteMessage, *, is_ours: bool) -> None:
        state = str(message.content.get("execution_state", ""))
        if is_ours:
            self.was_seen = True
            self._is_idle = state == "idle"
        elif state in DEATHS:
            self.has_died = True
        elif state == "starting" and str(message.header.get("session", "")) != self.process:
            # It was restarted by another client. What the process that has our cell said when it
            # began may come late: it answers on another socket.
            self.has_died = True

    def _take_fence(self, message: RemoteMessage) -> None:
        if message.channel == "shell":
            self._note_process(message)
            self._fence_replied = True
        elif message.kind == "status" and message.content.get("execution_state") == "idle":
            self._fence_idle = True

    def _note_process(self, message: RemoteMessage) -> None:
        process = str(message.header.get("session", ""))
        if self.process is not None and process != self.process and self.fences:
            self.has_died = True
        self.process = process

    def _is_held_back(self, message: RemoteMessage, event: StreamEvent) -> bool:
        # The server writes it in the cell's name, but with our own session instead of a kernel's.
        return message.header.get("session") == self._session and event.text.startswith(_HELD_BACK)


class CellWatcher:
    """Follows one cell to its end, over lost connections and silent kernels."""

    def __init__(
        self,
        cell: RemoteCell,
        inbox: RemoteInbox,
        link: KernelLink,
        server: RemoteServer,
        kernel_id: str,
    ) -> None:
        self._cell = cell
        self._inbox = inbox
        self._link = link
        self._server = server
        self._kernel_id = kernel_id

    async def events(self) -> AsyncIterator[KernelEvent]:
        """Yield all events of the cell until it is over, except its last."""
        cell, quiet = self._cell, self._server.timeouts.quiet
        has_gap, unanswered = False, 0
        while not cell.is_over:
            item = await self._inbox.get(min(_LOOK_AFTER_GAP, quiet) if has_gap else quiet)
            if isinstance(item, Closed):
                cell.is_abandoned = True
            elif isinstance(item, End):
                cell.has_died = True
                yield Missed(f"The end of the cell was not seen: {item.reason}")
            elif isinstance(item, Gap):
                has_gap = True
                yield Missed(
                    f"The connection to the kernel was lost: {item.reason}. "
                    "Output of that time, or too large to be sent, may be missing"
                )
                await self._send_fence()
            elif item is not None:
                unanswered = 0
                for event in cell.take(item):
                    yield event
                    if isinstance(event, RawPiece):
                        await asyncio.sleep(0)  # others must not wait for the last one
            elif not await self._should_have_ended():
                unanswered = 0
            elif unanswered < _FENCES_UNANSWERED:
                unanswered += 1
                await self._send_fence()
            else:
                cell.has_died = True
                yield Missed("The server says that the kernel is idle, but it no longer answers")
        for event in cell.take_reply_error():
            yield event

    async def find_verdict(
        self, code: Code, language: str, count_before: int | None
    ) -> list[KernelEvent]:
        """Find the last events of a cell that is over.

        `count_before` is the kernel's count of cells before this one, if known.
        """
        cell = self._cell
        if cell.has_died:
            return [Finished("died", cell.count, KernelExit())]
        if cell.is_abandoned:
            missed = "Another cell was started before the end of this one was seen"
            return [Missed(missed), Finished("error", cell.count)]
        if cell.status is not None:
            return [Finished(cell.status, cell.count)]
        return await self._ask_verdict(code, language, count_before)

    async def _ask_verdict(
        self, code: Code, language: str, count_before: int | None
    ) -> list[KernelEvent]:
        """Ask the kernel how a cell ended whose end was not seen; say so if it does not know."""
        cell, last = self._cell, None
        if language == "python":
            with contextlib.suppress(ConnectionLost, TimeoutError):
                query = jupyter.isolate_code(_LAST_CELL_QUERY)
                _, published = await self._link.run_silently(query, _PATIENCE)
                last = read_last_cell(published)
        is_counted = code.store_history and not code.silent and count_before is not None
        if last is not None and is_counted and not cell.was_seen and count_before is not None:
            # The same source may have run before: only the count distinguishes the two.
            if last.count is None or last.count <= count_before:
                return [
                    Missed("The cell did not reach the kernel, and did not run"),
                    Finished("cancelled", cell.count),
                ]
            cell.was_seen = True
        if last is None or not cell.was_seen or not last.has_source(code.source):
            return [
                Missed("The cell is over, but how it ended was not seen"),
                Finished("error", cell.count),
            ]
        if last.ename is None:
            return [Finished("ok", last.count)]
        is_ours = cell.is_interrupted and "interrupt" in last.ename.lower()
        return [
            ErrorEvent(last.ename, last.evalue),
            Finished("cancelled" if is_ours else "error", last.count),
        ]

    async def _should_have_ended(self) -> bool:
        """Ask the server about a silent kernel; also notices one that is gone."""
        try:
            kernel = await self._server.kernel(self._kernel_id)
        except KernelError:
            return False  # the link is about to notice
        if kernel is None or kernel.state in DEATHS:
            self._cell.has_died = True
        return kernel is not None and kernel.state == "idle"

    async def _send_fence(self) -> None:
        request = self._link.make_message("shell", "kernel_info_request", {})
        self._cell.fences.add(str(request.header["msg_id"]))
        with contextlib.suppress(ConnectionLost):
            await self._link.send(request)


@dataclass(frozen=True, slots=True)
class LastCell:
    """What a Python kernel remembers of the cell it ran last."""

    source_hash: str
    count: int | None
    ename: str | None
    evalue: str

    def has_source(self, source: str) -> bool:
        """Whether that cell had this source."""
        digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        return digest == self.source_hash


def read_last_cell(published: list[RemoteMessage]) -> LastCell | None:
    """Read a kernel's answer to the question about its last cell, if it gave one."""
    for message in published:
        data = message.content.get("data")
        answer = data.get(_OUTCOME) if isinstance(data, dict) else None
        if isinstance(answer, dict):
            count, ename = answer.get("count"), answer.get("ename")
            return LastCell(
                str(answer.get("source")),
                count if isinstance(count, int) else None,
                ename if isinstance(ename, str) else None,
                str(answer.get("evalue") or ""),
            )
    return None
