"""What a person asks in a chat, and which notebook it is about.

In the chat pane a request is about a notebook if it is attached to the request and is in the active
editor. A notebook that is only open stays out of the chat. Inline in a cell it is the notebook of that
cell.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from cellwright.assistant.context import RuntimeState, build_context
from cellwright.errors import CellwrightError
from cellwright.tools.wording import quote_path, shorten
from cellwright.workspace.status import find_last_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cellwright.assistant.context import NotebookContext
    from cellwright.document.snapshot import CellRef
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.workspace.api.requests import Mode
    from cellwright.workspace.workspace import AsyncBook, AsyncWorkspace


Location: TypeAlias = Literal["pane", "cell"]
"""Where a chat takes place: in the chat pane, or inline in a cell of the active notebook."""

_mention = re.compile(r"""(?<![\w@])@(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'`@][^\s"'`]*))""").finditer

_TAIL = ".,;:!?)]}"
_FILE_ENDS = (
    *(".ipynb", ".py", ".r", ".jl", ".sql", ".md", ".txt", ".csv", ".tsv", ".json", ".toml"),
    *(".yaml", ".yml", ".html", ".parquet", ".log", ".sh"),
)
_HOSTS = ("", "localhost")
_log = logging.getLogger("cellwright.assistant")


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that was attached, by its path or its `file:` address."""

    path: str


@dataclass(frozen=True, slots=True)
class SessionReference:
    """A running session that was attached; `notebook` is the notebook it belongs to, if any."""

    notebook: str | None


@dataclass(frozen=True, slots=True)
class ToolAttachment:
    """A tool that was attached instead of being named with `#` in the prompt."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookEditor:
    """The notebook editor that is active, with what is selected in it.

    `editing` is the cell that the person types in.
    """

    path: str
    selected: tuple[CellRef, ...] = ()
    editing: CellRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request of a person.

    Args:
        prompt: what they wrote; `@name.ipynb` in it attaches that file, `#name` names a tool.
        mode: what the assistant may do.
        location: where they wrote it.
        references: what they attached: files, sessions, tools; anything else is ignored.
        editor: the notebook editor that was active, if one was.
        notes: what the model reads after the prompt and the person did not write, such as names
            of files; nothing in it attaches a file or names a tool.
    """

    prompt: str
    mode: Mode = "ask"
    location: Location = "pane"
    references: Sequence[object] = ()
    editor: NotebookEditor | None = None
    notes: Sequence[str] = ()


@dataclass(slots=True, kw_only=True)
class ChatState:
    """The state that requests to the assistant are made of.

    Args:
        cwd: the folder that relative paths start from.
        mode: what the assistant may do.
        open: the notebook in the active editor; it is not attached by being open.
        selected: the handles of its selected cells.
        editing: the cell that the person types in.
        cell: the cell that the chat is about, if it is about one cell.
        files: the attached files; a notebook is not open by being attached.
        tools: the attached tools, by their names without `#`.
    """

    cwd: str
    mode: Mode = "ask"
    open: str | None = None
    selected: tuple[str, ...] = ()
    editing: str | None = None
    cell: str | None = None
    files: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)

    def build_request(
        self, prompt: str, *, names_files: bool = False, notes: Sequence[str] = ()
    ) -> ChatRequest:
        """Make a request of a prompt and this state.

        With `names_files`, the notes list what is attached beside the open notebook; the model
        would not know of it otherwise.
        """
        editor = None
        if self.open is not None:
            editor = NotebookEditor(
                path=self.open, selected=self.selected, editing=self.cell or self.editing
            )
        if names_files:
            others = [name for name in self.files if name != self.open]
            books = [name for name in others if is_notebook(os.path.join(self.cwd, name))]  # noqa: PTH118
            files = [name for name in others if name not in books]
            notes = [
                *(
                    f"Attached {what}: {', '.join(map(quote_path, names))}"
                    for what, names in (("notebooks", books), ("files", files))
                    if names
                ),
                *notes,
            ]
        return ChatRequest(
            prompt=prompt,
            mode=self.mode,
            location="pane" if self.cell is None else "cell",
            references=(
                *(FileReference(name) for name in self.files),
                *(ToolAttachment(name) for name in self.tools),
            ),
            editor=editor,
            notes=notes,
        )

    @property
    def attachments(self) -> list[str]:
        """The names of all attached files and tools."""
        return [*self.files, *(f"#{name}" for name in self.tools)]

    def attach(self, name: str) -> bool:
        """Attach a file, or a tool by `#name`; returns whether it is new."""
        names, bare = self._names_for(name)
        if bare in names:
            return False
        names.append(bare)
        return True

    def detach(self, name: str) -> bool:
        """Remove an attachment; returns whether it was there."""
        names, bare = self._names_for(name)
        if bare not in names:
            return False
        names.remove(bare)
        return True

    def _names_for(self, name: str) -> tuple[list[str], str]:
        return (self.tools, name[1:]) if name.startswith("#") else (self.files, name)

    def to_json(self) -> dict[str, Any]:
        """The part that a transcript keeps."""
        return {
            "open": self.open,
            "selected": list(self.selected),
            "files": list(self.files),
            "tools": list(self.tools),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Add what a transcript has kept; an open notebook and attachments stay."""
        if self.open is None and isinstance(data.get("open"), str):
            self.open = data["open"]
            self.selected = tuple(map(str, data.get("selected") or ()))
        for name in data.get("files") or ():
            self.attach(str(name))
        for name in data.get("tools") or ():
            self.attach(f"#{name}")


@dataclass(frozen=True, slots=True)
class Detection:
    """The notebook that a request is about; without one, `reason` says why notebook mode is off."""

    context: NotebookContext | None = None
    reason: str = ""


async def detect(request: ChatRequest, workspace: AsyncWorkspace) -> Detection:
    """Find the notebook that a request is about, and describe it.

    Never raises, whatever the request holds: a chat works without a notebook, too.
    """
    try:
        reason = why_off(request, workspace.cwd)
        if reason or request.editor is None:
            return Detection(reason=reason)
        return Detection(await _load_context(request.editor, workspace))
    except CellwrightError as error:
        hint = f" {error.hint}." if error.hint else ""
        return Detection(reason=f"The notebook cannot be read: {error.message}.{hint}")
    except Exception as error:  # noqa: BLE001  # a bug here must not end the chat
        _log.exception("a request could not be looked at")
        problem = shorten(f"{type(error).__name__}: {error}")
        return Detection(reason=f"The notebook cannot be looked at: {problem}.")


def why_off(request: ChatRequest, cwd: str) -> str:
    """Why a request is about no notebook; empty if it is about that of the active editor."""
    active = resolve_file(request.editor.path, cwd) if request.editor is not None else None
    if request.location == "cell":
        return "" if active is not None else "No notebook is open in the active editor."
    attached = attached_notebooks(request, cwd)
    if not attached:
        if active is None:
            return "No notebook is attached to the chat, and none is open in the active editor."
        return (
            f"{_file_name(active)} is open in the active editor, but not attached to the chat. "
            f"Attach it with @{_file_name(active)}."
        )
    names = " and ".join(map(_file_name, attached[:3]))
    if active is None:
        return f"{names} attached, but no notebook is open in the active editor."
    if not any(is_same_file(active, path) for path in attached):
        return f"{names} attached, but {_file_name(active)} is open in the active editor."
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
    found = (resolve_file(name, cwd) for name in names)
    return list(dict.fromkeys(path for path in found if path is not None and is_notebook(path)))


def attached_plain_files(request: ChatRequest, cwd: str) -> list[str]:
    """The files that are attached to a request and are no notebooks, as absolute paths."""
    names: list[object] = [
        each.path for each in request.references if isinstance(each, FileReference)
    ]
    found = (resolve_file(name, cwd) for name in [*names, *mentioned_files(request.prompt)])
    return [
        path
        for path in dict.fromkeys(path for path in found if path is not None)
        if not is_notebook(path) and os.path.isfile(path)  # noqa: PTH113
    ]


def find_missing_files(prompt: str, cwd: str) -> list[str]:
    """The files that a prompt attaches with `@` and that do not exist.

    A word such as `@property` is none of them: only a path, or a name with the ending of a file.
    """
    return [
        name
        for name in mentioned_files(prompt)
        if ("/" in name or name.lower().endswith(_FILE_ENDS))
        and not os.path.exists(resolve_file(name, cwd) or "")  # noqa: PTH110
    ]


def mentioned_files(prompt: str) -> list[str]:
    """The files that a prompt attaches with `@`, in order."""
    found = [
        quoted or single or bare.rstrip(_TAIL)
        for quoted, single, bare in (match.groups() for match in _mention(prompt))
    ]
    return list(dict.fromkeys(name for name in found if name))


async def _load_context(editor: NotebookEditor, workspace: AsyncWorkspace) -> NotebookContext:
    place = workspace.open(resolve_file(editor.path, workspace.cwd) or editor.path).path
    book = workspace.open(place.removeprefix(f"{workspace.cwd.rstrip('/')}/"))
    notebook = await book.load()
    standing = await _load_runtime(book, workspace)
    return await asyncio.to_thread(build_context, notebook, book.name, book.real, editor, standing)


async def _load_runtime(book: AsyncBook, workspace: AsyncWorkspace) -> RuntimeState:
    """What is known of a notebook's runs, and of its kernel."""
    sessions = [row for row in await workspace.sessions() if row.session == book.real]
    session = sessions[0] if sessions else None
    now = {
        cell: status
        for run in reversed(await workspace.runs())
        if run.subject == book.real and run.ended is None
        for cell, status in run.cells.items()
        if status in ("running", "pending")
    }
    runs = await _load_runs(book)
    # On record as running, but by none of these runs: another process or a person runs it, or it
    # died with its engine.
    left = {cell for cell, run in find_last_runs(runs).items() if run.status == "running"}
    if left - now.keys():
        views = (await book.read(text=False)).cells
        now |= {view.handle: view.status for view in views if view.status == "running"}
    return RuntimeState(
        runs=runs,
        now=now,
        kernel=session.kernel if session else None,
        language=session.language if session else None,
    )


async def _load_runs(book: AsyncBook) -> list[ExecutionRecord]:
    """The recorded runs; none if the history cannot be read."""
    try:
        return await book.executions()
    except CellwrightError as error:
        _log.info("what ran is not known: %s", error.message)
        return []


def resolve_file(name: object, cwd: str) -> str | None:
    """The absolute path that a path or a `file:` address names; None if it names no file."""
    if isinstance(name, os.PathLike):
        name = os.fspath(name)
    if not isinstance(name, str) or not name or "\0" in name:
        return None
    if name[:5].lower() == "file:":
        address = urlsplit(name)
        if address.netloc.lower() not in _HOSTS:
            return None
        name = unquote(address.path)
        if not name or "\0" in name:
            return None
    elif "://" in name:
        return None
    return os.path.join(cwd, os.path.expanduser(name))  # noqa: PTH111, PTH118  # links as they are


def is_same_file(one: str, other: str) -> bool:
    """Whether two absolute paths lead to one file, also through links."""
    if one == other or os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)  # noqa: PTH121  # also where case does not matter
    except (OSError, ValueError):
        return False


def is_notebook(path: str) -> bool:
    """Whether a path, or the file it links to, has the suffix of notebooks."""
    return any(place.lower().endswith(".ipynb") for place in (path, os.path.realpath(path)))


def _file_name(path: str) -> str:
    return shorten(path.rpartition("/")[2], 100)
