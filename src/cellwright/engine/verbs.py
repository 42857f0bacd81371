"""Which verbs cross the socket, with what parameters, and how their answers are written down.

The table is the whole interface: what is not in it cannot be called from outside. A test holds it
against the signatures of `Workspace` and `Book`.
"""

from __future__ import annotations

from cellwright.errors import InvalidCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from cellwright.workspace.workspace import Workspace

    Kind = tuple[type, ...]

_NONE = type(None)
_MOST = 2**63
_PATHS = frozenset({"path", "cwd", "kernel", "session", "after", "before"})
TEXT: Kind = (str,)
TEXT_OR_NONE: Kind = (str, _NONE)
FLAG: Kind = (bool,)
NUMBER: Kind = (int, float)
NUMBER_OR_NONE: Kind = (int, float, _NONE)
WHOLE: Kind = (int,)
WHOLE_OR_NONE: Kind = (int, _NONE)
LIST: Kind = (list,)
LIST_OR_NONE: Kind = (list, _NONE)
NAMES_OR_NONE: Kind = (str, list, _NONE)
OBJECT_OR_NONE: Kind = (dict, _NONE)
CELL_OR_NONE: Kind = (str, int, _NONE)

_HOW_TO_RUN: dict[str, Kind] = {
    "kernel": TEXT_OR_NONE,
    "timeout": NUMBER,
    "time_limit": NUMBER,
    "restart": FLAG,
    "keep_going": FLAG,
    "parameters": OBJECT_OR_NONE,
    "answers": LIST,
    "detach": NUMBER_OR_NONE,
}
WORKSPACE: dict[str, dict[str, Kind]] = {
    "list": {},
    "create": {"path": TEXT, "kernel": TEXT_OR_NONE},
    "eval": {
        "cells": LIST,
        "session": TEXT,
        "cwd": TEXT_OR_NONE,
        "kernel": TEXT_OR_NONE,
        "runner": FLAG,
        "server": TEXT_OR_NONE,
        "server_token": TEXT_OR_NONE,
        "kernel_id": TEXT_OR_NONE,
        "per_call": FLAG,
        "timeout": NUMBER_OR_NONE,
        "answers": LIST,
        "keep_going": FLAG,
        "detach": NUMBER_OR_NONE,
    },
    "runs": {},
    "attach": {"run": TEXT, "wait": NUMBER_OR_NONE},
    "cancel": {"run": TEXT},
    "watch": {"path": TEXT_OR_NONE, "wait": NUMBER_OR_NONE},
    "sessions": {},
    "kernel": {"action": TEXT, "session": TEXT, "cwd": TEXT_OR_NONE},
    "kernel_specs": {},
    "artifact": {"ref": TEXT, "offset": WHOLE, "limit": WHOLE},
}
"""The verbs of a workspace, and the types of their parameters."""

BOOK: dict[str, dict[str, Kind]] = {
    "read": {"stale": FLAG, "text": FLAG},
    "select": {"selector": TEXT},
    "outputs": {"cells": LIST_OR_NONE, "max_tokens": WHOLE},
    "stale": {},
    "executions": {},
    "raw": {},
    "warnings": {},
    "run": {
        "cells": LIST_OR_NONE,
        "above": CELL_OR_NONE,
        "below": CELL_OR_NONE,
        "replay": CELL_OR_NONE,
        "stale": FLAG,
        "check": FLAG,
        **_HOW_TO_RUN,
    },
    "edit": {
        "edits": LIST,
        "base": TEXT_OR_NONE,
        "create": FLAG,
        "dry_run": FLAG,
        "backup": FLAG,
        "label": TEXT,
        "kind": TEXT,
        "run": TEXT_OR_NONE,
        **_HOW_TO_RUN,
    },
    "write": {
        "text": TEXT,
        "base": TEXT_OR_NONE,
        "dry_run": FLAG,
        "backup": FLAG,
        "label": TEXT,
    },
    "upgrade": {"dry_run": FLAG, "backup": FLAG},
    "undo": {"change": NAMES_OR_NONE, "dry_run": FLAG},
    "redo": {"change": TEXT_OR_NONE, "dry_run": FLAG},
    "restore": {"change": TEXT, "dry_run": FLAG},
    "log": {"limit": WHOLE_OR_NONE},
    "blame": {},
    "backups": {},
    "diff": {"before": TEXT_OR_NONE, "after": TEXT_OR_NONE},
}
"""The verbs of one notebook, which all have its `path` besides."""

_WHICH_CELLS = frozenset({"cells", "above", "below", "replay", "stale"})
WRITING = frozenset({"edit", "write", "upgrade", "undo", "redo", "restore", "create"})
"""Verbs that change a notebook: those of one notebook take turns."""


def is_running(verb: str, params: Mapping[str, Any]) -> bool:
    """Whether a call runs cells: whoever stops it means them."""
    return verb in ("eval", "run") or (verb == "edit" and params.get("run") is not None)


def is_following(verb: str, params: Mapping[str, Any]) -> bool:
    """Whether a call may wait for a kernel, and tell of it meanwhile."""
    return verb in ("attach", "cancel", "watch", "kernel") or is_running(verb, params)


def check(verb: str, params: Mapping[str, Any]) -> None:
    """See whether there is such a verb, and whether these can be its parameters.

    Raises:
        InvalidCall: neither, or not.
    """
    known = {"path": TEXT, **BOOK[verb]} if verb in BOOK else WORKSPACE.get(verb)
    if known is None:
        raise InvalidCall(f"There is no verb `{verb}`")
    for name, value in params.items():
        kinds = known.get(name)
        if kinds is None:
            raise InvalidCall(f"`{verb}` has no parameter `{name}`")
        # To Python a bool is a number, to nobody else.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InvalidCall(f"`{verb}`: `{name}` cannot be {type(value).__name__}")
        if isinstance(value, int) and abs(value) >= _MOST:
            raise InvalidCall(f"`{verb}`: `{name}` is too large a number")
        if name in _PATHS and isinstance(value, str) and "\0" in value:
            raise InvalidCall(f"`{verb}`: no `{name}` has a zero byte")
    if verb in BOOK and "path" not in params:
        raise InvalidCall(f"`{verb}` needs a `path`")


async def evaluate(
    workspace: Workspace, params: Mapping[str, Any], callbacks: Mapping[str, Any]
) -> Any:
    """Carry out `eval` on the loop of the kernels; see `carry_out`."""
    if "cells" not in params:
        raise InvalidCall("`eval`: missing 1 required positional argument: 'cells'")
    workspace.require("run", "run code")
    return await workspace.kernels.evaluated(**params, **callbacks)


async def run(
    workspace: Workspace,
    params: Mapping[str, Any],
    callbacks: Mapping[str, Any],
    in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
) -> Any:
    """Carry out `run` on the loop of the kernels, but for its reading; see `carry_out`."""
    from cellwright.workspace.choosing import choose_in

    which = {name: value for name, value in params.items() if name in _WHICH_CELLS}
    how = {name: value for name, value in params.items() if name in BOOK["run"].keys() - which}

    def choose() -> Any:
        book = workspace.open(params["path"])
        return book, *choose_in(book, **which)

    book, notebook, cells = await in_thread(choose)
    return to_wire(await workspace.kernels.ran(book, notebook, cells, **how, **callbacks))


def carry_out(
    workspace: Workspace,
    verb: str,
    params: Mapping[str, Any],
    callbacks: Mapping[str, Any],
    until: Callable[[], bool],
) -> Any:
    """Call a verb with parameters that were checked; returns what goes back.

    `callbacks` are what it may call meanwhile; `until` tells whether nobody waits for it any more.

    Raises:
        InvalidCall: a parameter is missing.
        CellwrightError: as the verb itself does.
    """
    given = dict(params)
    target: Any = workspace.open(given.pop("path")) if verb in BOOK else workspace
    if is_running(verb, params):
        given |= callbacks
    elif verb in ("attach", "watch"):
        given["progress"] = callbacks["progress"]
    if verb == "watch":
        given["until"] = until
    try:
        found = getattr(target, verb)(**given)
    except TypeError as error:
        # One from the call itself, and from nowhere inside it: something is missing.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise InvalidCall(f"`{verb}`: {str(error).partition(') ')[2] or error}") from None
        raise
    return to_wire(found)


def to_wire(value: Any) -> Any:
    """What a verb returned, as JSON can have it."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, bytes):
        from base64 import b64encode

        return {"base64": b64encode(value).decode()}
    return value


def from_wire(verb: str, value: Any) -> Any:
    """What the caller of a verb gets, from what came over the wire."""
    if verb == "run":
        from cellwright.workspace.executions import Executions

        return Executions.from_json(value)
    if verb == "raw":
        from base64 import b64decode

        return b64decode(value["base64"])
    return value
