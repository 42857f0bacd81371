"""What every kernel does alike, whichever transport leads to it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.kernel.events import Finished, Started
from cellwright.kernel.session import NO_STDIN, CellExecution
from cellwright.kernel.transport import Code
from cellwright.outputs.events import ClearEvent
from tests.kernels.fleet import Kind, every_kind, run, running, start_again

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [every_kind, pytest.mark.timeout(120)]


async def test_a_cell_prints_and_has_a_value(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, f"{says.out('one')}\n{says.err('two')}\n{says.value('three')}")
        assert seen.status == "ok"
        assert (seen.text(), seen.text("stderr")) == ("one\n", "two\n")
        assert seen.value == "'three'"
        assert seen.outcome.execution_count == 1
        assert isinstance(seen.events[0], Started)
        assert [event for event in seen.events if isinstance(event, Finished)] == seen.events[-1:]

        seen = await run(kernel, says.value("four"))
        assert (seen.value, seen.outcome.execution_count) == ("'four'", 2)


async def test_a_silent_cell_is_not_counted(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    async with running(kind, tmp_path) as kernel:
        await run(kernel, says.keep("x", "1"), silent=True, store_history=False)
        seen = await run(kernel, says.recall("x"))
        assert (seen.value, seen.outcome.execution_count) == ("'1'", 1)


async def test_a_failing_cell_says_why_and_the_next_one_runs(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, f"{says.out('before')}\n{says.fail}")
        assert (seen.status, seen.text()) == ("error", "before\n")
        error = seen.outcome.error
        assert error is not None
        assert (error.ename, error.evalue) == says.failure
        assert "wrong" in "\n".join(error.traceback)
        assert seen.outcome.state_kept
        assert (await run(kernel, says.value("x"))).status == "ok"


async def test_state_is_kept_until_a_restart(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    async with running(kind, tmp_path) as kernel:
        await run(kernel, says.keep("x", "kept"))
        assert (await run(kernel, says.recall("x"))).value == "'kept'"
        await start_again(kernel)
        seen = await run(kernel, says.recall("x"))
        assert seen.status == "error"
        assert seen.outcome.error is not None
        assert seen.outcome.error.ename == "NameError"


async def test_displays_come_with_their_type_and_can_be_renewed(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    assert says.show is not None
    assert says.renew is not None
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, says.show("text/html", "<b>x</b>"))
        assert [dict(event.data) for event in seen.shown] == [{"text/html": "<b>x</b>"}]
        assert not seen.shown[0].is_result
        seen = await run(kernel, f"{says.renew('d', 'old')}\n{says.renew('d', 'new')}")
        first, second = seen.shown
        assert (first.data["text/plain"], first.is_update) == ("old", False)
        assert (second.data["text/plain"], second.is_update) == ("new", True)
        assert first.display_id == second.display_id == "d"


async def test_output_can_be_cleared(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    assert says.clear is not None
    async with running(kind, tmp_path) as kernel:
        seen = await run(
            kernel, f"{says.out('a')}\n{says.clear(True)}\n{says.out('b')}\n{says.clear(False)}"
        )
        assert seen.status == "ok", seen.outcome.error
        cleared = [event for event in seen.events if isinstance(event, ClearEvent)]
        assert [event.wait for event in cleared] == [True, False]


async def test_input_is_answered_or_refused_and_never_hangs(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    assert says.ask is not None
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, says.ask("name?"), answers=["Ada"])
        assert (seen.status, seen.text()) == ("ok", "Ada\n")
        seen = await run(kernel, says.ask("name?"))
        assert (seen.status, seen.outcome.stdin_refused) == ("error", True)
        assert NO_STDIN in seen.text("stderr")


async def test_an_interrupted_cell_is_cancelled_and_the_state_is_kept(
    kind: Kind, tmp_path: Path
) -> None:
    says = kind.dialect
    async with running(kind, tmp_path) as kernel:
        await run(kernel, says.keep("x", "kept"))
        started = asyncio.Event()
        events: list[Any] = []

        def watch(event: Any) -> None:
            events.append(event)
            started.set()

        going = CellExecution(
            kernel, Code(f"{says.out('on')}\n{says.sleep(60)}"), grace=5, on_event=watch
        )
        task = asyncio.create_task(going.wait())
        await started.wait()
        await asyncio.sleep(0.3)
        going.cancel()
        outcome = await task
        assert (outcome.status, outcome.state_kept) == ("cancelled", kind.obeys)
        if kind.obeys:
            assert (await run(kernel, says.recall("x"))).value == "'kept'"


async def test_an_interrupt_of_an_idle_kernel_does_nothing(kind: Kind, tmp_path: Path) -> None:
    async with running(kind, tmp_path) as kernel:
        for _ in range(3):
            await kernel.interrupt()
        seen = await run(kernel, kind.dialect.value("fine"))
        assert (seen.status, seen.value) == ("ok", "'fine'")
        assert await kernel.ping(5)


async def test_a_timeout_interrupts_and_is_told_from_a_cancellation(
    kind: Kind, tmp_path: Path
) -> None:
    says = kind.dialect
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, says.sleep(60), timeout=0.5)
        assert (seen.status, seen.outcome.state_kept) == ("timed_out", kind.obeys)
        assert "Command timed out after 0.5 seconds" in seen.text("stderr")
        assert (await run(kernel, says.value("x"))).status == ("ok" if kind.obeys else "died")


async def test_a_kernel_deaf_to_interrupts_is_ended(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    assert says.deaf is not None
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, says.deaf(60), timeout=0.5, grace=0.5)
        assert (seen.status, seen.outcome.state_kept) == ("timed_out", False)
        assert not kernel.is_alive
        await start_again(kernel)
        assert (await run(kernel, says.value("x"))).status == "ok"


@pytest.mark.parametrize("way", ["exit", "kill", "segv"])
async def test_a_death_is_noticed_and_said(kind: Kind, tmp_path: Path, way: str) -> None:
    says = kind.dialect
    assert says.leave is not None
    assert says.die is not None
    number = {"kill": signal.SIGKILL, "segv": signal.SIGSEGV}.get(way)
    source = says.leave(3) if number is None else says.die(number)
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, f"{says.out('before')}\n{source}", timeout=20)
        assert (seen.status, seen.outcome.state_kept) == ("died", False)
        assert seen.outcome.exit is not None
        expected = {"exit": (3, None), "kill": (None, 9), "segv": kind.segv}[way]
        if kind.is_remote:
            expected = (None, None)
        assert (seen.outcome.exit.code, seen.outcome.exit.signal) == expected
        assert not kernel.is_alive
        await start_again(kernel)
        assert (await run(kernel, says.value("x"))).status == "ok"


async def test_variables_and_folder_are_set_before_a_cell(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    assert says.variable is not None
    assert says.folder is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with running(kind, tmp_path, GIVEN="at start") as kernel:
        assert str(tmp_path) in (await run(kernel, says.folder)).value
        assert "at start" in (await run(kernel, says.variable("GIVEN"))).value
        seen = await run(kernel, says.variable("NEW"), env={"NEW": "one", "GIVEN": None})
        assert "one" in seen.value
        assert (await run(kernel, says.variable("GIVEN"))).value in (None, "None")
        assert (await run(kernel, says.variable("NEW"))).value.strip("'") == "one"  # it stays
        seen = await run(kernel, says.folder, cwd=str(elsewhere))
        assert str(elsewhere) in seen.value
        assert (
            seen.outcome.execution_count
            == (await run(kernel, says.folder)).outcome.execution_count - 1
        )  # type: ignore[operator]


async def test_many_lines_arrive_whole_and_in_order(kind: Kind, tmp_path: Path) -> None:
    says = kind.dialect
    assert says.flood is not None
    async with running(kind, tmp_path) as kernel:
        seen = await run(kernel, says.flood(kind.lines))
        assert seen.text() == "".join(f"{number}\n" for number in range(kind.lines))


async def test_it_can_be_ended_twice_and_is_then_dead(kind: Kind, tmp_path: Path) -> None:
    async with running(kind, tmp_path) as kernel:
        assert kernel.is_alive
        await kernel.shutdown()
        await kernel.shutdown(now=True)
        assert not kernel.is_alive
        assert kernel.exit is not None
        seen = await run(kernel, kind.dialect.value("x"))
        assert seen.status == "died"
