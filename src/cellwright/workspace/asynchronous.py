"""The verbs of a workspace, to be awaited: in this process, or wherever they are carried out."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from cellwright.workspace.book import Book
from cellwright.workspace.forwarding import awaited
from cellwright.workspace.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from cellwright.document.notebook import Notebook
    from cellwright.kernel.events import InputRequested
    from cellwright.kernel.session import Ask
    from cellwright.workspace.workspace import Mode

    Progress = Callable[[dict[str, Any]], object]


_THREADS = 256


class WorkspaceApi(Protocol):
    """The seam: something that carries out verbs, given as a name and data.

    A call that is cancelled stops the run it has started, and ends when that has.
    """

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        until: Callable[[], bool] | None = None,
    ) -> Any:
        """Carry out a verb; a notebook's has its `path` among the parameters."""
        ...

    async def close(self) -> None:
        """Let go of everything that is this caller's alone."""
        ...


class InProcess:
    """Carries out verbs in this process, in threads."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        # Not asyncio's few: whoever waits for a kernel must not keep others from stopping it.
        self._threads = ThreadPoolExecutor(_THREADS, "verb")

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        until: Callable[[], bool] | None = None,
    ) -> Any:
        """Carry out a verb."""
        loop = asyncio.get_running_loop()
        runs: list[str] = []
        over = threading.Event()

        def report(event: dict[str, Any]) -> None:
            if event.keys() == {"run"}:
                runs.append(event["run"])
                if over.is_set():  # it was too late to stop it before it began
                    self._workspace.hub.runs.get(event["run"]).cancel()
            if progress is not None:
                loop.call_soon_threadsafe(progress, event)

        async def asked(request: InputRequested) -> str | None:
            assert ask is not None  # noqa: S101  # else this is not called
            there = asyncio.run_coroutine_threadsafe(_await(ask, request), loop)
            return await asyncio.wrap_future(there)

        target: Any = self._workspace
        if "path" in params and hasattr(Book, verb):
            params = dict(params)
            target = target.open(params.pop("path"))
        is_running = verb in ("eval", "run") or (verb == "edit" and params.get("run") is not None)
        if is_running or verb in ("attach", "watch"):
            params = {**params, "progress": report}
        if verb == "watch":
            params["until"] = lambda: over.is_set() or (until is not None and until())
        if ask is not None:
            params["ask"] = asked
        work = loop.run_in_executor(self._threads, partial(getattr(target, verb), **params))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            over.set()
            if is_running:
                for run in runs:
                    cancel = partial(self._workspace.kernels.cancel, run)
                    await loop.run_in_executor(self._threads, cancel)
                await asyncio.wait([work])
                work.exception()  # seen
            raise

    async def close(self) -> None:
        """End the kernels that were started here."""
        await asyncio.to_thread(self._workspace.close)
        self._threads.shutdown(wait=False)


async def _await(ask: Ask, request: InputRequested) -> str | None:
    return await ask(request)


class AsyncWorkspace:
    """The verbs of `Workspace`, to be awaited.

    Arguments are those of `Workspace`. `api` carries the verbs out; in this process by default.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        cwd: str | None = None,
        mode: Mode = "agent",
        actor: str = "python:caller",
        environ: Mapping[str, str] | None = None,
        api: WorkspaceApi | None = None,
    ) -> None:
        self._here = Workspace(root, cwd=cwd, mode=mode, actor=actor, environ=environ)
        self._api = api or InProcess(self._here)
        self.cwd, self.root, self.mode, self.actor = self._here.cwd, self._here.root, mode, actor

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the kernels that were started here, or hang up."""
        await self._api.close()
        await asyncio.to_thread(self._here.close)

    def open(self, path: str | os.PathLike[str]) -> AsyncBook:
        """A notebook by path; it need not exist yet, since an edit may create it."""
        return AsyncBook(self, self._here.open(path))

    list = awaited(Workspace.list)
    create = awaited(Workspace.create)
    eval = awaited(Workspace.eval)
    runs = awaited(Workspace.runs)
    attach = awaited(Workspace.attach)
    cancel = awaited(Workspace.cancel)
    watch = awaited(Workspace.watch)
    sessions = awaited(Workspace.sessions)
    kernel = awaited(Workspace.kernel)
    kernel_specs = awaited(Workspace.kernel_specs)
    artifact = awaited(Workspace.artifact)

    async def _call(self, verb: str, params: dict[str, Any]) -> Any:
        progress, ask = params.pop("progress", None), params.pop("ask", None)
        until = params.pop("until", None)
        return await self._api.call(verb, params, progress=progress, ask=ask, until=until)


class AsyncBook:
    """The verbs of `Book`, to be awaited."""

    def __init__(self, workspace: AsyncWorkspace, here: Book) -> None:
        self.workspace = workspace
        self.name, self.path, self.real = here.name, here.path, here.real
        self._here = here

    async def load(self) -> Notebook:
        """The notebook as it is now; its revision is remembered, to serve as a base."""
        return await asyncio.to_thread(self._here.load)

    read = awaited(Book.read)
    select = awaited(Book.select)
    outputs = awaited(Book.outputs)
    run = awaited(Book.run)
    stale = awaited(Book.stale)
    executions = awaited(Book.executions)
    raw = awaited(Book.raw)
    edit = awaited(Book.edit)
    write = awaited(Book.write)
    upgrade = awaited(Book.upgrade)
    undo = awaited(Book.undo)
    redo = awaited(Book.redo)
    restore = awaited(Book.restore)
    log = awaited(Book.log)
    blame = awaited(Book.blame)
    backups = awaited(Book.backups)
    diff = awaited(Book.diff)
    warnings = awaited(Book.warnings)

    async def _call(self, verb: str, params: dict[str, Any]) -> Any:
        return await self.workspace._call(verb, {**params, "path": self.name})  # noqa: SLF001
