"""Wait for a run that others may follow too, and tell of it."""

from __future__ import annotations

import asyncio

from cellwright.workspace.executions import Executions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.kernel.events import InputRequested
    from cellwright.kernel.session import Ask
    from cellwright.workspace.evaluation import Progress
    from cellwright.workspace.runs import Run


def describe_run(run: Run) -> dict[str, Any]:
    """A run and its answer, as far as there is one."""
    answer = run.answer
    if isinstance(answer, Executions):
        answer = {"executions": [execution.to_json() for execution in answer]}
    return {**run.to_json(), "done": run.is_over, "answer": answer}


async def watched(
    run: Run,
    progress: Progress | None,
    seconds: float | None,
    *,
    from_start: bool = False,
    stops: bool = True,
) -> None:
    """Wait for a run's end, or so long, and tell what happens meanwhile."""
    end = run.watch(progress, from_start=from_start) if progress is not None else None
    run.watchers += 1
    try:
        await run.wait(seconds)
    except asyncio.CancelledError:
        if stops:
            run.cancel()
            await run.wait()
        raise
    finally:
        run.watchers -= 1
        if end is not None:
            end()


def while_watched(run: Run, ask: Ask | None) -> Ask | None:
    """Ask for input only as long as somebody waits for the run."""
    if ask is None:
        return None

    async def asked(request: InputRequested) -> str | None:
        return await ask(request) if run.watchers else None

    return asked
