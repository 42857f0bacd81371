"""The verbs on kernels, for callers that block: eval, run, and what looks after them."""

from __future__ import annotations

import asyncio

from cellwright.errors import InvalidEdit, OutsideRoot, RunNotFound
from cellwright.workspace.eval_call import EvalCall, EvalCell
from cellwright.workspace.executions import Executions
from cellwright.workspace.following import describe_run, watched, while_watched
from cellwright.workspace.paths import confine
from cellwright.workspace.variables import list_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.session import Ask
    from cellwright.workspace.book import Book
    from cellwright.workspace.evaluation import Progress
    from cellwright.workspace.runs import Run
    from cellwright.workspace.workspace import Workspace

    T = TypeVar("T")

ACTIONS = ("status", "interrupt", "restart", "variables", "shutdown")


class Kernels:
    """What one caller does with the kernels of a hub."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._hub = workspace.hub

    # -- running ----------------------------------------------------------------------------

    def eval(
        self, cells: Iterable[EvalCell | Mapping[str, Any] | str], **options: Any
    ) -> dict[str, Any]:
        """Run cells in a session; see `Workspace.eval`."""
        return self._hub.call(self.evaluated(cells, **options))

    async def evaluated(
        self,
        cells: Iterable[EvalCell | Mapping[str, Any] | str],
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        detach: float | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """The same, for callers that are on the loop of the kernels themselves."""
        workspace = self._workspace
        parsed = [EvalCell.parse(cell, position) for position, cell in enumerate(cells)]
        call = EvalCall(
            cwd=options.pop("cwd", None) or workspace.cwd,
            environ=workspace.environ,
            root=workspace.root,
            mode=workspace.mode,
            owner=workspace.owner,
            **options,
        )
        so_far: list[dict[str, Any]] = [
            {"title": cell.title, "status": "pending"} for cell in parsed
        ]

        async def work(run: Run) -> dict[str, Any]:
            run.state = "running"
            await self._hub.evaluator.eval(
                parsed,
                call,
                progress=run.report,
                ask=while_watched(run, ask),
                stop=run.stop,
                done=lambda place, execution: so_far[place].update(execution.to_json()),
            )
            return {"session": call.session, "cells": so_far}

        run = await self._follow("eval", call.session, work, progress=progress, detach=detach)
        # As it is now: what comes after a detached answer does not change it.
        cells_now = [dict(cell) for cell in so_far]
        return {"session": call.session, "cells": cells_now, "run": run.id, "done": run.is_over}

    def run(
        self, book: Book, notebook: Notebook, cells: Sequence[Cell], **options: Any
    ) -> Executions:
        """Run cells of a notebook; see `Book.run`."""
        return self._hub.call(self.ran(book, notebook, cells, **options))

    async def ran(
        self,
        book: Book,
        notebook: Notebook,
        cells: Sequence[Cell],
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        detach: float | None = None,
        **options: Any,
    ) -> Executions:
        """The same, for callers that are on the loop of the kernels themselves."""
        so_far = Executions.pending(cells)
        work = self.work(book, notebook, cells, so_far, ask=ask, **options)
        handles = [cell.handle for cell in cells]
        run = await self._follow(
            "run", book.real, work, progress=progress, detach=detach, cells=handles
        )
        return so_far.as_of(run)

    def work(
        self,
        book: Book,
        notebook: Notebook,
        cells: Sequence[Cell],
        so_far: Executions,
        *,
        ask: Ask | None = None,
        **options: Any,
    ) -> Callable[[Run], Awaitable[Executions]]:
        """What a run of a notebook does, in its turn; `so_far` is filled as it goes."""
        from cellwright.workspace.file_host import FileHost
        from cellwright.workspace.running import NotebookRun

        hub = self._hub
        hub.presence.note(book.real, self._workspace.actor, "run")

        async def work(run: Run) -> Executions:
            async with hub.runs.turns.of(book.real):
                run.state = "running"
                if not hub.leases.owns(book.real):
                    # That may take a moment, and other kernels must not wait for it.
                    await asyncio.to_thread(hub.leases.own, book.real)
                hub.evaluator.comms.serve(book.real, FileHost(book))
                try:
                    going = NotebookRun(
                        book,
                        hub.evaluator,
                        progress=run.report,
                        ask=while_watched(run, ask),
                        stop=run.stop,
                        done=so_far.put,
                        **options,
                    )
                    await going.run(notebook, cells)
                finally:
                    hub.presence.note(book.real, self._workspace.actor, "run")
                    if self._session(book.real) is None:
                        hub.leases.release(book.real)
            return so_far

        return work

    async def _follow(
        self,
        kind: str,
        subject: str,
        work: Callable[[Run], Awaitable[Any]],
        *,
        progress: Progress | None,
        detach: float | None,
        cells: Sequence[str] = (),
    ) -> Run:
        """Start a run and wait for it; whoever is interrupted meanwhile stops it."""
        if detach is not None and detach < 0:
            raise InvalidEdit(f"`detach` is {detach:g}", hint="Seconds to wait, from 0")

        run = self._hub.runs.start(kind, subject, self._workspace.actor, work, cells)
        if progress is not None:
            progress({"run": run.id})
        await watched(run, progress, detach)
        if run.error is not None:
            raise run.error
        return run

    # -- runs by id -------------------------------------------------------------------------

    def runs(self) -> list[dict[str, Any]]:
        """What runs, and what ran lately, the newest first."""
        found = self._hub.call(_listed(self._hub.runs.list)) if self._hub.has_runs else []
        return [run for run in found if run["kind"] != "run" or self._is_inside(run["subject"])]

    def _get(self, run_id: str) -> Run:
        """A run that this caller may know of."""
        run = self._hub.runs.get(run_id)
        if run.kind == "run" and not self._is_inside(run.subject):
            raise RunNotFound(run_id)
        return run

    def _is_inside(self, real: str) -> bool:
        try:
            confine(real, self._workspace.root)
        except OutsideRoot:
            return False
        return True

    def attach(
        self, run_id: str, *, progress: Progress | None = None, wait: float | None = None
    ) -> dict[str, Any]:
        """Watch a run from its beginning to its end, or so long."""

        async def follow() -> Run:
            run = self._get(run_id)
            # Whoever only watches does not stop it by looking away.
            await watched(run, progress, wait, from_start=True, stops=False)
            return run

        return describe_run(self._hub.call(follow()))

    def cancel(self, run_id: str) -> dict[str, Any]:
        """Stop a run, and wait until its kernel has obeyed or was ended."""

        async def stop() -> tuple[Run, bool]:
            run = self._get(run_id)
            stopped = run.cancel()
            await run.wait()
            return run, stopped

        run, stopped = self._hub.call(stop())
        return {**describe_run(run), "cancelled": stopped}

    # -- sessions ---------------------------------------------------------------------------

    def _session(self, name: str) -> Any:
        pool = self._hub.evaluator.pool if self._hub.has_kernels else ()
        found = (each for each in pool if each.key.session == name)
        return next((each for each in found if each.state != "closed"), None)

    def life(self, path: str) -> str:
        """The life of the kernel that a notebook has now; a new one, if it has none."""

        def found() -> str:
            session = self._session(path)
            kernel = None if session is None else session.transport
            return session.life if kernel is not None and kernel.is_alive else "none yet"

        return self._hub.call(_listed(found)) if self._hub.has_kernels else "none yet"

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions there are."""
        if not self._hub.has_kernels:
            return []
        found = self._hub.call(_listed(lambda: list(self._hub.evaluator.pool)))
        return [
            session.to_json()
            for session in found
            if session.kind != "notebook" or self._is_inside(session.key.session)
        ]

    def act(self, action: str, name: str, cwd: str | None = None) -> dict[str, Any]:
        """Look at a session's kernel, or do something to it."""
        if action not in ACTIONS:
            raise InvalidEdit(f"Unknown action {action!r}", hint=f"One of {', '.join(ACTIONS)}")
        if name.endswith(".ipynb"):  # a notebook's session is named by its real path
            name = self._workspace.open(name).real
        return self._hub.call(self._act(action, name, cwd))

    async def _act(self, action: str, name: str, cwd: str | None) -> dict[str, Any]:
        pool = self._hub.evaluator.pool
        session = pool.find(name, cwd)
        if session.kind == "notebook":
            confine(session.key.session, self._workspace.root)
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


async def _listed(look: Callable[[], T]) -> T:
    return look()
