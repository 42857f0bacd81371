"""Files that are not notebooks, for the file tools of the profile `text`, and a search in all files."""

from __future__ import annotations

import difflib
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cellwright.errors import CellwrightError, NotebookNotFound, UnreadableFile
from cellwright.outputs.sanitize import one_line
from cellwright.tools.page import Page
from cellwright.tools.params import Flag, MaxTokens, Name, Params
from cellwright.tools.tool import Tool
from cellwright.tools.wording import format_count, quote_path, shorten
from cellwright.workspace.paths import HIDDEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.tools.tool import ToolCaller, ToolResult
    from cellwright.workspace.api.answers import EditAnswer
    from cellwright.workspace.workspace import AsyncBook

_MOST_FILES = 2000
_MOST_BYTES = 2**20
_MOST_DEPTH = 20
_MOST_HITS = 500


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


# -- searching --------------------------------------------------------------------------------------


class SearchParams(Params):
    """What to look for, and where."""

    text: Annotated[Name, Field(min_length=1, description="Looked for as it is, in single lines")]
    path: Annotated[Name, Field(description="File or folder")] = "."
    files: Annotated[Name | None, Field(description="Only files with such names, like *.py")] = None
    ignore_case: Flag = False
    max_tokens: MaxTokens = 4000


async def search_files(caller: ToolCaller, params: SearchParams) -> ToolResult:
    """The lines that hold a text, in a file or in all files below a folder."""
    wanted = params.text.casefold() if params.ignore_case else params.text
    page = Page(params.max_tokens)
    hits: list[str] = []
    looked = 0
    async for path, size in _walk(caller, params.path):
        if params.files and not fnmatch(PurePosixPath(path).name, params.files):
            continue
        if looked == _MOST_FILES:
            page.leave_out(f"what is behind the first {_MOST_FILES:,} files; name a folder")
            break
        looked += 1
        if size > _MOST_BYTES:
            page.leave_out(f"{quote_path(path)}, which has {size:,} bytes")
            continue
        for number, line in enumerate(await _read_lines(caller, path), 1):
            if wanted in (line.casefold() if params.ignore_case else line):
                hits.append(f"{one_line(path)}:{number}: {shorten(line.strip(), 200)}")
        if len(hits) > _MOST_HITS:
            page.leave_out(f"what is behind the first {_MOST_HITS} lines; name a folder")
            break
    found = hits[:_MOST_HITS]
    page.head(f"{format_count(len(found), 'line')} in {format_count(looked, 'file')}")
    shown = page.show_rows("lines", found)
    if shown < len(found):
        page.leave_out(f"{format_count(len(found) - shown, 'line')}; raise max_tokens")
    return page.to_result({"path": params.path, "files": looked, "lines": found[:shown]})


async def _walk(caller: ToolCaller, path: str) -> AsyncIterator[tuple[str, int]]:
    """A file with its size, or all files below a folder; hidden ones are left out."""
    try:
        rows = await caller.workspace.list(path)
    except UnreadableFile:  # not a folder
        yield path, len(await caller.workspace.open(path).raw())
        return
    waiting = [(row.path, row.size, 0) for row in reversed(rows)]
    while waiting:
        name, size, depth = waiting.pop()
        if PurePosixPath(name).name.startswith(HIDDEN):
            continue
        if not name.endswith("/"):
            yield name, size
        elif depth < _MOST_DEPTH:  # a link may lead to a folder above it
            rows = await caller.workspace.list(name)
            waiting += [(row.path, row.size, depth + 1) for row in reversed(rows)]


async def _read_lines(caller: ToolCaller, path: str) -> list[str]:
    """The lines of a file, of a notebook as `read` shows it; none if it is not text."""
    book = caller.workspace.open(path)
    try:
        if is_notebook(path):
            return ((await book.read()).text or "").split("\n")
        return (await read_text(book)).splitlines()
    except CellwrightError:
        return []


SEARCH = Tool(
    name="search",
    title="Search in files",
    description="Find the lines that hold a text, in a file or in all files below a folder.",
    model=SearchParams,
    call=search_files,
    effects="read",
    reference="search",
    tags=frozenset({"read-only"}),
)
"""A search in files and notebooks."""
