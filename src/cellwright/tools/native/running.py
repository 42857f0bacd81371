"""`notebook_run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cellwright.tools.native.editing import DEADLINE, goes_on
from cellwright.tools.native.evaluating import tell_eval
from cellwright.tools.page import Page
from cellwright.tools.params import CellName, Cells, MaxTokens, Name, Params, Path, Timeout
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import is_failure, named, one_line, run_facts, summary, tell_run

if TYPE_CHECKING:
    from typing import Self

    from cellwright.tools.tool import Caller

_OF_A_CELL = ("above", "below", "replay")


class RunParams(Params):
    """Which cells to run, or which run to follow."""

    path: Path = ""
    cells: Cells = None
    which: Annotated[
        Literal["all", "stale", "above", "below", "replay"] | None,
        Field(description="Instead of cells; above/below/replay are of `cell`"),
    ] = None
    cell: CellName | None = None
    restart: Annotated[bool, Field(description="In a fresh kernel")] = False
    check: Annotated[bool, Field(description="Write nothing; report outputs that differ")] = False
    keep_going: bool = False
    parameters: Annotated[
        dict[str, Any] | None, Field(description="Set names, papermill-style")
    ] = None
    answers: Annotated[list[str] | None, Field(description="Lines for input()")] = None
    timeout: Timeout = None
    wait: Annotated[
        float, Field(ge=0, le=3600, description="Answer by then, with a run id if not done")
    ] = DEADLINE
    run: Annotated[Name | None, Field(description="Follow this run instead")] = None
    cancel: Annotated[bool, Field(description="Stop `run`")] = False
    max_tokens: MaxTokens = 8000

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if self.run is None and not self.path:
            raise ValueError("give a path, or a run to follow")
        if self.cells is not None and self.which is not None:
            raise ValueError("give cells or which, not both")
        if self.which in _OF_A_CELL and self.cell is None:
            raise ValueError(f"which={self.which} needs `cell`")
        if self.cell is not None and self.which not in _OF_A_CELL:
            raise ValueError("`cell` goes with which=above, below or replay; else use `cells`")
        if self.cancel and self.run is None:
            raise ValueError("cancel needs `run`")
        return self


async def call(caller: Caller, params: RunParams) -> Answer:
    """Run cells, and answer by the deadline at the latest."""
    if params.run is not None:
        return await _follow(caller, params, params.run)
    book = caller.workspace.open(params.path)
    options: dict[str, Any] = {"restart": params.restart, "keep_going": params.keep_going}
    if params.which in _OF_A_CELL:
        options[params.which] = params.cell
    elif params.which == "stale":
        options["stale"] = True
    options |= {"check": True} if params.check else {}
    options |= {"parameters": params.parameters} if params.parameters else {}
    options |= {"answers": params.answers} if params.answers else {}
    options |= {"timeout": params.timeout} if params.timeout is not None else {}
    options |= {"ask": caller.ask} if caller.ask is not None else {}
    done = await book.run(params.cells, detach=params.wait, progress=caller.progress, **options)
    rows = [execution.to_json() for execution in done]
    return _tell(params, rows, done.run, is_done=done.done)


async def _follow(caller: Caller, params: RunParams, run: str) -> Answer:
    """Wait on for a run that was answered for before its end."""
    if params.cancel:
        await caller.workspace.cancel(run)
    found = await caller.workspace.attach(run, wait=params.wait, progress=caller.progress)
    if found["error"]:
        code, message = found["error"]["code"], one_line(found["error"]["message"], 400)
        return Answer(f"error: {code}: {message}", {"code": code, "run": run}, is_error=True)
    answer = found["answer"]
    if found["kind"] == "eval":
        cells = answer["cells"] if answer else []
        row = {"session": found["subject"], "cells": cells, "run": run, "done": found["done"]}
        return await tell_eval(caller, row, params.max_tokens)
    if answer is None and found["done"]:  # long ago: only how it went is known still
        rows = [f"{named(cell)}: {status}" for cell, status in found["cells"].items()]
        page = Page(params.max_tokens)
        page.head("It has ended; its outputs are in the notebook.")
        page.say_all(rows, "cells")
        return Answer(page.text(), {"run": run, "done": True})
    if answer is None:
        page = Page(params.max_tokens)
        statuses = ", ".join(found["cells"].values())
        page.head(f"After {found['seconds']:.0f} s: {one_line(statuses, 150)}.")
        page.head(goes_on(run))
        return Answer(page.text(), {"run": run, "done": False, "state": found["state"]})
    return _tell(params, answer["executions"], run, is_done=found["done"])


def _tell(params: RunParams, rows: list[dict[str, Any]], run: str, *, is_done: bool) -> Answer:
    page = Page(params.max_tokens)
    page.head(summary(rows) if rows or is_done else "Nothing is done yet.")
    if not is_done:
        page.head(goes_on(run))
    tell_run(page, rows, params.path)
    failed = any(map(is_failure, rows)) or any(
        (row.get("check") or {}).get("result") in ("differs", "failed") for row in rows
    )
    data = {"run": run, "done": is_done, "executions": run_facts(rows)}
    return Answer(page.text(), data, tuple(page.pictures), is_error=failed)


RUN = Tool(
    name="notebook_run",
    title="Run cells",
    description=(
        "Run cells of a notebook in its own kernel; outputs land in the file. Stops at the first "
        "error. Default: all code cells. Answers within `wait` seconds; a run that goes on has an "
        "id to follow or cancel."
    ),
    model=RunParams,
    call=call,
    effects="run",
    reference="notebookRun",
)
