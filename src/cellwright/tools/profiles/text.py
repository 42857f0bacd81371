"""The profile `text`: `read`, `edit` and `write` for files, and `eval`.

A notebook is text with a marker line for each cell, such as `# %% [code] cell:3`; any other file
is what it is. None of the file tools starts a kernel.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cellwright.errors import InvalidEdit, InvalidText, NotebookNotFound
from cellwright.outputs.sanitize import one_line
from cellwright.text.selection import select_raw
from cellwright.text.selectors import parse_selector, split_path
from cellwright.text.view import drop_last_newline
from cellwright.tools.fence import make_readable
from cellwright.tools.native.reading import load_picture
from cellwright.tools.native.running import EvalItem, describe_eval
from cellwright.tools.page import Page, cost_of
from cellwright.tools.params import DEADLINE, MaxTokens, Name, Params
from cellwright.tools.profiles.notebook import STATUS_WORDS
from cellwright.tools.profiles.plain_files import (
    diff_texts,
    is_notebook,
    read_text,
    read_text_if_any,
    write_text,
)
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import format_count, quote_name, quote_path, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.tools.tool import ToolCaller
    from cellwright.workspace.api.answers import EditAnswer, SelectAnswer
    from cellwright.workspace.workspace import AsyncBook

MOST_LINES = 300
"""Lines that `read` shows if no selector says which."""

TOKENS = 8000
ARTIFACT = "artifact://"
_MOST_ARTIFACT = 2**26
_folded = re.compile(r"⟦[\d,]+ characters of base64 left out⟧")


class TextReadParams(Params):
    """Which file, and which part of it."""

    path: Annotated[
        Name,
        Field(
            description="File or folder, then perhaps :SELECTOR: 5-16, 20+10, 7-, raw, cell=ID, outline"
        ),
    ]
    max_tokens: MaxTokens = TOKENS


async def read_file(caller: ToolCaller, params: TextReadParams) -> ToolResult:
    """Some lines of a file, or of an artifact."""
    if params.path.startswith(ARTIFACT):
        return await _read_artifact(caller, params)
    path, selector = split_path(params.path, lambda name: _exists(caller, name))
    page = Page(params.max_tokens)
    if _is_folder(caller, path):
        return await _list_folder(caller, page, path)
    book = caller.workspace.open(path)
    if not is_notebook(path):
        text = await read_text(book)
        total, revision = text.count("\n") + (not text.endswith("\n") and bool(text)), None
        lines = _select_lines(text, selector)
    elif selector is None:
        whole = await book.read()
        lines = list(enumerate((whole.text or "").split("\n"), 1)) if whole.cells else []
        total, revision = len(lines), whole.revision
    else:
        found = await book.select(selector)
        if found.outline:
            return _describe_outline(page, path, found)
        lines = [(line.number, line.text) for line in found.lines]
        total, revision = found.total_lines, found.revision
    version = f" · revision {revision}" if revision else ""
    page.head(f"{quote_path(path)}{version} · {format_count(total, 'line')}")
    shown = _show_lines(page, quote_path(path), lines, is_whole=selector is None)
    data = {"path": path, "revision": revision, "total_lines": total, "lines": shown}
    return page.to_result(data)


async def _list_folder(caller: ToolCaller, page: Page, path: str) -> ToolResult:
    """What is in a folder."""
    found = await caller.workspace.list(path)
    page.head(f"{quote_path(path)} · folder · {len(found):,} in it")
    rows = [
        one_line(row.path)
        if row.path.endswith("/")
        else f"{one_line(row.path)}  {row.size:,} bytes"
        for row in found
    ]
    shown = page.show_rows("entries", rows)
    if shown < len(found):
        page.leave_out(f"{len(found) - shown:,} entries; raise max_tokens")
    return page.to_result({"path": path, "entries": [row.path for row in found[:shown]]})


async def _read_artifact(caller: ToolCaller, params: TextReadParams) -> ToolResult:
    """Some lines of the output that an artifact holds in full."""
    name, _, selector = params.path.removeprefix(ARTIFACT).partition(":")
    page = Page(params.max_tokens)
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None and offset < _MOST_ARTIFACT:
        part = await caller.workspace.artifact(name, offset, 2**20)
        if part.text is None:
            page.head(f"{params.path} · {quote_name(part.mime)} · {part.size:,} bytes, not text")
            page.pictures += await load_picture(caller, name, part.mime, part.size)
            return page.to_result({"path": params.path, "total_lines": 0, "lines": 0})
        parts.append(part.text)
        offset = part.next_offset
    page.artifacts.append(name)
    text = "".join(parts)
    lines, path = _select_lines(text, selector or None), f"{ARTIFACT}{name}"
    total = len(text.removesuffix("\n").split("\n")) if text else 0
    page.head(f"{path} · {format_count(total, 'line')}")
    if offset is not None:
        page.leave_out(f"what comes after the first {offset:,} bytes; print less")
    shown = _show_lines(page, path, lines, is_whole=not selector)
    return page.to_result({"path": params.path, "total_lines": total, "lines": shown})


def _is_folder(caller: ToolCaller, name: str) -> bool:
    return os.path.isdir(os.path.join(caller.workspace.cwd, name))  # noqa: PTH112, PTH118


def _exists(caller: ToolCaller, name: str) -> bool:
    return os.path.isfile(os.path.join(caller.workspace.cwd, name))  # noqa: PTH113, PTH118


def _select_lines(text: str, selector: str | None) -> list[tuple[int, str]]:
    chosen = parse_selector("raw" if selector is None else selector)
    if not chosen.raw:  # the lines of the file are all there is
        chosen = parse_selector(f"{selector}:raw")
    return [(line.number, line.text) for line in select_raw(text, chosen).lines]


def _show_lines(page: Page, path: str, lines: Sequence[tuple[int, str]], *, is_whole: bool) -> int:
    """Show lines in blocks that follow each other; returns how many. `path` is as models read it.

    Of a file that is asked for as a whole, the first `MOST_LINES` are shown.
    """
    if is_whole and len(lines) > MOST_LINES:
        left = format_count(len(lines) - MOST_LINES, "line")
        page.leave_out(f"{left}; read {path}:{MOST_LINES + 1}-")
        lines = lines[:MOST_LINES]
    blocks: list[list[tuple[int, str]]] = []
    room = page.room
    shown = 0
    for number, text in lines:
        is_next = bool(blocks) and blocks[-1][-1][0] == number - 1
        room -= cost_of(text) + 3 + (0 if is_next else 150)
        if room < 0 and shown:
            page.leave_out(f"{format_count(len(lines) - shown, 'line')}; read {path}:{number}-")
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


def _describe_outline(page: Page, path: str, found: SelectAnswer) -> ToolResult:
    page.head(f"{quote_path(path)} · revision {found.revision}")
    rows = [
        f"{entry.first}-{entry.last} {'#' * entry.level if entry.kind == 'heading' else entry.type} "
        f"{shorten(entry.title, 100)}"
        for entry in found.outline
    ]
    cut = page.show("outline", "\n".join(rows))
    if cut:
        page.leave_out(f"{cut:,} characters of the outline; give more max_tokens")
    return page.to_result({"path": path, "revision": found.revision})


class Replacement(Params):
    """A text to be replaced."""

    old_text: Annotated[
        str, Field(description="Must occur exactly once unless `all`; empty for a new file")
    ]
    new_text: str
    all: bool = False


class TextEditParams(Params):
    """Which file, and what to replace in it."""

    path: Annotated[Name, Field(description="File; a missing notebook is made")]
    edits: Annotated[
        list[Replacement], Field(min_length=1, max_length=500, description="One after the other")
    ]


async def edit_file(caller: ToolCaller, params: TextEditParams) -> ToolResult:
    """Replace texts in a file, all or none."""
    book = caller.workspace.open(params.path)
    if is_notebook(params.path):
        text, revision = await _read_notebook_if_any(book)
        new = _apply_replacements(text, params.edits)
        done = await book.write(new, base=revision, label="edit")
        return _describe_notebook_change(params.path, done)
    old = await read_text_if_any(book)
    new = _apply_replacements(old or "", params.edits)
    done = await write_text(book, new, old, "edit")
    return _describe_file_change(params.path, old, new, done)


async def _read_notebook_if_any(book: AsyncBook) -> tuple[str, str | None]:
    """The text and the revision of a notebook; no text and None if there is no file."""
    try:
        found = await book.read()
    except NotebookNotFound:
        return "", None
    return found.text or "", found.revision


def _apply_replacements(text: str, edits: Sequence[Replacement]) -> str:
    for position, each in enumerate(edits):
        if not each.old_text:
            if text:
                raise InvalidEdit(
                    "old_text is empty, and the file is not",
                    position=position,
                    hint="Give some of it",
                )
            text = each.new_text
            continue
        old, new = each.old_text, each.new_text
        found = text.count(old)
        if found == 0:  # as it was shown, with what is hidden in it made visible
            old, new = restore_text(old, text), restore_text(new, text)
            found = text.count(old)
        if found == 0:
            raise InvalidEdit(
                "old_text does not occur",
                position=position,
                hint="Read the file again; every sign counts",
            )
        if found > 1 and not each.all:
            first = text.count("\n", 0, text.index(old)) + 1
            raise InvalidEdit(
                f"old_text occurs {found} times, first in line {first}",
                position=position,
                hint="Give more of it, or all=true",
            )
        text = text.replace(old, new)
    return text


class TextWriteParams(Params):
    """Which file, and what it shall hold."""

    path: Annotated[Name, Field(description="File; made if missing")]
    content: Annotated[str, Field(description="All of it; for a notebook, text with cell markers")]
    base: Annotated[
        Name | None,
        Field(description="For a notebook: the revision you read; refuses lost updates"),
    ] = None


async def write_file(caller: ToolCaller, params: TextWriteParams) -> ToolResult:
    """Make a file hold a text."""
    book = caller.workspace.open(params.path)
    if is_notebook(params.path):
        shown, _ = await _read_notebook_if_any(book)
        text = check_complete(restore_text(drop_last_newline(params.content), shown), shown)
        done = await book.write(text, base=params.base, label="write")
        return _describe_notebook_change(params.path, done)
    old = await read_text_if_any(book)
    text = check_complete(restore_text(params.content, old or ""), old or "")
    done = await write_text(book, text, old, "write")
    return _describe_file_change(params.path, old, text, done)


def restore_text(content: str, old: str) -> str:
    """A text that was shown and is given back: its lines as they were before they were shown.

    What was hidden in a line, and base64 that was left out of it, comes back with it if the line
    was left alone. Where two lines looked the same, they stay as given. A file whose
    lines all end in CR LF keeps these ends.
    """
    if old.count("\n") == old.count("\r\n") > 0 and "\r" not in content:
        return restore_text(content, old.replace("\r\n", "\n")).replace("\n", "\r\n")
    before: dict[str, set[str]] = {}
    for line in old.split("\n"):
        before.setdefault(make_readable(line.removesuffix("\r")), set()).add(line)
    lines = content.split("\n")
    for at, line in enumerate(lines):
        known = before.get(line, set())
        if len(known) == 1 and line not in known:
            lines[at] = next(iter(known))
    return "\n".join(lines)


def check_complete(text: str, old: str) -> str:
    """The text, if nothing in it says that `read` left something out there."""
    folded = _folded.search(text)
    if folded is not None and folded[0] not in old:
        raise InvalidText(
            "here `read` has left out base64, which would be lost; use `edit`",
            text.count("\n", 0, folded.start()) + 1,
        )
    return text


def _describe_notebook_change(path: str, done: EditAnswer) -> ToolResult:
    page = Page(TOKENS // 4)
    if done.changed:
        page.head(f"Wrote {quote_path(path)}. Revision {done.revision}, change {done.change}.")
    else:
        page.head(f"{quote_path(path)} has that content already. Revision {done.revision}.")
    cut = page.show("diff", done.diff) if done.diff else 0
    if cut:
        page.leave_out(f"{cut:,} characters of the diff; read {quote_path(path)}")
    names = ("path", "before", "revision", "change", "changed")
    return page.to_result({name: getattr(done, name) for name in names})


def _describe_file_change(path: str, old: str | None, new: str, done: EditAnswer) -> ToolResult:
    page = Page(TOKENS // 4)
    verb = "Made" if old is None else "Wrote"
    page.head(f"{verb} {quote_path(path)}: {format_count(len(new.encode()), 'byte')}.")
    if old is not None and old != new:
        cut = page.show("diff", diff_texts(shorten(path), old, new))
        if cut:
            page.leave_out(f"{cut:,} characters of the diff; read {quote_path(path)}")
    facts: dict[str, Any] = {"path": path, "changed": old != new, "created": old is None}
    if done.change is not None:
        handles = [{"handle": cell.handle} for cell in done.cells]
        facts |= {"change": done.change, "cells": handles}
    return page.to_result(facts)


class TextEvalParams(Params):
    """Code to run."""

    cells: Annotated[
        list[EvalItem], Field(min_length=1, max_length=200, description="language: `py`")
    ]
    per_call: Annotated[bool, Field(description="In a kernel of its own")] = False


async def run_cells(caller: ToolCaller, params: TextEvalParams) -> ToolResult:
    """Run cells in order in the session's kernel."""
    cells = [cell.model_dump() for cell in params.cells]
    options = caller.run_options()
    if params.per_call:
        options["per_call"] = True
    done = await caller.workspace.eval(cells, detach=DEADLINE, **options)
    return await describe_eval(
        caller,
        done,
        TOKENS,
        STATUS_WORDS,
        find_rest=lambda artifact: f"read with path={ARTIFACT}{artifact}",
        get_more="print less in one call",
        describe_unfinished=lambda _: "Still running; the next call of eval waits until it ends.",
    )


TEXT = (
    Tool(
        name="read",
        title="Read a file",
        description=(
            "Read a file, or the lines that a selector behind `path` names. A notebook is shown "
            "as text with a marker line for each cell."
        ),
        model=TextReadParams,
        call=read_file,
        effects="read",
        reference="read",
        tags=frozenset({"read-only"}),
    ),
    Tool(
        name="edit",
        title="Edit a file",
        description=(
            "Replace texts in a file; in a notebook, of the text that `read` shows. What is not "
            "touched keeps its metadata and outputs."
        ),
        model=TextEditParams,
        call=edit_file,
        effects="edit",
        reference="edit",
        tags=frozenset({"destructive"}),
    ),
    Tool(
        name="write",
        title="Write a file",
        description=(
            "Write a whole file; a notebook as the text that `read` shows. A marker `cell:N` keeps "
            "that cell's metadata and outputs; a cell that is left out is deleted."
        ),
        model=TextWriteParams,
        call=write_file,
        effects="edit",
        reference="write",
        tags=frozenset({"destructive"}),
    ),
    Tool(
        name="eval",
        title="Run code",
        description=(
            "Run cells of code in order, in a kernel that keeps its state; `reset` of a cell gives "
            "it a fresh one. The first that fails is the last."
        ),
        model=TextEvalParams,
        call=run_cells,
        effects="run",
        reference="eval",
    ),
)
"""In the order in which a model meets them."""
