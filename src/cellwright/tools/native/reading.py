"""`notebook_list`, `notebook_read` and `notebook_outputs`: look at notebooks and change nothing."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cellwright.errors import Conflict, InvalidCell, OutputError
from cellwright.outputs.charts.drawing import DrawingTime
from cellwright.outputs.describe import describe
from cellwright.outputs.sanitize import one_line
from cellwright.text.selection import select
from cellwright.text.view import render_text
from cellwright.tools.fence import make_readable
from cellwright.tools.page import Page
from cellwright.tools.params import Cells, InvalidParameters, MaxTokens, Name, Params, Path
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import (
    MOST_ROWS,
    cell_line,
    find_similar_paths,
    format_count,
    others_lines,
    person_line,
    quote_name,
    quote_path,
    shorten,
    to_facts,
)
from cellwright.workspace.runs.choice import choose_cells
from cellwright.workspace.status import describe_notebook

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.document.outputs import Output
    from cellwright.outputs.images import ModelImage
    from cellwright.text.view import TextView
    from cellwright.tools.tool import ToolCaller
    from cellwright.workspace.api.answers import CellView, OutlineRow, ReadAnswer
    from cellwright.workspace.workspace import AsyncBook


_LEAST_OUTPUT = 240

_ATTEMPTS = 5

_FAILED = ("error", "died", "timed_out", "cancelled")

_EVERYTHING = 10**8

_LARGEST_PICTURE = 20_000_000
_SMALL = 2000  # characters of source that need no number: all of them are shown


class ListParams(Params):
    """Which notebooks."""

    match: Annotated[str, Field(description="Part of the path")] = ""
    max_tokens: MaxTokens = 2000


async def list_notebooks(caller: ToolCaller, params: ListParams) -> ToolResult:
    """The notebooks below the root."""
    every = await caller.workspace.list()
    found = [row for row in every if params.match.lower() in row.path.lower()]
    page = Page(params.max_tokens)
    page.head(f"{format_count(len(found), 'notebook')}{' match' if params.match else ''}.")
    if every and not found:
        near = find_similar_paths(params.match, [row.path for row in every])
        found = [row for row in every if row.path in near] or every[:10]
        page.head(f"Of {format_count(len(every), 'notebook')} in all, some others:")
    rows = [
        f"{one_line(row.path)}  {row.size:,} bytes"
        + (f"  {person_line(row.person)}" if row.person is not None else "")
        for row in found
    ]
    shown = page.show_rows("paths", rows)
    left = len(found) - shown
    if left:
        page.leave_out(f"{format_count(left, 'notebook')}; narrow with match, or raise max_tokens")
    data = {"notebooks": to_facts(found[:shown]), "total": len(found)}
    return page.to_result(data)


class ReadParams(Params):
    """What to read of a notebook."""

    path: Path
    view: Annotated[
        Literal["cells", "text", "outline"],
        Field(description="text: one marker line per cell; outline: headings and sizes"),
    ] = "cells"
    cells: Cells = None
    section: Annotated[str | None, Field(description="Only what is under this heading")] = None
    only: Annotated[Literal["all", "errors", "stale"], Field(description="Only such cells")] = "all"
    search: Annotated[str | None, Field(description="Only cells with this text")] = None
    outputs: Annotated[bool, Field(description="With outputs and pictures")] = False
    offset: Annotated[int, Field(ge=0, description="Skip characters of a long cell")] = 0
    max_tokens: MaxTokens = 8000


async def read_notebook(caller: ToolCaller, params: ReadParams) -> ToolResult:
    """The notebook, or a part of it, within the budget."""
    book = caller.workspace.open(params.path)
    if params.view == "outline":
        return await _read_outline(params, book)
    found, notebook = await read_consistently(book)
    every = found.cells
    view = render_text(notebook) if params.view == "text" or params.section is not None else None
    chosen = _choose_cells(params, notebook, view, every)
    page = Page(params.max_tokens, draws=False)  # reading is never slow; notebook_outputs draws
    characters = sum(len(cell.source) for cell in every)
    size = f", {characters:,} characters of source" if characters > _SMALL else ""
    showing = f" · showing {len(chosen)}" if len(chosen) < len(every) else ""
    page.head(
        f"{quote_path(params.path, 100)} · revision {found.revision} · "
        f"{format_count(len(every), 'cell')}{size}{showing}"
    )
    if every and not chosen:
        page.head("No cell matches.")
    if found.person is not None:
        page.say(f"It is {person_line(found.person)}")
    for line in others_lines(found.others):
        page.say(line)
    if found.staleness is not None:
        page.say("Which results are stale is not analysed: it would take too long.")
    shown = await asyncio.to_thread(
        _show_cells, page, params, chosen, notebook, view if params.view == "text" else None
    )
    data: dict[str, Any] = {
        "path": params.path,
        "revision": found.revision,
        "total_cells": len(every),
        "cells": [_cell_facts(cell) for cell in chosen[: min(shown, MOST_ROWS)]],
        "left_out": len(chosen) - shown,
    }
    if found.person is not None:
        data["person"] = to_facts([found.person])[0]
    return page.to_result(data)


async def _read_outline(params: ReadParams, book: AsyncBook) -> ToolResult:
    found = await book.select("outline")
    page = Page(params.max_tokens)
    page.head(
        f"{quote_path(params.path, 100)} · revision {found.revision} · "
        f"{format_count(found.total_cells or 0, 'cell')}, {found.total_lines:,} lines"
    )
    # A cell that begins with its heading is there as that heading.
    headed = {entry.cell for entry in found.outline if entry.kind == "heading"}
    entries = [
        entry for entry in found.outline if entry.kind == "heading" or entry.cell not in headed
    ]
    rows = [_outline_row(entry) for entry in entries]
    left = len(rows) - page.show_rows("outline: index, id, lines, title", rows)
    if left:
        page.leave_out(f"{left:,} entries; raise max_tokens, or use search")
    return page.to_result(
        {
            "path": params.path,
            "revision": found.revision,
            "total_cells": found.total_cells,
            "total_lines": found.total_lines,
        }
    )


def _outline_row(entry: OutlineRow) -> str:
    mark = "#" * entry.level if entry.kind == "heading" else entry.type
    outputs = " +outputs" if entry.has_outputs and entry.kind == "cell" else ""
    title = shorten(entry.title, 100)
    name = "" if entry.handle == f"cell-{entry.cell}" else f" {shorten(entry.handle, 64)}"
    return f"{entry.cell}{name} {entry.first}-{entry.last}{outputs} {mark} {title}"


async def read_consistently(book: AsyncBook) -> tuple[ReadAnswer, Notebook]:
    """The status of the cells, and the notebook itself, of the same moment."""
    for _ in range(_ATTEMPTS):
        try:
            found = await book.read(stale=True)
        except InvalidCell:  # one broken cell must not hide the others
            notebook = await book.load()
            return describe_notebook(notebook, book.name), notebook
        notebook = await book.load()
        if notebook.revision == found.revision:
            return found, notebook
    raise Conflict("The notebook changes faster than it can be read")


def _choose_cells(
    params: ReadParams, notebook: Notebook, view: TextView | None, cells: list[CellView]
) -> list[CellView]:
    wanted: set[int] | None = None
    if params.cells is not None:
        wanted = {cell.index for cell in choose_cells(notebook, params.cells)}
    if params.section is not None and view is not None:
        found = select(view, f"section={params.section}")
        numbers = [line.number for line in found.lines if not line.context]
        inside = {each.cell.index for each in map(view.cell_at, numbers) if each is not None}
        wanted = inside if wanted is None else wanted & inside
    chosen = [cell for cell in cells if wanted is None or cell.index in wanted]
    if params.only == "errors":
        chosen = [cell for cell in chosen if cell.status in _FAILED]
    elif params.only == "stale":
        chosen = [cell for cell in chosen if cell.stale or cell.status == "never"]
    if params.search is not None:
        needle = params.search.lower()
        chosen = [cell for cell in chosen if needle in cell.source.lower()]
    return chosen


def _show_cells(
    page: Page,
    params: ReadParams,
    cells: list[CellView],
    notebook: Notebook,
    view: TextView | None,
) -> int:
    """Show the cells; returns how many of them are on the page."""
    rest = sum(len(cell.source) + 250 for cell in cells)  # what the sources to come will take
    shortened: list[int] = []
    shown = len(cells)
    for place, cell in enumerate(cells):
        source, name = cell.source, f"source of {cell.handle}"
        rest -= len(source) + 250
        if view is not None:
            lines = view.cells[cell.index]
            source = "\n".join(view.lines[lines.marker - 1 : lines.last])
            name = f"lines {lines.marker}-{lines.last}"
        if place and not page.fits(cell_line(cell) + source[params.offset :]):
            _leave_out(page, cells[place:])
            shown = place
            break
        source = make_readable(source)[params.offset :]  # offsets count what is shown
        if view is None:  # else the markers say which cell it is
            page.say(cell_line(cell))
        cut = page.show(name, source, cell=cell.handle, label="")
        if cut:
            offset = params.offset + len(source) - cut
            one = f"cells=[{json.dumps(cell.index)}]"
            page.leave_out(f"{cut:,} characters of cell {cell.index}; {one}, offset={offset}")
        outputs = _outputs_of(notebook, cell) if params.outputs else ()
        if outputs:
            share = max(_LEAST_OUTPUT, (page.room - rest) // (len(cells) - place))
            if not page.show_outputs(cell.handle, outputs, share, label="outputs"):
                shortened.append(cell.index)
    if shortened:
        page.leave_out(f"parts of outputs; notebook_outputs with cells={shortened[:20]}")
    return shown


def _outputs_of(notebook: Notebook, cell: CellView) -> Sequence[Output]:
    there = notebook.cells[cell.index]
    return there.outputs if there.type == "code" and not there.problem else ()


def _leave_out(page: Page, cells: list[CellView]) -> None:
    first, last = cells[0].index, cells[-1].index
    if last - first + 1 == len(cells):
        which = json.dumps([f"{first}-{last}" if len(cells) > 1 else first])
    else:
        which = json.dumps([cell.index for cell in cells[:20]])
    page.leave_out(f"{format_count(len(cells), 'cell')}; cells={which}, or a larger max_tokens")


def _cell_facts(cell: CellView) -> dict[str, Any]:
    names = ("index", "id", "handle", "type", "hash", "execution_count", "status", "stale")
    shape = cell.to_json()
    facts = {name: shape[name] for name in names if name in shape}
    return {
        name: shorten(value, 100) if isinstance(value, str) else value
        for name, value in facts.items()
    }


class OutputsParams(Params):
    """Whose outputs, or which artifact."""

    path: Path = ""
    cells: Cells = None
    artifact: Annotated[Name | None, Field(description="artifact://ID, read in parts")] = None
    offset: Annotated[
        int, Field(ge=0, le=2**53, description="Bytes into the artifact, or into one cell's text")
    ] = 0
    limit: Annotated[int, Field(ge=1, le=1_000_000, description="Bytes of it")] = 16_000
    max_tokens: MaxTokens = 8000

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not self.path and self.artifact is None:
            raise ValueError("give a path, or an artifact")
        return self


async def read_outputs(caller: ToolCaller, params: OutputsParams) -> ToolResult:
    """What cells printed, showed and raised; or a part of an artifact."""
    if params.artifact is not None:
        return await _read_artifact(caller, params, params.artifact)
    notebook = await caller.workspace.open(params.path).load()
    if params.cells is not None:
        chosen = [cell for cell in choose_cells(notebook, params.cells) if cell.type == "code"]
    else:
        code = (cell for cell in notebook.cells if cell.type == "code")
        chosen = [cell for cell in code if cell.output_types or cell.outputs]
    if params.offset and len(chosen) != 1:
        raise InvalidParameters(
            "`offset` is for the outputs of one cell", hint="Name it in `cells`"
        )
    page = Page(params.max_tokens)
    page.head(f"{quote_path(params.path, 100)} · outputs of {format_count(len(chosen), 'cell')}")
    shown = 1
    if params.offset:
        end = show_part(page, chosen[0], params.offset, params.limit)
        if end is not None:
            page.leave_out(f"the rest; continue with offset={end}")
    else:  # off the loop, because it may decode pictures
        shown = await asyncio.to_thread(_show_outputs, page, chosen)
    data = {
        "path": params.path,
        "cells": [shorten(cell.handle, 100) for cell in chosen[: min(shown, MOST_ROWS)]],
        "left_out": len(chosen) - shown,
    }
    return page.to_result(data)


def _show_outputs(page: Page, cells: Sequence[Cell]) -> int:
    """Show the outputs of cells; returns of how many."""
    shortened: list[int] = []
    shown = len(cells)
    for place, cell in enumerate(cells):
        if place and page.room < _LEAST_OUTPUT * 3:
            rest = [each.index for each in cells[place : place + 20]]
            page.leave_out(f"{format_count(len(cells) - place, 'cell')}; cells={json.dumps(rest)}")
            shown = place
            break
        page.say(
            f"cell {cell.index} · id {quote_name(cell.handle)} · {format_count(len(cell.outputs), 'output')}"
        )
        share = max(_LEAST_OUTPUT, page.room // (len(cells) - place))
        if cell.outputs and not page.show_outputs(cell.handle, cell.outputs, share):
            shortened.append(cell.index)
    if shortened:
        one = f"cells=[{shortened[0]}] with offset=1 begins with all of it"
        page.leave_out(f"parts of outputs of cells {shortened[:20]}; {one}, or raise max_tokens")
    return shown


def show_part(page: Page, cell: Cell, offset: int, limit: int = _EVERYTHING) -> int | None:
    """Show a part of all that one cell said; returns where the rest begins, if there is any."""
    whole = make_readable(describe(cell.outputs, _EVERYTHING, images=0).text)
    part = whole[offset : offset + min(limit, page.room - 200)]
    cut = page.show(f"outputs of {cell.handle} from {offset}", part)
    end = offset + len(part) - cut
    return end if end < len(whole) else None


async def _read_artifact(caller: ToolCaller, params: OutputsParams, artifact: str) -> ToolResult:
    page = Page(params.max_tokens)
    limit = max(1, min(params.limit, page.room - 200))
    part = await caller.workspace.artifact(artifact, params.offset, limit)
    names = ("id", "mime", "size", "sha256", "offset", "next_offset")
    data = {name: getattr(part, name) for name in names}
    page.artifacts.append(part.id)
    page.head(f"artifact://{quote_name(part.id)} · {quote_name(part.mime)} · {part.size:,} bytes")
    if part.text is None:
        picture = await load_picture(caller, artifact, part.mime, part.size)
        page.head("shown as an image" if picture else "not text, and no image that can be shown")
        page.pictures += picture
        return page.to_result(data)
    text = part.text
    if not page.fits(text):
        text = text[: page.count_fitting(text)]
        data["next_offset"] = part.offset + len(text.encode())
    cut = page.show("part of an artifact", text)
    if cut:  # what is hidden in it takes more room once it is visible
        page.leave_out(f"{cut:,} characters; ask with a smaller limit")
    elif data["next_offset"] is not None:
        page.leave_out(f"the rest; continue with offset={data['next_offset']}")
    return page.to_result(data)


async def load_picture(
    caller: ToolCaller, artifact: str, mime: str, total: int
) -> tuple[ModelImage, ...]:
    """The picture that an artifact holds, scaled; nothing if there is none to show."""
    if not mime.startswith("image/") or total > _LARGEST_PICTURE:
        return ()
    try:
        whole = await caller.workspace.artifact(artifact, 0, total)
    except OutputError:
        return ()  # it made room for others meanwhile
    data = whole.base64 or whole.text
    shown = {"output_type": "display_data", "metadata": {}, "data": {mime: data}}
    found = await asyncio.to_thread(describe, [shown], 100, images=1, drawing=DrawingTime())
    return found.images


LIST = Tool(
    name="notebook_list",
    title="List notebooks",
    description="List the notebooks below the root.",
    model=ListParams,
    call=list_notebooks,
    effects="read",
    reference="notebookList",
    tags=frozenset({"read-only"}),
)


READ = Tool(
    name="notebook_read",
    title="Read a notebook",
    description=(
        "Read a notebook or a part of it: all cells, a section, a search, only failed or stale "
        "cells, with or without outputs. Says the revision, for `base` of notebook_edit, and "
        "what was left out. Large notebook: begin with view=outline."
    ),
    model=ReadParams,
    call=read_notebook,
    effects="read",
    reference="notebookRead",
    tags=frozenset({"read-only"}),
)


OUTPUTS = Tool(
    name="notebook_outputs",
    title="Read outputs",
    description=(
        "Read what cells printed, showed and raised, pictures as images; or a part of an "
        "artifact, which holds long output in full."
    ),
    model=OutputsParams,
    call=read_outputs,
    effects="read",
    reference="notebookOutputs",
    tags=frozenset({"read-only"}),
)
