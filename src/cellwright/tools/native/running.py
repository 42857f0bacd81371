"""`notebook_run` and `eval`: run cells of a notebook, or code of its own."""

from __future__ import annotations

import asyncio
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cellwright.outputs.sanitize import fold_repeats
from cellwright.tools.native.reading import load_picture
from cellwright.tools.page import IMAGES, Page
from cellwright.tools.params import (
    DEADLINE,
    CellName,
    Cells,
    JsonObject,
    MaxTokens,
    Name,
    Params,
    Path,
    Timeout,
)
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import (
    describe_unfinished_run,
    format_count,
    quote_name,
    run_facts,
    shorten,
    show_run,
    summarize_run,
    to_facts,
)
from cellwright.workspace.api.answers import EvalAnswer
from cellwright.workspace.runs.execution import Executions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from cellwright.tools.tool import ToolCaller
    from cellwright.workspace.api.answers import RunFailure
    from cellwright.workspace.runs.execution import Execution


_MOST_PARTS = 20_000  # characters of JSON
_FEW, _SHORT_TEXT = 10, 10_000  # what is described at once
_OF_A_CELL = ("above", "below", "replay")

_TRACEBACK = "Traceback (most recent call last)"
_NO_WORDS: Mapping[str, str] = MappingProxyType({})


class RunParams(Params):
    """Which cells to run, or which run to follow."""

    path: Path = ""
    cells: Cells = None
    which: Annotated[
        Literal["all", "stale", "above", "below", "replay"],
        Field(description="Instead of cells; above/below/replay are of `cell`"),
    ] = "all"
    cell: CellName | None = None
    restart: Annotated[bool, Field(description="In a fresh kernel")] = False
    check: Annotated[bool, Field(description="Write nothing; report outputs that differ")] = False
    keep_going: bool = False
    parameters: Annotated[
        JsonObject | None, Field(description="JSON object of names to set, papermill-style")
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
        if self.cells is not None and self.which != "all":
            raise ValueError("give cells or which, not both")
        if self.which in _OF_A_CELL and self.cell is None:
            raise ValueError(f"which={self.which} needs `cell`")
        if self.cell is not None and self.which not in _OF_A_CELL:
            raise ValueError("`cell` goes with which=above, below or replay; else use `cells`")
        if self.cancel and self.run is None:
            raise ValueError("cancel needs `run`")
        return self


async def run_notebook(caller: ToolCaller, params: RunParams) -> ToolResult:
    """Run cells, and answer by the deadline at the latest."""
    if params.run is not None:
        return await _follow_run(caller, params, params.run)
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
    options |= caller.run_options()
    done = await book.run(params.cells, detach=params.wait, **options)
    return await _describe(caller, params, done, done.run, is_done=done.done)


async def _follow_run(caller: ToolCaller, params: RunParams, run: str) -> ToolResult:
    """Wait on for a run that was answered for before its end."""
    if params.cancel:
        await caller.workspace.cancel(run)
    found = await caller.workspace.attach(run, wait=params.wait, progress=caller.progress)
    if found.error is not None:
        return describe_run_error(found.error, run)
    answer = found.answer
    if found.kind == "eval":
        cells = answer.cells if isinstance(answer, EvalAnswer) else []
        done = EvalAnswer(found.subject, cells, run, found.done)
        return await describe_eval(caller, done, params.max_tokens)
    if isinstance(answer, Executions):
        return await _describe(caller, params, answer, run, is_done=found.done)
    if found.done:  # long ago: only the statuses are still known
        rows = [f"{quote_name(cell)}: {status}" for cell, status in found.cells.items()]
        page = Page(params.max_tokens)
        page.head("It has ended; its outputs are in the notebook.")
        page.say_all(rows, "cells")
        return page.to_result({"run": run, "done": True})
    page = Page(params.max_tokens)
    statuses = ", ".join(found.cells.values())
    page.head(f"After {found.seconds:.0f} s: {shorten(statuses, 150)}.")
    page.head(describe_unfinished_run(run))
    return page.to_result({"run": run, "done": False, "state": found.state})


def describe_run_error(error: RunFailure, run: str) -> ToolResult:
    """The result of a run that could not be carried out."""
    text = f"error: {error.code}: {shorten(error.message, 400)}"
    return ToolResult(text, {"code": error.code, "run": run}, is_error=True)


async def _describe(
    caller: ToolCaller,
    params: RunParams,
    executions: Sequence[Execution],
    run: str,
    *,
    is_done: bool,
) -> ToolResult:
    """Describe a run; off the loop if that takes a while, since other clients wait for the loop."""
    has_begun = is_done or any(each.status != "pending" for each in executions)
    before = "" if has_begun else await _find_run_before(caller, run)
    if _is_short(executions):
        return _describe_run(params, executions, run, before, is_done=is_done)
    return await asyncio.to_thread(_describe_run, params, executions, run, before, is_done=is_done)


async def _find_run_before(caller: ToolCaller, run: str) -> str:
    """Which run of the same notebook one waits for that has not begun; empty if for none."""
    rows = await caller.workspace.runs()
    subject = next((row.subject for row in rows if row.run == run), None)
    return next((row.run for row in rows if row.subject == subject and row.state == "running"), "")


def _is_short(executions: Sequence[Execution]) -> bool:
    """Whether there is little to describe: no picture to decode, and not much text."""
    outputs = [output for each in executions for output in each.outputs]
    texts = [output.get("text") or output.get("data", {}).get("text/plain") for output in outputs]
    return (
        len(executions) <= _FEW
        and len(outputs) <= _FEW
        and all(output.get("data", {}).keys() <= {"text/plain"} for output in outputs)
        and all(isinstance(text, str) and len(text) < _SHORT_TEXT for text in texts)
    )


def _describe_run(
    params: RunParams, executions: Sequence[Execution], run: str, before: str, *, is_done: bool
) -> ToolResult:
    page = Page(params.max_tokens)
    page.head(summarize_run(executions) if executions or is_done else "Nothing is done yet.")
    if isinstance(executions, Executions) and executions.skipped:
        names = ", ".join(map(quote_name, executions.skipped[:20]))
        page.head(f"Skipped by the tag skip-execution: {names}; name them in `cells` to run them.")
    if before not in ("", run):
        page.head(f"Another run of the notebook goes first: {before}.")
    if not is_done:
        page.head(describe_unfinished_run(run))
    show_run(page, executions, params.path)
    failed = any(
        each.is_failure
        or each.is_unsaved
        or (each.check is not None and each.check.result in ("differs", "failed"))
        for each in executions
    )
    data = {"run": run, "done": is_done, "executions": run_facts(executions)}
    return page.to_result(data, is_error=failed)


class EvalItem(Params):
    """One cell of code."""

    code: str
    language: Annotated[str, Field(description="Default Python")] = ""
    title: str = ""
    reset: Annotated[bool, Field(description="Fresh kernel first")] = False
    timeout: Annotated[float | None, Field(ge=0, le=1e6, description="Seconds; default 30")] = None

    @model_validator(mode="before")
    @classmethod
    def _read_code(cls, value: Any) -> Any:
        return {"code": value} if isinstance(value, str) else value


class EvalParams(Params):
    """Code that belongs to no notebook."""

    cells: Annotated[list[EvalItem], Field(min_length=1, max_length=200)]
    session: Annotated[Name, Field(description="Calls of one session share state")] = "default"
    notebook: Annotated[
        Name | None, Field(description="Run in this notebook's kernel; the file stays as it is")
    ] = None
    kernel: Annotated[Name | None, Field(description="Kernelspec; default a plain Python")] = None
    per_call: Annotated[bool, Field(description="In a kernel of its own")] = False
    answers: Annotated[list[str] | None, Field(description="Lines for input()")] = None
    wait: Annotated[float, Field(ge=0, le=3600, description="Answer by then")] = DEADLINE
    max_tokens: MaxTokens = 8000


async def run_code(caller: ToolCaller, params: EvalParams) -> ToolResult:
    """Run code in a session."""
    options = caller.run_options()
    options |= {"answers": params.answers} if params.answers else {}
    options |= {"per_call": True} if params.per_call else {}
    done = await caller.workspace.eval(
        [cell.model_dump() for cell in params.cells],
        session=params.session,
        notebook=params.notebook,
        kernel=params.kernel,
        detach=params.wait,
        **options,
    )
    return await describe_eval(caller, done, params.max_tokens)


def _name_outputs(artifact: str) -> str:
    return f"notebook_outputs with artifact=artifact://{artifact}"


async def describe_eval(
    caller: ToolCaller,
    done: EvalAnswer,
    max_tokens: int,
    words: Mapping[str, str] = _NO_WORDS,
    *,
    find_rest: Callable[[str], str] = _name_outputs,
    get_more: str = "give more max_tokens, or print less",
    describe_unfinished: Callable[[str], str] = describe_unfinished_run,
) -> ToolResult:
    """How each cell went and what it said, within a budget.

    Args:
        caller: whose artifacts are looked at.
        done: what `eval` of a workspace answers.
        max_tokens: the budget.
        words: other words for statuses.
        find_rest: the call of this profile that reads an artifact.
        get_more: how to see what is cut, and in no artifact.
        describe_unfinished: what this profile can do about a run that has not ended.
    """
    cells = done.cells
    page = Page(max_tokens)
    failed = next((place for place, cell in enumerate(cells) if cell.is_failure), None)
    if failed is None:
        page.head("Done." if done.done else "Not done yet.")
    else:
        error = cells[failed].error
        why = f" {quote_name(error.ename)}." if error else ""
        page.head(f"FAILED at cell {failed}: {cells[failed].status}.{why}")
    if not done.done:
        page.head(describe_unfinished(done.run))
    for place, cell in enumerate(cells):
        title = f" ({quote_name(cell.title, 80)})" if cell.title else ""
        seconds = "" if cell.status == "pending" else f" · {cell.seconds:.2f} s"
        status = words.get(cell.status, cell.status)
        if not page.say(f"cell {place}{title} · {status}{seconds}"):
            page.leave_out(f"{format_count(len(cells) - place, 'cell')}; {get_more}")
            break
        for note in cell.notes:
            page.say(f"  note: {shorten(note, 400)}")
        most = page.room // (len(cells) - place)
        await _show_said(
            caller, page, cell, place, most=most, find_rest=find_rest, get_more=get_more
        )
    names = ("title", "status", "seconds", "retried", "artifact", "state_kept")
    data = {
        "session": done.session,
        "run": done.run,
        "done": done.done,
        "cells": [
            {name: row[name] for name in names if name in row} | list_parts(cell)
            for row, cell in zip(to_facts(cells), cells, strict=True)
        ],
    }
    return page.to_result(data, is_error=failed is not None)


def list_parts(cell: Execution) -> dict[str, Any]:
    """What a cell displayed, as typed parts: JSON, pictures by their artifact, status events."""
    parts: list[dict[str, Any]] = [{"type": "json", "value": value} for value in cell.json]
    parts += [{"type": "image", **image} for image in cell.images]
    parts += [{"type": "status", "value": event} for event in cell.events]
    kept: list[dict[str, Any]] = []
    room = _MOST_PARTS
    for part in parts:
        room -= len(json.dumps(part, default=str))
        if room < 0:
            return {"outputs": kept, "outputs_left_out": len(parts) - len(kept)}
        kept.append(part)
    return {"outputs": kept} if kept else {}


async def _show_said(
    caller: ToolCaller,
    page: Page,
    cell: Execution,
    place: int,
    *,
    most: int,
    find_rest: Callable[[str], str],
    get_more: str,
) -> None:
    if cell.text:
        text = cell.text
        if cell.error is not None and _TRACEBACK in text:
            printed, mark, frames = text.rpartition(_TRACEBACK)
            text = printed + mark + fold_repeats(frames)
        cut = page.show(f"output of cell {place}", text, most, tail=2 / 3, label="")
        if cut or cell.truncated:
            where = get_more
            if cell.artifact:
                page.artifacts.append(cell.artifact)
                where = find_rest(cell.artifact)
            page.leave_out(f"parts of {format_count(cell.total_lines, 'line')}; {where}")
    for value in cell.json:
        shown = json.dumps(value, ensure_ascii=False)
        cut = page.show(f"JSON of cell {place}", shown, most)
        if cut:
            page.leave_out(f"{cut:,} characters of JSON; print the part that you need")
    for event in cell.events:
        page.show(f"status of cell {place}", json.dumps(event, ensure_ascii=False), most)
    for image in cell.images:
        artifact = image["artifact"]
        page.say(
            f"picture: {quote_name(image['mime'])}, {image['bytes']:,} bytes, artifact://{artifact}"
        )
        if artifact is not None:
            page.artifacts.append(artifact)
            if len(page.pictures) < IMAGES:
                page.pictures += await load_picture(caller, artifact, image["mime"], image["bytes"])


RUN = Tool(
    name="notebook_run",
    title="Run cells",
    description=(
        "Run cells of a notebook in its own kernel; outputs land in the file. Stops at the first "
        "error. Default: all code cells. Answers within `wait` seconds; a run that goes on has an "
        "id to follow or cancel."
    ),
    model=RunParams,
    call=run_notebook,
    effects="run",
    reference="notebookRun",
)


EVAL = Tool(
    name="eval",
    title="Run code",
    description=(
        "Run code that belongs to no notebook, in a session that keeps its state or in the kernel "
        "of `notebook`. Several cells run in order, and the first that fails is the last."
    ),
    model=EvalParams,
    call=run_code,
    effects="run",
    reference="eval",
)
