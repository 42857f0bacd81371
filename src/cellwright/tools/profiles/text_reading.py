"""`read` of the profile `text`: some lines of a file, or of a notebook as text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cellwright.text.selection import select_raw
from cellwright.text.selectors import parse_selector, split_path
from cellwright.tools.page import Page
from cellwright.tools.params import MaxTokens, Name, Params
from cellwright.tools.profiles.plain_files import is_notebook, read_text
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.tools.tool import Caller
    from cellwright.workspace.workspace import AsyncBook

LINES = 300
"""Lines that `read` shows if no selector says which."""

TOKENS = 8000


class ReadParams(Params):
    """Which file, and which part of it."""

    path: Annotated[
        Name,
        Field(description="File, then perhaps :SELECTOR: 5-16, 20+10, 7-, raw, cell=ID, outline"),
    ]
    max_tokens: MaxTokens = TOKENS


async def read(caller: Caller, params: ReadParams) -> Answer:
    """Some lines of a file."""
    path, selector = split_path(params.path, lambda name: _exists(caller, name))
    book = caller.workspace.open(path)
    page = Page(params.max_tokens)
    if is_notebook(path):
        found = await _whole(book) if selector is None else await book.select(selector)
        if found["outline"]:
            return _outline(page, path, found)
        lines = [(line["number"], line["text"]) for line in found["lines"]]
        total, revision = found["total_lines"], found.get("revision")
    else:
        text = await read_text(book)
        total, revision = text.count("\n") + (not text.endswith("\n") and bool(text)), None
        lines = _plain_lines(text, selector)
    if selector is None and len(lines) > LINES:
        page.leave_out(f"{counted(len(lines) - LINES, 'line')}; read {path}:{LINES + 1}-")
        lines = lines[:LINES]
    told = f" · revision {revision}" if revision else ""
    page.head(f"{one_line(path, 120)}{told} · {counted(total, 'line')}")
    shown = _show(page, path, lines)
    data = {"path": path, "revision": revision, "total_lines": total, "lines": shown}
    return Answer(page.text(), data)


def _exists(caller: Caller, name: str) -> bool:
    return os.path.isfile(os.path.join(caller.workspace.cwd, name))  # noqa: PTH113, PTH118


async def _whole(book: AsyncBook) -> dict[str, Any]:
    found: dict[str, Any] = await book.read()
    lines = found["text"].split("\n") if found["cells"] else []
    numbered = [{"number": at, "text": line} for at, line in enumerate(lines, 1)]
    return {**found, "lines": numbered, "total_lines": len(lines), "outline": []}


def _plain_lines(text: str, selector: str | None) -> list[tuple[int, str]]:
    if selector is None:
        chosen = parse_selector("raw")
    else:
        chosen = parse_selector(selector)
        if not chosen.raw:  # the lines of the file are all there is
            chosen = parse_selector(f"{selector}:raw")
    return [(line.number, line.text) for line in select_raw(text, chosen).lines]


def _show(page: Page, path: str, lines: Sequence[tuple[int, str]]) -> int:
    """Show lines in blocks that follow each other; returns how many."""
    blocks: list[list[tuple[int, str]]] = []
    room = page.room
    shown = 0
    for number, text in lines:
        is_next = bool(blocks) and blocks[-1][-1][0] == number - 1
        room -= len(text) + 1 + (0 if is_next else 150)
        if room < 0 and shown:
            page.leave_out(f"{counted(len(lines) - shown, 'line')}; read {path}:{number}-")
            break
        if is_next:
            blocks[-1].append((number, text))
        else:
            blocks.append([(number, text)])
        shown += 1
    for block in blocks:
        first, last = block[0][0], block[-1][0]
        # With its line feed, so that a last line which is empty is seen.
        cut = page.show(f"lines {first}-{last}", "".join(f"{text}\n" for _, text in block))
        if cut:
            page.leave_out(f"{cut:,} characters of lines {first}-{last}; give more max_tokens")
    return shown


def _outline(page: Page, path: str, found: dict[str, Any]) -> Answer:
    page.head(f"{one_line(path, 120)} · revision {found['revision']}")
    rows = [
        f"{entry['first']}-{entry['last']} {'#' * entry['level'] if entry['kind'] == 'heading' else entry['type']} "
        f"{one_line(entry['title'], 100)}"
        for entry in found["outline"]
    ]
    cut = page.show("outline", "\n".join(rows))
    if cut:
        page.leave_out(f"{cut:,} characters of the outline; give more max_tokens")
    return Answer(page.text(), {"path": path, "revision": found["revision"]})


READ = Tool(
    name="read",
    title="Read a file",
    description=(
        "Read a file, or the lines that a selector behind `path` names. A notebook is shown "
        "as text with a marker line for each cell."
    ),
    model=ReadParams,
    call=read,
    effects="read",
    reference="read",
    tags=frozenset({"read-only"}),
)
