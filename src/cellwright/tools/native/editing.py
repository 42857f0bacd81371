"""`notebook_edit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cellwright.tools.page import Page
from cellwright.tools.params import CellName, Flag, MaxTokens, Name, Params, Path, Timeout
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import (
    MOST_ROWS,
    few,
    is_failure,
    named,
    one_line,
    others_lines,
    run_facts,
    summary,
    tell_run,
)

if TYPE_CHECKING:
    from cellwright.tools.tool import Caller

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


class EditShape(BaseModel):
    """One edit; which fields it has depends on `op`."""

    model_config = ConfigDict(extra="forbid")

    op: Op
    cell: Annotated[CellName | None, Field(description="Id or 0-based index")] = None
    cells: list[Any] | None = None
    source: Annotated[str | None, Field(description="replace, insert")] = None
    type: Literal["code", "markdown", "raw"] | None = None
    old: Annotated[str | None, Field(description="replace_text: must occur once")] = None
    new: str | None = None
    count: int | None = None
    after: Annotated[CellName | None, Field(description="insert, move; none = the end")] = None
    before: CellName | None = None
    at: int | None = None
    id: str | None = None
    line: Annotated[int | None, Field(description="split before it")] = None
    metadata: dict[str, Any] | None = None
    merge: bool | None = None
    outputs: Annotated[
        Literal["keep", "clear"] | None, Field(description="replace; default keep")
    ] = None
    start: Annotated[int | None, Field(description="splice")] = None
    delete_count: int | None = None
    expect: Annotated[str | None, Field(description="The cell's hash when read")] = None

    def to_json(self) -> dict[str, Any]:
        """As the edits of the document have it."""
        return self.model_dump(exclude_none=True)


class EditParams(Params):
    """What to change, and what to run after it."""

    path: Path
    edits: Annotated[
        list[EditShape],
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


async def call(caller: Caller, params: EditParams) -> Answer:
    """Apply the edits, and perhaps run cells; one answer for both."""
    book = caller.workspace.open(params.path)
    options: dict[str, Any] = {}
    if params.run != "none":
        options = {"run": params.run, "progress": caller.progress, "detach": DEADLINE}
        options |= {"timeout": params.timeout} if params.timeout is not None else {}
        options |= {"ask": caller.ask} if caller.ask is not None else {}
    done = await book.edit(
        [edit.to_json() for edit in params.edits],
        base=params.base,
        dry_run=params.dry_run,
        create=params.create,
        label=_label(params),
        **options,
    )
    return _tell(params, done)


DEADLINE = 45.0
"""Seconds until an answer comes although cells still run: clients give up after a minute."""


def _label(params: EditParams) -> str:
    return ", ".join(dict.fromkeys(edit.op for edit in params.edits))


def _tell(params: EditParams, done: dict[str, Any]) -> Answer:
    page = Page(params.max_tokens)
    path = one_line(params.path, 100)
    if not done["changed"]:
        page.head(f"Nothing changed in {path}; it says that already. Revision {done['revision']}.")
    elif not done["saved"]:
        page.head(f"DRY RUN: nothing was changed in {path}.")
    else:
        page.head(
            f"Edited {path}, saved and read back. Revision {done['revision']}, change {done['change']}."
        )
    rows = done.get("executions")
    if rows is not None:
        page.head(summary(rows))
        if not done["done"]:
            page.head(goes_on(done["run"]))
    names = ("path", "before", "revision", "change", "changed", "saved", "host")
    data = {name: done[name] for name in names}
    data["cells"] = few(done["cells"])
    _tell_change(page, params, done)
    if rows is None:
        return Answer(page.text(), data)
    tell_run(page, rows, params.path)
    page.say_all([_stale_line(cell) for cell in done["stale"]], "stale cells")
    data |= {"executions": run_facts(rows), "stale": few(done["stale"])}
    data |= {"run": done["run"], "done": done["done"]}
    failed = any(map(is_failure, rows))
    return Answer(page.text(), data, tuple(page.pictures), is_error=failed)


def _tell_change(page: Page, params: EditParams, done: dict[str, Any]) -> None:
    """What was changed; the half of the page at most, if cells were run, too."""
    page.say_all([_cell_line(cell) for cell in done["cells"][:MOST_ROWS]], "changed cells")
    if len(done["cells"]) > MOST_ROWS:
        page.leave_out(
            f"{len(done['cells']) - MOST_ROWS:,} changed cells; notebook_history has all"
        )
    for warning in done["warnings"]:
        page.say(f"warning: {one_line(warning, 400)}")
    for line in others_lines(done["others"]):
        page.say(line)
    if done["diff"]:
        most = page.room // 2
        if len(done["diff"]) <= most or params.dry_run:
            cut = page.show("diff", done["diff"], most)
            more = "a larger max_tokens shows more"
        else:
            cut = len(done["diff"])
            more = "notebook_history with action=diff shows it"
        if cut:
            page.leave_out(f"{cut:,} characters of the diff; {more}")


def goes_on(run: str) -> str:
    """What to do about a run that has not ended."""
    return f"It still runs, as {run}: notebook_run with run={run} waits on, cancel=true stops it."


def _cell_line(cell: dict[str, Any]) -> str:
    place = cell["after"] if cell["after"] is not None else f"was {cell['before']}"
    return f"{cell['kind']}: cell {place} · id {named(cell['handle'])} · {cell['type']}"


def _stale_line(cell: dict[str, Any]) -> str:
    why = one_line(cell["reason"] or "")
    return f"still stale: cell {cell['index']} ({named(cell['cell'])}): {why}"


EDIT = Tool(
    name="notebook_edit",
    title="Edit a notebook",
    description=(
        "Apply edits to a notebook, all or nothing, keeping every other byte; optionally run the "
        "changed or stale cells in the same call. Outputs land in the file. Undo with "
        "notebook_history."
    ),
    model=EditParams,
    call=call,
    effects="edit",
    options={"run": {"none": "edit", "changed": "run", "stale": "run"}},
    reference="notebookEdit",
    tags=frozenset({"destructive"}),
)
