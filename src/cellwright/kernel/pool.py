"""All sessions of one owner process: found by key, bounded in number, looked after.

Eval sessions are kept up to a number; the least recently used idle one makes room. A notebook's
session stays as long as anything is attached to it, and a while longer.
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
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class SessionPool:
    """Sessions, made when asked for.

    `release_spare` frees what is kept ahead of need; it is called when descriptors run out.
    `on_new` and `on_end` are told of every session that begins, and that is over.
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
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._tasks.add(asyncio.create_task(self._every(self._sweep, "session_sweep_interval")))
        self._tasks.add(asyncio.create_task(self._every(self._beat, "heartbeat_interval")))
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

    def find(self, name: str, cwd: str | None = None) -> Session:
        """A session that there is, by name, and by folder where several share one.

        Raises:
            SessionNotFound: there is none.
        """
        for key, session in self._sessions.items():
            if key.session == name and cwd in (None, key.cwd):
                return session
        raise SessionNotFound(name)

    async def get(
        self, key: Key, start: Start, *, kind: str = "eval", owner: str | None = None
    ) -> Session:
        """The session of that key; a new one makes room by ending the oldest idle one.

        Raises:
            SessionsBusy: all that may be kept were busy for as long as one may wait.
        """
        deadline = time.monotonic() + self.settings.session_wait_timeout
        async with self._changed:
            while True:
                session = self._sessions.get(key)
                if session is not None and not session.is_closed:
                    break
                if kind != "eval" or await self._has_room():
                    session = Session(
                        key,
                        lambda: self._started(start),
                        self.settings,
                        kind=kind,
                        retries=kind == "eval",
                    )
                    self._sessions[key] = session
                    if self._on_new is not None:
                        self._on_new(session)
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    raise SessionsBusy(
                        self.settings.eval_sessions_kept, self.settings.session_wait_timeout
                    )
                # Also by the clock: a session that falls idle tells nobody.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, 0.05)):
                        await self._changed.wait()
            if owner is not None:
                session.owners.add(owner)
            return session

    async def release(self, owner: str) -> None:
        """An owner is gone: eval sessions that were its alone end, notebooks' grow idle."""
        orphans = []
        for session in self:
            had = owner in session.owners
            session.owners.discard(owner)
            if had and not session.owners and session.kind == "eval":
                orphans.append(session)
        await self._end(*orphans)

    def detach(self, owner: str) -> None:
        """An owner looks away: its sessions stay, and grow idle if nobody else uses them."""
        for session in self:
            session.owners.discard(owner)

    async def end(self, key: Key) -> None:
        """End one session."""
        if key not in self._sessions:
            raise SessionNotFound(key.session)
        await self._end(self._sessions[key])

    @contextlib.asynccontextmanager
    async def per_call(self, key: Key, start: Start) -> AsyncIterator[Session]:
        """A session for one call, which ends with it."""
        session = Session(key, lambda: self._started(start), self.settings, kind="per-call")
        try:
            yield session
        finally:
            await session.close()

    async def _has_room(self) -> bool:
        kept = [session for session in self if session.kind == "eval"]
        if len(kept) < self.settings.eval_sessions_kept:
            return True
        idle = [session for session in kept if not session.is_busy]
        if not idle:
            return False
        await self._end(min(idle, key=lambda session: session.used))
        return True

    async def _started(self, start: Start) -> Transport:
        """A kernel that is ready; when descriptors run out, others make room for it, once."""
        try:
            return await start()
        except Exception as error:
            if not is_out_of_files(error):
                raise
        if self._release_spare is not None:
            await self._release_spare()
        await self._end(*[session for session in self if not session.is_busy])
        return await start()

    async def _end(self, *sessions: Session) -> None:
        for session in sessions:
            if self._sessions.get(session.key) is session:
                del self._sessions[session.key]
        # All of them, also if one fails: whoever asked for the end must not leave others running.
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

    async def _every(self, look: Callable[[], Any], interval: str) -> None:
        while True:
            await asyncio.sleep(getattr(self.settings, interval))
            with contextlib.suppress(Exception):  # one bad look must not be the last
                await look()

    async def _sweep(self) -> None:
        """End sessions that nobody has used for long, and forget those that are dead."""
        now = time.monotonic()
        old = []
        for session in self:
            limit = self.settings.eval_session_idle_timeout
            if session.kind == "notebook":
                limit = self.settings.notebook_session_idle_timeout
                if session.owners:
                    continue
            if not session.is_busy and now - session.used > limit:
                old.append(session)
        await self._end(*old)

    async def _beat(self) -> None:
        """Ask idle kernels whether they live; the dead are replaced before their next cell."""
        await asyncio.gather(*(session.check(_PING_WITHIN) for session in self))


def is_out_of_files(error: BaseException | None) -> bool:
    """Whether an error comes from running out of descriptors, here or in the system."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _TOO_MANY_FILES:
            return True
        if "too many open files" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False
