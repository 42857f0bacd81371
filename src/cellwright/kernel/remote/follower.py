"""`KernelFollower`: hears what a kernel on a server says about the cells of other clients."""

from __future__ import annotations

import asyncio
import contextlib

from cellwright.errors import KernelError
from cellwright.kernel import jupyter
from cellwright.kernel.events import Finished, KernelExit, Missed, Started
from cellwright.kernel.remote.cell import DEATHS
from cellwright.kernel.remote.link import KernelLink
from cellwright.kernel.remote.server import RemoteServer
from cellwright.kernel.remote.websocket import ConnectionLost
from cellwright.outputs.events import ErrorEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.remote.websocket import RemoteMessage

    OnEvent = Callable[[str, KernelEvent], object]

_OURS = "cellwright"  # the user that we call ourselves; our own cells have listeners already
_INTERRUPT_WITHIN = 5.0
_FENCE_PATIENCE = 24 * 3600.0


class KernelFollower:
    """A connection that only listens.

    `on_event` gets the id of a request and what the kernel says about it, in order; the last is a
    `Finished`. A request that the kernel refused, because one before it failed, has no `Started`.
    `process` is what the kernel process calls itself, as far as it was heard.
    """

    def __init__(self, address: str, token: str | None, kernel_id: str, on_event: OnEvent) -> None:
        self.process = ""
        self._server = RemoteServer(address, token)
        self._kernel_id = kernel_id
        self._on_event = on_event
        self._begun: dict[str, Finished] = {}  # how each would end, as far as is known
        self._fence: asyncio.Task[None] | None = None
        self._link = KernelLink(
            self._server,
            kernel_id,
            on_message=self._take,
            on_gap=self._note_gap,
            on_end=lambda _: self._end_all(),
        )

    async def open(self) -> None:
        """Connect.

        Raises:
            KernelError: there is no such kernel, or no way to it.
        """
        await self._link.open()

    async def close(self) -> None:
        """Disconnect; the kernel is left as it is."""
        if self._fence is not None:
            self._fence.cancel()
        await self._link.close()

    async def interrupt(self) -> None:
        """Interrupt what the kernel runs.

        Raises:
            KernelError: the server did not do it.
        """
        await self._server.interrupt(self._kernel_id, within=_INTERRUPT_WITHIN)

    async def _take(self, message: RemoteMessage) -> None:
        if message.channel != "iopub":
            return
        parent, kind = message.parent, message.kind
        state = str(message.content.get("execution_state", "")) if kind == "status" else ""
        if state in DEATHS or state == "starting":
            self._end_all()
            return
        if parent.get("msg_type") != "execute_request" or parent.get("username") == _OURS:
            return
        request = message.parent_id
        if state == "idle":
            self._on_event(request, self._begun.pop(request, Finished("ok")))
        elif kind != "status":
            self._note(request, message)

    def _note(self, request: str, message: RemoteMessage) -> None:
        event = jupyter.make_event(message.kind, message.content, message.metadata, message.buffers)
        known = self._begun.get(request, Finished("ok"))
        if isinstance(event, Started):
            self.process = str(message.header.get("session", ""))
            known = Finished("ok", event.execution_count)
        elif isinstance(event, ErrorEvent):
            is_stopped = "interrupt" in event.ename.lower()
            known = Finished("cancelled" if is_stopped else "error", known.execution_count)
        self._begun[request] = known
        if event is not None:
            self._on_event(request, event)

    def _note_gap(self, reason: str) -> None:
        """Find out which cells ended while there was no connection: what is sent now comes after."""
        for request in self._begun:
            self._on_event(request, Missed(reason))
        if self._begun and (self._fence is None or self._fence.done()):
            self._fence = asyncio.ensure_future(self._wait_for_fence(set(self._begun)))

    async def _wait_for_fence(self, before: set[str]) -> None:
        message = self._link.make_message("shell", "kernel_info_request", {})
        with contextlib.suppress(ConnectionLost, TimeoutError, KernelError):
            await self._link.ask(message, _FENCE_PATIENCE)
            for request in before & self._begun.keys():
                self._on_event(request, self._begun.pop(request))

    def _end_all(self) -> None:
        """The kernel is gone, or out of reach."""
        begun, self._begun = self._begun, {}
        for request, known in begun.items():
            self._on_event(request, Finished("died", known.execution_count, KernelExit()))
