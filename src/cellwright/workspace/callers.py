"""Whose call it is, wherever it is carried out: threads and tasks that a call starts know it too."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_caller: ContextVar[str] = ContextVar("caller", default="")


@contextlib.contextmanager
def acting_for(caller: str) -> Iterator[None]:
    """Do something in the name of a caller inside this block."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


class Warnings(list[str]):
    """A list of which everybody sees their own part.

    The journal of an engine is shared by all its clients; what it could not do for one of them is
    nobody else's business.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[str, list[str]] = {}

    def append(self, text: str, /) -> None:
        """Add to the part of whoever calls."""
        self._parts.setdefault(_caller.get(), []).append(text)

    def __contains__(self, text: object) -> bool:
        return text in self._parts.get(_caller.get(), ())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._parts.get(_caller.get(), ())))

    def __len__(self) -> int:
        return len(self._parts.get(_caller.get(), ()))

    def clear(self) -> None:
        """Forget the part of whoever calls."""
        self._parts.pop(_caller.get(), None)

    def forget(self, caller: str) -> None:
        """Somebody is gone, and will not ask any more."""
        self._parts.pop(caller, None)
