"""The folder a caller works in: where paths resolve, what is allowed, who is asking."""

from __future__ import annotations

import os

from cellwright.errors import AlreadyExists, InvalidEdit, ModeForbids
from cellwright.workspace.book import Book
from cellwright.workspace.paths import confine, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal, Self

    from cellwright.config.settings import Settings
    from cellwright.journal import Journal
    from cellwright.kernel.running import Ask
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.workspace.eval_call import EvalCell
    from cellwright.workspace.evaluation import Progress
    from cellwright.workspace.kernels import Kernels

    Mode = Literal["ask", "edit", "agent"]
    Effect = Literal["read", "edit", "run"]
    Rows = list[dict[str, Any]]  # inside the class, `list` is a verb

# Which mode allows which effect; `edit` only proposes, as the table is by default.
ALLOWED: dict[str, frozenset[str]] = {
    "ask": frozenset({"read"}),
    "edit": frozenset({"read"}),
    "agent": frozenset({"read", "edit", "run"}),
}
_HIDDEN = (".", "__pycache__", "node_modules")


class Workspace:
    """Notebooks below one root, opened by path.

    Args:
        root: paths outside this folder are refused; None confines nothing.
        cwd: relative paths resolve against it; the process's own by default.
        mode: `ask`, `edit` or `agent`; what it forbids is refused, whoever asks.
        actor: who is asking, as `door:name`; an undo takes back that actor's own changes.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        cwd: str | None = None,
        mode: Mode = "agent",
        actor: str = "python:caller",
        journal: Journal | None = None,
    ) -> None:
        if mode not in ALLOWED:
            raise InvalidEdit(f"Unknown mode {mode!r}", hint="One of ask, edit, agent")
        self.cwd = cwd or os.getcwd()  # noqa: PTH109  # hot path: no pathlib
        self.root = None if root is None else resolve(os.fspath(root), self.cwd)
        self.mode = mode
        self.actor = actor
        self._journal = journal
        self._settings: Settings | None = None
        self._store: ArtifactStore | None = None
        self._kernels: Kernels | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the kernels that were started here, and let go of the journal."""
        try:
            if self._kernels is not None:
                self._kernels.close()
                self._kernels = None
        finally:
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    @property
    def settings(self) -> Settings:
        """The settings that hold in the working folder."""
        if self._settings is None:
            from cellwright.config.loading import load

            self._settings = load(self.cwd)
        return self._settings

    @property
    def journal(self) -> Journal:
        """The history of all notebooks of this user on this host."""
        if self._journal is None:
            from cellwright.journal import Journal

            self._journal = Journal()
        return self._journal

    @property
    def artifacts(self) -> ArtifactStore:
        """Output that was too long to keep in memory, and pictures."""
        if self._store is None:
            from cellwright.config.directories import state_directory
            from cellwright.outputs.artifacts import ArtifactStore

            self._store = ArtifactStore(
                state_directory() / "artifacts",
                quota_bytes=self.settings.artifact_quota_bytes,
                max_artifact_bytes=self.settings.artifact_max_bytes,
            )
        return self._store

    @property
    def kernels(self) -> Kernels:
        """The kernels that run in this process."""
        if self._kernels is None:
            from cellwright.workspace.kernels import Kernels

            self._kernels = Kernels(self, self.artifacts)
        return self._kernels

    def open(self, path: str | os.PathLike[str]) -> Book:
        """A notebook by path; it need not exist yet, since an edit may create it."""
        place = resolve(os.fspath(path), self.cwd)
        confine(place, self.root)
        return Book(self, place, os.fspath(path))

    def create(self, path: str | os.PathLike[str], *, kernel: str | None = None) -> dict[str, Any]:
        """Make a notebook with no cells; refuses to touch a file that is there."""
        self.require("edit", "create a notebook")
        book = self.open(path)
        if os.path.lexists(book.path):
            raise AlreadyExists(book.name)
        metadata: dict[str, Any] = {}
        if kernel is not None:
            metadata = {"kernelspec": {"name": kernel, "display_name": kernel}}
        edit = {"op": "set_metadata", "metadata": metadata}
        return book.edit([edit], create=True, label="create", kind="create")

    def list(self) -> list[dict[str, Any]]:
        """The notebooks below the root, or below the working folder, in order of their path."""
        top = self.root or self.cwd
        found = []
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
            for name in sorted(files):
                if name.endswith(".ipynb") and not name.startswith("."):
                    path = os.path.join(folder, name)  # noqa: PTH118  # as os.walk has it
                    if os.path.isfile(path):  # noqa: PTH113  # not a link that leads nowhere
                        size = os.path.getsize(path)  # noqa: PTH202
                        found.append({"path": os.path.relpath(path, self.cwd), "size": size})
        return found

    def eval(
        self,
        cells: Iterable[EvalCell | Mapping[str, Any] | str],
        *,
        session: str = "default",
        cwd: str | None = None,
        kernel: str | None = None,
        runner: bool = False,
        server: str | None = None,
        server_token: str | None = None,
        kernel_id: str | None = None,
        per_call: bool = False,
        timeout: float | None = None,
        answers: Sequence[str] = (),
        ask: Ask | None = None,
        keep_going: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Run cells of code that belong to no notebook, and stop at the first that fails.

        Args:
            cells: code, or `{code, title, language, reset, timeout}`.
            session: cells of one session and folder see what earlier ones defined.
            cwd: the folder they run in; the workspace's by default.
            kernel: a kernelspec, interpreter or environment; by default the plain Python runner.
            runner: the runner, in the interpreter that `kernel` names.
            server: the address of a Jupyter server whose kernel runs the cells.
            server_token: its token, if the address does not hold it.
            kernel_id: a kernel of the server to attach to; it is left running.
            per_call: use a kernel of its own, which ends with this call.
            timeout: seconds for each cell that has none of its own; 0 is no limit.
            answers: lines for `input()`, in order.
            ask: somebody who can be asked for more of them.
            keep_going: run the cells after one that failed, too.
            progress: gets `{"cell", "status"}` and `{"cell", "text"}` as it goes.
        """
        self.require("run", "run code")
        done = self.kernels.eval(
            cells,
            session=session,
            cwd=cwd,
            kernel=kernel,
            runner=runner,
            server=server,
            server_token=server_token,
            kernel_id=kernel_id,
            per_call=per_call,
            timeout=timeout,
            answers=answers,
            ask=ask,
            keep_going=keep_going,
            progress=progress,
        )
        rows: list[dict[str, Any]] = []
        for cell, execution in done:
            answer = {"status": "pending"} if execution is None else execution.to_json()
            rows.append({"title": cell.title, **answer})
        return {"session": session, "cells": rows}

    def sessions(self) -> Rows:
        """The sessions of this process."""
        return [] if self._kernels is None else self._kernels.sessions()

    def kernel(self, action: str, session: str, cwd: str | None = None) -> dict[str, Any]:
        """Look at a session's kernel (status, variables), or interrupt, restart, end it."""
        if action not in ("status", "variables"):
            self.require("run", f"{action} a kernel")
        return self.kernels.act(action, session, cwd)

    def kernel_specs(self) -> Rows:
        """The kernels that can be started here, and which one is meant by default."""
        from cellwright.workspace.specs import describe_specs

        return describe_specs(self.cwd, os.environ, self.settings)

    def artifact(self, ref: str, offset: int = 0, limit: int = 65536) -> dict[str, Any]:
        """A part of an artifact: text as it is, anything else as base64."""
        from cellwright.workspace.artifacts import read_part

        return read_part(self.artifacts, ref, offset, limit)

    def require(self, effect: Effect, what: str) -> None:
        """Raise `ModeForbids` unless this caller's mode allows an effect."""
        if effect not in ALLOWED[self.mode]:
            raise ModeForbids(what, self.mode, "agent")
