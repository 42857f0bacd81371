"""The verbs, each written once: a function from a caller and a request to an answer.

`requests.py` lists them. A verb that has to do with kernels is a coroutine on their event loop;
all others block and need no loop. Modes are checked before a verb is called, once, in `perform`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from cellwright.workspace.api.requests import Request
    from cellwright.workspace.caller import Caller

    A = TypeVar("A")


def perform(caller: Caller, request: Request[A]) -> A:
    """Carry a request out, in this process, and wait for its answer; not on the kernels' loop.

    Raises:
        ModeForbids: the caller's mode does not allow it.
    """
    caller.require(request.effect, request.what)
    work = _find_handler(request)
    if request.waits:
        return caller.hub.call(work(caller, request))  # type: ignore[no-any-return]
    return work(caller, request)  # type: ignore[no-any-return]


async def perform_on_loop(caller: Caller, request: Request[A]) -> A:
    """Carry a request out on the kernels' loop; what blocks is done in a file thread.

    Raises:
        ModeForbids: the caller's mode does not allow it.
    """
    caller.require(request.effect, request.what)
    work = _find_handler(request)
    if caller.hub.has_active_runs:
        await _land_waiting(caller, request)
    if request.waits:
        return await work(caller, request)  # type: ignore[no-any-return]
    return await caller.hub.in_file_thread(work, caller, request)


async def _land_waiting(caller: Caller, request: Request[Any]) -> None:
    """Have what short cells said in the notebook, before a verb looks at it."""
    real = _find_real(caller, getattr(request, "path", None))
    if real is not None:
        await caller.hub.runs.land_waiting(real)


def _find_real(caller: Caller, path: str | None) -> str | None:
    """Return where a path leads; None if there is none, and the verb says what is wrong with it."""
    if path is None:
        return None
    try:
        return os.path.realpath(os.path.join(caller.cwd, path))  # noqa: PTH118
    except (OSError, ValueError):
        return None


def _find_handler(request: Request[Any]) -> Any:
    from importlib import import_module

    module, name = request.HANDLER.split(":")
    if request.waits and request.VERB == "edit":
        name = "edit_and_run"
    return getattr(import_module(f"cellwright.workspace.verbs.{module}"), name)
