"""What all callers of one process share: kernels, runs, history, artifacts, hosts.

A `Workspace` has a hub of its own; an engine has one for all its clients. Nothing is made before
it is needed: a command that reads a file does not pay for an event loop.
"""

from __future__ import annotations

import threading

from cellwright.errors import ExecutionCancelled
from cellwright.workspace.activity import ActorLog, ClientWarnings, NotebookEvents
from cellwright.workspace.hosts.leases import Leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any, TypeVar

    from cellwright.config.settings import Settings
    from cellwright.document.files import Recent
    from cellwright.journal import Journal
    from cellwright.kernel.session import Session
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.workspace.api.portal import Portal
    from cellwright.workspace.hosts.host import NotebookHost, Presence
    from cellwright.workspace.notebook import OpenNotebook
    from cellwright.workspace.runs.run import RunRegistry
    from cellwright.workspace.runs.sessions import KernelStarter, SessionManager

    T = TypeVar("T")


class Hub:
    """The resources behind callers.

    Args:
        settings: how many sessions are kept, how large artifacts may be, and the like.
        journal: the history; the user's own by default.
        loop: the event loop that kernels live on; one in a thread of its own by default.
        holder: what other processes are told about the owner of a lease.
        call_in_thread: calls what blocks from the loop; by default the loop has threads for it.
        extend: awaited on the loop with this hub, before the first kernel starts.
        kernels: starts kernels; by default those of this machine and of servers.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        journal: Journal | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        holder: str = "a workspace",
        call_in_thread: Callable[..., Awaitable[Any]] | None = None,
        extend: Callable[[Hub], Awaitable[object]] | None = None,
        kernels: KernelStarter | None = None,
    ) -> None:
        self.settings = settings
        self.leases = Leases(holder)
        self.actors = ActorLog()
        self.events = NotebookEvents()
        self.warnings = ClientWarnings()
        self._hosts: dict[str, NotebookHost] = {}
        self._journal = journal
        self._loop = loop
        self._call_in_thread = call_in_thread
        self._extend = extend
        self._kernels = kernels
        self._is_closed = False
        self._recent: Recent | None = None
        self._store: ArtifactStore | None = None
        self._portal: Portal | None = None
        self._sessions: SessionManager | None = None
        self._runs: RunRegistry | None = None
        self._closers: list[Callable[[], Awaitable[object]]] = []
        self._lock = threading.RLock()  # an engine's verbs come from several threads

    # -- notebooks --------------------------------------------------------------------------

    def find_host(self, notebook: OpenNotebook) -> NotebookHost:
        """Return where a notebook lives now: an editor that has it open, or its file."""
        found = self._hosts.get(notebook.real)
        if found is not None:
            return found
        from cellwright.workspace.hosts.file import FileHost

        return FileHost(
            notebook.path,
            notebook.real,
            root=notebook.caller.root,
            name=notebook.name,
            settings=notebook.caller.settings,
            leases=self.leases,
            recent=self.recent,
        )

    def add_host(self, real: str, host: NotebookHost) -> None:
        """Let a notebook live elsewhere than in its file, until `remove_host`."""
        self._hosts[real] = host

    def remove_host(self, real: str) -> None:
        """Let a notebook live in its file again."""
        self._hosts.pop(real, None)

    def list_open(self) -> dict[str, Presence]:
        """Return the notebooks that editors have open, by real path, and where the person is."""
        return {real: host.presence() for real, host in list(self._hosts.items())}

    def is_open(self, real: str) -> bool:
        """Whether a notebook lives elsewhere than in its file now."""
        return real in self._hosts

    @property
    def journal(self) -> Journal:
        """The history of all notebooks of this user on this host."""
        with self._lock:
            if self._journal is None:
                from cellwright.journal import Journal

                self._journal = Journal(warnings=self.warnings)
            return self._journal

    @property
    def recent(self) -> Recent:
        """Notebooks that were read lately, so that they need not be parsed again."""
        with self._lock:
            if self._recent is None:
                from cellwright.document.files import Recent

                self._recent = Recent()
            return self._recent

    @property
    def artifacts(self) -> ArtifactStore:
        """Output that was too long to keep in memory, and pictures."""
        with self._lock:
            if self._store is None:
                from cellwright.config.directories import state_directory
                from cellwright.outputs.artifacts import ArtifactStore

                self._store = ArtifactStore(
                    state_directory() / "artifacts",
                    quota_bytes=self.settings.artifact_quota_bytes,
                    max_artifact_bytes=self.settings.artifact_max_bytes,
                )
            return self._store

    # -- kernels, on the loop ---------------------------------------------------------------

    @property
    def sessions(self) -> SessionManager:
        """The sessions and their kernels; to be used on the loop alone."""
        with self._lock:
            self._refuse_if_closed()
            if self._sessions is None:
                from cellwright.config.directories import runtime_directory
                from cellwright.workspace.runs.sessions import SessionManager

                extend = self._extend
                self._sessions = SessionManager(
                    self.settings,
                    self.artifacts,
                    runtime_directory(),
                    kernels=self._kernels,
                    on_start=None if extend is None else lambda: extend(self),
                    on_end=self._note_end_of_session,
                )
            return self._sessions

    @property
    def runs(self) -> RunRegistry:
        """What runs or ran lately; to be used on the loop alone."""
        with self._lock:
            self._refuse_if_closed()
            if self._runs is None:
                from cellwright.workspace.runs.run import RunRegistry

                self._runs = RunRegistry(self.events)
            return self._runs

    @property
    def has_kernels(self) -> bool:
        """Whether anything was ever run here."""
        return self._sessions is not None

    @property
    def has_runs(self) -> bool:
        """Whether there is any run to list."""
        return self._runs is not None

    @property
    def has_active_runs(self) -> bool:
        """Whether anything runs, or waits to."""
        return self._runs is not None and self._runs.has_active

    def list_active_cells(self, real: str) -> dict[str, str] | None:
        """Return the cells of a notebook that run or wait, by handle.

        None if another process runs it.
        """
        host = self._hosts.get(real)
        if host is None and not self.leases.owns(real) and self.leases.is_held(real):
            return None
        ours = self._runs.list_cells(real) if self._runs is not None else {}
        return ours if host is None else {**host.list_running(), **ours}

    def find_session(self, name: str) -> Session | None:
        """Return the open session of that name, if there is one."""
        found = self._sessions.pool if self._sessions is not None else ()
        return next(
            (each for each in found if each.key.session == name and each.state != "closed"), None
        )

    async def in_file_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Call something that blocks on a host or the journal, from the loop."""
        import asyncio
        from contextvars import copy_context

        context = copy_context()
        if self._call_in_thread is not None:
            return await self._call_in_thread(context.run, work, *args)  # type: ignore[no-any-return]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, context.run, work, *args)

    # -- from other threads -----------------------------------------------------------------

    @property
    def portal(self) -> Portal:
        """The way to the loop from other threads."""
        with self._lock:
            if self._portal is None:
                from cellwright.workspace.api.portal import Portal

                self._portal = Portal(self._loop)
            return self._portal

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the kernels, from any other thread."""
        return self.portal.call(work)

    def close(self) -> None:
        """End the kernels that were started here, and let go of the rest."""
        try:
            if self._portal is not None:
                try:
                    self._portal.call(self.end_kernels())
                finally:
                    self._portal.close()
                    self._portal = None
        finally:
            self.release_resources()

    def close_at_end(self, close: Callable[[], Awaitable[object]]) -> None:
        """Have something closed on the loop, right before the kernels are ended."""
        self._closers.append(close)

    async def end_kernels(self) -> None:
        """Stop what runs and end all sessions, for good; on the loop."""
        closers, self._closers = self._closers, []
        for close in closers:
            await close()
        if self._runs is not None:
            await self._runs.close()
        with self._lock:
            # From now on, so that a late call cannot start a kernel that would not be ended.
            self._is_closed = True
            sessions, self._sessions = self._sessions, None
        if self._runs is not None:
            await self._runs.close()  # what came in between
            self._runs = None
        if sessions is not None:
            await sessions.close()

    def release_resources(self) -> None:
        """Give up leases and the journal."""
        self.leases.close()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise ExecutionCancelled

    def _note_end_of_session(self, session: Session) -> None:
        """Give up the lease of a notebook without a kernel, unless it has another, or will soon."""
        name = session.key.session
        if session.kind != "notebook" or (self._runs is not None and self._runs.is_busy(name)):
            return
        if name in self._hosts:
            return  # it is open in an editor, which still claims it
        # Ending a kernel takes a while, in which the notebook may have got a new one.
        sessions = self._sessions.pool if self._sessions is not None else ()
        if not any(each.key == session.key for each in sessions):
            self.leases.release(name)
