"""A kernel on a Jupyter Server or Kernel Gateway, behind the same seam as one of our own."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import uuid4

from cellwright.errors import (
    KernelDied,
    KernelError,
    KernelMissing,
    KernelStartFailed,
    KernelUnreachable,
)
from cellwright.kernel.aside import AsideQueue
from cellwright.kernel.events import KernelExit
from cellwright.kernel.remote.conversation import Conversation, settle
from cellwright.kernel.remote.run import DEATHS
from cellwright.kernel.transport import KernelInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from cellwright.kernel.aside import Aside
    from cellwright.kernel.events import CommMessage, KernelEvent
    from cellwright.kernel.remote.run import CellRun
    from cellwright.kernel.remote.server import RemoteServer, RunningKernel
    from cellwright.kernel.transport import Code

_INTERRUPT_CALL = 2.0
_INTERRUPT_PATIENCE = 1.5
_DISCARD = 10.0
_RESTART_PAUSES = (0.5, 2.0)


class RemoteKernel:
    """A kernel that a server runs for us, or one that runs there and that we attach to.

    How a remote kernel ended is never known, only that it did. One that its server starts anew
    by itself has died: its state is lost.

    Args:
        server: where it is.
        name: which kernel to start; the server's default if None.
        kernel_id: the kernel to attach to, instead of starting one; it is left running.
        path: the folder to start in, below the server's root.
        cwd: a folder on the server's machine to change to; Python only.
        env: variables to start it with. Gateways take what they are set up to take; a Python
            kernel gets them all.
    """

    def __init__(
        self,
        server: RemoteServer,
        *,
        name: str | None = None,
        kernel_id: str | None = None,
        path: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.server = server
        self.kernel_id = kernel_id
        self._is_attached = kernel_id is not None
        self._name = name
        self._path = path
        self._cwd = cwd
        self._env = dict(env or {})
        self._asides = AsideQueue()
        self._info: KernelInfo | None = None
        self._talk: Conversation | None = None
        self._nudge: asyncio.Task[None] | None = None

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
    def exit(self) -> KernelExit | None:
        """An exit without a code once it ended; None while it lives."""
        return KernelExit() if self._talk is not None and self._talk.end is not None else None

    def idle_events(self) -> AsyncIterator[Aside]:
        """What the kernel says beside the cell that runs, across restarts; for one reader.

        Only what has to do with us: the cells of other clients are theirs.
        """
        return self._asides.events()

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
                kernel = await self.server.start_kernel(
                    self._name, path=self._path, env=self._env, kernel_id=self.kernel_id
                )
                self.kernel_id = kernel.id
            await self._open(kernel, is_new=not self._is_attached)
        except BaseException:
            await asyncio.shield(self._discard())
            raise

    def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run one cell. Leaving the iterator early does not stop the cell; interrupt does.

        Raises:
            KernelCannot: `code` has variables or a folder to set, and this is no Python kernel.
        """
        return self._current().execute(code)

    async def ping(self, within: float) -> bool:
        """Ask the server whether it has the kernel, and in a state that can answer."""
        if self._talk is None or self._talk.end is not None:
            return False
        if self._talk.is_busy:
            return True
        talk = self._talk
        try:
            async with asyncio.timeout(within):
                kernel = await self.server.kernel(self.kernel_id or "")
        except (KernelError, TimeoutError):
            return False
        if kernel is None or kernel.state in DEATHS:
            await talk.close("the server no longer has it" if kernel is None else "it died")
            return False
        return True

    async def answer_input(self, text: str) -> None:
        """Answer the `InputRequested` that was yielded last."""
        await self._current().answer_input(text)

    async def send_comm(self, message: CommMessage) -> None:
        """Send a message on a comm to the kernel."""
        await self._current().send_comm(message)

    async def interrupt(self) -> None:
        """Ask the kernel to stop the running cell: by REST, and by message if need be.

        The message follows when the call failed, or when the cell goes on in spite of it. Sent
        at once, it could hit the cell's own answer to the first.
        """
        talk = self._talk
        run = talk.note_interrupt() if talk is not None else None
        if talk is None or run is None:
            return
        try:
            await self.server.interrupt(self.kernel_id or "", within=_INTERRUPT_CALL)
        except KernelError:
            await talk.ask_to_stop()
            return
        if self._nudge is not None:
            await settle(self._nudge)
        self._nudge = asyncio.create_task(_ask_again(talk, run), name="remote interrupt")

    async def restart(self) -> None:
        """End the kernel and start it anew; its state is lost.

        Raises:
            KernelError: it could not be started again; a kernel of our own is gone then.
        """
        await self._current().close("it was restarted")
        kernel = await self._restarted()
        if kernel is not None:
            await self._open(kernel, is_new=True)
        elif self._is_attached:
            raise KernelDied("the server no longer has it")
        else:
            await self._discard()
            await self.start()

    async def _restarted(self) -> RunningKernel | None:
        """Have the server restart it; None when only a new one will do."""
        for pause in (*_RESTART_PAUSES, None):
            try:
                if not await self.server.restart(self.kernel_id or ""):
                    return None
                return await self.server.kernel(self.kernel_id or "")
            except KernelUnreachable:
                # It may be about to restart a dead one by itself, and only fail for that.
                if not self._is_attached:
                    return None
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        return None

    async def shutdown(self, *, now: bool = False) -> None:  # noqa: ARG002  # servers know one way
        """End a kernel that we started; leave one that we attached to.

        Raises:
            KernelUnreachable: it lives, and the server could not be told to end it.
        """
        if self._nudge is not None:
            await settle(self._nudge)
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
        with contextlib.suppress(KernelError):  # gateways do not tell
            running = [kernel.id for kernel in await self.server.kernels()]
        raise KernelMissing(
            f"{self.server.address} runs no kernel with the id {self.kernel_id}",
            hint=f"Running there: {', '.join(running)}"
            if running
            else "None is known to run there",
        )

    async def _open(self, kernel: RunningKernel, *, is_new: bool) -> None:
        talk = Conversation(self.server, kernel.id, self._asides)
        try:
            is_busy = self._is_attached and kernel.state == "busy"
            said = await talk.open(is_new=is_new, is_busy=is_busy)
            await self._settle_in(talk, kernel.name)
        except BaseException:
            await asyncio.shield(talk.close("it did not start"))
            raise
        self._info = self._describe(kernel, said, talk.protocol)
        self._talk = talk

    async def _settle_in(self, talk: Conversation, name: str) -> None:
        problem = await talk.patch(self._cwd, self._env) if talk.language == "python" else None
        if problem is not None:
            raise KernelStartFailed(
                name, f"{problem.ename}: {problem.evalue}", hint="Check its folder and variables"
            )

    def _describe(
        self, kernel: RunningKernel, said: Mapping[str, Any], protocol: str | None
    ) -> KernelInfo:
        language = said.get("language_info")
        language = language if isinstance(language, dict) else {}
        return KernelInfo(
            name=kernel.name,
            transport="remote",
            language=str(language.get("name", "")).lower(),
            language_version=str(language.get("version", "")),
            implementation=str(said.get("implementation", "")),
            protocol_version=str(said.get("protocol_version", "")),
            details={
                "server": self.server.address.url,
                "kernel_id": kernel.id,
                "is_attached": self._is_attached,
                "framing": protocol or "default",
            },
        )

    def _current(self) -> Conversation:
        if self._talk is None:
            raise KernelError("The kernel was not started", hint="Call `start` first")
        return self._talk

    async def _discard(self) -> None:
        """Leave nothing of a kernel that did not become ready."""
        if not self._is_attached and self.kernel_id is not None:
            with contextlib.suppress(KernelError, TimeoutError):
                async with asyncio.timeout(_DISCARD):
                    await self.server.delete(self.kernel_id)
            self.kernel_id = None


async def _ask_again(talk: Conversation, run: CellRun) -> None:
    await asyncio.sleep(_INTERRUPT_PATIENCE)
    if talk.is_running(run):
        with contextlib.suppress(KernelError):
            await talk.ask_to_stop()
