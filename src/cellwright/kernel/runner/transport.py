"""`Runner`: a plain Python process as a `Transport`."""

from __future__ import annotations

import asyncio
import itertools
import signal
import weakref

from cellwright.errors import KernelCannot
from cellwright.kernel.events import Finished, IdleEvent, IdleEventQueue, InputRequested, Started
from cellwright.kernel.jupyter import cut_raw
from cellwright.kernel.runner.process import NAME, RunnerProcess, spawn_runner
from cellwright.kernel.transport import KernelInfo
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from typing import Any, Literal

    from cellwright.kernel.events import CommMessage, KernelEvent, KernelExit
    from cellwright.kernel.transport import Code, Launch

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
            language_version=hello["python"],
            implementation=hello["implementation"],
            supports_comms=False,
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
            await self._end(now=True)
        process = self._process = spawn_runner(self.launch, _weakly(self._take_unclaimed))
        self._release = weakref.finalize(self, RunnerProcess.close, process)
        self._running = None
        self._cwd = self.launch.cwd
        try:
            await process.wait_ready(self._start_timeout)
        except BaseException:
            await self._end(now=True)
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
        process.kept.memory.note()
        process.inbox.claim()
        try:
            process.outbox.send(self._request(cell, code))
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
        await self._end(now=now)

    async def _end(self, *, now: bool) -> None:
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
