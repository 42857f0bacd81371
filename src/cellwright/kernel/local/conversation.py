"""The conversation with a kernel: who is told what of that which comes in.

What a kernel says belongs to the cell whose request it answers. All else, also what a cell still
says after nobody listens to it any more, goes aside.
"""

from __future__ import annotations

import asyncio
import signal
from collections import OrderedDict
from contextlib import suppress

from cellwright.kernel.aside import Aside
from cellwright.kernel.local import translate
from cellwright.kernel.local.channels import Channels
from cellwright.kernel.local.pace import Pace
from cellwright.kernel.local.run import Run
from cellwright.kernel.local.wire import Signer
from cellwright.outputs.events import StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from cellwright.kernel.aside import AsideQueue
    from cellwright.kernel.discovery import KernelSpec
    from cellwright.kernel.keeper import KeptProcess
    from cellwright.kernel.local.starting import Place
    from cellwright.kernel.local.wire import Message

_FIRST_NUDGE = 0.02
_IDLE_PATIENCE = 1.0
_SETTLING = 0.05
_FAIR = 32  # messages in a row
_CELLS_REMEMBERED = 64
_ABOUT_THE_KERNEL = frozenset({"status", "iopub_welcome", "shutdown_reply"})


class Conversation:
    """All that is said to and by one kernel process.

    `on_leaving` is called when the kernel says that it ends, `on_disconnect` when its sockets did.
    """

    def __init__(
        self,
        spec: KernelSpec,
        place: Place,
        process: KeptProcess,
        asides: AsideQueue,
        *,
        on_leaving: Callable[[], None],
        on_disconnect: Callable[[], None],
    ) -> None:
        self.kernel_info: dict[str, Any] | None = None
        self._interrupt_mode = spec.interrupt_mode
        self._process = process
        self._asides = asides
        self._on_leaving = on_leaving
        self._changed = asyncio.Event()
        self._has_ended = False
        self._hears_iopub = False
        self._busy_with: str | None = None
        self._runs: dict[str, Run] = {}
        self._cells: OrderedDict[str, str | None] = OrderedDict()
        self._probes: set[asyncio.Future[None]] = set()
        self._handed_out = 0
        self._nudges: dict[str, Run] = {}
        self._input_request: Mapping[str, Any] | None = None
        self._channels = Channels(
            place.addresses, Signer(place.key), self._take, self._answer_probes, on_disconnect
        )
        self._pace = Pace(self._channels, process)
        process.on_exit(self._changed.set)

    async def until_ready(self) -> bool:
        """Wait for a reply on `shell`, and for any message on `iopub`: then we miss none.

        False if the process ended instead.
        """
        self.send("shell", "kernel_info_request", {})
        pause = _FIRST_NUDGE
        while self.kernel_info is None or not self._hears_iopub:
            if self._process.exit is not None:
                return False
            self._changed.clear()
            has_reply = self.kernel_info is not None
            with suppress(TimeoutError):
                async with asyncio.timeout(pause if has_reply else None):
                    await self._changed.wait()
            if has_reply and not self._changed.is_set():
                # The reply's own `iopub` messages went out before we were subscribed.
                self.send("shell", "kernel_info_request", {})
                pause *= 2
        return True

    def send(self, channel: str, kind: str, content: Mapping[str, Any], **more: Any) -> str:
        """Send a message, and return its id."""
        return self._channels.send(channel, kind, content, **more)

    def prepare(self, request: Mapping[str, Any]) -> None:
        """Send a kernel what makes it keep its own messages, and then keep few of them here."""
        self.send("shell", "execute_request", request)
        self._pace.keeps_its_messages()

    def end(self) -> None:
        """The kernel is gone: take what it had said, and let nobody wait any longer."""
        if self._has_ended:
            return
        self._channels.read_all()
        self._has_ended = True
        for run in list(self._runs.values()):
            run.end()
        self._answer_probes()
        self._channels.close()

    def close(self) -> None:
        """Close the sockets at once. May be called twice."""
        self._channels.close()

    def begin(
        self,
        request: Mapping[str, Any],
        *,
        cell_id: str | None = None,
        silent: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Run:
        """Send an execute request."""
        metadata = {**({} if cell_id is None else {"cellId": cell_id}), **(metadata or {})}
        identity = self.send("shell", "execute_request", request, metadata=metadata)
        run = Run(identity, cell_id=cell_id, silent=silent)
        self._runs[identity] = run
        self._cells[identity] = cell_id
        if len(self._cells) > _CELLS_REMEMBERED:
            self._cells.popitem(last=False)
        if self._has_ended:
            run.end()
        return run

    async def next(self, run: Run) -> Message | None:
        """The next message of a cell; None once it is over."""
        while True:
            message = run.take()
            if message is not None:
                self._pace.has_gone(run.backlog)
                self._handed_out += 1
                if self._handed_out % _FAIR == 0:
                    await asyncio.sleep(0)  # a flood is no reason to keep others waiting
                return message
            if run.is_complete:
                return None
            has_news = await run.wait(_IDLE_PATIENCE if run.lacks_only_idle else None)
            if not has_news:
                # What it says on `iopub` to this comes after any idle that is still to come.
                self._nudges[self.send("shell", "kernel_info_request", {})] = run

    async def run_silently(self, request: Mapping[str, Any]) -> Run:
        """Send a request of our own, and wait until it is over."""
        run = self.begin(request, silent=True)
        try:
            while await self.next(run) is not None:
                pass
        finally:
            self.leave(run)
        return run

    def leave(self, run: Run) -> None:
        """Stop listening to a cell; what it still says, and what was not taken, goes aside."""
        self._runs.pop(run.id, None)
        while (message := run.take()) is not None:
            self._set_aside(message)
        self._nudges = {key: other for key, other in self._nudges.items() if other is not run}
        self._pace.resume()

    @property
    def runs_a_cell(self) -> bool:
        """Whether a cell is under way, also one that nobody listens to."""
        return bool(self._runs) or self._busy_with is not None

    def interrupt(self) -> None:
        """Interrupt the cell that runs; one that has not begun, soon after it does.

        At once it could hit the kernel's own code around the cell, which is not made for it.
        """
        if self._busy_with is not None and self._busy_with not in self._runs:
            self._interrupt_now()  # a cell that nobody listens to
        for run in self._runs.values():
            run.was_interrupted = True
            self._interrupt_when_settled(run)

    def _interrupt_when_settled(self, run: Run) -> None:
        if run.started_at is None:
            return  # it is on our list for when it has
        loop = asyncio.get_running_loop()
        wait = run.started_at + _SETTLING - loop.time()
        if wait > 0:
            loop.call_later(wait, self._interrupt_when_settled, run)
        elif run.id in self._runs and not run.is_complete:
            self._interrupt_now()

    def _interrupt_now(self) -> None:
        if self._interrupt_mode == "message":
            self.send("control", "interrupt_request", {})
        else:
            self._process.send_signal(signal.SIGINT)

    async def probe(self, within: float) -> bool:
        """Tell whether the kernel answers in so many seconds.

        Not on `shell`: whatever a thread says later would be taken for an answer to us.
        """
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._probes.add(answer)
        if (self.kernel_info or {}).get("implementation") == "ipython":
            self.send("control", "kernel_info_request", {})
        else:
            self._channels.beat()  # what all kernels have; many know little else on `control`
        try:
            await asyncio.wait([answer], timeout=within)
        finally:
            self._probes.discard(answer)
        return answer.done() and not self._has_ended

    def _answer_probes(self) -> None:
        for probe in self._probes:
            if not probe.done():
                probe.set_result(None)

    def answer_input(self, text: str) -> None:
        """Answer the question that was asked last; nothing happens if none is open."""
        parent, self._input_request = self._input_request, None
        if parent is not None:
            self.send("stdin", "input_reply", {"value": text}, parent=parent)

    def resume(self) -> None:
        """Let a kernel go on that ran too far ahead."""
        self._pace.resume()

    def _take(self, channel: str, message: Message) -> None:
        if channel == "iopub":
            self._take_iopub(message)
        elif channel == "shell":
            self._take_reply(message)
        elif channel == "control" and message.type == "kernel_info_reply":
            self._answer_probes()
        elif channel == "stdin" and message.type == "input_request":
            run = self._runs.get(message.parent_id or "")
            self._input_request = message.header
            if run is not None:
                run.put(message)
            else:
                self.answer_input("")  # nobody is there to be asked

    def _take_iopub(self, message: Message) -> None:
        kind = message.type
        if not self._hears_iopub:
            self._hears_iopub = True
            self._changed.set()
        parent = message.parent_id or ""
        if kind == "status" and message.parent_type == "execute_request":
            is_busy = message.content.get("execution_state") == "busy"
            self._busy_with = parent if is_busy else None
        run = self._runs.get(parent)
        if run is not None:
            had_started = run.started_at is not None
            run.put(message)
            self._pace.has_come(run.backlog)
            if run.was_interrupted and not had_started:
                self._interrupt_when_settled(run)
        elif parent in self._nudges:
            late = self._nudges.pop(parent)
            if late.lacks_only_idle:
                late.has_missed_idle = late.is_idle = True
                late.wake()
        elif kind not in _ABOUT_THE_KERNEL:
            self._set_aside(message)

    def _set_aside(self, message: Message) -> None:
        cell_id = self._cells.get(message.parent_id or "")
        for event in translate.events(message):
            size = len(event.text) if isinstance(event, StreamEvent) else message.size
            self._asides.put(Aside(event, cell_id), size)

    def _take_reply(self, message: Message) -> None:
        parent = message.parent_id or ""
        if message.type == "kernel_info_reply":
            if self.kernel_info is None:
                self.kernel_info = message.content
                self._changed.set()
        elif message.type == "execute_reply":
            if translate.is_farewell(message.content):
                self._on_leaving()
            if parent in self._runs:
                self._runs[parent].put(message)
