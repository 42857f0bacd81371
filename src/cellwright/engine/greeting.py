"""What a client says first, and what the engine makes of it."""

from __future__ import annotations

import os

from cellwright.engine import wire
from cellwright.errors import EngineDraining, InvalidCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_HELLO: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("cwd", "mode", "actor"), (str,)),
    "root": (str, type(None)),
    "environ": (dict,),
    "folder": (list, type(None)),
    "wire": (int,),
}


def hello(
    *, cwd: str, root: str | None, mode: str, actor: str, environ: Mapping[str, str]
) -> dict[str, Any]:
    """What a client says first."""
    return {
        "wire": wire.VERSION,
        "cwd": cwd,
        "folder": identity(cwd),
        "root": root,
        "mode": mode,
        "actor": actor,
        "environ": dict(environ),
    }


def check_shape(params: Mapping[str, Any]) -> None:
    """See whether a greeting is one.

    Raises:
        InvalidCall: it is not.
    """
    for name, kinds in _HELLO.items():
        if not isinstance(params.get(name), kinds):
            raise InvalidCall(f"`hello` needs `{name}`")
    if not all(isinstance(word, str) for pair in params["environ"].items() for word in pair):
        raise InvalidCall("`environ` is names and values")
    if not os.path.isabs(params["cwd"]):  # noqa: PTH117
        raise InvalidCall("`cwd` is not an absolute path")


def check_files(params: Mapping[str, Any]) -> None:
    """See whether a client means the same files as we do.

    Raises:
        EngineDraining: it does not, so that nothing can be done for it.
    """
    if params["folder"] != identity(params["cwd"]):
        raise EngineDraining("it sees other files than you, as from outside a container")


def identity(path: str) -> list[int] | None:
    """What tells a file or folder from another of the same name; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return [status.st_dev, status.st_ino]
