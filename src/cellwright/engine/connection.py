"""One client of the engine: its calls, in any order, and the events it gets meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
from collections import deque

from cellwright.engine import wire
from cellwright.errors import CellwrightError, InvalidCall, explain_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import IO, Any

    Handler = Callable[["Connection", "int | str", str, dict[str, Any]], Awaitable[Any]]

log = logging.getLogger("cellwright.engine")

_MOST_CALLS = 256
_MOST_WAITING = 4 * 2**20
_MOST_SPILLED = 2**33
_CHUNK = 2**18


class Connection:
    """Reads calls, has each handled in a task of its own, writes what comes of them.

    A client that sends faster than it is served, or that does not fetch its answers, is not read
    from; one that does not read its events loses some, and is sent the number of those lost, but
    never an answer. Events of a call that wants all of them wait on disk, and are not lost.
    `process` is the client's; each connection counts as one where that is not known.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handle: Handler,
        *,
        most: int = wire.MAX_FRAME,
        process: int | None = None,
    ) -> None:
        self.name = ""
        self.process: object = self if process is None else process
        self.is_closed = False
        self._frames = wire.Frames(most)
        self._reader = reader
        self._writer = writer
        self._handle = handle
        self._slots = asyncio.Semaphore(_MOST_CALLS)
        self._calls: dict[int | str, list[Callable[[], object]]] = {}
        self._stopped: set[int | str] = set()
        self._missed: dict[int | str, tuple[int, int]] = {}
        self._spill = SpillFile()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._has_more = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    async def serve(self) -> None:
        """Until the client goes away."""
        writing = asyncio.ensure_future(self._write())
        try:
            await self._read()
        except OSError:
            log.info("%s: the connection broke", self.name or "a client")
        finally:
            self.is_closed = True
            self._has_room.set()
            for future in self._asked.values():
                if not future.done():
                    future.set_exception(ConnectionResetError())
            writing.cancel()
            self._spill.close()
            self._writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._writer.wait_closed()

    async def finish(self, within: float) -> None:
        """Answer what has been asked, as far as that is done in time, and hang up."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while (self._waiting or self._spill) and not self.is_closed:  # noqa: ASYNC110  # rare, and short
                    await asyncio.sleep(0.01)
        self._writer.close()

    # -- what comes in ----------------------------------------------------------------------

    async def _read(self) -> None:
        while chunk := await self._reader.read(2**18):
            self._frames.feed(chunk)
            while (line := self._frames.next()) is not None:
                number = None
                try:
                    # Off the loop, a large one at least lets other threads have a turn.
                    is_large = len(line) > _CHUNK
                    message = (
                        await asyncio.to_thread(wire.decode, line)
                        if is_large
                        else wire.decode(line)
                    )
                    number = _number(message)
                    await self._take(message)
                except InvalidCall as error:
                    await self._reply(wire.make_failure(number, error))

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._take_answer(message)
        elif message["method"] == "stop" and "id" not in message:
            self._stop(message.get("params"))
        else:
            number, method, params = self._check(message)
            await self._slots.acquire()
            self._calls[number] = []  # now, since the next message may want to stop it
            task = asyncio.ensure_future(self._answer(number, method, params))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        try:
            reply = wire.make_answer(number, await self._handle(self, number, method, params))
        except CellwrightError as error:
            reply = wire.make_failure(number, error)
        except Exception as error:
            log.exception("%s: `%s` failed", self.name, method)
            reply = wire.make_failure(number, explain_exception(error))
        finally:
            del self._calls[number]
            self._stopped.discard(number)
        try:
            self._tell_missed(number)
            await self._reply(reply)
        finally:
            self._slots.release()

    def _check(self, message: dict[str, Any]) -> tuple[int | str, str, dict[str, Any]]:
        """The parts of a call that is well formed."""
        number, method, params = _number(message), message["method"], message.get("params", {})
        if number is None:
            raise InvalidCall("every call needs an `id`")
        if number in self._calls:
            raise InvalidCall(f"call {number!r} is not over yet")
        if not isinstance(method, str) or not isinstance(params, dict):
            raise InvalidCall("`method` is a string, `params` an object")
        return number, method, params

    # -- calls that are not wanted any more -------------------------------------------------

    def _stop(self, params: object) -> None:
        number = params.get("call") if isinstance(params, dict) else None
        if not isinstance(number, (int, str)):
            raise InvalidCall("`stop` needs a `call`")
        if number in self._calls and number not in self._stopped:  # else it is over by now
            self._stopped.add(number)
            for stop in self._calls[number]:
                stop()

    def on_stop(self, number: int | str, stop: Callable[[], object]) -> None:
        """Do something when a call is stopped, at once if it is already."""
        if number in self._stopped:
            stop()
        elif number in self._calls:
            self._calls[number].append(stop)

    def is_stopped(self, number: int | str) -> bool:
        """Whether the client does not wait for a call any more."""
        return self.is_closed or number in self._stopped

    # -- what goes out ----------------------------------------------------------------------

    def tell(self, number: int | str, event: dict[str, Any], *, whole: bool = False) -> None:
        """Send an event of a call; if too much waits already, only if the call wants all events."""
        if self._waiting_bytes > _MOST_WAITING and not (whole and self._spill.has_room):
            events, size = self._missed.get(number, (0, 0))
            text = event.get("text", "").encode("utf-8", "replace")
            self._missed[number] = events + 1, size + len(text)
            return
        self._tell_missed(number, whole=whole)
        self._put(wire.make_notification("event", {"call": number, **event}), spills=whole)

    def _tell_missed(self, number: int | str, *, whole: bool = False) -> None:
        events, size = self._missed.pop(number, (0, 0))
        if events:
            facts = {"call": number, "missed": events, "missed_bytes": size}
            self._put(wire.make_notification("event", facts), spills=whole)

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Call the client; None if it is gone, or refuses."""
        try:
            return (await self.request(method, params)).get("result")
        except ConnectionError:
            return None

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Call the client, and return its answer: a message with a `result` or an `error`.

        Raises:
            ConnectionError: it is gone.
        """
        if self.is_closed:
            raise ConnectionResetError
        key = f"engine-{next(self._numbers)}"
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[key] = future
        self._put(wire.make_call(key, method, params))
        try:
            return await future
        finally:
            del self._asked[key]

    def _take_answer(self, message: dict[str, Any]) -> None:
        future = self._asked.get(str(message.get("id")))
        if future is None or not ("result" in message or "error" in message):
            raise InvalidCall("a message is neither a call nor the answer to one")
        if not future.done():
            future.set_result(message)

    async def _reply(self, message: dict[str, Any]) -> None:
        """Send an answer, and wait until the client is not far behind."""
        if wire.is_large(message):
            self._put_line(await asyncio.to_thread(wire.encode_in_pieces, message))
        else:
            line = wire.encode(message)
            is_behind = self._waiting_bytes or self._spill or self.is_closed
            if is_behind or self._writer.transport.get_write_buffer_size():
                self._put_line(line)
            else:
                self._writer.write(line)  # at once: the client waits for it
        await self._has_room.wait()

    def _put(self, message: dict[str, Any], *, spills: bool = False) -> None:
        if not self.is_closed:
            self._put_line(wire.encode(message), spills=spills)

    def _put_line(self, line: bytes, *, spills: bool = False) -> None:
        if self.is_closed:
            return
        # What comes after something on disk has to wait behind it.
        if self._spill or (spills and self._waiting_bytes > _MOST_WAITING):
            self._spill.append(line)
        else:
            self._waiting.append(line)
            self._waiting_bytes += len(line)
        self._has_more.set()
        if self._spill or self._waiting_bytes > _MOST_WAITING:
            self._has_room.clear()

    async def _write(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                await self._has_more.wait()
                self._has_more.clear()
                while self._waiting or self._spill:
                    # All of it at once: a client that sleeps is woken once.
                    lines, self._waiting = self._waiting, deque()
                    chunk = lines[0] if len(lines) == 1 else b"".join(lines)
                    self._waiting_bytes -= len(chunk)
                    chunk = chunk or self._spill.take(_CHUNK)
                    self._waiting_bytes += len(chunk)
                    # In parts, which are not copied again and again while the client reads.
                    for start in range(0, len(chunk), _CHUNK):
                        self._writer.write(chunk[start : start + _CHUNK])
                        await self._writer.drain()
                    self._waiting_bytes -= len(chunk)
                    if self._waiting_bytes <= _MOST_WAITING and not self._spill:
                        self._has_room.set()
        self._writer.close()  # it reads no more, so there is nothing left to say


class SpillFile:
    """Bytes that wait on disk for a slow reader, the first in first out; true while there are any.

    What the disk does not take waits in memory: an answer must never be lost.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._start = 0
        self._end = 0
        self._beside: deque[bytes] = deque()

    def __bool__(self) -> bool:
        return self._start < self._end or bool(self._beside)

    @property
    def has_room(self) -> bool:
        """Whether more may be kept."""
        return self._end < _MOST_SPILLED and not self._beside

    def append(self, data: bytes) -> None:
        """Keep some bytes."""
        if self._beside or not self._write(data):
            self._beside.append(data)

    def take(self, most: int) -> bytes:
        """Return the first bytes, which are then no longer kept."""
        data = b""
        if self._file is not None and self._start < self._end:
            data = os.pread(self._file.fileno(), min(most, self._end - self._start), self._start)
            self._start += len(data)
        elif self._beside:
            data = self._beside.popleft()
        if not self:
            self.close()
        return data

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._start, self._end = None, 0, 0
        self._beside.clear()

    def _write(self, data: bytes) -> bool:
        """Write at the end; whether all of it could be written."""
        try:
            if self._file is None:
                import tempfile

                from cellwright.config.directories import state_directory

                # Beside the journal: a runtime or temporary folder is often memory.
                folder = state_directory()
                folder.mkdir(0o700, parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115
            written = 0
            while written < len(data):
                place = self._end + written
                written += os.pwrite(self._file.fileno(), data[written:], place)
        except OSError as error:
            log.warning("a slow client's output cannot wait on disk: %s", error)
            return False
        self._end += len(data)
        return True


def _number(message: dict[str, Any]) -> int | str | None:
    """What a message is called by, if it has a name."""
    number = message.get("id")
    return number if isinstance(number, (int, str)) and not isinstance(number, bool) else None
