"""The profile `text`: `read`, `edit` and `write` for files, and `eval`.

A notebook is text with a marker line for each cell, such as `# %% [code] cell:3`; any other file
is what it is. None of the file tools starts a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cellwright.errors import InvalidEdit, NotebookNotFound
from cellwright.text.view import drop_last_newline
from cellwright.tools.native.editing import DEADLINE
from cellwright.tools.native.evaluating import EvalShape, tell_eval
from cellwright.tools.page import Page
from cellwright.tools.params import Name, Params
from cellwright.tools.profiles.notebook import STATUS_WORDS
from cellwright.tools.profiles.plain_files import (
    diff_of,
    is_notebook,
    text_or_none,
    write_text,
)
from cellwright.tools.profiles.restoring import restored, whole
from cellwright.tools.profiles.text_reading import READ, TOKENS
from cellwright.tools.tool import Answer, Tool
from cellwright.tools.words import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.tools.tool import Caller


class Replacement(BaseModel):
    """A text to be replaced."""

    model_config = ConfigDict(extra="forbid")

    old_text: Annotated[
        str, Field(description="Must occur exactly once unless `all`; empty for a new file")
    ]
    new_text: str
    all: bool = False


class EditParams(Params):
    """Which file, and what to replace in it."""

    path: Annotated[Name, Field(description="File; a missing notebook is made")]
    edits: Annotated[
        list[Replacement], Field(min_length=1, max_length=500, description="One after the other")
    ]


async def edit(caller: Caller, params: EditParams) -> Answer:
    """Replace texts in a file, all or none."""
    book = caller.workspace.open(params.path)
    if is_notebook(params.path):
        try:
            found = await book.read()
        except NotebookNotFound:
            found = {"text": "", "revision": None}
        text = _replaced(found["text"], params.edits)
        done = await book.write(text, base=found["revision"], label="edit")
        return _changed(params.path, done)
    old = await text_or_none(book)
    new = _replaced(old or "", params.edits)
    await write_text(caller, book, new, old)
    return _plain_changed(params.path, old, new)


def _replaced(text: str, edits: Sequence[Replacement]) -> str:
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
            old, new = restored(old, text), restored(new, text)
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


class WriteParams(Params):
    """Which file, and what it shall hold."""

    path: Annotated[Name, Field(description="File; made if missing")]
    content: Annotated[str, Field(description="All of it; for a notebook, text with cell markers")]
    base: Annotated[
        Name | None,
        Field(description="For a notebook: the revision you read; refuses lost updates"),
    ] = None


async def write(caller: Caller, params: WriteParams) -> Answer:
    """Make a file hold a text."""
    book = caller.workspace.open(params.path)
    if is_notebook(params.path):
        try:
            shown = (await book.read())["text"]
        except NotebookNotFound:
            shown = ""
        text = whole(restored(drop_last_newline(params.content), shown), shown)
        done = await book.write(text, base=params.base, label="write")
        return _changed(params.path, done)
    old = await text_or_none(book)
    text = whole(restored(params.content, old or ""), old or "")
    await write_text(caller, book, text, old)
    return _plain_changed(params.path, old, text)


def _changed(path: str, done: dict[str, Any]) -> Answer:
    page = Page(TOKENS // 4)
    if done["changed"]:
        page.head(
            f"Wrote {one_line(path, 120)}. Revision {done['revision']}, change {done['change']}."
        )
    else:
        page.head(f"{one_line(path, 120)} says that already. Revision {done['revision']}.")
    cut = page.show("diff", done["diff"]) if done["diff"] else 0
    if cut:
        page.leave_out(f"{cut:,} characters of the diff")
    names = ("path", "before", "revision", "change", "changed")
    return Answer(page.text(), {name: done[name] for name in names})


def _plain_changed(path: str, old: str | None, new: str) -> Answer:
    page = Page(TOKENS // 4)
    verb = "Made" if old is None else "Wrote"
    page.head(f"{verb} {one_line(path, 120)}: {counted(len(new.encode()), 'byte')}.")
    if old is not None and old != new:
        cut = page.show("diff", diff_of(one_line(path), old, new))
        if cut:
            page.leave_out(f"{cut:,} characters of the diff")
    return Answer(page.text(), {"path": path, "changed": old != new, "created": old is None})


class EvalParams(Params):
    """Code to run."""

    cells: Annotated[
        list[EvalShape], Field(min_length=1, max_length=200, description="language: `py`")
    ]


async def evaluate(caller: Caller, params: EvalParams) -> Answer:
    """Run cells in order in the session's kernel."""
    options: dict[str, Any] = {"ask": caller.ask} if caller.ask is not None else {}
    done = await caller.workspace.eval(
        [cell.model_dump() for cell in params.cells],
        detach=DEADLINE,
        progress=caller.progress,
        **options,
    )
    return await tell_eval(caller, done, TOKENS, STATUS_WORDS)


TEXT = (
    READ,
    Tool(
        name="edit",
        title="Edit a file",
        description=(
            "Replace texts in a file; in a notebook, of the text that `read` shows. What is not "
            "touched keeps its metadata and outputs."
        ),
        model=EditParams,
        call=edit,
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
        model=WriteParams,
        call=write,
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
        model=EvalParams,
        call=evaluate,
        effects="run",
        reference="eval",
    ),
)
"""In the order in which a model meets them."""
