"""`notebook_read`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cellwright.errors import Conflict, InvalidCell
from cellwright.text.selection import select
from cellwright.text.view import render_text
from cellwright.tools.fence import readable
from cellwright.tools.page import Page
from cellwright.tools.params import Cells, MaxTokens, Params, Path
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import cell_line, counted, few, one_line, others_lines
from cellwright.workspace.runs.choice import choose_cells
from cellwright.workspace.status import describe_notebook

if TYPE_CHECKING:
    from cellwright.document.notebook import Notebook
    from cellwright.text.view import TextView
    from cellwright.tools.tool import Caller
    from cellwright.workspace.workspace import AsyncBook

_LEAST_OUTPUT = 240
_ATTEMPTS = 5
_FAILED = ("error", "died", "timed_out", "cancelled")


class ReadParams(Params):
    """What to read of a notebook."""

    path: Path
    view: Annotated[
        Literal["cells", "text", "outline"],
        Field(description="text: one marker line per cell; outline: headings and sizes"),
    ] = "cells"
    cells: Cells = None
    section: Annotated[str | None, Field(description="Only what stands under this heading")] = None
    only: Annotated[Literal["errors", "stale"] | None, Field(description="Only such cells")] = None
    search: Annotated[str | None, Field(description="Only cells with this text")] = None
    outputs: Annotated[bool, Field(description="With outputs and pictures")] = False
    offset: Annotated[int, Field(ge=0, description="Skip characters of a long cell")] = 0
    max_tokens: MaxTokens = 8000


async def call(caller: Caller, params: ReadParams) -> Answer:
    """The notebook, or a part of it, within the budget."""
    book = caller.workspace.open(params.path)
    if params.view == "outline":
        return await _outline(params, book)
    found, notebook = await read_now(book)
    every = found["cells"]
    view = render_text(notebook) if params.view == "text" or params.section is not None else None
    chosen = _choose(params, notebook, view, every)
    page = Page(params.max_tokens)
    characters = sum(len(cell["source"]) for cell in every)
    showing = f" · showing {len(chosen)}" if len(chosen) < len(every) else ""
    page.head(
        f"{one_line(params.path, 100)} · revision {found['revision']} · "
        f"{counted(len(every), 'cell')}, {characters:,} characters of source{showing}"
    )
    if every and not chosen:
        page.head("No cell is so.")
    for line in others_lines(found["others"]):
        page.say(line)
    shown = _tell(page, params, chosen, notebook, view if params.view == "text" else None)
    data = {
        "path": params.path,
        "revision": found["revision"],
        "total_cells": len(every),
        "cells": [_facts(cell) for cell in few(chosen[:shown])],
        "left_out": len(chosen) - shown,
    }
    return Answer(page.text(), data, tuple(page.pictures))


async def read_now(book: AsyncBook) -> tuple[dict[str, Any], Notebook]:
    """How the cells stand, and the notebook itself, of one and the same moment."""
    for _ in range(_ATTEMPTS):
        try:
            found = await book.read(stale=True)
        except InvalidCell:  # one broken cell must not hide the others
            notebook = await book.load()
            return {**describe_notebook(notebook, book.name), "others": []}, notebook
        notebook = await book.load()
        if notebook.revision == found["revision"]:
            return found, notebook
    raise Conflict("The notebook changes faster than it can be read")


def _choose(
    params: ReadParams, notebook: Notebook, view: TextView | None, cells: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    wanted: set[int] | None = None
    if params.cells is not None:
        wanted = {cell.index for cell in choose_cells(notebook, params.cells)}
    if params.section is not None and view is not None:
        found = select(view, f"section={params.section}")
        numbers = [line.number for line in found.lines if not line.context]
        inside = {each.cell.index for each in map(view.cell_at, numbers) if each is not None}
        wanted = inside if wanted is None else wanted & inside
    chosen = [cell for cell in cells if wanted is None or cell["index"] in wanted]
    if params.only == "errors":
        chosen = [cell for cell in chosen if cell["status"] in _FAILED]
    elif params.only == "stale":
        chosen = [cell for cell in chosen if cell.get("stale") or cell["status"] == "never"]
    if params.search is not None:
        needle = params.search.lower()
        chosen = [cell for cell in chosen if needle in cell["source"].lower()]
    return chosen


def _tell(
    page: Page,
    params: ReadParams,
    cells: list[dict[str, Any]],
    notebook: Notebook,
    view: TextView | None,
) -> int:
    """Show the cells; returns how many of them are on the page."""
    rest = sum(len(cell["source"]) + 250 for cell in cells)  # what the sources to come will take
    shortened: list[int] = []
    shown = len(cells)
    for place, cell in enumerate(cells):
        source, name = cell["source"], f"source of {cell['handle']}"
        rest -= len(source) + 250
        if view is not None:
            lines = view.cells[cell["index"]]
            source = "\n".join(view.lines[lines.marker - 1 : lines.last])
            name = f"lines {lines.marker}-{lines.last}"
        if place and not page.fits(cell_line(cell) + source[params.offset :]):
            _leave_out(page, cells[place:])
            shown = place
            break
        source = readable(source)[params.offset :]  # offsets count what is shown
        page.say(cell_line(cell))
        cut = page.show(name, source)
        if cut:
            offset = params.offset + len(source) - cut
            one = f"cells=[{json.dumps(cell['index'])}]"
            page.leave_out(f"{cut:,} characters of cell {cell['index']}; {one}, offset={offset}")
        outputs = _outputs(notebook, cell) if params.outputs else ()
        if outputs:
            share = max(_LEAST_OUTPUT, (page.room - rest) // (len(cells) - place))
            if not page.outputs(f"outputs of {cell['handle']}", outputs, share):
                shortened.append(cell["index"])
    if shortened:
        page.leave_out(f"parts of outputs; notebook_outputs with cells={shortened[:20]}")
    return shown


def _outputs(notebook: Notebook, cell: dict[str, Any]) -> Any:
    there = notebook.cells[cell["index"]]
    return there.outputs if there.type == "code" and not there.problem else ()


def _leave_out(page: Page, cells: list[dict[str, Any]]) -> None:
    first, last = cells[0]["index"], cells[-1]["index"]
    if last - first + 1 == len(cells):
        which = json.dumps([f"{first}-{last}" if len(cells) > 1 else first])
    else:
        which = json.dumps([cell["index"] for cell in cells[:20]])
    page.leave_out(f"{counted(len(cells), 'cell')}; cells={which}, or a larger max_tokens")


async def _outline(params: ReadParams, book: AsyncBook) -> Answer:
    found = await book.select("outline")
    page = Page(params.max_tokens)
    page.head(
        f"{one_line(params.path, 100)} · revision {found['revision']} · "
        f"{counted(found['total_cells'], 'cell')}, {found['total_lines']:,} lines"
    )
    rows: list[str] = []
    room = page.room - 200
    for entry in found["outline"]:
        mark = "#" * entry["level"] if entry["kind"] == "heading" else f"  {entry['type']}"
        lines = f"lines {entry['first']}-{entry['last']}"
        title = one_line(entry["title"], 100)
        outputs = " +outputs" if entry["has_outputs"] and entry["kind"] == "cell" else ""
        row = f"{entry['cell']} {one_line(entry['handle'], 64)}  {lines}{outputs}  {mark} {title}"
        room -= len(row) + 1
        if room < 0:
            break
        rows.append(row)
    page.show("outline: index, id, lines of the text view, title", "\n".join(rows))
    left = len(found["outline"]) - len(rows)
    if left:
        page.leave_out(f"{left:,} entries; a larger max_tokens has more, so has search")
    names = ("revision", "total_cells", "total_lines")
    return Answer(page.text(), {"path": params.path, **{name: found[name] for name in names}})


def _facts(cell: dict[str, Any]) -> dict[str, Any]:
    names = ("index", "id", "handle", "type", "hash", "execution_count", "status", "stale")
    facts = {name: cell[name] for name in names if name in cell}
    return {
        name: one_line(value, 100) if isinstance(value, str) else value
        for name, value in facts.items()
    }


READ = Tool(
    name="notebook_read",
    title="Read a notebook",
    description=(
        "Read a notebook or a part of it: all cells, a section, a search, only failed or stale "
        "cells, with or without outputs. Says the revision, for `base` of notebook_edit, and "
        "what was left out. Large notebook: begin with view=outline."
    ),
    model=ReadParams,
    call=call,
    effects="read",
    reference="notebookRead",
    tags=frozenset({"read-only"}),
)
