"""A cell always comes to an end, and the answer says which."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.kernel.session import NO_STDIN, CellExecution, Outcome
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import StreamEvent
from tests.memory_kernel import MemoryKernel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.kernel.events import InputRequested, KernelEvent


@pytest.fixture
async def kernel() -> MemoryKernel:
    kernel = MemoryKernel(Launch("/", {}))
    await kernel.start()
    return kernel


async def run(kernel: MemoryKernel, source: str, **options: Any) -> tuple[Outcome, str]:
    """The outcome, and all text that was printed."""
    events: list[KernelEvent] = []
    options = {"grace": 0.2, "on_event": events.append, **options}
    outcome = await CellExecution(kernel, Code(source), **options).wait()
    return outcome, "".join(event.text for event in events if isinstance(event, StreamEvent))


async def test_a_cell_that_ends_by_itself_says_how(kernel: MemoryKernel) -> None:
    outcome, text = await run(kernel, "print one\nprint two")
    assert (outcome.status, outcome.execution_count, outcome.state_kept) == ("ok", 1, True)
    assert text == "one\ntwo\n"

    outcome, _ = await run(kernel, "raise ValueError wrong")
    assert (outcome.status, outcome.execution_count) == ("error", 2)
    assert outcome.error is not None
    assert (outcome.error.ename, outcome.error.evalue) == ("ValueError", "wrong")


async def test_a_timeout_interrupts_and_says_so_in_the_output(kernel: MemoryKernel) -> None:
    outcome, text = await run(kernel, "set x 1\nsleep 60", timeout=0.05)
    assert (outcome.status, outcome.state_kept) == ("timed_out", True)
    assert text.strip() == "Command timed out after 0.05 seconds"
    outcome, _ = await run(kernel, "get x")
    assert outcome.status == "ok"


async def test_a_kernel_deaf_to_interrupts_is_killed_after_the_grace(kernel: MemoryKernel) -> None:
    outcome, text = await run(kernel, "print before\nstuck 60", timeout=0.05)
    assert (outcome.status, outcome.state_kept) == ("timed_out", False)
    assert outcome.exit is not None
    assert outcome.exit.signal == 9
    assert text.startswith("before\n")
    assert not kernel.is_alive


async def test_a_stopped_kernel_is_killed_without_the_grace(
    kernel: MemoryKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot obey: to wait for it would only make the caller wait longer."""
    monkeypatch.setattr(MemoryKernel, "info", replace(kernel.info, pid=1))
    monkeypatch.setattr("cellwright.kernel.session.is_stopped", lambda _: True)
    outcome, _ = await run(kernel, "stuck 60", timeout=0.05, grace=1000)
    assert (outcome.status, outcome.state_kept) == ("timed_out", False)
    assert outcome.seconds < 100


class SharedKernel(MemoryKernel):
    """A cell of another client runs until `is_free` is set."""

    is_shared = True

    def __init__(self) -> None:
        super().__init__(Launch("/", {}))
        self.is_free = asyncio.Event()
        self.interrupts = 0

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        await self.is_free.wait()
        async for event in super().execute(code):
            yield event

    async def interrupt(self) -> None:
        self.interrupts += 1
        await super().interrupt()


@pytest.mark.parametrize("way", ["timed_out", "cancelled", "left"])
async def test_a_cell_that_waits_for_that_of_another_client_stops_only_itself(way: str) -> None:
    kernel = SharedKernel()
    await kernel.start()
    timeout = 0.01 if way == "timed_out" else 0
    going = CellExecution(kernel, Code("sleep 60"), timeout=timeout, grace=5)
    task = asyncio.ensure_future(going.wait())
    if way == "cancelled":
        going.cancel()
    for _ in range(20):
        await asyncio.sleep(0.005)
        if way == "left":
            task.cancel()
    assert (kernel.interrupts, kernel.is_alive, task.done()) == (0, True, False)
    kernel.is_free.set()
    if way == "left":
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        assert (await task).status == way
    assert (kernel.interrupts, kernel.is_alive) == (1, True)


async def test_no_timeout_is_no_limit(kernel: MemoryKernel) -> None:
    outcome, _ = await run(kernel, "sleep 0.2", timeout=0)
    assert outcome.status == "ok"


async def test_cancelled_and_died_are_told_apart(kernel: MemoryKernel) -> None:
    going = CellExecution(kernel, Code("sleep 60"), grace=0.2)
    asyncio.get_running_loop().call_later(0.05, going.cancel)
    outcome = await going.wait()
    assert (outcome.status, outcome.state_kept) == ("cancelled", True)

    outcome, _ = await run(kernel, "die 11")
    assert (outcome.status, outcome.state_kept) == ("died", False)
    assert str(outcome.exit) == "killed by SIGSEGV, signal 11"


async def test_a_kernel_killed_from_outside_is_noticed_at_once(kernel: MemoryKernel) -> None:
    asyncio.get_running_loop().call_later(0.05, kernel.kill)
    async with asyncio.timeout(5):
        outcome, _ = await run(kernel, "sleep 60")
    assert (outcome.status, str(outcome.exit)) == ("died", "killed by SIGKILL, signal 9")


async def test_whoever_stops_waiting_stops_the_cell_first(kernel: MemoryKernel) -> None:
    task = asyncio.create_task(run(kernel, "set x 1\nsleep 60"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    outcome, _ = await run(kernel, "get x")  # the kernel is free, and has not been killed
    assert outcome.status == "ok"


async def test_nobody_to_ask_is_said_and_the_cell_goes_on(kernel: MemoryKernel) -> None:
    outcome, text = await run(kernel, "input name?\nprint after")
    assert (outcome.status, outcome.stdin_refused) == ("error", True)
    assert text == f"{NO_STDIN}\n\nafter\n"


async def test_answers_are_given_in_order_and_then_somebody_is_asked(kernel: MemoryKernel) -> None:
    asked = []

    async def ask(request: InputRequested) -> str:
        asked.append(request.prompt)
        return "third"

    outcome, text = await run(
        kernel, "input a\ninput b\ninput c", answers=["first", "second"], ask=ask
    )
    assert (outcome.status, asked, text) == ("ok", ["c"], "first\nsecond\nthird\n")


async def test_a_question_that_nobody_answers_does_not_outlast_the_timeout(
    kernel: MemoryKernel,
) -> None:
    async def ask(request: InputRequested) -> str:
        await asyncio.sleep(60)
        return request.prompt

    async with asyncio.timeout(5):
        outcome, _ = await run(kernel, "input forever?", timeout=0.05, ask=ask)
    assert (outcome.status, outcome.state_kept) == ("timed_out", True)
