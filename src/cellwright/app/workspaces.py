"""Which workspace a door gets: the engine's, if there is one or may be one, or one in process."""

from __future__ import annotations

import getpass
import os

from cellwright.app import AsyncWorkspace, Workspace
from cellwright.errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.workspace.requests import Mode, PathLike

    Warn = Callable[[str], object]


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
    return Workspace(root, mode=mode, actor=actor)


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


async def connect_workspace(
    root: PathLike | None, *, cwd: str | None = None, mode: Mode = "agent", actor: str, warn: Warn
) -> AsyncWorkspace | None:
    """Return a workspace in the engine for a door that awaits; None, with a warning, if not."""
    from cellwright.engine.aio import connect

    try:
        return await connect(root, cwd=cwd, mode=mode, actor=actor)
    except (EngineError, OSError) as error:
        warn(f"{error}; working in this process alone")
        return None


def wants_engine() -> bool:
    """Whether the settings let a server start the engine; where `CI` is set only if told to."""
    setting = _read_setting()
    return setting == "always" or (setting == "auto" and not _is_ci())


def _read_setting() -> str:
    from cellwright.config.loading import load

    return load().engine


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}
