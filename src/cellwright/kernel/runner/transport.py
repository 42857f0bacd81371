"""`Runner`: a plain Python process as a `Transport`: its start, the pipes to it, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections import deque
from pathlib import Path

from cellwright.errors import KernelCannot, KernelMissing, KernelStartFailed
from cellwright.kernel.environment import MARK_VARIABLE
from cellwright.kernel.events import Finished, IdleEvent, IdleEventQueue, InputRequested, Started
from cellwright.kernel.jupyter import MOST_CONTENT, cut_raw, read_beginnings
from cellwright.kernel.processes import make_mark, spawn_keeper
from cellwright.kernel.transport import KernelInfo
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from typing import IO, Any, Literal

    from cellwright.kernel.events import CommMessage, KernelEvent, KernelExit
    from cellwright.kernel.processes import KeptProcess
    from cellwright.kernel.transport import Code, Launch


INSIDE = Path(__file__).with_name("inside")
NAME = "runner"
GONE_WITHIN = 5.0
LAST_OUTPUT_BYTES = 600
READ_BYTES = 1 << 18
PAUSE_BYTES = 1 << 20  # no more is read while this much waits, and the runner waits too
RESUME_BYTES = 1 << 18


class RunnerProcess:
    """A runner's process, from its start to its end; every start makes a new one."""

    def __init__(
        self, kept: KeptProcess, inbox: RunnerInbox, outbox: RunnerOutbox, last_output: IO[bytes]
    ) -> None:
        self.kept = kept
        self.inbox = inbox
        self.outbox = outbox
        self.hello: dict[str, Any] = {}
        self._last_output = last_output
        self._ended = asyncio.Event()
        self._pongs: dict[str, asyncio.Future[None]] = {}
        kept.on_exit(self._on_exit)

    async def wait_ready(self, within: float) -> None:
        """Wait until the runner says hello.

        Raises:
            KernelStartFailed: it ended, or said nothing in time.
        """
        self.inbox.claim()
        try:
            async with asyncio.timeout(within):
                while (frame := await self.inbox.next()) is not None:
                    if frame.get("type") == "hello":
                        self.hello = frame
                        return
        except TimeoutError:
            reason = f"not ready within {within:g} s"
            raise KernelStartFailed(NAME, self._with_last_output(reason)) from None
        finally:
            self.inbox.release()
        await self._ended.wait()
        raise KernelStartFailed(NAME, self._with_last_output(str(self.kept.exit)))

    async def ping(self, number: str, within: float) -> bool:
        """Ask an idle runner whether it is there."""
        pong = self._pongs[number] = asyncio.get_running_loop().create_future()
        self.outbox.send({"type": "ping", "id": number})
        try:
            await asyncio.wait({pong}, timeout=within)
        finally:
            del self._pongs[number]
        return pong.done() and not pong.cancelled()

    def take_pong(self, number: str) -> None:
        """Take the answer to a ping; a late one is ignored."""
        pong = self._pongs.get(number)
        if pong is not None and not pong.done():
            pong.set_result(None)

    async def end(self, *, polite: float, firm: float) -> None:
        """Ask the runner to exit, then send SIGTERM, then kill it and everything it started.

        Zero seconds skip a step.
        """
        if polite > 0:
            self.outbox.send({"type": "exit"})
            await self._wait_ended(polite)
        if firm > 0 and not self._ended.is_set():
            self.kept.send_signal(signal.SIGTERM)
            await self._wait_ended(firm)
        if self.kept.pid is not None:
            self.kept.kill()
            if await self.kept.wait_gone(GONE_WITHIN):
                return
        # The keeper did not start, or is stuck: then it is killed itself, and the rest is swept.
        with contextlib.suppress(OSError):
            os.killpg(self.kept.keeper_pid, signal.SIGKILL)
        await self.kept.wait_gone(GONE_WITHIN)

    def close(self) -> None:
        """Let go of everything; the keeper kills what still runs. May be called twice."""
        self.kept.close()
        self.outbox.close()
        self.inbox.close()
        self._last_output.close()

    async def _wait_ended(self, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def _on_exit(self) -> None:
        self._ended.set()
        self.inbox.end()
        for pong in self._pongs.values():
            pong.cancel()

    def _with_last_output(self, reason: str) -> str:
        """Add the end of what the process itself wrote to its stderr, on one line."""
        with self._last_output as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_OUTPUT_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        said = " / ".join(line.strip() for line in lines if line.strip())
        return f"{reason}: {said}" if said else reason


def spawn_runner(launch: Launch, on_unclaimed: Callable[[dict[str, Any]], None]) -> RunnerProcess:
    """Start the process; it is not ready yet.

    Raises:
        KernelMissing: there is no such interpreter.
        KernelStartFailed: the system refused to start it.
    """
    python = launch.python or sys.executable
    mark = make_mark()
    last_output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `RunnerProcess`
    try:
        kept, child = spawn_keeper(
            lambda channel: [
                *(python, str(INSIDE / "start.py"), str(channel), str(os.getpid())),
                *_bytecode_folder(),
            ],
            mark,
            cwd=launch.cwd,
            env={**launch.env, MARK_VARIABLE: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=last_output,
            bufsize=0,
        )
    except BaseException as error:
        last_output.close()
        if isinstance(error, OSError):
            raise _explain_refusal(error, python, launch.cwd) from error
        raise
    outbox = RunnerOutbox(_take_over(child.stdin))
    inbox = RunnerInbox(_take_over(child.stdout), on_unclaimed)
    return RunnerProcess(kept, inbox, outbox, last_output)


def _take_over(file: Any) -> int:
    """Make a descriptor of our own from a file of `Popen`, which would close its own at any time."""
    with file:
        return os.dup(file.fileno())


def _bytecode_folder() -> list[str]:
    """Give a folder for bytecode if it cannot be beside the source."""
    if os.access(INSIDE, os.W_OK):
        return []
    from cellwright.config.directories import cache_directory

    try:
        return [str(cache_directory() / "bytecode")]
    except OSError:  # no home folder; it only starts slower
        return []


def _explain_refusal(error: OSError, python: str, cwd: str) -> KernelMissing | KernelStartFailed:
    if not Path(cwd).is_dir():
        return KernelStartFailed(NAME, f"no folder {cwd}", hint="Create it, or run elsewhere")
    if isinstance(error, FileNotFoundError):
        return KernelMissing(f"No Python at {python}", hint="Choose another kernel")
    return KernelStartFailed(NAME, f"{error.strerror or error} ({python})")


class RunnerInbox:
    """Reads lines of JSON from a descriptor on the event loop, and limits how many may wait.

    Until it is claimed, frames go to `on_unclaimed`. A frame may be of any size. Lines that are
    not JSON are left out: a runner may be killed in the middle of one.
    """

    def __init__(self, descriptor: int, on_unclaimed: Callable[[dict[str, Any]], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._on_unclaimed = on_unclaimed
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._begun: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_claimed = False
        self._is_reading = False
        self._writers_are_gone = False
        self._is_over = False
        self._resume()

    def claim(self) -> None:
        """Let frames wait for `next` from now on."""
        self._is_claimed = True

    def release(self) -> None:
        """Give waiting and later frames to `on_unclaimed`."""
        self._is_claimed = False
        self._hand_out()
        self._resume()

    async def next(self) -> dict[str, Any] | None:
        """Wait for the next frame; None when there will be none."""
        while True:
            while self._lines:
                if len(self._lines[0]) > MOST_CONTENT:
                    return await self._take_large()
                frame = self._take()
                if frame is not None:
                    return frame
            if self._is_over:
                return None
            self._resume()
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def end(self) -> None:
        """Read what is left in the pipe, to which nothing is written any more, and finish."""
        self._writers_are_gone = True
        self._read_rest()  # if too much waits, `next` continues

    def close(self) -> None:
        """Stop reading; what waits can still be taken."""
        self._finish()

    def _resume(self) -> None:
        if self._is_over or self._waiting_bytes > RESUME_BYTES:
            return
        if self._writers_are_gone:
            self._read_rest()
        elif not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._descriptor, self._read)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._descriptor)

    def _read_rest(self) -> None:
        while not self._is_over and self._waiting_bytes <= PAUSE_BYTES:
            if not self._read():
                self._finish()

    def _read(self) -> bool:
        """Read once; false when there was nothing."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            # The process has closed the pipe and is about to end; then `end` is called.
            self._pause()
            return False
        first, *rest = data.split(b"\n")
        self._begun.append(first)
        if rest:
            self._add(b"".join(self._begun))
            for line in rest[:-1]:
                self._add(line)
            self._begun = [rest[-1]]
            if not self._is_claimed:
                self._hand_out()
            if self._waiting_bytes > PAUSE_BYTES:
                self._pause()
            self._wake()
        return True

    def _add(self, line: bytes) -> None:
        if line:
            self._lines.append(line)
            self._waiting_bytes += len(line)

    def _take(self) -> dict[str, Any] | None:
        line = self._lines.popleft()
        self._waiting_bytes -= len(line)
        try:
            frame = json.loads(line)
        except ValueError:
            return None
        return frame if isinstance(frame, dict) else None

    async def _take_large(self) -> dict[str, Any]:
        """Take a frame that is too large to be decoded: how its texts begin, and its line."""
        line = self._lines.popleft()
        self._waiting_bytes -= len(line)
        found = await asyncio.to_thread(read_beginnings, line)
        return {**found, "bundle": found["data"], "raw": line}

    def _hand_out(self) -> None:
        while self._lines and not self._is_claimed:
            frame = self._take()
            if frame is not None:
                self._on_unclaimed(frame)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self) -> None:
        self._pause()
        if not self._is_over:
            self._is_over = True
            os.close(self._descriptor)
        self._wake()


class RunnerOutbox:
    """Writes lines of JSON to a descriptor without blocking the event loop."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._rest = bytearray()
        self._is_open = True

    def send(self, request: dict[str, Any]) -> None:
        """Send a request, or queue it; it is dropped if the runner is gone."""
        if self._is_open:
            is_waiting = bool(self._rest)
            self._rest += json.dumps(request).encode() + b"\n"
            if not is_waiting:
                self._write()
                self._wait_for_room()

    def close(self) -> None:
        """Close the descriptor; what was not sent is lost."""
        if self._is_open:
            self._is_open = False
            if self._rest:
                self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)

    def _wait_for_room(self) -> None:
        if self._is_open and self._rest:
            self._loop.add_writer(self._descriptor, self._write)

    def _write(self) -> None:
        try:
            done = os.write(self._descriptor, self._rest)
        except BlockingIOError:
            return
        except OSError:  # the runner is gone, which is noticed elsewhere
            self.close()
            return
        del self._rest[:done]
        if not self._rest:
            self._loop.remove_writer(self._descriptor)


START_TIMEOUT = 10.0
POLITE_SECONDS = 1.0
"""How long a runner may take to exit when it is asked to."""
FIRM_SECONDS = 1.0
"""How long it may take after SIGTERM; then comes SIGKILL."""


class Runner:
    """Cells in the interpreter of `launch.python`, which needs nothing but its standard library.

    Starts in a few milliseconds, and knows the common magics but neither comms nor IPython. What
    threads and child processes print between cells does not belong to a cell; `idle_events` has
    it. `input()` always asks with `InputRequested`, which has to be answered.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        start_timeout: float = START_TIMEOUT,
        polite_seconds: float = POLITE_SECONDS,
        firm_seconds: float = FIRM_SECONDS,
    ) -> None:
        self.launch = launch
        self._start_timeout = start_timeout
        self._polite_seconds = polite_seconds
        self._firm_seconds = firm_seconds
        self._process: RunnerProcess | None = None
        self._release: weakref.finalize[[RunnerProcess], Runner] | None = None
        self._idle_events = IdleEventQueue()
        self._ids = itertools.count(1)
        self._running: str | None = None  # the id of the cell that runs
        self._has_started = False
        self._is_interrupted_early = False
        self._question: dict[str, Any] | None = None
        self._cwd: str | None = launch.cwd  # the folder of the last request

    @property
    def info(self) -> KernelInfo:
        """What the kernel is; valid once `start` has returned."""
        if self._process is None or not self._process.hello:
            raise RuntimeError("the runner was not started")
        hello = self._process.hello
        return KernelInfo(
            NAME,
            "runner",
            implementation=hello["implementation"],
            pid=hello["pid"],
        )

    @property
    def is_alive(self) -> bool:
        """Whether the runner can still answer, as far as is known without asking it."""
        return self._process is not None and self._process.kept.exit is None

    @property
    def exit(self) -> KernelExit | None:
        """How the runner ended; None while it lives."""
        return None if self._process is None else self._process.kept.exit

    def idle_events(self) -> AsyncIterator[IdleEvent]:
        """Yield what is printed outside the running cell; for one reader."""
        return self._idle_events.events()

    async def start(self) -> None:
        """Start the process, and return when it is ready for a cell.

        Raises:
            KernelMissing: there is no such interpreter.
            KernelStartFailed: it ended, or was not ready in time; nothing of it is left.
        """
        if self.is_alive:
            return
        if self._process is not None:
            await self.shutdown(now=True)
        process = self._process = spawn_runner(self.launch, _weakly(self._take_unclaimed))
        self._release = weakref.finalize(self, RunnerProcess.close, process)
        self._running = None
        self._cwd = self.launch.cwd
        try:
            await process.wait_ready(self._start_timeout)
        except BaseException:
            await self.shutdown(now=True)
            raise

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run one cell. Leaving the iterator early does not stop the cell; interrupt does."""
        process = self._process
        if process is None or not self.is_alive:
            yield Finished("died", exit=self.exit)
            return
        cell = self._running = str(next(self._ids))
        self._has_started = self._is_interrupted_early = False
        self._question = None
        process.inbox.claim()
        try:
            process.outbox.send(self._request(cell, code))
            process.kept.memory.note()  # no cell is killed for memory within a moment
            while (frame := await process.inbox.next()) is not None:
                if frame.get("id") != cell and not (self._has_started and frame.get("id") == ""):
                    self._take_unclaimed(frame)
                elif frame["type"] == "done":
                    self._running = None
                    self._give_up_question()
                    if frame["status"] != "ok":
                        self._cwd = None  # maybe changing the folder failed
                    yield _make_finished(frame)
                    return
                else:
                    self._note(frame)
                    for piece in cut_raw(frame.get("raw", b"")):
                        yield piece
                        await asyncio.sleep(0)  # others must not wait for the last one
                    event = translate_frame(frame)
                    if event is not None:
                        yield event
            self._running = None
            yield Finished("died", exit=process.kept.exit)
        finally:
            process.inbox.release()

    async def ping(self, within: float) -> bool:
        """Ask an idle runner whether it answers in so many seconds; a busy one is not asked."""
        process = self._process
        if process is None or not self.is_alive or self._running is not None:
            return self.is_alive
        return await process.ping(f"ping {next(self._ids)}", within)

    async def answer_input(self, text: str | None) -> None:
        """Answer the `InputRequested` that was yielded last; None makes the cell fail there."""
        question, self._question = self._question, None
        if question is not None:
            self._answer(question, text)

    async def send_comm(self, message: CommMessage) -> None:
        """Refuse: a runner has no comms.

        Raises:
            KernelCannot: always.
        """
        del message
        raise KernelCannot(NAME, "exchange comm messages")

    async def interrupt(self) -> None:
        """Ask the runner to stop the running cell; does nothing when none runs."""
        if self._running is None or self._process is None:
            return
        if self._has_started:
            self._process.kept.send_signal(signal.SIGINT)
        else:  # it would be ignored: the cell has not begun
            self._is_interrupted_early = True

    async def restart(self) -> bool:
        """Leave it to the session to start another runner."""
        return False

    async def shutdown(self, *, now: bool = False) -> None:
        """End the process and everything it started; `now` without asking it first."""
        process = self._process
        if process is None:
            return
        try:
            if process.kept.exit is None:
                polite, firm = self._polite_seconds, self._firm_seconds
                await process.end(polite=0 if now else polite, firm=0 if now else firm)
            else:
                await process.kept.wait_gone(self._firm_seconds)
        finally:
            process.close()
            if self._release is not None:
                self._release.detach()

    def _request(self, cell: str, code: Code) -> dict[str, Any]:
        request: dict[str, Any] = {"id": cell, "code": code.source}
        # Only when it changes: the `os.chdir` of a cell holds for the next one.
        if code.cwd is not None and code.cwd != self._cwd:
            request["cwd"] = self._cwd = code.cwd
        if code.env:
            request["env"] = dict(code.env)
        if code.silent:
            request["silent"] = True
        if not code.store_history:
            request["storeHistory"] = False
        return request

    def _answer(self, question: dict[str, Any], text: str | None) -> None:
        """Answer a request for input; None refuses it."""
        if self._process is not None:
            answer = {"type": "input", "id": question["id"], "request": question["request"]}
            self._process.outbox.send({**answer, "data": text})

    def _give_up_question(self) -> None:
        """Refuse the open question: a thread may still wait for it when its cell has ended."""
        question, self._question = self._question, None
        if question is not None:
            self._answer(question, None)

    def _note(self, frame: dict[str, Any]) -> None:
        """Note what a frame says about the running cell."""
        if frame["type"] == "started":
            self._has_started = True
            if self._is_interrupted_early and self._process is not None:
                self._process.kept.send_signal(signal.SIGINT)
        elif frame["type"] == "input":
            self._question = frame

    def _take_unclaimed(self, frame: dict[str, Any]) -> None:
        """Take a frame that is not for the running cell."""
        kind = frame.get("type")
        if kind == "pong" and self._process is not None:
            self._process.take_pong(frame["id"])
        elif kind == "input":
            self._answer(frame, None)  # that cell is not followed any more
        elif kind == "done":
            if frame["id"] == self._running:
                self._running = None
        elif kind == "started":
            self._note(frame)
        else:
            event = translate_frame(frame)
            if event is not None:
                size = len(frame["data"]) if "data" in frame else 1000
                self._idle_events.put(IdleEvent(event), size)


def _weakly(method: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Make a callback that does not keep its object alive: the event loop holds callbacks."""
    reference = weakref.WeakMethod(method)

    def call(frame: dict[str, Any]) -> None:
        found = reference()
        if found is not None:
            found(frame)

    return call


def _make_finished(frame: dict[str, Any]) -> Finished:
    verdict: Literal["ok", "error"] = "ok" if frame["status"] == "ok" else "error"
    status = "cancelled" if frame.get("cancelled") else verdict
    return Finished(status, frame.get("executionCount"))


def translate_frame(frame: Mapping[str, Any]) -> KernelEvent | None:
    """Make the event of a frame; None for `done` and for frames that are not about a cell."""
    kind = frame.get("type")
    if kind in {"stdout", "stderr"}:
        return StreamEvent(kind, frame["data"])
    if kind in {"display", "result"}:
        is_result = kind == "result"
        return DisplayEvent(
            frame["bundle"],
            frame.get("metadata") or {},
            display_id=frame.get("displayId"),
            is_update=bool(frame.get("update")),
            is_result=is_result,
            execution_count=frame.get("executionCount") if is_result else None,
        )
    if kind == "error":
        return ErrorEvent(frame["ename"], frame["evalue"], tuple(frame["traceback"]))
    if kind == "clear":
        return ClearEvent(wait=bool(frame.get("wait")))
    if kind == "started":
        return Started(frame.get("executionCount"))
    if kind == "input":
        return InputRequested(frame.get("prompt", ""), password=bool(frame.get("password")))
    return None
