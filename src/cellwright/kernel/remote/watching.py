"""Follow one cell to its end, over lost connections and silent kernels, and say how it went."""

from __future__ import annotations

import contextlib

from cellwright.errors import KernelError
from cellwright.kernel.events import Finished, KernelExit, Missed
from cellwright.kernel.remote import python
from cellwright.kernel.remote.inbox import Closed, End, Gap
from cellwright.kernel.remote.run import DEATHS
from cellwright.kernel.remote.wire import LostWire
from cellwright.outputs.events import ErrorEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.remote.inbox import Inbox
    from cellwright.kernel.remote.link import Link
    from cellwright.kernel.remote.run import CellRun
    from cellwright.kernel.remote.server import RemoteServer
    from cellwright.kernel.transport import Code

_PATIENCE = 10.0
_LOOK_AFTER_GAP = 2.0
_FENCES_UNANSWERED = 5


class Watch:
    """What happens to a cell, from its request to its verdict."""

    def __init__(
        self, run: CellRun, inbox: Inbox, link: Link, server: RemoteServer, kernel_id: str
    ) -> None:
        self._run = run
        self._inbox = inbox
        self._link = link
        self._server = server
        self._kernel_id = kernel_id

    async def events(self) -> AsyncIterator[KernelEvent]:
        """All events of the cell until it is over, but for its last."""
        run, quiet = self._run, self._server.timeouts.quiet
        has_gap, unanswered = False, 0
        while not run.is_over:
            item = await self._inbox.get(min(_LOOK_AFTER_GAP, quiet) if has_gap else quiet)
            if isinstance(item, Closed):
                run.is_abandoned = True
            elif isinstance(item, End):
                run.has_died = True
                yield Missed(f"The end of the cell was not seen: {item.reason}")
            elif isinstance(item, Gap):
                has_gap = True
                yield Missed(
                    f"The connection to the kernel was lost: {item.reason}. "
                    "Output of that time, or too large to be sent, may be missing"
                )
                await self._fence()
            elif item is not None:
                unanswered = 0
                for event in run.take(item):
                    yield event
            elif not await self._should_have_ended():
                unanswered = 0
            elif unanswered < _FENCES_UNANSWERED:
                unanswered += 1
                await self._fence()
            else:
                run.has_died = True
                yield Missed("The kernel is idle, as its server says, but no longer answers")
        for event in run.last_words():
            yield event

    async def verdict(
        self, code: Code, language: str, count_before: int | None
    ) -> list[KernelEvent]:
        """The last events of a cell that is over.

        `count_before` is the kernel's count of cells before this one, where that is known.
        """
        run = self._run
        if run.has_died:
            return [Finished("died", run.count, KernelExit())]
        if run.is_abandoned:
            missed = "Another cell was started before the end of this one was seen"
            return [Missed(missed), Finished("error", run.count)]
        if run.status is not None:
            return [Finished(run.status, run.count)]
        return await self._find_out(code, language, count_before)

    async def _find_out(
        self, code: Code, language: str, count_before: int | None
    ) -> list[KernelEvent]:
        """Ask the kernel how a cell went whose end nobody saw; says so where it cannot tell."""
        run, last = self._run, None
        if language == "python":
            with contextlib.suppress(LostWire, TimeoutError):
                asked = await self._link.run_silently(python.ask_code(), _PATIENCE)
                last = python.last_cell(asked[1])
        is_counted = code.store_history and not code.silent and count_before is not None
        if last is not None and is_counted and not run.was_seen and count_before is not None:
            # The same source may have run before: only the count tells this run from that.
            if last.count is None or last.count <= count_before:
                return [
                    Missed("The cell did not reach the kernel, and did not run"),
                    Finished("cancelled", run.count),
                ]
            run.was_seen = True
        if last is None or not run.was_seen or not last.is_of(code.source):
            return [
                Missed("The cell is over, but how it ended was not seen"),
                Finished("error", run.count),
            ]
        if last.ename is None:
            return [Finished("ok", last.count)]
        is_ours = run.is_interrupted and "interrupt" in last.ename.lower()
        return [
            ErrorEvent(last.ename, last.evalue),
            Finished("cancelled" if is_ours else "error", last.count),
        ]

    async def _should_have_ended(self) -> bool:
        """Ask the server about a kernel that says nothing; also notices one that is gone."""
        try:
            kernel = await self._server.kernel(self._kernel_id)
        except KernelError:
            return False  # the link is about to notice
        if kernel is None or kernel.state in DEATHS:
            self._run.has_died = True
        return kernel is not None and kernel.state == "idle"

    async def _fence(self) -> None:
        request = self._link.message("shell", "kernel_info_request", {})
        self._run.fences.add(str(request.header["msg_id"]))
        with contextlib.suppress(LostWire):
            await self._link.send(request)
