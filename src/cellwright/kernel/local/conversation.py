"""The conversation with one kernel process: which message belongs to which cell.

A message belongs to the cell whose request it answers. All others, also those of a cell that is
not followed any more, become idle events.
"""

from __future__ import annotations

import asyncio
import signal
from collections import OrderedDict, deque
from contextlib import suppress

from cellwright.kernel import jupyter
from cellwright.kernel.events import Finished, IdleEvent, InputRequested, Missed
from cellwright.kernel.local.channels import Backpressure, Channels, MessageSigner
from cellwright.outputs.events import RawPiece, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from cellwright.kernel.discovery import KernelSpec
    from cellwright.kernel.events import IdleEventQueue, KernelEvent, KernelExit
    from cellwright.kernel.local.channels import LocalMessage
    from cellwright.kernel.local.process import ConnectionFolder
    from cellwright.kernel.processes import KeptProcess

_FIRST_NUDGE = 0.02
_IDLE_PATIENCE = 1.0
_SETTLING = 0.05
_FAIR = 32  # messages in a row
_CELLS_REMEMBERED = 64
_LARGEST_COMM = 64 * 2**20
_ABOUT_THE_KERNEL = frozenset({"status", "iopub_welcome", "shutdown_reply"})


class CellMessages:
    """The messages of one execute request that were not read yet, and whether it is over.

    It is over when reply *and* idle have come, or when the kernel is gone.
    """

    def __init__(self, identity: str, *, cell_id: str | None = None, silent: bool = False) -> None:
        self.id = identity
        self.cell_id = cell_id
        self.backlog = 0
        self.reply: dict[str, Any] | None = None
        self.is_idle = False
        self.is_over = False
        self.started_at: float | None = None
        self.was_interrupted = False
        self.has_missed_idle = False
        self._silent = silent
        self._messages: deque[LocalMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, message: LocalMessage) -> None:
        """Add a message of this cell."""
        kind = message.type
        if kind == "status":
            self.is_idle = message.content.get("execution_state") == "idle"
            if self._silent:  # the only sign that it has begun
                self._start()
        else:
            if kind == "execute_input":
                self._start()
            self._messages.append(message)
            self.backlog += message.size
        self.wake()

    def take_reply(self, content: dict[str, Any]) -> None:
        """Note how the kernel says that the cell ended."""
        self.reply = content
        self.wake()

    def _start(self) -> None:
        if self.started_at is None:
            self.started_at = asyncio.get_running_loop().time()

    def end(self) -> None:
        """Note that nothing more will come: the kernel is gone."""
        self.is_over = True
        self.wake()

    def wake(self) -> None:
        """Let the reader look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> LocalMessage | None:
        """Remove and return the next message, if there is one."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self.backlog -= message.size
        return message

    @property
    def is_complete(self) -> bool:
        """Whether no more messages will come."""
        return self.is_over or (self.reply is not None and self.is_idle)

    @property
    def lacks_only_idle(self) -> bool:
        """Whether the kernel replied but did not report that it is idle."""
        return self.reply is not None and not self.is_idle

    async def wait(self, within: float | None) -> bool:
        """Wait until something has changed; false if nothing has in so many seconds."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            if within is None:
                await waiter
            else:
                await asyncio.wait([waiter], timeout=within)
        finally:
            self._waiter = None
        return waiter.done()

    def make_finished(self, exit_: KernelExit | None, *, is_python: bool) -> Finished:
        """Make the last event of the cell."""
        reply = self.reply
        if reply is None or not self.is_idle:
            return Finished("died", exit=exit_)
        count = reply.get("execution_count")
        status = reply.get("status")
        if status == "ok":
            return Finished("ok", count)
        # Other languages have other words for it, so any failure after an interrupt counts.
        is_interrupt = not is_python or reply.get("ename") == "KeyboardInterrupt"
        if status != "error" or (self.was_interrupted and is_interrupt):
            return Finished("cancelled", count)
        return Finished("error", count)


class LocalConversation:
    """All messages to and from one kernel process.

    `on_leaving` is called when the kernel announces its exit, `on_disconnect` when its sockets
    have closed. `process` is what the kernel process calls itself; empty if it has no name of its
    own.
    """

    def __init__(
        self,
        spec: KernelSpec,
        folder: ConnectionFolder,
        process: KeptProcess,
        idle_events: IdleEventQueue,
        *,
        on_leaving: Callable[[], None],
        on_disconnect: Callable[[], None],
    ) -> None:
        self.kernel_info: dict[str, Any] | None = None
        self.process = ""
        self._interrupt_mode = spec.interrupt_mode
        self._process = process
        self._idle_events = idle_events
        self._on_leaving = on_leaving
        self._changed = asyncio.Event()
        self._has_ended = False
        self._hears_iopub = False
        self._busy_with: str | None = None
        self._cells: dict[str, CellMessages] = {}
        self._cell_ids: OrderedDict[str, str | None] = OrderedDict()
        self._probes: set[asyncio.Future[None]] = set()
        self._handed_out = 0
        self._nudges: dict[str, CellMessages] = {}
        self._input_request: Mapping[str, Any] | None = None
        signer = MessageSigner(folder.key)
        self._our_name = signer.session
        self._channels = Channels(
            folder.addresses,
            signer,
            self._take,
            self._answer_probes,
            on_disconnect,
        )
        self._backpressure = Backpressure(self._channels, process)
        process.on_exit(self._changed.set)

    async def wait_ready(self) -> bool:
        """Wait for a reply on `shell` and for any message on `iopub`: from then on we miss none.

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
        """Send the request that makes a kernel keep its own messages, and then keep few of them here."""
        self.send("shell", "execute_request", request)
        self._backpressure.note_kernel_keeps_messages()

    def end(self) -> None:
        """Handle the end of the kernel: read what it had said, and end all cells."""
        if self._has_ended:
            return
        self._channels.read_all()
        self._has_ended = True
        for cell in list(self._cells.values()):
            cell.end()
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
    ) -> CellMessages:
        """Send an execute request, and follow its cell."""
        metadata = {**({} if cell_id is None else {"cellId": cell_id}), **(metadata or {})}
        identity = self.send("shell", "execute_request", request, metadata=metadata)
        cell = CellMessages(identity, cell_id=cell_id, silent=silent)
        self._cells[identity] = cell
        self._cell_ids[identity] = cell_id
        if len(self._cell_ids) > _CELLS_REMEMBERED:
            self._cell_ids.popitem(last=False)
        if self._has_ended:
            cell.end()
        return cell

    async def next(self, cell: CellMessages) -> LocalMessage | None:
        """Wait for the next message of a cell; None once it is over."""
        while True:
            message = cell.take()
            if message is not None:
                self._backpressure.note_removal(cell.backlog)
                self._handed_out += 1
                if self._handed_out % _FAIR == 0:
                    await asyncio.sleep(0)  # others must not wait for the end of a flood
                return message
            if cell.is_complete:
                return None
            has_changed = await cell.wait(_IDLE_PATIENCE if cell.lacks_only_idle else None)
            if not has_changed:
                # Its `iopub` messages for this come after any idle that is still on its way.
                self._nudges[self.send("shell", "kernel_info_request", {})] = cell

    async def run_silently(
        self, request: Mapping[str, Any], *, metadata: Mapping[str, Any] | None = None
    ) -> CellMessages:
        """Send a request of our own, and wait until it is over."""
        cell = self.begin(request, silent=True, metadata=metadata)
        try:
            while await self.next(cell) is not None:
                pass
        finally:
            self.leave(cell)
        return cell

    def leave(self, cell: CellMessages) -> None:
        """Stop following a cell; what it still says becomes idle events."""
        self._cells.pop(cell.id, None)
        while (message := cell.take()) is not None:
            self._add_idle_event(message)
        self._nudges = {key: other for key, other in self._nudges.items() if other is not cell}
        self._backpressure.resume()

    @property
    def is_running_cell(self) -> bool:
        """Whether a cell runs, also one that is not followed any more."""
        return bool(self._cells) or self._busy_with is not None

    def interrupt(self) -> None:
        """Interrupt the running cell; one that has not begun is interrupted soon after it does.

        Sooner, the interrupt could hit the kernel's own code around the cell, and break it.
        """
        if self._busy_with is not None and self._busy_with not in self._cells:
            self._interrupt_now()  # a cell that is not followed any more
        for cell in self._cells.values():
            cell.was_interrupted = True
            self._interrupt_when_settled(cell)

    def _interrupt_when_settled(self, cell: CellMessages) -> None:
        if cell.started_at is None:
            return  # `_take_iopub` does it when the cell has started
        loop = asyncio.get_running_loop()
        wait = cell.started_at + _SETTLING - loop.time()
        if wait > 0:
            loop.call_later(wait, self._interrupt_when_settled, cell)
        elif cell.id in self._cells and not cell.is_complete:
            self._interrupt_now()

    def _interrupt_now(self) -> None:
        if self._interrupt_mode == "message":
            self.send("control", "interrupt_request", {})
        else:
            self._process.send_signal(signal.SIGINT)

    async def probe(self, within: float | None, *, by_heartbeat: bool = False) -> bool:
        """Whether the kernel answers in so many seconds; by its heartbeat, only whether it runs at all.

        Not on `shell`: later output of a thread would be taken for an answer to this request.
        """
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._probes.add(answer)
        is_ipython = (self.kernel_info or {}).get("implementation") == "ipython"
        if is_ipython and not by_heartbeat:
            self.send("control", "kernel_info_request", {})
        else:
            self._channels.beat()  # every kernel has it; many know little else on `control`
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
        """Answer the last request for input; does nothing if there is none."""
        parent, self._input_request = self._input_request, None
        if parent is not None:
            self.send("stdin", "input_reply", {"value": text}, parent=parent)

    def resume(self) -> None:
        """Let a kernel continue that was stopped because it ran too far ahead."""
        self._backpressure.resume()

    def _take(self, channel: str, message: LocalMessage) -> None:
        if channel == "iopub":
            self._take_iopub(message)
        elif channel == "shell":
            self._take_reply(message)
        elif channel == "control" and message.type == "kernel_info_reply":
            self._answer_probes()
        elif channel == "stdin" and message.type == "input_request":
            cell = self._cells.get(message.parent_id or "")
            self._input_request = message.header
            if cell is not None:
                cell.put(message)
            else:
                self.answer_input("")  # the cell is not followed any more

    def _take_iopub(self, message: LocalMessage) -> None:
        kind = message.type
        if not self._hears_iopub:
            self._hears_iopub = True
            self._changed.set()
        parent = message.parent_id or ""
        if kind == "status" and message.parent_type == "execute_request":
            is_busy = message.content.get("execution_state") == "busy"
            self._busy_with = parent if is_busy else None
        cell = self._cells.get(parent)
        if cell is not None:
            had_started = cell.started_at is not None
            cell.put(message)
            self._backpressure.note_arrival(cell.backlog)
            if cell.was_interrupted and not had_started:
                self._interrupt_when_settled(cell)
        elif parent in self._nudges:
            late = self._nudges.pop(parent)
            if late.lacks_only_idle:
                late.has_missed_idle = late.is_idle = True
                late.wake()
        elif kind not in _ABOUT_THE_KERNEL:
            self._add_idle_event(message)

    def _add_idle_event(self, message: LocalMessage) -> None:
        cell_id = self._cell_ids.get(message.parent_id or "")
        for event in translate_message(message):
            if isinstance(event, RawPiece):  # too large to wait here
                continue
            size = len(event.text) if isinstance(event, StreamEvent) else message.size
            self._idle_events.put(IdleEvent(event, cell_id), size)

    def _take_reply(self, message: LocalMessage) -> None:
        parent = message.parent_id or ""
        if message.type == "kernel_info_reply":
            if self.kernel_info is None:
                self.kernel_info = message.content
                name = str(message.header.get("session", ""))
                self.process = "" if name == self._our_name else name  # some repeat ours
                self._changed.set()
        elif message.type == "execute_reply":
            reply = message.content  # long if an error is; decoded once
            if announces_exit(reply):
                self._on_leaving()
            if parent in self._cells:
                self._cells[parent].take_reply(reply)


def translate_message(
    message: LocalMessage, most: int = jupyter.MOST_CONTENT
) -> Iterator[KernelEvent]:
    """Yield the events of a message; none for messages about the kernel itself.

    Of an output that has more than so many bytes, only the beginnings of its texts are decoded.
    """
    try:
        yield from _translate(message, most)
    except (ValueError, TypeError, AttributeError) as error:
        # Kernels are written by many people. The next message may be valid again.
        yield Missed(f"a message `{message.type}` that cannot be read: {error}")


def _translate(message: LocalMessage, most: int) -> Iterator[KernelEvent]:
    if message.type == "stream":
        for name, text in message.stream_pieces():
            yield StreamEvent(name, text)
    elif message.type == "input_request":
        content = message.content
        yield InputRequested(str(content.get("prompt", "")), bool(content.get("password")))
    else:
        is_output = message.type in jupyter.DISPLAYS or message.type == "error"
        size = len(message.raw_content)
        if is_output and size > max(most, jupyter.MOST_CONTENT):
            yield from jupyter.cut_raw(message.raw_content)
        if size > _LARGEST_COMM and not is_output:
            raise ValueError(f"it has {size:,} bytes")
        content = message.content
        if size > jupyter.MOST_CONTENT and (not is_output or size <= most):
            content = message.decode_content()
        if message.type in jupyter.DISPLAYS and not isinstance(content.get("data"), dict):
            raise TypeError("its data is not an object")
        buffers = tuple(frame.bytes for frame in message.buffers)
        event = jupyter.make_event(message.type, content, message.metadata, buffers)
        if event is not None:
            yield event


def announces_exit(reply: Mapping[str, Any]) -> bool:
    """Whether a reply says that the kernel will exit, as after `quit()`."""
    return any(
        payload.get("source") == "ask_exit" and not payload.get("keepkernel")
        for payload in reply.get("payload") or ()
    )
