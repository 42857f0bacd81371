"""`notebook_outputs`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from cellwright.outputs.describe import describe
from cellwright.tools.fence import readable
from cellwright.tools.page import Page
from cellwright.tools.params import Cells, InvalidParameters, MaxTokens, Name, Params, Path
from cellwright.tools.pictures import picture_of
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import counted, few, named, one_line
from cellwright.workspace.runs.choice import choose_cells

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from cellwright.document.cells import Cell
    from cellwright.tools.tool import Caller

_LEAST = 240
_EVERYTHING = 10**8


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


async def call(caller: Caller, params: OutputsParams) -> Answer:
    """What cells said, or a part of what was kept aside."""
    if params.artifact is not None:
        return await _artifact(caller, params, params.artifact)
    notebook = await caller.workspace.open(params.path).load()
    if params.cells is not None:
        chosen = [cell for cell in choose_cells(notebook, params.cells) if cell.type == "code"]
    else:
        chosen = [cell for cell in notebook.cells if cell.type == "code" and cell.outputs]
    if params.offset and len(chosen) != 1:
        raise InvalidParameters(
            "`offset` is for the outputs of one cell", hint="Name it in `cells`"
        )
    page = Page(params.max_tokens)
    page.head(f"{one_line(params.path, 100)} · outputs of {counted(len(chosen), 'cell')}")
    told = _part(page, params, chosen[0]) if params.offset else _tell(page, chosen)
    data = {
        "path": params.path,
        "cells": [one_line(cell.handle, 100) for cell in few(chosen[:told])],
        "left_out": len(chosen) - told,
    }
    return Answer(page.text(), data, tuple(page.pictures))


def _tell(page: Page, cells: Sequence[Cell]) -> int:
    """Show the outputs of cells; returns of how many."""
    shortened: list[int] = []
    shown = len(cells)
    for place, cell in enumerate(cells):
        if place and page.room < _LEAST * 3:
            rest = [each.index for each in cells[place : place + 20]]
            page.leave_out(f"{counted(len(cells) - place, 'cell')}; cells={json.dumps(rest)}")
            shown = place
            break
        page.say(
            f"cell {cell.index} · id {named(cell.handle)} · {counted(len(cell.outputs), 'output')}"
        )
        share = max(_LEAST, page.room // (len(cells) - place))
        name = f"outputs of {cell.handle}"
        if cell.outputs and not page.outputs(name, cell.outputs, share):
            shortened.append(cell.index)
    if shortened:
        one = f"cells=[{shortened[0]}] with offset=1 begins with all of it"
        page.leave_out(f"parts of outputs of cells {shortened[:20]}; {one}, or raise max_tokens")
    return shown


def _part(page: Page, params: OutputsParams, cell: Cell) -> int:
    """A part of all that one cell said."""
    whole = readable(describe(cell.outputs, _EVERYTHING, images=0).text)
    limit = min(params.limit, page.room - 200)
    part = whole[params.offset : params.offset + limit]
    cut = page.show(f"outputs of {cell.handle} from {params.offset}", part)
    end = params.offset + len(part) - cut
    if end < len(whole):
        page.leave_out(f"{len(whole) - end:,} characters; go on with offset={end}")
    return 1


async def _artifact(caller: Caller, params: OutputsParams, artifact: str) -> Answer:
    page = Page(params.max_tokens)
    limit = max(1, min(params.limit, page.room - 200))
    part = await caller.workspace.artifact(artifact, params.offset, limit)
    names = ("id", "mime", "size", "sha256", "offset", "next_offset")
    data = {name: part[name] for name in names if name in part}
    page.head(f"artifact://{named(part['id'])} · {named(part['mime'])} · {part['size']:,} bytes")
    if "text" not in part:
        picture = await picture_of(caller, artifact, part["mime"], part["size"])
        page.head("shown as an image" if picture else "not text, and no image that can be shown")
        return Answer(page.text(), data, picture)
    cut = page.show("part of an artifact", part["text"])
    if cut:  # what is hidden in it takes more room once it is visible
        page.leave_out(f"{cut:,} characters; ask with a smaller limit")
    elif part["next_offset"] is not None:
        page.leave_out(f"the rest; go on with offset={part['next_offset']}")
    return Answer(page.text(), data)


OUTPUTS = Tool(
    name="notebook_outputs",
    title="Read outputs",
    description=(
        "Read what cells printed, showed and raised, pictures as images; or a part of an "
        "artifact, which holds long output in full."
    ),
    model=OutputsParams,
    call=call,
    effects="read",
    reference="notebookOutputs",
    tags=frozenset({"read-only"}),
)
