"""Files that are not notebooks, for the file tools of the profile `text`."""

from __future__ import annotations

import difflib
from hashlib import sha256
from typing import TYPE_CHECKING

from cellwright.errors import NotebookNotFound, UnreadableFile

if TYPE_CHECKING:
    from cellwright.workspace.api.answers import EditAnswer
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


async def write_text(book: AsyncBook, text: str, old: str | None, label: str) -> EditAnswer:
    """Make a text file hold this text; it must still hold `old`, or not be there if that is None.

    Raises:
        Conflict: it was changed meanwhile.
        NotSaved: the system refused.
    """
    base = None if old is None else sha256(old.encode()).hexdigest()
    return await book.write_file(text, base=base, label=label)


def diff_texts(name: str, before: str, after: str) -> str:
    """What changed in a text, in the way of diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=2
    )
    return "\n".join(lines)
