"""Runs by id: kept, followed, stopped, forgotten in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.errors import CellFailed, CellwrightError, KernelDied, RunNotFound
from cellwright.workspace.activity import NotebookEvents
from cellwright.workspace.api.answers import RunFailure
from cellwright.workspace.runs.execution import Execution, Executions
from cellwright.workspace.runs.run import Run, RunOptions, RunRegistry, Turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence


async def nothing(_: Run) -> None:
    """End at once."""


class Scripted(Run):
    """A run that does what the test says instead of running cells."""

    KIND = "run"

    def __init__(self, work: Callable[[Run], Awaitable[None]], cells: Sequence[str]) -> None:
        executions = [Execution("pending", cell) for cell in cells]
        super().__init__("nb", "test:ada", executions, RunOptions(), cells)
        self._work = work

    async def execute(self) -> None:
        await self._work(self)

    def answer(self) -> Executions:
        return Executions(self.executions, run=self.id, done=self.is_over)


def started(
    runs: RunRegistry,
    work: Callable[[Run], Awaitable[None]] = nothing,
    cells: Sequence[str] = (),
) -> Run:
    run = Scripted(work, cells)
    runs.start(run)
    return run


async def test_a_run_ends_with_its_answer() -> None:
    runs = RunRegistry(NotebookEvents())
    run = started(runs, cells=["a"])
    assert (run.is_over, run.cells, runs.has_active) == (False, {"a": "pending"}, True)
    assert await run.wait()
    assert (run.state, run.error, runs.has_active) == ("done", None, False)
    assert run.last_answer == [Execution("pending", "a")]
    assert await run.wait(0)  # also later
    assert runs.get(run.id) is run
    with pytest.raises(RunNotFound):
        runs.get("r0")


async def test_an_error_is_kept_and_a_bug_of_ours_is_one() -> None:
    runs = RunRegistry(NotebookEvents())

    async def fail(_: Run) -> None:
        raise CellFailed("ZeroDivisionError", "oh")

    async def crash(_: Run) -> None:
        raise RuntimeError("ours")

    failed, crashed = started(runs, fail), started(runs, crash)
    await failed.wait()
    await crashed.wait()
    assert failed.describe().error == RunFailure("CELL_FAILED", "ZeroDivisionError: oh")
    assert failed.last_answer is None
    assert isinstance(crashed.error, CellwrightError)
    assert crashed.error.message == "RuntimeError: ours"
    assert isinstance(crashed.error.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (["ok", "ok"], "ok"),
        (["ok", "error"], "error"),
        (["died", "pending"], "died"),
        (["timed_out", "error"], "timed_out"),
        (["ok", "pending"], "cancelled"),
    ],
)
async def test_a_run_has_the_status_of_its_first_cell_that_failed(
    ended: list[str], status: str
) -> None:
    runs = RunRegistry(NotebookEvents())

    async def end(run: Run) -> None:
        assert run.describe().status == "pending"
        run.state = "running"
        assert run.describe().status == "running"
        run.executions[:] = [Execution(each, "a") for each in ended]

    run = started(runs, end, cells=["a", "b"])
    await run.wait()
    run.forget_answer()
    assert (run.describe().state, run.describe().status) == ("done", status)


async def test_a_run_without_an_answer_has_a_status_too() -> None:
    runs = RunRegistry(NotebookEvents())
    errors = {KernelDied("oh"): "died", CellFailed("E", "oh"): "error"}
    for error, status in errors.items():

        async def fail(_: Run, error: CellwrightError = error) -> None:
            raise error

        run = started(runs, fail)
        await run.wait()
        assert (run.describe().state, run.describe().status) == ("failed", status)


async def test_waiting_may_end_before_the_run_does() -> None:
    runs = RunRegistry(NotebookEvents())
    go_on = asyncio.Event()

    async def wait(_: Run) -> None:
        await go_on.wait()

    run = started(runs, wait)
    assert not await run.wait(0.01)
    assert runs.is_busy("nb")
    go_on.set()
    assert await run.wait()
    assert not runs.is_busy("nb")


async def test_a_run_that_waits_is_over_at_once_when_stopped_and_one_that_runs_obeys() -> None:
    runs = RunRegistry(NotebookEvents())

    async def forever(run: Run) -> None:
        async with runs.turns.take(run.subject):
            run.state = "running"
            await run.stop.event.wait()

    first, second = started(runs, forever), started(runs, forever)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (first.state, second.state) == ("running", "waiting")
    assert second.cancel()
    assert await second.wait(10)
    assert second.error is not None
    assert second.error.code == "EXECUTION_CANCELLED"
    assert not first.is_over
    assert first.cancel()
    assert await first.wait(10)
    assert (first.error, first.state) == (None, "done")
    assert not first.cancel()


async def test_a_run_that_is_stopped_before_it_begins_is_over_too() -> None:
    runs = RunRegistry(NotebookEvents())
    run = started(runs)
    assert run.cancel()
    assert await run.wait(10)
    assert run.error is not None
    assert run.error.code == "EXECUTION_CANCELLED"
    assert (run.state, run.last_answer) == ("failed", None)


async def test_close_stops_everything() -> None:
    runs = RunRegistry(NotebookEvents())

    async def forever(run: Run) -> None:
        run.state = "running"
        await run.stop.event.wait()

    several = [started(runs, forever) for _ in range(5)]
    await asyncio.sleep(0)
    await runs.close()
    assert all(run.is_over for run in several)


async def test_who_comes_late_hears_it_from_the_beginning() -> None:
    runs = RunRegistry(NotebookEvents())
    go_on = asyncio.Event()

    async def tell(run: Run) -> None:
        run.report({"cell": 0, "handle": "a", "status": "running"})
        run.report({"cell": 0, "text": "one"})
        await go_on.wait()
        run.report({"cell": 0, "text": "two"})

    run = started(runs, tell, cells=["a"])
    await asyncio.sleep(0)
    late: list[Any] = []
    live: list[Any] = []
    run.watch(late.append, from_start=True)
    end = run.watch(live.append)
    assert [event.get("text") for event in late] == [None, "one"]
    assert run.cells == {"a": "running"}
    assert runs.list_cells("nb") == {"a": "running"}
    go_on.set()
    await run.wait()
    assert [event.get("text") for event in late] == [None, "one", "two"]
    assert [event["text"] for event in live] == ["two"]
    end()
    end()
    assert runs.list_cells("nb") == {}


async def test_displays_count_as_text_and_a_large_one_is_heard_only_by_who_watches() -> None:
    runs = RunRegistry(NotebookEvents())

    def show(size: int) -> dict[str, Any]:
        data = {"text/html": "x" * size}
        output = {"output_type": "display_data", "data": data, "metadata": {}}
        return {"cell": 0, "text": "", "output": output}

    async def flood(run: Run) -> None:
        run.report(show(2**20))
        for _ in range(50):
            run.report(show(10_000))

    run = started(runs, flood)
    live: list[Any] = []
    run.watch(live.append)
    await run.wait()
    assert [len(event["output"]["data"]["text/html"]) for event in live] == [2**20, *[10_000] * 50]
    late: list[Any] = []
    run.watch(late.append, from_start=True)
    assert late[0] == {"missed": 51 - len(late[1:])}
    assert len(late[1:]) == 2**18 // 10_000

    async def show_once(run: Run) -> None:
        run.report(show(2**20))

    run = started(runs, show_once)
    await run.wait()
    late.clear()
    run.watch(late.append, from_start=True)
    assert late == [{"cell": 0, "text": ""}]


async def test_what_is_kept_of_a_flood_is_bounded_and_the_rest_is_counted() -> None:
    runs = RunRegistry(NotebookEvents())

    async def flood(run: Run) -> None:
        for _ in range(5000):
            run.report({"cell": 0, "text": "x" * 1000})

    run = started(runs, flood)
    await run.wait()
    heard: list[Any] = []
    run.watch(heard.append, from_start=True)
    missed = heard.pop(0)["missed"]
    assert missed + len(heard) == 5000
    assert sum(len(event["text"]) for event in heard) <= 2**18


async def test_old_runs_are_forgotten_and_their_answers_earlier() -> None:
    runs = RunRegistry(NotebookEvents())
    for _ in range(120):
        await started(runs).wait()
    rows = runs.list()
    assert len(rows) == 100
    answers = [runs.get(row.run).last_answer for row in rows]
    assert all(isinstance(answer, Executions) for answer in answers[:10])
    assert answers[10:] == [None] * 90


async def test_watchers_of_a_notebook_hear_of_its_cells_and_of_the_end() -> None:
    events = NotebookEvents()
    heard: list[Any] = []
    events.subscribe("nb", heard.append)
    runs = RunRegistry(events)

    async def tell(run: Run) -> None:
        run.report({"cell": 0, "handle": "a", "status": "running"})
        run.report({"cell": 0, "handle": "a", "text": "noise"})

    run = started(runs, tell)
    await run.wait()
    assert [(event["event"], event["run"]) for event in heard] == [
        ("cell", run.id),
        ("run_ended", run.id),
    ]


async def test_turns_are_fair_and_cost_nothing_when_over() -> None:
    turns = Turns()
    order: list[int] = []

    async def one(number: int) -> None:
        async with turns.take("nb"):
            await asyncio.sleep(0)
            order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(one(number))
    assert order == list(range(20))
    assert turns._locks == {}
