"""The verbs of a workspace, carried out by the engine."""

from __future__ import annotations

import threading

from cellwright.engine import verbs
from cellwright.engine.client import EngineClient
from cellwright.engine.greeting import hello
from cellwright.engine.starting import greeted
from cellwright.errors import EngineError, EngineUnavailable
from cellwright.workspace.book import Book
from cellwright.workspace.forwarding import forwarded, to_json
from cellwright.workspace.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import socket
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Self

    from cellwright.document.notebook import Notebook
    from cellwright.workspace.workspace import Mode


def connect(
    root: str | os.PathLike[str] | None = None,
    *,
    cwd: str | None = None,
    mode: Mode = "agent",
    actor: str = "python:caller",
    environ: Mapping[str, str] | None = None,
    start: bool = True,
) -> EngineWorkspace | None:
    """A workspace whose kernels live in the engine, and outlive this process.

    An engine is started if none runs and `start` is true; without it the answer may be None. The
    rest is as for `Workspace`.

    Raises:
        EngineUnavailable: it could not be started.
        EngineDraining: the one that runs takes no new work.
    """
    here = Workspace(root, cwd=cwd, mode=mode, actor=actor, environ=environ)
    workspace = EngineWorkspace(here, start=start)
    return workspace if workspace.is_connected else None


class EngineWorkspace:
    """The verbs of `Workspace`, over the engine's socket.

    Threads may share it: calls at the same time go over connections of their own. When the engine
    has gone away, the next call finds or starts another.
    """

    def __init__(self, here: Workspace, *, start: bool = True) -> None:
        self.cwd, self.root, self.mode, self.actor = here.cwd, here.root, here.mode, here.actor
        self._here = here
        self._starts = start
        self._guard = threading.Lock()
        self._is_closed = False
        first = self._connected()
        self._idle = [first] if first is not None else []

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
        """Hang up; kernels and runs stay where they are."""
        with self._guard:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()
        self._here.close()

    @property
    def is_connected(self) -> bool:
        """Whether there is an engine to talk to, as far as is known."""
        return bool(self._idle)

    def open(self, path: str | os.PathLike[str]) -> EngineBook:
        """A notebook by path; it need not exist yet, since an edit may create it."""
        return EngineBook(self, self._here.open(path))

    list = forwarded(Workspace.list)
    create = forwarded(Workspace.create)
    eval = forwarded(Workspace.eval)
    runs = forwarded(Workspace.runs)
    attach = forwarded(Workspace.attach)
    cancel = forwarded(Workspace.cancel)
    watch = forwarded(Workspace.watch)
    sessions = forwarded(Workspace.sessions)
    kernel = forwarded(Workspace.kernel)
    kernel_specs = forwarded(Workspace.kernel_specs)
    artifact = forwarded(Workspace.artifact)

    def status(self) -> dict[str, Any]:
        """What the engine is and does."""
        found: dict[str, Any] = self._call("status", {})
        return found

    def stop(self) -> dict[str, Any]:
        """Tell the engine to end its kernels and leave."""
        found: dict[str, Any] = self._call("stop", {})
        return found

    def _call(self, verb: str, params: dict[str, Any], *, connects: bool = True) -> Any:
        progress, ask = params.pop("progress", None), params.pop("ask", None)
        until = params.pop("until", None)
        client = self._take(connects=connects)
        try:
            found = client.call(verb, to_json(params), progress=progress, ask=ask, until=until)
        finally:
            self._give_back(client)
        return verbs.from_wire(verb, found)

    def _connected(self) -> EngineClient | None:
        here = self._here

        def words() -> dict[str, Any]:
            return hello(
                cwd=here.cwd,
                root=here.root,
                mode=here.mode,
                actor=here.actor,
                environ=here.environ,
            )

        def greet(connected: socket.socket) -> EngineClient:
            return EngineClient(connected, words)

        return greeted(greet, start=self._starts)

    def _take(self, *, connects: bool) -> EngineClient:
        with self._guard:
            while self._idle:
                client = self._idle.pop()
                if client.is_usable:
                    return client
                client.close()
        fresh = self._connected() if connects and not self._is_closed else None
        if fresh is None:
            raise EngineUnavailable("this workspace is closed" if self._is_closed else "none runs")
        return fresh

    def _give_back(self, client: EngineClient) -> None:
        with self._guard:
            if self._is_closed or client.is_broken:
                client.close()
            else:
                self._idle.append(client)


class EngineBook:
    """The verbs of `Book`, over the engine's socket."""

    def __init__(self, workspace: EngineWorkspace, here: Book) -> None:
        self.workspace = workspace
        self.name, self.path, self.real = here.name, here.path, here.real
        self._here = here

    def load(self) -> Notebook:
        """The notebook as it is now; its revision is remembered, to serve as a base."""
        return self._here.load()

    read = forwarded(Book.read)
    select = forwarded(Book.select)
    outputs = forwarded(Book.outputs)
    run = forwarded(Book.run)
    stale = forwarded(Book.stale)
    executions = forwarded(Book.executions)
    raw = forwarded(Book.raw)
    edit = forwarded(Book.edit)
    write = forwarded(Book.write)
    upgrade = forwarded(Book.upgrade)
    undo = forwarded(Book.undo)
    redo = forwarded(Book.redo)
    restore = forwarded(Book.restore)
    log = forwarded(Book.log)
    blame = forwarded(Book.blame)
    backups = forwarded(Book.backups)
    diff = forwarded(Book.diff)

    def warnings(self) -> list[str]:
        """What the journal could not do since it was last asked."""
        try:
            # An engine that is gone has nothing to add, and a new one would know nothing.
            found: list[str] = self.workspace._call(  # noqa: SLF001
                "warnings", {"path": self.name}, connects=False
            )
        except EngineError:
            return []
        return found

    def _call(self, verb: str, params: dict[str, Any]) -> Any:
        return self.workspace._call(verb, {**params, "path": self.name})  # noqa: SLF001
