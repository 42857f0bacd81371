"""What all callers of one process share: kernels, runs, history, artifacts, and who holds what.

A `Workspace` of its own has a hub of its own; an engine has one for all its clients. Nothing is
made before it is needed: a command that reads a file pays for no event loop.
"""

from __future__ import annotations

import threading

from cellwright.errors import ExecutionCancelled
from cellwright.workspace.callers import Warnings
from cellwright.workspace.events import Events
from cellwright.workspace.leases import Leases
from cellwright.workspace.presence import Presence

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
    from cellwright.workspace.evaluation import Evaluator
    from cellwright.workspace.portal import Portal
    from cellwright.workspace.runs import Runs

    T = TypeVar("T")


class Hub:
    """The resources behind workspaces.

    Args:
        settings: how many sessions are kept, how large artifacts may be, and the like.
        journal: the history; the user's own by default.
        loop: the event loop that kernels live on; one in a thread of its own by default.
        holder: what the owner of a lease is called to others.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        journal: Journal | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        holder: str = "a workspace",
    ) -> None:
        self.settings = settings
        self.leases = Leases(holder)
        self.presence = Presence()
        self.events = Events()
        self.warnings = Warnings()
        self._journal = journal
        self._loop = loop
        self._is_closed = False
        self._recent: Recent | None = None
        self._store: ArtifactStore | None = None
        self._portal: Portal | None = None
        self._evaluator: Evaluator | None = None
        self._runs: Runs | None = None
        self._closers: list[Callable[[], Awaitable[object]]] = []
        self._making = threading.RLock()  # an engine's verbs come from several threads

    @property
    def journal(self) -> Journal:
        """The history of all notebooks of this user on this host."""
        with self._making:
            if self._journal is None:
                from cellwright.journal import Journal

                self._journal = Journal(warnings=self.warnings)
            return self._journal

    @property
    def recent(self) -> Recent:
        """Notebooks that were lately read, for whoever reads one again."""
        with self._making:
            if self._recent is None:
                from cellwright.document.files import Recent

                self._recent = Recent()
            return self._recent

    @property
    def artifacts(self) -> ArtifactStore:
        """Output that was too long to keep in memory, and pictures."""
        with self._making:
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
    def evaluator(self) -> Evaluator:
        """Sessions and what runs in them; to be used on the loop alone."""
        with self._making:
            self._refuse_if_closed()
            if self._evaluator is None:
                from cellwright.config.directories import runtime_directory
                from cellwright.workspace.evaluation import Evaluator

                self._evaluator = Evaluator(
                    self.settings,
                    self.artifacts,
                    runtime_directory(),
                    on_end=self._session_ended,
                )
            return self._evaluator

    @property
    def runs(self) -> Runs:
        """Everything that runs or has run lately; to be used on the loop alone."""
        with self._making:
            self._refuse_if_closed()
            if self._runs is None:
                from cellwright.workspace.runs import Runs

                self._runs = Runs(self.events)
            return self._runs

    @property
    def has_kernels(self) -> bool:
        """Whether anything was ever run here."""
        return self._evaluator is not None

    @property
    def has_runs(self) -> bool:
        """Whether there is any run to tell of."""
        return self._runs is not None

    def now(self, real: str) -> dict[str, str] | None:
        """The cells of a notebook that run or wait, by handle; None if others may run it."""
        if not self.leases.owns(real):
            return None
        return self._runs.cells(real) if self._runs is not None else {}

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the kernels, from any other thread."""
        with self._making:
            if self._portal is None:
                from cellwright.workspace.portal import Portal

                self._portal = Portal(self._loop)
        return self._portal.call(work)

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
            self.let_go()

    def at_end(self, close: Callable[[], Awaitable[object]]) -> None:
        """Have something closed on the loop, right before the kernels are ended."""
        self._closers.append(close)

    async def end_kernels(self) -> None:
        """Stop what runs and end all sessions, for good; on the loop."""
        closers, self._closers = self._closers, []
        for close in closers:
            await close()
        if self._runs is not None:
            await self._runs.close()
        with self._making:
            # From now on, so that a call which is late starts no kernel that nobody would end.
            self._is_closed = True
            evaluator, self._evaluator = self._evaluator, None
        if self._runs is not None:
            await self._runs.close()  # what came in between
            self._runs = None
        if evaluator is not None:
            await evaluator.close()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise ExecutionCancelled

    def let_go(self) -> None:
        """Give up leases and the journal."""
        self.leases.close()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _session_ended(self, session: Session) -> None:
        """A notebook without a kernel is nobody's, unless it has another, or is about to."""
        name = session.key.session
        if session.kind != "notebook" or (self._runs is not None and self._runs.is_at(name)):
            return
        # Ending a kernel takes a while, in which the notebook may have got a new one.
        sessions = self._evaluator.pool if self._evaluator is not None else ()
        if not any(each.key == session.key for each in sessions):
            self.leases.release(name)
