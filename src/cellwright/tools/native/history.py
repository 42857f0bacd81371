"""`notebook_history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cellwright.tools.page import Page
from cellwright.tools.params import InvalidParameters, MaxTokens, Name, Params, Path
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import counted, few, named, one_line

if TYPE_CHECKING:
    from cellwright.tools.tool import Caller


class HistoryParams(Params):
    """What to look at, or take back."""

    path: Path
    action: Literal["log", "diff", "undo", "redo", "restore"] = "log"
    change: Annotated[
        Name | None, Field(description="Change id; undo: yours, newest; restore: also `first`")
    ] = None
    to: Annotated[Name | None, Field(description="diff: the other state; default now")] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 20
    max_tokens: MaxTokens = 4000


async def call(caller: Caller, params: HistoryParams) -> Answer:
    """Look at the history, or go back in it."""
    book = caller.workspace.open(params.path)
    if params.action == "log":
        return _log(params, await book.log(params.limit))
    if params.action == "diff":
        found = await book.diff(params.change, params.to)
        return _diff(params, found, f"{counted(len(found['cells']), 'cell')} differ.")
    if params.action == "restore":
        if params.change is None:
            raise InvalidParameters("restore needs `change`", hint="log tells the ids; or `first`")
        done = await book.restore(params.change)
    elif params.action == "undo":
        done = await book.undo(params.change)
    else:
        done = await book.redo(params.change)
    words = {"undo": "Undone", "redo": "Done again", "restore": "Restored"}
    said = (
        f"{words[params.action]}: revision {done['revision']}, change {done['change']}. "
        "Outputs came back too; what the kernel did, stays done."
    )
    if not done["changed"]:
        said = f"Nothing changed: it is so already. Revision {done['revision']}."
    return _diff(params, done, said)


def _log(params: HistoryParams, entries: list[dict[str, Any]]) -> Answer:
    page = Page(params.max_tokens)
    page.head(f"{counted(len(entries), 'change')} of {one_line(params.path)}, the newest first.")
    rows: list[str] = []
    room = page.room - 200
    for entry in entries:
        label = one_line(entry.get("label") or "")
        row = f"{entry['id']} · {entry['when']} · {one_line(entry['actor'])} · {entry['kind']} {label}"
        room -= len(row) + 1
        if room < 0:
            break
        rows.append(row)
    if rows:
        page.show("changes: id, when, who, what", "\n".join(rows))
    if len(rows) < len(entries):
        page.leave_out(f"{counted(len(entries) - len(rows), 'change')}; raise max_tokens")
    elif len(entries) == params.limit:
        page.leave_out("perhaps older changes; raise limit")
    names = ("id", "when", "actor", "kind", "label")
    changes = [
        {name: one_line(str(entry[name])) for name in names if entry.get(name) is not None}
        for entry in few(entries[: len(rows)])
    ]
    return Answer(page.text(), {"path": params.path, "changes": changes})


def _diff(params: HistoryParams, done: dict[str, Any], said: str) -> Answer:
    page = Page(params.max_tokens)
    page.head(said)
    page.say_all(
        [f"{cell['kind']}: id {named(cell['handle'])} · {cell['type']}" for cell in done["cells"]],
        "cells",
    )
    cut = page.show("diff", done["diff"]) if done["diff"] else 0
    if cut:
        page.leave_out(f"{cut:,} characters of the diff; raise max_tokens")
    names = ("path", "before", "revision", "change", "changed", "saved")
    data = {name: done[name] for name in names if name in done}
    return Answer(page.text(), {**data, "cells": few(done["cells"])})


HISTORY = Tool(
    name="notebook_history",
    title="History of a notebook",
    description="The changes of a notebook.",
    model=HistoryParams,
    call=call,
    effects={"log": "read", "diff": "read", "undo": "edit", "redo": "edit", "restore": "edit"},
    words={
        "log": "who changed what, and when",
        "diff": "what differs since `change`",
        "undo": "take back, outputs included",
        "redo": "make it again",
        "restore": "bring back a state",
    },
    reference="notebookHistory",
)
