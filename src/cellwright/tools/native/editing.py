"""`notebook_edit` and `notebook_history`: change a notebook, and look at its changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema  # noqa: TC002  # pydantic reads it

from cellwright.document.edits import EDITS
from cellwright.document.outputs import join_lines
from cellwright.tools.page import Page
from cellwright.tools.params import (
    DEADLINE,
    MAY_BE_EMPTY,
    CellName,
    Flag,
    InvalidParameters,
    JsonObject,
    MaxTokens,
    Name,
    Params,
    Path,
    Timeout,
)
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import (
    MOST_ROWS,
    describe_unfinished_run,
    format_count,
    name_cell_type,
    others_lines,
    quote_name,
    quote_path,
    run_facts,
    shorten,
    show_run,
    summarize_run,
    to_facts,
)

if TYPE_CHECKING:
    from cellwright.journal.history import Entry
    from cellwright.tools.tool import ToolCaller
    from cellwright.workspace.api.answers import CellChangeView, DiffAnswer, EditAnswer, StaleCell


_NOTHING: tuple[Any, ...] = ("", [], {}, 0, False)
_OPS: list[Any] = [op for op in EDITS if op != "splice"]  # which is for programs

Op = Literal[
    "replace",
    "replace_text",
    "insert",
    "delete",
    "move",
    "split",
    "merge",
    "set_type",
    "set_metadata",
    "clear_outputs",
    "splice",
]


class EditItem(Params):
    """One edit; which fields it has depends on `op`.

    The schema leaves out the fields that only programs need, and those whose empty value would
    change something: some APIs make a model give every field.
    """

    op: Annotated[Op, Field(json_schema_extra={"enum": _OPS})]
    cell: Annotated[CellName | None, Field(description="Id or 0-based index")] = None
    cells: Annotated[
        list[CellName | dict[str, Any]] | None,
        Field(description="merge, clear_outputs"),
        WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    ] = None
    # Notebooks write a source as a list of lines, so models often send one.
    source: Annotated[
        str | None, MAY_BE_EMPTY, BeforeValidator(join_lines), Field(description="replace, insert")
    ] = None
    type: Annotated[
        str | None, Field(description="insert, set_type: code (default), markdown, raw")
    ] = None
    old: Annotated[str | None, Field(description="replace_text: must occur once")] = None
    new: Annotated[str | None, MAY_BE_EMPTY] = None
    after: Annotated[CellName | None, Field(description="insert, move; none = the end")] = None
    before: CellName | None = None
    line: Annotated[int | None, Field(description="split after it")] = None
    metadata: Annotated[
        JsonObject | None, Field(description="set_metadata: JSON object to merge")
    ] = None
    outputs: Annotated[str | None, Field(description="replace: clear, or keep (default)")] = None
    expect: Annotated[str | None, Field(description="The cell's hash when read")] = None
    at: SkipJsonSchema[int | None] = None
    count: SkipJsonSchema[int | None] = None
    id: SkipJsonSchema[str | None] = None
    merge: SkipJsonSchema[bool | None] = None
    start: SkipJsonSchema[int | None] = None
    delete_count: SkipJsonSchema[int | None] = None

    def to_json(self) -> dict[str, Any]:
        """As the edits of the document have it, without empty fields that `op` does not have."""
        given = self.model_dump(exclude_none=True)
        known = {"op", *EDITS[self.op].__slots__}
        return {
            name: value
            for name, value in given.items()
            if name in known or (value not in _NOTHING and name not in ("type", "outputs"))
        }


class EditParams(Params):
    """What to change, and what to run after it."""

    path: Path
    edits: Annotated[
        list[EditItem],
        Field(
            min_length=1,
            max_length=1000,
            description="All or nothing; every reference means the notebook before the list",
        ),
    ]
    run: Annotated[
        Literal["none", "changed", "stale"],
        Field(description="Run the changed cells, or all stale ones"),
    ] = "none"
    base: Annotated[Name | None, Field(description="Revision you read; refuses lost updates")] = (
        None
    )
    dry_run: Annotated[Flag, Field(description="Only show the diff")] = False
    create: Annotated[Flag, Field(description="Make the notebook if missing")] = False
    timeout: Timeout = None
    max_tokens: MaxTokens = 8000


async def edit_notebook(caller: ToolCaller, params: EditParams) -> ToolResult:
    """Apply the edits, and perhaps run cells; one answer for both."""
    book = caller.workspace.open(params.path)
    options: dict[str, Any] = {}
    if params.run != "none":
        options = {"run": params.run, "detach": DEADLINE, **caller.run_options()}
        options |= {"timeout": params.timeout} if params.timeout is not None else {}
    done = await book.edit(
        [edit.to_json() for edit in params.edits],
        base=params.base,
        dry_run=params.dry_run,
        create=params.create,
        label=", ".join(dict.fromkeys(edit.op for edit in params.edits)),
        **options,
    )
    return await asyncio.to_thread(_describe_edit, params, done)  # it may decode pictures


def _describe_edit(params: EditParams, done: EditAnswer) -> ToolResult:
    page = Page(params.max_tokens)
    path = quote_path(params.path, 100)
    if not done.changed:
        page.head(
            f"Nothing changed in {path}: it has that content already. Revision {done.revision}."
        )
    elif not done.saved:
        page.head(f"DRY RUN: nothing was changed in {path}.")
    else:
        page.head(
            f"Edited {path}, saved and read back. Revision {done.revision}, change {done.change}."
        )
    executions = done.executions
    if executions is not None:
        page.head(summarize_run(executions))
        if not done.done:
            page.head(describe_unfinished_run(done.run or ""))
    names = ("path", "before", "revision", "change", "changed", "saved", "host")
    data = {name: getattr(done, name) for name in names}
    data["cells"] = to_facts(done.cells)
    _show_change(page, params, done)
    if executions is None:
        return page.to_result(data)
    show_run(page, executions, params.path)
    stale = done.stale or []
    page.say_all([_stale_cell_line(cell) for cell in stale], "stale cells")
    data |= {"executions": run_facts(executions), "stale": to_facts(stale)}
    data |= {"run": done.run, "done": done.done}
    return page.to_result(
        data, is_error=any(each.is_failure or each.is_unsaved for each in executions)
    )


def _show_change(page: Page, params: EditParams, done: EditAnswer) -> None:
    """Show what was changed; the diff takes half of the page at most."""
    page.say_all([_changed_cell_line(cell) for cell in done.cells[:MOST_ROWS]], "changed cells")
    if len(done.cells) > MOST_ROWS:
        page.leave_out(f"{len(done.cells) - MOST_ROWS:,} changed cells; notebook_history has all")
    for warning in done.warnings:
        page.say(f"warning: {shorten(warning, 400)}")
    for line in others_lines(done.others):
        page.say(line)
    if done.diff:
        cut = page.show("diff", done.diff, page.room // 2, tail=0.4)
        if cut:
            more = "a larger max_tokens" if params.dry_run else "notebook_history with action=diff"
            page.leave_out(f"{cut:,} characters of the diff; {more} shows them")


def _changed_cell_line(cell: CellChangeView) -> str:
    place = cell.after if cell.after is not None else f"was {cell.before}"
    return f"{cell.kind}: cell {place} · id {quote_name(cell.handle)} · {name_cell_type(cell.type)}"


def _stale_cell_line(cell: StaleCell) -> str:
    why = shorten(cell.reason or "")
    return f"still stale: cell {cell.index} ({quote_name(cell.cell)}): {why}"


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


async def use_history(caller: ToolCaller, params: HistoryParams) -> ToolResult:
    """Look at the history, or go back in it."""
    book = caller.workspace.open(params.path)
    if caller.is_shared and params.change is None and params.action in ("undo", "redo"):
        raise _ask_for_change(params.action, await book.log(1))
    if params.action == "log":
        return _describe_log(params, await book.log(params.limit))
    if params.action == "diff":
        found = await book.diff(params.change, params.to)
        said = f"{format_count(len(found.cells), 'changed cell')}."
        return _describe_diff(params, found, said)
    if params.action == "restore":
        if params.change is None:
            raise InvalidParameters("restore needs `change`", hint="log tells the ids; or `first`")
        done = await book.restore(params.change)
    elif params.action == "undo":
        done = await book.undo(params.change)
    else:
        done = await book.redo(params.change)
    words = {"undo": "Undone", "redo": "Redone", "restore": "Restored"}
    said = (
        f"{words[params.action]}: revision {done.revision}, change {done.change}. "
        "Outputs came back too; the kernel's state was not undone."
    )
    if not done.changed:
        said = f"Nothing changed: it has that content already. Revision {done.revision}."
    return _describe_diff(params, done, said)


def _ask_for_change(action: str, newest: list[Entry]) -> InvalidParameters:
    """The refusal for a client that cannot be told from others: its own changes are not known."""
    message = f"{action} needs `change` here: this connection does not say which client it is"
    if not newest:
        return InvalidParameters(message)
    last = newest[0]
    made = f"{last.id} by {quote_name(last.actor)}: {last.kind} {shorten(last.label, 60)}"
    return InvalidParameters(message, hint=f"The newest change is {made}")


def _describe_log(params: HistoryParams, entries: list[Entry]) -> ToolResult:
    page = Page(params.max_tokens)
    page.head(
        f"{format_count(len(entries), 'change')} of {quote_path(params.path)}, the newest first."
    )
    shown = page.show_rows("changes: id, when, who, what", [_entry_row(each) for each in entries])
    if shown < len(entries):
        page.leave_out(f"{format_count(len(entries) - shown, 'change')}; raise max_tokens")
    elif len(entries) == params.limit:
        page.leave_out("perhaps older changes; raise limit")
    names = ("id", "when", "actor", "kind", "label")
    changes = [
        {name: shorten(getattr(entry, name)) for name in names}
        for entry in entries[: min(shown, MOST_ROWS)]
    ]
    return page.to_result({"path": params.path, "changes": changes})


def _entry_row(entry: Entry) -> str:
    label, who = shorten(entry.label), shorten(entry.actor)
    return f"{entry.id} · {entry.when} · {who} · {entry.kind} {label}".rstrip()


def _describe_diff(params: HistoryParams, done: DiffAnswer, said: str) -> ToolResult:
    page = Page(params.max_tokens)
    page.head(said)
    page.say_all([_changed_cell_line(cell) for cell in done.cells], "cells")
    cut = page.show("diff", done.diff, tail=0.4) if done.diff else 0
    if cut:
        page.leave_out(f"{cut:,} characters of the diff; raise max_tokens")
    names = ("path", "before", "revision", "change", "changed", "saved")
    data = {name: getattr(done, name) for name in names if name in done.FIELDS}
    return page.to_result({**data, "cells": to_facts(done.cells)})


EDIT = Tool(
    name="notebook_edit",
    title="Edit a notebook",
    description=(
        "Apply edits to a notebook, all or nothing, keeping every other byte; optionally run the "
        "changed or stale cells in the same call. Outputs land in the file. Undo with "
        "notebook_history."
    ),
    model=EditParams,
    call=edit_notebook,
    effects="edit",
    options={"run": {"none": "edit", "changed": "run", "stale": "run"}},
    reference="notebookEdit",
    tags=frozenset({"destructive"}),
)


HISTORY = Tool(
    name="notebook_history",
    title="History of a notebook",
    description="The changes of a notebook.",
    model=HistoryParams,
    call=use_history,
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
