"""The verbs of a workspace for callers elsewhere: same names, same parameters, by construction.

A class that forwards lists the verbs it has; their signatures and their words are those of
`Workspace` and `Book`, so that nothing can drift apart.
"""

from __future__ import annotations

import os
from typing import Concatenate, ParamSpec, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

P = ParamSpec("P")
R = TypeVar("R")


def forwarded(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method with the signature of `verb`, carried out by the `_call` of its object."""
    name, names = _names(verb)

    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        found: R = self._call(name, {**dict(zip(names, args, strict=False)), **options})
        return found

    _dress(call, verb)
    return call


def awaited(
    verb: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """The same, to be awaited."""
    name, names = _names(verb)

    async def call(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        found: R = await self._call(name, {**dict(zip(names, args, strict=False)), **options})
        return found

    _dress(call, verb)
    return call


def to_json(value: Any) -> Any:
    """Parameters as data: edits and paths may be objects."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def _names(verb: Any) -> tuple[str, tuple[str, ...]]:
    code = verb.__code__
    return verb.__name__, code.co_varnames[1 : code.co_argcount]


def _dress(call: Any, verb: Any) -> None:
    call.__name__ = verb.__name__
    call.__qualname__ = verb.__qualname__
    call.__doc__ = verb.__doc__
    call.__wrapped__ = verb  # for help() and signatures
