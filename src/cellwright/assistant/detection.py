"""Which notebook a request is about, if any.

In the chat pane two things have to come together: a notebook is attached to the request, and that
very notebook is in the active editor. A notebook that merely is open stays out of the chat. Inline
in a cell it is the notebook of that cell.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellwright.assistant.building import Standing, build_context
from cellwright.assistant.files import file_named, is_notebook, is_same_file
from cellwright.assistant.requests import (
    FileReference,
    NotebookEditor,
    SessionReference,
    mentioned_files,
)
from cellwright.errors import CellwrightError
from cellwright.journal.executions import Executed
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.requests import ChatRequest
    from cellwright.workspace.asynchronous import AsyncBook, AsyncWorkspace

_log = logging.getLogger("cellwright.assistant")


@dataclass(frozen=True, slots=True)
class Detection:
    """The notebook that a request is about; without one, `reason` says why notebook mode is off."""

    context: NotebookContext | None = None
    reason: str = ""


async def detect(request: ChatRequest, workspace: AsyncWorkspace) -> Detection:
    """Find the notebook that a request is about, and what there is to know of it.

    Never raises, whatever the request holds: a chat must go on without a notebook, too.
    """
    try:
        reason = why_off(request, workspace.cwd)
        if reason or request.editor is None:
            return Detection(reason=reason)
        return Detection(await _context(request.editor, workspace))
    except CellwrightError as error:
        hint = f" {error.hint}." if error.hint else ""
        return Detection(reason=f"The notebook cannot be read: {error.message}.{hint}")
    except Exception as error:  # noqa: BLE001  # the chat is worth more than the notebook
        _log.exception("a request could not be looked at")
        told = shorten(f"{type(error).__name__}: {error}")
        return Detection(reason=f"The notebook cannot be looked at: {told}.")


def why_off(request: ChatRequest, cwd: str) -> str:
    """Why a request is about no notebook; empty if it is about that of the active editor."""
    active = file_named(request.editor.path, cwd) if request.editor is not None else None
    if request.location == "cell":
        return "" if active is not None else "No notebook is open in the active editor."
    attached = attached_notebooks(request, cwd)
    if not attached:
        if active is None:
            return "No notebook is attached to the chat, and none is open in the active editor."
        return (
            f"{_named(active)} is open in the active editor, but not attached to the chat. "
            f"Attach it with @{_named(active)}."
        )
    names = " and ".join(map(_named, attached[:3]))
    if active is None:
        return f"{names} attached, but no notebook is open in the active editor."
    if not any(is_same_file(active, path) for path in attached):
        return f"{names} attached, but {_named(active)} is open in the active editor."
    return ""


def attached_notebooks(request: ChatRequest, cwd: str) -> list[str]:
    """The notebooks that are attached to a request, as absolute paths."""
    names: list[object] = []
    for reference in request.references:
        if isinstance(reference, FileReference):
            names.append(reference.path)
        elif isinstance(reference, SessionReference):
            names.append(reference.notebook)
    names += mentioned_files(request.prompt)
    found = (file_named(name, cwd) for name in names)
    return list(dict.fromkeys(path for path in found if path is not None and is_notebook(path)))


async def _context(editor: NotebookEditor, workspace: AsyncWorkspace) -> NotebookContext:
    place = workspace.open(file_named(editor.path, workspace.cwd) or editor.path).path
    book = workspace.open(place.removeprefix(f"{workspace.cwd.rstrip('/')}/"))
    notebook = await book.load()
    standing = await _standing(book, workspace)
    return await asyncio.to_thread(build_context, notebook, book.name, book.real, editor, standing)


async def _standing(book: AsyncBook, workspace: AsyncWorkspace) -> Standing:
    """What is known of a notebook's runs, and of its kernel."""
    sessions = [row for row in await workspace.sessions() if row["session"] == book.real]
    going = [row for row in await workspace.runs() if row["subject"] == book.real]
    known: dict[str, Any] = sessions[0] if sessions else {}
    now: dict[str, str] | None = None
    if known or going:
        now = {
            cell: status
            for run in reversed(going)
            if run["ended"] is None
            for cell, status in run["cells"].items()
            if status in ("running", "pending")
        }
    return Standing(
        runs=await _runs(book), now=now, kernel=known.get("kernel"), language=known.get("language")
    )


async def _runs(book: AsyncBook) -> list[Executed]:
    """The runs on record; a notebook is told without a history, too."""
    try:
        return [Executed(**row) for row in await book.executions()]
    except CellwrightError as error:
        _log.info("what ran is not known: %s", error.message)
        return []


def _named(path: str) -> str:
    return shorten(path.rpartition("/")[2], 100)
