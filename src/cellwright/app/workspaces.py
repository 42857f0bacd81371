"""Which workspace a door gets: the engine's, if there is one or may be one, or one in process."""

from __future__ import annotations

import getpass
import os

from cellwright.app import AsyncWorkspace, Workspace
from cellwright.errors import EngineError
from cellwright.workspace.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.assistant.chat import ChatWorkspaces
    from cellwright.workspace.api.requests import Mode, PathLike

    Warn = Callable[[str], object]

_TRIES, _PAUSE = 10, 0.5


def name_actor(door: str, name: str | None = None) -> str:
    """Return who is asking, as `door:name`; by default the user of this process."""
    if name is None:
        try:
            name = getpass.getuser()
        except (OSError, KeyError):  # no such user in this container
            name = str(os.getuid())
    return f"{door}:{name}"


def open_workspace(
    root: PathLike | None,
    *,
    mode: Mode = "agent",
    actor: str,
    use_engine: bool = True,
    start: bool = False,
    warn: Warn,
) -> Workspace:
    """Return the workspace of a door that blocks.

    An engine that runs is used by every door, so that all see one state. With `start`, one is
    started for what needs a kernel, unless the settings or `CI` forbid it. If it cannot be
    reached, `warn` gets a sentence, and the workspace is in this process.
    """
    # The variable alone, before anything is imported: most commands end within milliseconds.
    if use_engine and os.environ.get("CELLWRIGHT_ENGINE", "") != "never":
        found = _connect(root, mode, actor, start=start, warn=warn)
        if found is not None:
            return found
    return Workspace(root, mode=mode, actor=actor, engine=False)


def _connect(
    root: PathLike | None, mode: Mode, actor: str, *, start: bool, warn: Warn
) -> Workspace | None:
    from cellwright.engine import location

    try:
        if not start and not os.path.exists(location.socket_path()):  # noqa: PTH110
            return None
        setting = _read_setting()
        if setting == "never":
            return None
        from cellwright.engine.client import connect

        starts = start and (setting == "always" or not _is_ci())
        return connect(root, mode=mode, actor=actor, start=starts)
    except (EngineError, OSError) as error:
        warn(f"{error}; working in this process alone")
        return None


class SharedWorkspaces:
    """Workspaces of several actors and modes that share kernels: the engine's, or this process's.

    Args:
        root: no path may lead out of it.
        cwd: relative paths begin there; by default at the root.
        engine: whether the engine is used, which is started if needed; if it cannot be reached,
            and without it, kernels live and die in this process.
        warn: gets a sentence if the engine cannot be reached.
    """

    def __init__(
        self, root: PathLike, *, cwd: str | None = None, engine: bool = False, warn: Warn = str
    ) -> None:
        self.root = os.fspath(root)
        self.cwd = cwd or self.root
        self._uses_engine = engine
        self._warn = warn
        self._host: Caller | None = None  # has the hub that the workspaces of this process share
        self._was_connected = False

    async def connect(self, actor: str, mode: Mode = "agent") -> AsyncWorkspace:
        """Return a new workspace, which the caller closes."""
        if self._uses_engine and self._host is None:
            found = await self._connect_to_engine(actor, mode)
            if found is not None:
                return found
        if self._host is None:
            self._host = Caller(self.root, cwd=self.cwd, actor=actor)
        return AsyncWorkspace(self.root, cwd=self.cwd, mode=mode, actor=actor, hub=self._host.hub)

    async def close(self) -> None:
        """End the kernels of this process; those of the engine live on."""
        import asyncio

        if self._host is not None:
            await asyncio.to_thread(self._host.close)
            self._host = None

    async def _connect_to_engine(self, actor: str, mode: Mode) -> AsyncWorkspace | None:
        import asyncio

        from cellwright.engine import aio

        # An engine that has just left makes room for the next. A caller that gives up too soon
        # would have kernels of its own beside those of the others.
        tries = _TRIES if self._was_connected else 1
        while True:
            try:
                found = await aio.connect(self.root, cwd=self.cwd, mode=mode, actor=actor)
            except (EngineError, OSError) as error:
                tries -= 1
                if not tries:
                    self._warn(f"{error}; working in this process alone")
                    return None
                await asyncio.sleep(_PAUSE)
            else:
                self._was_connected = True
                return found


def open_chat_workspaces(
    root: PathLike,
    *,
    cwd: str | None = None,
    actor: str = "chat:assistant",
    engine: bool = False,
    warn: Warn = str,
) -> ChatWorkspaces:
    """Return the workspaces of one chat, one for each mode; see `SharedWorkspaces`."""
    from cellwright.assistant.chat import ChatWorkspaces

    shared = SharedWorkspaces(root, cwd=cwd, engine=engine, warn=warn)

    async def connect(mode: Mode) -> AsyncWorkspace:
        return await shared.connect(actor, mode)

    return ChatWorkspaces(connect, shared.close)


def wants_engine() -> bool:
    """Whether the settings let a server start the engine; where `CI` is set only if told to."""
    setting = _read_setting()
    return setting == "always" or (setting == "auto" and not _is_ci())


def _read_setting() -> str:
    from cellwright.config.loading import load

    return load().engine


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}
