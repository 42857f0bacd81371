"""`RemoteKernel`: a kernel on a Jupyter Server or Kernel Gateway, as a `Transport`.

It holds a conversation with one kernel process after the other: cells, one at a time, and all else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from uuid import uuid4

from cellwright.errors import (
    KernelCannot,
    KernelDied,
    KernelError,
    KernelMissing,
    KernelStartFailed,
    KernelUnreachable,
)
from cellwright.kernel import jupyter
from cellwright.kernel.events import Finished, IdleEvent, IdleEventQueue, KernelExit
from cellwright.kernel.remote.cell import DEATHS, CellWatcher, End, Gap, RemoteCell, RemoteInbox
from cellwright.kernel.remote.link import KernelLink
from cellwright.kernel.remote.websocket import ConnectionLost
from cellwright.outputs.events import ErrorEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from cellwright.kernel.events import CommMessage, KernelEvent
    from cellwright.kernel.remote.server import RemoteServer, RunningKernel
    from cellwright.kernel.remote.websocket import RemoteMessage
    from cellwright.kernel.transport import Code, KernelInfo


_REQUEST_PATIENCE = 10.0
_FIRST_TRY = 2.0
_CELLS_REMEMBERED = 1000


class RemoteConversation:
    """A connection to one kernel, until either is gone; a restarted kernel is another one.

    `end` says why it is over; None while it lasts. `process` is what the kernel process calls
    itself, as far as it was heard.
    """

    def __init__(self, server: RemoteServer, kernel_id: str, idle_events: IdleEventQueue) -> None:
        self.end: str | None = None
        self.language = ""
        self._server = server
        self._kernel_id = kernel_id
        self._link = KernelLink(
            server,
            kernel_id,
            on_message=self._on_message,
            on_gap=self._on_gap,
            on_end=self._on_end,
        )
        self._idle_events = idle_events
        self._cell_ids: OrderedDict[str, str | None] = OrderedDict()
        self._context = jupyter.KernelContext()
        self.process: str | None = None
        self._count: int | None = None
        self._had_gap = False
        self._cell: RemoteCell | None = None
        self._inbox = RemoteInbox()

    @property
    def is_busy(self) -> bool:
        """Whether a cell of ours runs."""
        return self._cell is not None

    @property
    def protocol(self) -> str | None:
        """The framing in use; None for the default one."""
        return self._link.protocol

    async def open(self, *, is_new: bool, is_busy: bool = False) -> Mapping[str, Any]:
        """Connect, wait until the kernel answers, and return its `kernel_info_reply`.

        A kernel that `is_new` has run nothing yet; one that `is_busy` runs another client's cell.

        Raises:
            KernelError: it cannot be reached, or does not answer.
        """
        await self._link.open()
        self._count = 0 if is_new else None
        until = time.monotonic() + self._server.timeouts.ready
        patience = _FIRST_TRY
        # A kernel that runs a cell only answers on its other channel.
        channel = "control" if is_busy else "shell"
        while (left := until - time.monotonic()) > 0 and self.end is None:
            request = self._link.make_message(channel, "kernel_info_request", {})
            with contextlib.suppress(ConnectionLost, TimeoutError):
                reply, _ = await self._link.ask(request, min(patience, left))
                self.process = str(reply.header.get("session", ""))
                language = reply.content.get("language_info")
                if isinstance(language, dict):
                    self.language = str(language.get("name", "")).lower()
                return reply.content
            # A kernel that was just starting may have missed the request.
            patience, channel = 2 * patience, "shell"
        raise KernelStartFailed(
            self._kernel_id, self.end or f"no answer in {self._server.timeouts.ready:g} s"
        )

    async def close(self, reason: str) -> None:
        """Disconnect; a running cell ends as died."""
        self._on_end(reason)
        await self._link.close()

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run a cell, as `Transport.execute` says."""
        self._leave(self._inbox)  # of an earlier cell that was not followed to its end
        async for event in self._prepare(code):
            yield event
            if isinstance(event, Finished):
                return
        request = self._link.make_message(
            "shell",
            "execute_request",
            jupyter.build_execute_request(
                code.source,
                silent=code.silent,
                store_history=code.store_history,
                allow_stdin=code.allow_stdin,
                stop_on_error=True,
            ),
            metadata={**({"cellId": code.cell_id} if code.cell_id else {}), **code.metadata},
        )
        cell = RemoteCell(str(request.header["msg_id"]), self._link.session, self.process)
        self._cell_ids[cell.identity] = code.cell_id
        while len(self._cell_ids) > _CELLS_REMEMBERED:
            self._cell_ids.popitem(last=False)
        self._inbox, self._cell = (inbox := RemoteInbox()), cell
        try:
            with contextlib.suppress(ConnectionLost):  # then the link reports a gap, or the end
                await self._link.send(request)
            watcher = CellWatcher(cell, inbox, self._link, self._server, self._kernel_id)
            async for event in watcher.events():
                yield event
            if cell.has_died:
                self._on_end("it died")
            elif not cell.is_abandoned:
                self.process, self._had_gap = cell.process, False
            for event in await watcher.find_verdict(code, self.language, self._count):
                yield event
            self._count = cell.count if cell.count is not None else self._count
        finally:
            if self._cell is cell:
                self._cell = None
            self._leave(inbox)

    async def answer_input(self, text: str) -> None:
        """Answer the cell's request for input."""
        cell = self._cell
        if cell is not None and cell.input_request is not None:
            parent, cell.input_request = cell.input_request, None
            await self._send(
                self._link.make_message("stdin", "input_reply", {"value": text}, parent=parent)
            )

    async def send_comm(self, message: CommMessage) -> None:
        """Send a message on a comm."""
        kind, content = jupyter.build_comm_content(message)
        await self._send(
            self._link.make_message(
                message.channel, kind, content, metadata=message.metadata, buffers=message.buffers
            )
        )

    async def send_interrupt(self) -> None:
        """Interrupt by message, which also reaches kernels that ignore signals."""
        await self._send(self._link.make_message("control", "interrupt_request", {}))

    def note_interrupt(self) -> RemoteCell | None:
        """Note that the running cell was interrupted; returns that cell."""
        if self._cell is not None:
            self._cell.is_interrupted = True
        return self._cell

    def is_running(self, cell: RemoteCell) -> bool:
        """Whether that cell still runs."""
        return self._cell is cell and not cell.is_over

    async def _prepare(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Do what comes before a cell; ends with `Finished` if the cell cannot run."""
        await self._link.freshen()
        if self.end is None and self._had_gap:
            await self._check_process()
        if self.end is not None:
            yield Finished("died", exit=KernelExit())
            return
        cwd, env = self._context.find_changes(code.cwd, code.env)
        if self.language == "python":
            problem = await self._change_context(cwd, env)
            if problem is not None:
                yield problem
                yield Finished("error")
        elif cwd is not None or any(value is not None for value in env.values()):
            raise KernelCannot(
                self.language or "unknown",
                "change its folder or variables for one cell",
                hint="Set them when the kernel is started",
            )

    async def _change_context(
        self, cwd: str | None, env: Mapping[str, str | None]
    ) -> ErrorEvent | None:
        """Change the folder and the variables of a Python kernel; returns the error, if any."""
        if cwd is None and not env:
            return None
        change = jupyter.write_context_code(cwd, env)
        try:
            reply, _ = await self._link.run_silently(change, _REQUEST_PATIENCE)
        except (ConnectionLost, TimeoutError):
            return ErrorEvent(
                "ConnectionError", "The kernel's folder and variables could not be set"
            )
        if reply.content.get("status") != "ok":
            return jupyter.make_raised(reply.content)
        self._context.remember(cwd, env)
        return None

    async def _check_process(self) -> None:
        """Check after a gap between cells that the kernel is still the same process."""
        request = self._link.make_message("shell", "kernel_info_request", {})
        with contextlib.suppress(ConnectionLost, TimeoutError):
            reply, _ = await self._link.ask(request, _REQUEST_PATIENCE)
            self._had_gap = False
            if self.process != str(reply.header.get("session", "")):
                self._on_end("another process took its place")

    async def _send(self, message: RemoteMessage) -> None:
        try:
            await self._link.send(message)
        except ConnectionLost as lost:
            raise self._server.rest.unreachable(lost.reason) from None

    async def _on_message(self, message: RemoteMessage) -> None:
        if self._cell is not None and self._cell.wants(message):
            await self._inbox.put(message)
        elif message.channel == "iopub" and message.kind == "status":
            if str(message.content.get("execution_state", "")) in DEATHS:
                self._on_end("it died")
        elif message.channel == "iopub":
            self._add_idle_event(message)

    def _leave(self, inbox: RemoteInbox) -> None:
        for message in inbox.close():
            if message.channel == "iopub":
                self._add_idle_event(message)

    def _add_idle_event(self, message: RemoteMessage) -> None:
        # The output of other clients' cells is not ours.
        if message.parent.get("session") in {None, "", self._link.session}:
            event = jupyter.make_event(
                message.kind, message.content, message.metadata, message.buffers
            )
            if event is not None:
                idle = IdleEvent(event, self._cell_ids.get(message.parent_id))
                self._idle_events.put(idle, message.size)

    def _on_gap(self, reason: str) -> None:
        self._had_gap = True
        self._inbox.put_now(Gap(reason))

    def _on_end(self, reason: str) -> None:
        if self.end is None:
            self.end = reason
        self._inbox.put_now(End(reason))


_INTERRUPT_CALL = 2.0
_INTERRUPT_PATIENCE = 1.5
_DISCARD_WITHIN = 10.0
_RESTART_PAUSES = (0.5, 2.0)


class RemoteKernel:
    """A kernel that a server runs for us, or one that runs there and that we attach to.

    How a remote kernel ended is never known, only that it did. A kernel that its server restarts
    by itself has died: its state is lost.

    Args:
        server: where it is.
        name: which kernel to start; the server's default if None.
        kernel_id: the kernel to attach to, instead of starting one; it is left running.
    """

    def __init__(
        self, server: RemoteServer, *, name: str | None = None, kernel_id: str | None = None
    ) -> None:
        self.server = server
        self.kernel_id = kernel_id
        self._is_attached = kernel_id is not None
        self._name = name
        self._idle_events = IdleEventQueue()
        self._info: KernelInfo | None = None
        self._talk: RemoteConversation | None = None
        self._second_interrupt: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"RemoteKernel({self.server!r}, kernel_id={self.kernel_id!r})"

    @property
    def info(self) -> KernelInfo:
        """What the kernel is; valid once `start` has returned."""
        if self._info is None:
            raise KernelError("The kernel was not started", hint="Call `start` first")
        return self._info

    @property
    def is_alive(self) -> bool:
        """Whether the kernel can still answer, as far as is known without asking it."""
        return self._talk is not None and self._talk.end is None

    @property
    def process(self) -> str | None:
        """What the kernel process calls itself in its messages; a restarted one has another name."""
        return self._talk.process if self._talk is not None else None

    @property
    def exit(self) -> KernelExit | None:
        """An exit without a code once it ended; None while it lives."""
        return KernelExit() if self._talk is not None and self._talk.end is not None else None

    def idle_events(self) -> AsyncIterator[IdleEvent]:
        """Yield what the kernel says outside the running cell, across restarts; for one reader.

        The output of other clients' cells is left out.
        """
        return self._idle_events.events()

    async def start(self) -> None:
        """Start the kernel, or attach to it, and return when it is ready for a cell.

        Raises:
            KernelMissing: the server has no kernel of that name, or with that id.
            KernelStartFailed: it was not ready in time; nothing of it is left.
            KernelUnreachable: the server does not answer, or refuses us.
        """
        if self.is_alive:
            return
        try:
            if self._is_attached:
                kernel = await self._find()
            else:
                self.kernel_id = str(uuid4())
                kernel = await self.server.start_kernel(self._name, kernel_id=self.kernel_id)
                self.kernel_id = kernel.id
            await self._open(kernel, is_new=not self._is_attached)
        except BaseException:
            await asyncio.shield(self._discard())
            raise

    def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run one cell. Leaving the iterator early does not stop the cell; interrupt does.

        Raises:
            KernelCannot: `code` has variables or a folder to set, and this is not a Python kernel.
        """
        return self._require_talk().execute(code)

    @property
    def is_shared(self) -> bool:
        """Whether cells of other clients may run in it."""
        return self._is_attached

    async def ping(self, within: float) -> bool:
        """Ask the server whether it has the kernel, and in a state that can answer."""
        talk = self._talk
        if talk is None or talk.end is not None:
            return False
        if talk.is_busy:
            return True
        try:
            async with asyncio.timeout(within):
                kernel = await self.server.kernel(self.kernel_id or "")
        except (KernelError, TimeoutError):
            return False
        if kernel is None or kernel.state in DEATHS:
            await talk.close("the server no longer has it" if kernel is None else "it died")
            return False
        return True

    async def answer_input(self, text: str | None) -> None:
        """Answer the `InputRequested` that was yielded last; None makes the cell fail there."""
        if text is None:
            await self.interrupt()
        else:
            await self._require_talk().answer_input(text)

    async def send_comm(self, message: CommMessage) -> None:
        """Send a message on a comm to the kernel."""
        await self._require_talk().send_comm(message)

    async def interrupt(self) -> None:
        """Ask the kernel to stop the running cell: by REST, and by message if necessary.

        The message follows when the call failed, or when the cell still runs afterwards. Sent at
        once, it could hit the cell's own reaction to the first interrupt.
        """
        talk = self._talk
        cell = talk.note_interrupt() if talk is not None else None
        if talk is None or cell is None:
            return
        try:
            await self.server.interrupt(self.kernel_id or "", within=_INTERRUPT_CALL)
        except KernelError:
            await talk.send_interrupt()
            return
        await self._cancel_second_interrupt()
        self._second_interrupt = asyncio.create_task(
            _interrupt_again(talk, cell), name="remote interrupt"
        )

    async def restart(self) -> bool:
        """Have the server restart a kernel that we attached to; false for one that we started.

        Raises:
            KernelDied: the server no longer has it.
            KernelUnreachable: the server could not restart it.
        """
        if not self._is_attached:
            return False
        await self._require_talk().close("it was restarted")
        await self._open(await self._restart_on_server(), is_new=True)
        return True

    async def _restart_on_server(self) -> RunningKernel:
        kernel_id = self.kernel_id or ""
        for pause in (*_RESTART_PAUSES, None):
            try:
                kernel = None
                if await self.server.restart(kernel_id):
                    kernel = await self.server.kernel(kernel_id)
            except KernelUnreachable:
                # The server may be about to restart a dead kernel by itself, and fail only for that.
                if pause is None:
                    raise
                await asyncio.sleep(pause)
            else:
                if kernel is not None:
                    return kernel
                break
        raise KernelDied("the server no longer has it")

    async def shutdown(self, *, now: bool = False) -> None:  # noqa: ARG002  # servers know one way
        """End a kernel that we started; leave one that we attached to.

        Raises:
            KernelUnreachable: it lives, and the server could not end it.
        """
        await self._cancel_second_interrupt()
        talk, self._talk = self._talk, None
        if talk is None:
            return
        was_alive = talk.end is None
        await talk.close("we left it" if self._is_attached else "it was shut down")
        self._talk = talk
        if not self._is_attached and self.kernel_id is not None:
            try:
                await self.server.delete(self.kernel_id)
            except KernelError:
                if was_alive:
                    raise
            self.kernel_id = None

    async def _find(self) -> RunningKernel:
        kernel = await self.server.kernel(self.kernel_id or "")
        if kernel is not None:
            return kernel
        running: list[str] = []
        with contextlib.suppress(KernelError):  # gateways do not list theirs
            running = [kernel.id for kernel in await self.server.kernels()]
        raise KernelMissing(
            f"{self.server.address} runs no kernel with the id {self.kernel_id}",
            hint=f"Running there: {', '.join(running)}"
            if running
            else "None is known to run there",
        )

    async def _open(self, kernel: RunningKernel, *, is_new: bool) -> None:
        talk = RemoteConversation(self.server, kernel.id, self._idle_events)
        try:
            is_busy = self._is_attached and kernel.state == "busy"
            content = await talk.open(is_new=is_new, is_busy=is_busy)
        except BaseException:
            await asyncio.shield(talk.close("it did not start"))
            raise
        self._info = jupyter.read_info(
            content,
            name=kernel.name,
            transport="remote",
            details={
                "server": self.server.address.url,
                "kernel_id": kernel.id,
                "is_attached": self._is_attached,
                "framing": talk.protocol or "default",
            },
        )
        self._talk = talk

    def _require_talk(self) -> RemoteConversation:
        if self._talk is None:
            raise KernelError("The kernel was not started", hint="Call `start` first")
        return self._talk

    async def _cancel_second_interrupt(self) -> None:
        task, self._second_interrupt = self._second_interrupt, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    async def _discard(self) -> None:
        """Leave nothing of a kernel that did not become ready."""
        if not self._is_attached and self.kernel_id is not None:
            with contextlib.suppress(KernelError, TimeoutError):
                async with asyncio.timeout(_DISCARD_WITHIN):
                    await self.server.delete(self.kernel_id)
            self.kernel_id = None


async def _interrupt_again(talk: RemoteConversation, cell: RemoteCell) -> None:
    await asyncio.sleep(_INTERRUPT_PATIENCE)
    if talk.is_running(cell):
        with contextlib.suppress(KernelError):
            await talk.send_interrupt()
