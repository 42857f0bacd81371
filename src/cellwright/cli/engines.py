"""Whether a command goes through the engine, and what is said when it cannot."""

from __future__ import annotations

import os

from cellwright.cli.output import Output
from cellwright.errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.workspace.workspace import Workspace


def through_engine(root: str | None, mode: Any, actor: str, *, start: bool) -> Workspace | None:
    """A workspace whose kernels live in the engine; None to work in this process alone.

    An engine that runs is used by every command, so that all see one state. One is started only
    for what needs a kernel, and not where `CI` is set: there nobody would come back to it.
    """
    # The variable alone, before anything is imported: most commands end within milliseconds.
    wanted = os.environ.get("CELLWRIGHT_ENGINE", "")
    if wanted == "never":
        return None
    from cellwright.engine import location

    try:
        if not start and not os.path.exists(location.socket_path()):  # noqa: PTH110
            return None
        from cellwright.config.loading import load

        setting = load().engine
        if setting == "never":
            return None
        from cellwright.engine.client import connect

        starts = start and (setting == "always" or not _is_ci())
        return connect(root, mode=mode, actor=actor, start=starts)
    except (EngineError, OSError) as error:
        # Aloud, also where the answer is JSON: state that was kept elsewhere is not seen here.
        Output(as_json=False).warn([f"{error}; working in this process alone"])
        return None


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}
