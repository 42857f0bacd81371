"""The talk with one kernel process: cells, one at a time, and what goes beside them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict

from cellwright.errors import KernelCannot, KernelStartFailed
from cellwright.kernel import messages
from cellwright.kernel.aside import Aside
from cellwright.kernel.events import Finished, KernelExit
from cellwright.kernel.remote import python
from cellwright.kernel.remote.inbox import End, Gap, Inbox
from cellwright.kernel.remote.link import Link
from cellwright.kernel.remote.run import DEATHS, CellRun
from cellwright.kernel.remote.watching import Watch
from cellwright.kernel.remote.wire import LostWire
from cellwright.outputs.events import ErrorEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from cellwright.kernel.aside import AsideQueue
    from cellwright.kernel.events import CommMessage, KernelEvent
    from cellwright.kernel.remote.framing import Message
    from cellwright.kernel.remote.server import RemoteServer
    from cellwright.kernel.transport import Code

_ASIDE = 10.0
_FIRST_TRY = 2.0
_CELLS_REMEMBERED = 1000


class Conversation:
    """A connection to one kernel, until either is gone; a restarted kernel is another one.

    `end` says why it is over; None while it lasts.
    """

    def __init__(self, server: RemoteServer, kernel_id: str, asides: AsideQueue) -> None:
        self.end: str | None = None
        self.language = ""
        self._server = server
        self._kernel_id = kernel_id
        self._link = Link(
            server,
            kernel_id,
            on_message=self._on_message,
            on_gap=self._on_gap,
            on_end=self._on_end,
        )
        self._asides = asides
        self._cells: OrderedDict[str, str | None] = OrderedDict()
        self._patcher = python.Patcher()
        self._process: str | None = None
        self._count: int | None = None
        self._had_gap = False
        self._run: CellRun | None = None
        self._inbox = Inbox()

    @property
    def is_busy(self) -> bool:
        """Whether a cell of ours is being watched."""
        return self._run is not None

    @property
    def protocol(self) -> str | None:
        """The framing in use; None for the default one."""
        return self._link.protocol

    async def open(self, *, is_new: bool, is_busy: bool = False) -> Mapping[str, Any]:
        """Connect, wait until the kernel answers, and give what it says of itself.

        One that is new has run nothing yet; one that is busy runs somebody else's cell.

        Raises:
            KernelError: it cannot be reached, or does not answer.
        """
        await self._link.open()
        self._count = 0 if is_new else None
        until = time.monotonic() + self._server.timeouts.ready
        patience = _FIRST_TRY
        # A kernel that is busy for somebody else only answers on its other channel.
        channel = "control" if is_busy else "shell"
        while (left := until - time.monotonic()) > 0 and self.end is None:
            request = self._link.message(channel, "kernel_info_request", {})
            with contextlib.suppress(LostWire, TimeoutError):
                reply, _ = await self._link.ask(request, min(patience, left))
                self._process = str(reply.header.get("session", ""))
                language = reply.content.get("language_info")
                if isinstance(language, dict):
                    self.language = str(language.get("name", "")).lower()
                return reply.content
            # One that started after it was asked may have been heard, but not listened to yet.
            patience, channel = 2 * patience, "shell"
        raise KernelStartFailed(
            self._kernel_id, self.end or f"no answer in {self._server.timeouts.ready:g} s"
        )

    async def close(self, reason: str) -> None:
        """End the talk; a cell that is being watched ends as died."""
        self._on_end(reason)
        await self._link.close()

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run a cell, as `Transport.execute` says."""
        self._leave(self._inbox)  # of a cell that nobody watches any more
        async for event in self._prepare(code):
            yield event
            if isinstance(event, Finished):
                return
        request = self._link.message(
            "shell",
            "execute_request",
            {
                "code": code.source,
                "silent": code.silent,
                "store_history": code.store_history,
                "user_expressions": {},
                "allow_stdin": code.allow_stdin,
                "stop_on_error": True,
            },
            metadata={**({"cellId": code.cell_id} if code.cell_id else {}), **code.metadata},
        )
        run = CellRun(str(request.header["msg_id"]), self._link.session, self._process)
        self._cells[run.identity] = code.cell_id
        while len(self._cells) > _CELLS_REMEMBERED:
            self._cells.popitem(last=False)
        self._inbox, self._run = (inbox := Inbox()), run
        try:
            with contextlib.suppress(LostWire):  # then the link tells of a gap, or of the end
                await self._link.send(request)
            watch = Watch(run, inbox, self._link, self._server, self._kernel_id)
            async for event in watch.events():
                yield event
            if run.has_died:
                self._on_end("it died")
            elif not run.is_abandoned:
                self._process, self._had_gap = run.process, False
            for event in await watch.verdict(code, self.language, self._count):
                yield event
            self._count = run.count if run.count is not None else self._count
        finally:
            if self._run is run:
                self._run = None
            self._leave(inbox)

    async def answer_input(self, text: str) -> None:
        """Answer what the cell asked for."""
        run = self._run
        if run is not None and run.input_request is not None:
            parent, run.input_request = run.input_request, None
            await self._send(
                self._link.message("stdin", "input_reply", {"value": text}, parent=parent)
            )

    async def send_comm(self, message: CommMessage) -> None:
        """Send a message on a comm."""
        kind, content = messages.comm_content(message)
        await self._send(
            self._link.message(
                message.channel, kind, content, metadata=message.metadata, buffers=message.buffers
            )
        )

    async def ask_to_stop(self) -> None:
        """Interrupt by message, which also reaches kernels that take no signals."""
        await self._send(self._link.message("control", "interrupt_request", {}))

    def note_interrupt(self) -> CellRun | None:
        """Note that the running cell was told to stop; gives that cell."""
        if self._run is not None:
            self._run.is_interrupted = True
        return self._run

    def is_running(self, run: CellRun) -> bool:
        """Whether that cell still runs."""
        return self._run is run and not run.is_over

    async def patch(self, cwd: str | None, env: Mapping[str, str | None]) -> ErrorEvent | None:
        """Tell a Python kernel its folder and variables; gives what went wrong."""
        cwd, env = self._patcher.news(cwd, env)
        if cwd is None and not env:
            return None
        try:
            reply, _ = await self._link.run_silently(python.patch_code(cwd, env), _ASIDE)
        except (LostWire, TimeoutError):
            return ErrorEvent(
                "ConnectionError", "The kernel's folder and variables could not be set"
            )
        if reply.content.get("status") != "ok":
            return messages.raised(reply.content)
        self._patcher.told(cwd, env)
        return None

    async def _prepare(self, code: Code) -> AsyncIterator[KernelEvent]:
        """What comes before a cell; ends with `Finished` if the cell cannot run."""
        await self._link.freshen()
        if self.end is None and self._had_gap:
            await self._look_who_answers()
        if self.end is not None:
            yield Finished("died", exit=KernelExit())
        elif self.language == "python":
            problem = await self.patch(code.cwd, code.env)
            if problem is not None:
                yield problem
                yield Finished("error")
        else:
            cwd, env = self._patcher.news(code.cwd, code.env)
            if cwd is not None or any(value is not None for value in env.values()):
                raise KernelCannot(
                    self.language or "unknown",
                    "change its folder or variables for one cell",
                    hint="Set them when the kernel is started",
                )

    async def _look_who_answers(self) -> None:
        """After a gap between cells: see whether the kernel is still the same process."""
        request = self._link.message("shell", "kernel_info_request", {})
        with contextlib.suppress(LostWire, TimeoutError):
            reply, _ = await self._link.ask(request, _ASIDE)
            self._had_gap = False
            if self._process != str(reply.header.get("session", "")):
                self._on_end("another process took its place")

    async def _send(self, message: Message) -> None:
        try:
            await self._link.send(message)
        except LostWire as lost:
            raise self._server.rest.unreachable(lost.reason) from None

    async def _on_message(self, message: Message) -> None:
        if self._run is not None and self._run.wants(message):
            await self._inbox.put(message)
        elif message.channel == "iopub" and message.kind == "status":
            if str(message.content.get("execution_state", "")) in DEATHS:
                self._on_end("it died")
        elif message.channel == "iopub":
            self._set_aside(message)

    def _leave(self, inbox: Inbox) -> None:
        for message in inbox.close():
            if message.channel == "iopub":
                self._set_aside(message)

    def _set_aside(self, message: Message) -> None:
        # What the cells of other clients say is for those.
        if message.parent.get("session") in {None, "", self._link.session}:
            said = messages.event(message.kind, message.content, message.metadata, message.buffers)
            if said is not None:
                self._asides.put(Aside(said, self._cells.get(message.parent_id)), message.size)

    def _on_gap(self, reason: str) -> None:
        self._had_gap = True
        self._inbox.tell(Gap(reason))

    def _on_end(self, reason: str) -> None:
        if self.end is None:
            self.end = reason
        self._inbox.tell(End(reason))


async def settle(task: asyncio.Task[None]) -> None:
    """End a helper, whatever it is doing."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
