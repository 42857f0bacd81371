"""`notebook_list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cellwright.outputs.sanitize import one_line
from cellwright.tools.near import choose_near
from cellwright.tools.page import Page
from cellwright.tools.params import MaxTokens, Params
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import counted, few

if TYPE_CHECKING:
    from cellwright.tools.tool import Caller


class ListParams(Params):
    """Which notebooks."""

    match: Annotated[str, Field(description="Part of the path")] = ""
    max_tokens: MaxTokens = 2000


async def call(caller: Caller, params: ListParams) -> Answer:
    """The notebooks below the root."""
    every = await caller.workspace.list()
    found = [row for row in every if params.match.lower() in row["path"].lower()]
    page = Page(params.max_tokens)
    page.head(f"{counted(len(found), 'notebook')}{' match' if params.match else ''}.")
    if every and not found:
        near = choose_near(params.match, [row["path"] for row in every])
        found = [row for row in every if row["path"] in near] or every[:10]
        page.head(f"Of {counted(len(every), 'notebook')} in all, some others:")
    lines: list[str] = []
    room = page.room - 200
    for row in found:
        line = f"{one_line(row['path'])}  {row['size']:,} bytes"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    left = len(found) - len(lines)
    if lines:
        page.show("paths", "\n".join(lines))
    if left:
        page.leave_out(f"{counted(left, 'notebook')}; narrow with match, or raise max_tokens")
    data = {"notebooks": few(found[: len(lines)]), "total": len(found)}
    return Answer(page.text(), data)


LIST = Tool(
    name="notebook_list",
    title="List notebooks",
    description="List the notebooks below the root.",
    model=ListParams,
    call=call,
    effects="read",
    reference="notebookList",
    tags=frozenset({"read-only"}),
)
