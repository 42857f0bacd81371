"""`eval`."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cellwright.tools.native.editing import DEADLINE, goes_on
from cellwright.tools.page import IMAGES, Page
from cellwright.tools.params import MaxTokens, Name, Params
from cellwright.tools.pictures import picture_of
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import counted, error_name, few, named, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.tools.tool import Caller

_SAME: Mapping[str, str] = MappingProxyType({})


class EvalShape(BaseModel):
    """One cell of code."""

    model_config = ConfigDict(extra="forbid")

    code: str
    language: Annotated[str, Field(description="Default Python")] = ""
    title: str = ""
    reset: Annotated[bool, Field(description="Fresh kernel first")] = False
    timeout: Annotated[float | None, Field(ge=0, le=1e6, description="Seconds; default 30")] = None


class EvalParams(Params):
    """Code that belongs to no notebook."""

    cells: Annotated[list[EvalShape], Field(min_length=1, max_length=200)]
    session: Annotated[Name, Field(description="Calls of one session share state")] = "default"
    kernel: Annotated[Name | None, Field(description="Kernelspec; default a plain Python")] = None
    answers: Annotated[list[str] | None, Field(description="Lines for input()")] = None
    wait: Annotated[float, Field(ge=0, le=3600, description="Answer by then")] = DEADLINE
    max_tokens: MaxTokens = 8000


async def call(caller: Caller, params: EvalParams) -> Answer:
    """Run code in a session."""
    options: dict[str, Any] = {"ask": caller.ask} if caller.ask is not None else {}
    options |= {"answers": params.answers} if params.answers else {}
    done = await caller.workspace.eval(
        [cell.model_dump() for cell in params.cells],
        session=params.session,
        kernel=params.kernel,
        detach=params.wait,
        progress=caller.progress,
        **options,
    )
    return await tell_eval(caller, done, params.max_tokens)


async def tell_eval(
    caller: Caller, done: dict[str, Any], max_tokens: int, words: Mapping[str, str] = _SAME
) -> Answer:
    """How each cell went and what it said, within a budget; `words` translates statuses."""
    rows = done["cells"]
    page = Page(max_tokens)
    failed = next((row for row in rows if row["status"] not in ("ok", "pending")), None)
    if failed is None:
        page.head("Done." if done["done"] else "Not done yet.")
    else:
        error = failed.get("error")
        why = f" {error_name(error)}." if error else ""
        page.head(f"FAILED at cell {rows.index(failed)}: {failed['status']}.{why}")
    if not done["done"]:
        page.head(goes_on(done["run"]))
    for place, row in enumerate(rows):
        title = f" ({one_line(row['title'], 80)})" if row["title"] else ""
        seconds = f" · {row['seconds']:.2f} s" if "seconds" in row else ""
        status = words.get(row["status"], row["status"])
        if not page.say(f"cell {place}{title} · {status}{seconds}"):
            page.leave_out(f"{counted(len(rows) - place, 'cell')}; give more max_tokens")
            break
        for note in row.get("notes", ()):
            page.say(f"  note: {one_line(note, 400)}")
        await _tell_said(caller, page, row, place, page.room // (len(rows) - place))
    names = ("title", "status", "seconds", "retried", "artifact", "state_kept")
    data = {
        "session": done["session"],
        "run": done["run"],
        "done": done["done"],
        "cells": [{name: row[name] for name in names if name in row} for row in few(rows)],
    }
    return Answer(page.text(), data, tuple(page.pictures), is_error=failed is not None)


async def _tell_said(
    caller: Caller, page: Page, row: dict[str, Any], place: int, most: int
) -> None:
    text = row.get("text", "")
    if text:
        cut = page.show(f"output of cell {place}", text, most, tail=2 / 3)
        if cut or row.get("truncated"):
            artifact = row.get("artifact")
            where = f"notebook_outputs with artifact=artifact://{artifact}" if artifact else ""
            where = where or "give more max_tokens, or print less"
            page.leave_out(f"parts of {counted(row.get('total_lines', 0), 'line')}; {where}")
    for value in row.get("json", ()):
        shown = json.dumps(value, ensure_ascii=False)
        cut = page.show(f"JSON of cell {place}", shown, most)
        if cut:
            page.leave_out(f"{cut:,} characters of JSON")
    for image in row.get("images", ()):
        artifact = image["artifact"]
        page.say(
            f"picture: {named(image['mime'])}, {image['bytes']:,} bytes, artifact://{artifact}"
        )
        if artifact is not None and len(page.pictures) < IMAGES:
            page.pictures += await picture_of(caller, artifact, image["mime"], image["bytes"])


EVAL = Tool(
    name="eval",
    title="Run code",
    description=(
        "Run code that belongs to no notebook, in a session that keeps its state. Several cells "
        "run in order, and the first that fails is the last."
    ),
    model=EvalParams,
    call=call,
    effects="run",
    reference="eval",
)
