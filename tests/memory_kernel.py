"""A kernel in this process that follows a script.

A cell is a list of commands, one a line:

    print TEXT          write a line to stdout        warn TEXT       the same to stderr
    show MIME TEXT      display something             result TEXT     the value of the cell
    set NAME TEXT       keep something                get NAME        show what was kept, as result
    getenv NAME         show a variable, as result    cwd             show the folder, as result
    input PROMPT        ask, and print the answer     clear [wait]    clear the output
    update ID TEXT      show, or show anew, under an id
    comm ID JSON        open a comm of a widget, or send on it: JSON is its data
    sleep SECONDS       wait, until interrupted       stuck SECONDS   wait, deaf to interrupts
    flood LINES         print so many lines
    raise NAME TEXT     fail                          die SIGNAL      be killed by that signal
    exit CODE           end with that exit code
"""

from __future__ import annotations

import asyncio
import json

from cellwright.errors import KernelCannot
from cellwright.kernel.events import (
    CommMessage,
    Finished,
    IdleEventQueue,
    InputRequested,
    KernelEvent,
    KernelExit,
    Started,
)
from cellwright.kernel.factory import KernelFactory
from cellwright.kernel.transport import Code, KernelInfo, Launch
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Any

    import pytest

    from cellwright.kernel.events import IdleEvent
    from cellwright.kernel.factory import KernelOrder


class _Failure(Exception):
    """What `raise` raises."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, text)
        self.name = name
        self.text = text


class _Death(Exception):
    """What `die` and `exit` raise."""

    def __init__(self, how: KernelExit) -> None:
        super().__init__(how)
        self.how = how


class MemoryKernel:
    """A `Transport` without a process."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.starts = 0
        self.sent: list[CommMessage] = []
        self._clear()
        self._exit: KernelExit | None = KernelExit()  # not started yet

    def _clear(self) -> None:
        self._kept: dict[str, str] = {}
        self._env = dict(self.launch.env)
        self._cwd = self.launch.cwd
        self._count = 0
        self._interrupted = asyncio.Event()
        self._ended = asyncio.Event()
        self._answers: asyncio.Queue[str | None] = asyncio.Queue()
        self.idle = IdleEventQueue()
        self._running = False

    @property
    def info(self) -> KernelInfo:
        """What the kernel is."""
        return KernelInfo(name="memory", transport="memory", language="script")

    @property
    def is_alive(self) -> bool:
        """Whether it was started and has not died."""
        return self._exit is None

    @property
    def exit(self) -> KernelExit | None:
        """How it ended."""
        return self._exit

    async def start(self) -> None:
        """Begin with nothing kept."""
        self.starts += 1
        self._clear()
        self._exit = None

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Do one command after the other."""
        for name, value in code.env.items():
            if value is None:
                self._env.pop(name, None)
            else:
                self._env[name] = value
        self._cwd = code.cwd or self._cwd
        self._interrupted.clear()
        self._count += not code.silent
        self._running = True
        yield Started(self._count)
        status = "ok"
        try:
            for line in code.source.splitlines():
                async for event in self._do(line.strip()):
                    yield event
        except _Failure as failure:
            yield ErrorEvent(failure.name, failure.text, (f"{failure.name}: {failure.text}",))
            status = "error"
        except InterruptedError:
            yield ErrorEvent("KeyboardInterrupt", "", ("KeyboardInterrupt",))
            status = "cancelled"
        except _Death as death:
            self._exit = self._exit or death.how
        finally:
            self._running = False
        if self._exit is not None:
            yield Finished("died", self._count, self._exit)
        else:
            yield Finished(status, self._count)  # type: ignore[arg-type]

    async def _do(self, line: str) -> AsyncIterator[KernelEvent]:
        await asyncio.sleep(0)
        self._check()
        word, _, rest = line.partition(" ")
        if word == "input":
            yield InputRequested(rest)
            answer = asyncio.ensure_future(self._answers.get())
            await self._first(answer, self._interrupted, self._ended)
            self._check()
            given = answer.result()
            if given is None:
                raise _Failure("StdinNotImplementedError", "there was no answer")
            yield StreamEvent("stdout", given + "\n")
        elif word in ("sleep", "stuck"):
            wakers = (self._ended,) if word == "stuck" else (self._interrupted, self._ended)
            await self._first(asyncio.ensure_future(asyncio.sleep(float(rest))), *wakers)
            if word == "sleep":
                self._check()
        elif word == "flood":
            for at in range(0, int(rest), 100):
                await asyncio.sleep(0)
                self._check()
                lines = range(at, min(at + 100, int(rest)))
                yield StreamEvent("stdout", "".join(f"{number}\n" for number in lines))
        else:
            for event in self._simple(word, rest):
                yield event

    def _simple(self, word: str, rest: str) -> Iterator[KernelEvent]:
        first, _, text = rest.partition(" ")
        if word in ("print", "warn"):
            yield StreamEvent("stdout" if word == "print" else "stderr", rest + "\n")
        elif word == "show":
            yield DisplayEvent({first: text})
        elif word == "update":
            known = f"display {first}" in self._kept
            self._kept[f"display {first}"] = text
            yield DisplayEvent({"text/plain": text}, display_id=first, is_update=known)
        elif word == "comm":
            known = f"comm {first}" in self._kept
            self._kept[f"comm {first}"] = text
            data = json.loads(text)
            yield CommMessage("msg" if known else "open", first, "jupyter.widget", data=data)
        elif word == "set":
            self._kept[first] = text
        elif word in ("result", "get", "getenv", "cwd"):
            values = {
                "result": rest,
                "get": self._kept.get(rest),
                "getenv": self._env.get(rest, "None"),
                "cwd": self._cwd,
            }
            value = values[word]
            if value is None:
                raise _Failure("NameError", f"name '{rest}' is not defined")
            yield DisplayEvent({"text/plain": value}, is_result=True, execution_count=self._count)
        elif word == "clear":
            yield ClearEvent(wait=rest == "wait")
        elif word == "raise":
            raise _Failure(first, text)
        elif word == "die":
            raise _Death(KernelExit(signal=int(rest)))
        elif word == "exit":
            raise _Death(KernelExit(code=int(rest)))
        elif word:
            raise _Failure("SyntaxError", f"no command `{word}`")

    def _check(self) -> None:
        if self._exit is not None:
            raise _Death(self._exit)
        if self._interrupted.is_set():
            raise InterruptedError

    @staticmethod
    async def _first(work: asyncio.Future[Any], *events: asyncio.Event) -> None:
        tasks: list[asyncio.Future[Any]] = [work]
        tasks += [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def ping(self, within: float) -> bool:  # noqa: ARG002
        """Answer at once."""
        return self.is_alive

    async def answer_input(self, text: str | None) -> None:
        """Give the waiting command its line; None makes it fail."""
        self._answers.put_nowait(text)

    async def send_comm(self, message: CommMessage) -> None:
        """Keep the message in `sent`; it is not answered."""
        if not self.is_alive:
            raise KernelCannot("memory", "take a message: it is not running")
        self.sent.append(message)

    def idle_events(self) -> AsyncIterator[IdleEvent]:
        """Yield what a test has put into `idle`."""
        return self.idle.events()

    async def interrupt(self) -> None:
        """Stop the command that waits; does nothing when none runs."""
        if self._running:
            self._interrupted.set()

    async def restart(self) -> bool:
        """Leave it to the session to start another kernel."""
        return False

    async def shutdown(self, *, now: bool = False) -> None:
        """End, as if killed when `now`."""
        if self._exit is None:
            self._exit = KernelExit(signal=9) if now else KernelExit(code=0)
        self._ended.set()

    def kill(self, signal: int = 9) -> None:
        """Die now, as if killed by a signal."""
        self._exit = self._exit or KernelExit(signal=signal)
        self._ended.set()


def start_in_memory(monkeypatch: pytest.MonkeyPatch) -> list[MemoryKernel]:
    """Let every kernel that is started be one in memory; returns them as they come."""
    started: list[MemoryKernel] = []

    async def start(_: KernelFactory, order: KernelOrder) -> MemoryKernel:
        kernel = MemoryKernel(Launch(order.cwd, order.env))
        started.append(kernel)
        await kernel.start()
        return kernel

    monkeypatch.setattr(KernelFactory, "start", start)
    return started
