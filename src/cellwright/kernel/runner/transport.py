"""`Runner`: a plain Python process as a `Transport`."""

from __future__ import annotations

import itertools
import signal
import weakref

from cellwright.errors import KernelCannot
from cellwright.kernel.events import Finished
from cellwright.kernel.runner.frames import event_of
from cellwright.kernel.runner.process import NAME, Life, spawn
from cellwright.kernel.transport import KernelInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any, Literal

    from cellwright.kernel.aside import Aside, AsideQueue
    from cellwright.kernel.events import CommMessage, KernelEvent, KernelExit
    from cellwright.kernel.transport import Code, Launch

START_TIMEOUT = 10.0
POLITE_SECONDS = 1.0
"""How long a runner may take to leave when it is asked to."""
FIRM_SECONDS = 1.0
"""How long it may take after SIGTERM; then comes SIGKILL."""


class Runner:
    """Cells in the interpreter of `launch.python`, which needs nothing but its standard library.

    Starts in a few milliseconds, and knows the common magics but neither comms nor IPython. What
    is printed between cells, by threads or children that live on, belongs to no cell;
    `idle_events` has it. `input()` always asks with `InputRequested`: somebody has to answer it.
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
        self._life: Life | None = None
        self._release: weakref.finalize[[Life], Runner] | None = None
        self._asides: AsideQueue | None = None
        self._ids = itertools.count(1)
        self._running: str | None = None  # the id of the cell that runs
        self._has_started = False
        self._is_interrupted_early = False
        self._question: dict[str, Any] | None = None
        self._cwd: str | None = launch.cwd  # the folder that was asked for last

    @property
    def info(self) -> KernelInfo:
        """What the kernel is; valid once `start` has returned."""
        if self._life is None or not self._life.hello:
            raise RuntimeError("the runner was not started")
        hello = self._life.hello
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
        return self._life is not None and self._life.process.exit is None

    @property
    def exit(self) -> KernelExit | None:
        """How the runner ended; None while it lives."""
        return None if self._life is None else self._life.process.exit

    def idle_events(self) -> AsyncIterator[Aside]:
        """What comes outside the cell that runs, across restarts; for one reader."""
        return self._queue().events()

    async def start(self) -> None:
        """Start the process, and return when it is ready for a cell.

        Raises:
            KernelMissing: there is no such interpreter.
            KernelStartFailed: it ended, or was not ready in time; nothing of it is left.
        """
        if self.is_alive:
            return
        if self._life is not None:
            await self._end(now=True)
        life = self._life = spawn(self.launch, _weakly(self._take_unclaimed))
        self._release = weakref.finalize(self, Life.close, life)
        self._running = None
        self._cwd = self.launch.cwd
        try:
            await life.wait_ready(self._start_timeout)
        except BaseException:
            await self._end(now=True)
            raise

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run one cell. Leaving the iterator early does not stop the cell; interrupt does."""
        life = self._life
        if life is None or not self.is_alive:
            yield Finished("died", exit=self.exit)
            return
        cell = self._running = str(next(self._ids))
        self._has_started = self._is_interrupted_early = False
        self._question = None
        life.process.memory.note()
        life.inbox.claim()
        try:
            life.outbox.send(self._request(cell, code))
            while (frame := await life.inbox.next()) is not None:
                if frame.get("id") != cell and not (self._has_started and frame.get("id") == ""):
                    self._take_unclaimed(frame)
                elif frame["type"] == "done":
                    self._running = None
                    self._give_up_question()
                    if frame["status"] != "ok":
                        self._cwd = None  # perhaps it was the folder that failed
                    yield _finished(frame)
                    return
                else:
                    self._note(frame)
                    event = event_of(frame)
                    if event is not None:
                        yield event
            self._running = None
            yield Finished("died", exit=life.process.exit)
        finally:
            life.inbox.release()

    async def ping(self, within: float) -> bool:
        """Ask an idle runner whether it answers in so many seconds; a busy one is not asked."""
        life = self._life
        if life is None or not self.is_alive or self._running is not None:
            return self.is_alive
        return await life.ping(f"ping {next(self._ids)}", within)

    async def answer_input(self, text: str) -> None:
        """Answer the `InputRequested` that was yielded last."""
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
        if self._running is None or self._life is None:
            return
        if self._has_started:
            self._life.process.send_signal(signal.SIGINT)
        else:  # it would go by unheard: the cell has not begun
            self._is_interrupted_early = True

    async def restart(self) -> None:
        """End the process and start another, with the same launch; its state is lost."""
        await self._end(now=self._running is not None)
        await self.start()

    async def shutdown(self, *, now: bool = False) -> None:
        """End the process and everything it started; `now` without asking it first."""
        await self._end(now=now)

    async def _end(self, *, now: bool) -> None:
        life = self._life
        if life is None:
            return
        try:
            if life.process.exit is None:
                polite, firm = self._polite_seconds, self._firm_seconds
                await life.end(polite=0 if now else polite, firm=0 if now else firm)
            else:
                await life.process.wait_gone(self._firm_seconds)
        finally:
            life.close()
            if self._release is not None:
                self._release.detach()

    def _request(self, cell: str, code: Code) -> dict[str, Any]:
        request: dict[str, Any] = {"id": cell, "code": code.source}
        # Only when it changes: what a cell did with `os.chdir` holds for the next one.
        if code.cwd is not None and code.cwd != self._cwd:
            request["cwd"] = self._cwd = code.cwd
        if code.env:
            request["env"] = dict(code.env)
        if code.silent:
            request["silent"] = True
        if not code.store_history:
            request["storeHistory"] = False
        if code.allow_stdin:
            request["allowStdin"] = True
        return request

    def _answer(self, question: dict[str, Any], text: str | None) -> None:
        """Answer a question; None says that nobody will."""
        if self._life is not None:
            answer = {"type": "input", "id": question["id"], "request": question["request"]}
            self._life.outbox.send({**answer, "data": text})

    def _give_up_question(self) -> None:
        """A thread may still wait for an answer when its cell has ended."""
        question, self._question = self._question, None
        if question is not None:
            self._answer(question, None)

    def _note(self, frame: dict[str, Any]) -> None:
        """Keep in mind what a frame says about the cell that runs."""
        if frame["type"] == "started":
            self._has_started = True
            if self._is_interrupted_early and self._life is not None:
                self._life.process.send_signal(signal.SIGINT)
        elif frame["type"] == "input":
            self._question = frame

    def _take_unclaimed(self, frame: dict[str, Any]) -> None:
        """Take a frame that is not for the cell that is being followed."""
        kind = frame.get("type")
        if kind == "pong" and self._life is not None:
            self._life.take_pong(frame["id"])
        elif kind == "input":
            self._answer(frame, None)  # nobody follows that cell any more
        elif kind == "done":
            if frame["id"] == self._running:
                self._running = None
        elif kind == "started":
            self._note(frame)
        else:
            event = event_of(frame)
            if event is not None:
                from cellwright.kernel.aside import Aside

                size = len(frame["data"]) if "data" in frame else 1000
                self._queue().put(Aside(event), size)

    def _queue(self) -> AsideQueue:
        if self._asides is None:
            from cellwright.kernel.aside import AsideQueue

            self._asides = AsideQueue()
        return self._asides


def _weakly(method: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Make a callback that does not keep its object alive: the event loop holds callbacks."""
    reference = weakref.WeakMethod(method)

    def call(frame: dict[str, Any]) -> None:
        found = reference()
        if found is not None:
            found(frame)

    return call


def _finished(frame: dict[str, Any]) -> Finished:
    verdict: Literal["ok", "error"] = "ok" if frame["status"] == "ok" else "error"
    status = "cancelled" if frame.get("cancelled") else verdict
    return Finished(status, frame.get("executionCount"))
