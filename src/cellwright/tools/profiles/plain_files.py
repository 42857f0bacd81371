"""Files that are not notebooks, for the file tools of the profile `text`."""

from __future__ import annotations

import asyncio
import difflib
import os
from typing import TYPE_CHECKING

from cellwright.config.defaults import LOCK_TIMEOUT
from cellwright.document.disk.lock import FileLock
from cellwright.document.disk.save import replace_file
from cellwright.errors import NotebookNotFound, NotSaved, UnreadableFile

if TYPE_CHECKING:
    from cellwright.workspace.workspace import AsyncBook


def is_notebook(path: str) -> bool:
    """Whether a file is one that is shown as text with a marker for each cell."""
    return path.lower().endswith(".ipynb")


async def read_text(book: AsyncBook) -> str:
    """What a text file holds.

    Raises:
        UnreadableFile: it is not text in UTF-8.
    """
    data: bytes = await book.raw()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableFile(book.name, f"no text in UTF-8 (byte {error.start})") from None


async def read_text_if_any(book: AsyncBook) -> str | None:
    """What a text file holds; None if there is no file."""
    try:
        return await read_text(book)
    except NotebookNotFound:
        return None


async def write_text(book: AsyncBook, text: str, old: str | None) -> None:
    """Make a text file hold this text; it must still hold `old`, or not be there if that is None.

    Raises:
        Conflict: it was changed meanwhile.
        NotSaved: the system refused.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise NotSaved(book.name, "write", "the text holds a surrogate") from None

    def write() -> None:
        folder = os.path.dirname(book.real)  # noqa: PTH120  # as the rest of a path's life
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        with FileLock(book.real, LOCK_TIMEOUT):
            replace_file(book.real, [data], None if old is None else [old.encode()])

    try:
        await asyncio.to_thread(write)
    except OSError as error:
        if isinstance(error, NotSaved):
            raise
        raise NotSaved(book.name, "write", error.strerror or str(error)) from None


def diff_texts(name: str, before: str, after: str) -> str:
    """What changed in a text, in the way of diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=2
    )
    return "\n".join(lines)
