"""All sessions of one process: found by key, limited in number, and checked regularly.

Eval sessions are kept up to a number for each client, and up to another in all; the least recently
used idle one makes room. The next session of the same key says what was lost. A notebook's session
stays as long as anything is attached to it, and a while longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time

from cellwright.errors import SessionNotFound, SessionsBusy
from cellwright.kernel.session import Key, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import TracebackType
    from typing import Any, Self

    from cellwright.config.settings import Settings
    from cellwright.kernel.session import Start
    from cellwright.kernel.transport import Transport

_PING_WITHIN = 2.0
_LOSSES_KEPT = 1000
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class SessionPool:
    """Sessions, made when asked for.

    `release_spare` ends the spare kernel; it is called when file descriptors run out.
    `on_new` is called for every session that begins, `on_end` for every one that has ended.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        release_spare: Callable[[], Any] | None = None,
        on_new: Callable[[Session], object] | None = None,
        on_end: Callable[[Session], object] | None = None,
    ) -> None:
        self.settings = settings
        self._on_new = on_new
        self._on_end = on_end
        self._release_spare = release_spare
        self._sessions: dict[Key, Session] = {}
        self._losses: dict[Key, str] = {}
        self._changed = asyncio.Condition()
        self.ended = 0  # how many sessions
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._tasks.add(asyncio.create_task(self._repeat(self._sweep, "session_sweep_interval")))
        self._tasks.add(asyncio.create_task(self._repeat(self._check_idle, "heartbeat_interval")))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all sessions and everything they started."""
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._end(*self._sessions.values())

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def find(
        self,
        name: str,
        cwd: str | None = None,
        is_known: Callable[[Key], bool] = lambda _: True,
    ) -> Session:
        """Find a session by name, and by folder if several have the same name.

        Those that are not known to the caller do not exist for them.

        Raises:
            SessionNotFound: there is no such session.
        """
        for key, session in self._sessions.items():
            if key.session == name and cwd in (None, key.cwd) and is_known(key):
                return session
        raise SessionNotFound(name)

    async def get(
        self,
        key: Key,
        start: Start,
        *,
        kind: str = "eval",
        owner: str | None = None,
        client: str | None = None,
    ) -> Session:
        """Get the session of that key, or make it; the least recently used idle one makes room.

        `client` is for whom an eval session is kept: each has a number of its own. A session that
        several have used counts for none of them, as none may end what the others use.

        Raises:
            SessionsBusy: no session fell idle in `session_wait_timeout` seconds.
        """
        deadline = time.monotonic() + self.settings.session_wait_timeout
        async with self._changed:
            while True:
                session = self._sessions.get(key)
                if session is not None and not session.is_closed:
                    break
                if kind != "eval" or await self._has_room(client):
                    session = Session(
                        key,
                        lambda: self._start_kernel(start),
                        self.settings,
                        kind=kind,
                        retries=kind == "eval",
                    )
                    session.loss = self._losses.pop(key, None)
                    self._sessions[key] = session
                    if self._on_new is not None:
                        self._on_new(session)
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    raise SessionsBusy(
                        len(self._list_rivals(client)), self.settings.session_wait_timeout
                    )
                # With a timeout, since a session that falls idle does not notify us.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, 0.05)):
                        await self._changed.wait()
            session.clients.add(client)
            if owner is not None:
                session.owners.add(owner)
            return session

    def detach(self, owner: str) -> None:
        """Remove an owner from all sessions; they stay until their idle timeout."""
        for session in self:
            session.owners.discard(owner)

    async def end(self, key: Key) -> None:
        """End one session."""
        if key not in self._sessions:
            raise SessionNotFound(key.session)
        await self._end(self._sessions[key])

    async def end_unstarted(self, session: Session) -> bool:
        """End a session whose kernel never started, so that the next one may have another.

        Returns whether that was so.
        """
        is_unused = session.state == "new" and not session.executions
        if is_unused and self._sessions.get(session.key) is session:
            await self._end(session)
        return is_unused

    @contextlib.asynccontextmanager
    async def per_call(self, key: Key, start: Start) -> AsyncIterator[Session]:
        """Give a session for one call; it ends with the call."""
        session = Session(key, lambda: self._start_kernel(start), self.settings, kind="per-call")
        try:
            yield session
        finally:
            await session.close()

    async def _has_room(self, client: str | None) -> bool:
        """Whether a client may have one more session; an idle one of theirs is ended for it."""
        rivals = self._list_rivals(client)
        if not rivals:
            return True
        idle = [session for session in rivals if not session.is_busy]
        if not idle:
            return False
        oldest = min(idle, key=lambda session: session.used)
        self._note_loss(oldest, f"was ended to make room, as {len(rivals)} are kept")
        await self._end(oldest)
        return True

    def _list_rivals(self, client: str | None) -> list[Session]:
        """The sessions one of which has to end before a client gets another; none if none has."""
        kept = [session for session in self if session.kind == "eval"]
        own = [session for session in kept if session.clients == {client}]
        if len(own) >= self.settings.eval_sessions_kept:
            return own
        most = max(self.settings.eval_sessions_total, self.settings.eval_sessions_kept)
        return kept if len(kept) >= most else []

    def _note_loss(self, session: Session, how: str) -> None:
        """Remember what the next call of an eval session has to say."""
        if session.kind != "eval" or not session.executions:
            return
        name = session.key.session.partition("@")[0]
        cells = "1 cell" if session.executions == 1 else f"{session.executions} cells"
        self._losses[session.key] = (
            f"The session `{name}` {how}; the variables of its {cells} are lost"
        )
        while len(self._losses) > _LOSSES_KEPT:
            del self._losses[next(iter(self._losses))]

    async def _start_kernel(self, start: Start) -> Transport:
        """Start a kernel; if descriptors run out, end the idle ones and try once more."""
        try:
            return await start()
        except Exception as error:
            if not is_out_of_files(error):
                raise
        if self._release_spare is not None:
            await self._release_spare()
        idle = [session for session in self if not session.is_busy]
        for session in idle:
            self._note_loss(session, "was ended, as file descriptors ran out")
        await self._end(*idle)
        return await start()

    async def _end(self, *sessions: Session) -> None:
        for session in sessions:
            if self._sessions.get(session.key) is session:
                del self._sessions[session.key]
        self.ended += len(sessions)
        # All of them, even if one fails: the others must not be left running.
        ended = await asyncio.gather(
            *(session.close() for session in sessions), return_exceptions=True
        )
        if self._on_end is not None:
            for session in sessions:
                self._on_end(session)
        if not self._changed.locked():
            async with self._changed:
                self._changed.notify_all()
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure

    async def _repeat(self, work: Callable[[], Any], interval: str) -> None:
        while True:
            await asyncio.sleep(getattr(self.settings, interval))
            with contextlib.suppress(Exception):  # a failure must not end the loop
                await work()

    async def _sweep(self) -> None:
        """End sessions that have not been used for their idle timeout."""
        now = time.monotonic()
        old = []
        for session in self:
            limit = self.settings.eval_session_idle_timeout
            if session.kind == "notebook":
                limit = self.settings.notebook_session_idle_timeout
                if session.owners:
                    continue
            if not session.is_busy and now - session.used > limit:
                self._note_loss(session, f"was not used for {limit:g} s and has ended")
                old.append(session)
        await self._end(*old)

    async def _check_idle(self) -> None:
        """Ask idle kernels whether they live; dead ones are replaced before their next cell."""
        await asyncio.gather(*(session.check(_PING_WITHIN) for session in self))


def is_out_of_files(error: BaseException | None) -> bool:
    """Whether an error means that file descriptors ran out, in this process or the system."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _TOO_MANY_FILES:
            return True
        if "too many open files" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False
