"""`RemoteKernel`: a kernel on a Jupyter Server or Kernel Gateway, as a `Transport`."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import uuid4

from cellwright.errors import KernelDied, KernelError, KernelMissing, KernelUnreachable
from cellwright.kernel import jupyter
from cellwright.kernel.events import IdleEventQueue, KernelExit
from cellwright.kernel.remote.cell import DEATHS
from cellwright.kernel.remote.conversation import RemoteConversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.kernel.events import CommMessage, IdleEvent, KernelEvent
    from cellwright.kernel.remote.cell import RemoteCell
    from cellwright.kernel.remote.server import RemoteServer, RunningKernel
    from cellwright.kernel.transport import Code, KernelInfo

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
