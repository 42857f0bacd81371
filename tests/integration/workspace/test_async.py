"""`AsyncWorkspace`: what only an awaited workspace can do, in this process and over the engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import aio
from cellwright.workspace.workspace import AsyncWorkspace
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.engines import Engine

pytestmark = pytest.mark.timeout(120)

SLEEP = "import time\nprint('on', flush=True)\ntime.sleep(60)"
NOTEBOOK = samples.write(samples.code("a", "x = 1"), samples.code("slow", SLEEP))


@pytest.fixture(params=["in process", "engine"])
async def workspace(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared_engine: Engine,  # noqa: ARG001  # each test has a notebook of its own
) -> AsyncIterator[AsyncWorkspace]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(NOTEBOOK)
    if request.param == "in process":
        monkeypatch.setenv("CELLWRIGHT_ENGINE", "never")
        made = AsyncWorkspace()
    else:
        made = await aio.connect()
    async with made as workspace:
        yield workspace


async def test_a_cancelled_call_stops_its_run_and_ends_when_that_has(
    workspace: AsyncWorkspace,
) -> None:
    book = workspace.open("nb.ipynb")
    await book.run(["a"])
    is_on = asyncio.Event()

    def progress(event: dict[str, Any]) -> None:
        if "on" in event.get("text", ""):
            is_on.set()

    running = asyncio.ensure_future(book.run(["slow"], progress=progress))
    async with asyncio.timeout(60):
        await is_on.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    run = (await workspace.runs())[0]
    assert (run.state, run.cells) == ("done", {"slow": "cancelled"})
    assert "on" in str(await book.outputs(["slow"]))
    await book.edit([{"op": "insert", "id": "z", "source": "x + 1"}])
    (after,) = await book.run(["z"])  # the kernel has kept its state
    assert after.outputs[0]["data"]["text/plain"] == "2"


async def test_a_call_that_is_cancelled_at_once_leaves_nothing_running(
    workspace: AsyncWorkspace,
) -> None:
    for _ in range(3):
        task = asyncio.ensure_future(workspace.eval(["import time; time.sleep(60)"], timeout=0))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(60):
        while any(run.ended is None for run in await workspace.runs()):
            await asyncio.sleep(0.01)
        assert (await workspace.eval(["1"])).cells[0].text == "1\n"


async def test_many_wait_at_once_and_nobody_is_kept_from_stopping_them(
    workspace: AsyncWorkspace,
) -> None:
    """More than asyncio's own pool of threads has."""
    watching = [
        asyncio.ensure_future(workspace.watch("nb.ipynb", progress=lambda _: None))
        for _ in range(20)
    ]
    slow = asyncio.ensure_future(workspace.open("nb.ipynb").run(["slow"], detach=0))
    waiting = [
        asyncio.ensure_future(workspace.open("nb.ipynb").run(["a"], timeout=30)) for _ in range(10)
    ]
    run = (await slow).run
    async with asyncio.timeout(60):
        await workspace.cancel(run)
        answers = await asyncio.gather(*waiting)
    assert [answer[0].status for answer in answers] == ["ok"] * 10
    for task in watching:
        task.cancel()
    async with asyncio.timeout(60):
        ended = await asyncio.gather(*watching, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended)


async def test_calls_go_on_beside_a_run_and_each_gets_its_own_answer(
    workspace: AsyncWorkspace,
) -> None:
    async def one(number: int) -> str:
        answer = await workspace.eval([f"{number} * 2"], session=f"s{number % 3}")
        return str(answer.cells[0].text)

    book = workspace.open("nb.ipynb")
    run = await book.run(["slow"], detach=0)
    answers = await asyncio.gather(*(one(number) for number in range(12)))
    assert answers == [f"{number * 2}\n" for number in range(12)]
    edits = [
        book.edit([{"op": "insert", "id": f"n{number}", "source": "1"}]) for number in range(8)
    ]
    await asyncio.gather(*edits)
    ids = {cell.id for cell in (await book.read()).cells}
    assert ids == {"a", "slow", *(f"n{number}" for number in range(8))}
    await workspace.cancel(run.run)
