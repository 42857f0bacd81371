"""The kernels of a workspace in this process, for callers that block."""

from __future__ import annotations

import os

from cellwright.errors import InvalidEdit
from cellwright.workspace.eval_call import EvalCall, EvalCell
from cellwright.workspace.evaluation import Evaluator
from cellwright.workspace.portal import Portal
from cellwright.workspace.variables import list_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.execution import Execution as Evaluated
    from cellwright.kernel.running import Ask
    from cellwright.kernel.session import Session
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.workspace.book import Book
    from cellwright.workspace.evaluation import Progress
    from cellwright.workspace.running import Execution
    from cellwright.workspace.workspace import Workspace

ACTIONS = ("status", "interrupt", "restart", "variables", "shutdown")


class Kernels:
    """Sessions of one workspace; they end with it."""

    def __init__(self, workspace: Workspace, store: ArtifactStore) -> None:
        from cellwright.config.directories import runtime_directory

        self._workspace = workspace
        self._portal = Portal()
        self._evaluator = Evaluator(workspace.settings, store, runtime_directory())

    def close(self) -> None:
        """End all sessions and everything they started."""
        try:
            self._portal.call(self._evaluator.close())
        finally:
            self._portal.close()

    def eval(
        self,
        cells: Iterable[EvalCell | Mapping[str, Any] | str],
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        environ: Mapping[str, str] | None = None,
        **options: Any,
    ) -> list[tuple[EvalCell, Evaluated | None]]:
        """Run cells in a session; see `Workspace.eval`."""
        parsed = [EvalCell.parse(cell, position) for position, cell in enumerate(cells)]
        call = EvalCall(
            cwd=options.pop("cwd", None) or self._workspace.cwd,
            environ=dict(os.environ if environ is None else environ),
            root=self._workspace.root,
            mode=self._workspace.mode,
            owner=self._workspace.actor,
            **options,
        )
        done = self._portal.call(self._evaluator.eval(parsed, call, progress=progress, ask=ask))
        return list(zip(parsed, done, strict=True))

    def run(
        self, book: Book, notebook: Notebook, cells: Sequence[Cell], **options: Any
    ) -> list[Execution]:
        """Run cells of a notebook; see `Book.run`."""
        from cellwright.workspace.running import NotebookRun

        return self._portal.call(NotebookRun(book, self._evaluator, **options).run(notebook, cells))

    def life(self, path: str) -> str:
        """The life of the kernel that a notebook has now; a new one, if it has none."""

        async def found() -> str:
            for session in self._evaluator.pool:
                if session.key.session == path and session.state != "dead":
                    return session.life
            return "none yet"

        return self._portal.call(found())

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions there are."""

        async def listed() -> list[dict[str, Any]]:
            return [session.to_json() for session in self._evaluator.pool]

        return self._portal.call(listed())

    def act(self, action: str, name: str, cwd: str | None = None) -> dict[str, Any]:
        """Look at a session's kernel, or do something to it."""
        if action not in ACTIONS:
            raise InvalidEdit(f"Unknown action {action!r}", hint=f"One of {', '.join(ACTIONS)}")
        return self._portal.call(self._act(action, name, cwd))

    async def _act(self, action: str, name: str, cwd: str | None) -> dict[str, Any]:
        pool = self._evaluator.pool
        session: Session = pool.find(name, cwd)
        more: dict[str, Any] = {}
        if action == "interrupt":
            more["interrupted"] = session.interrupt()
        elif action == "restart":
            await session.restart()
        elif action == "variables":
            more["variables"] = await list_variables(session)
        elif action == "shutdown":
            await pool.end(session.key)
        return {**session.to_json(), **more}
