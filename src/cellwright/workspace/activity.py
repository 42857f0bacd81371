"""Who did what to notebooks lately, and whose call this is."""

from __future__ import annotations

import contextlib
import threading
import time
from contextvars import ContextVar

from cellwright.workspace.api.answers import OtherActor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Event = dict[str, Any]
    Listener = Callable[[Event], object]

_RECENT = 300.0
_MOST_ACTORS = 32


class ActorLog:
    """The last thing that each actor did to each notebook; forgotten after some minutes."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, tuple[str, float]]] = {}
        self._guard = threading.Lock()

    def note(self, real: str, actor: str, did: str) -> None:
        """Remember that an actor did something to a notebook just now."""
        now = time.monotonic()
        with self._guard:
            actors = self._seen.setdefault(real, {})
            actors.pop(actor, None)
            actors[actor] = (did, now)
            while len(actors) > _MOST_ACTORS:
                actors.pop(next(iter(actors)))
            for path in [path for path, seen in self._seen.items() if _is_old(seen, now)]:
                del self._seen[path]

    def list_others(self, real: str, actor: str) -> list[OtherActor]:
        """Return what other actors did to a notebook lately, the newest first."""
        now = time.monotonic()
        with self._guard:
            seen = [
                OtherActor(who, did, round(now - when, 1))
                for who, (did, when) in self._seen.get(real, {}).items()
                if who != actor and now - when < _RECENT
            ]
        return sorted(seen, key=lambda one: one.seconds)


def _is_old(seen: dict[str, tuple[str, float]], now: float) -> bool:
    return all(now - when > _RECENT for _, when in seen.values())


class NotebookEvents:
    """Tells listeners what happens to notebooks, in the thread in which it happens."""

    def __init__(self) -> None:
        self._listeners: list[tuple[str | None, Listener]] = []
        self._guard = threading.Lock()

    def publish(self, real: str, event: str, **facts: Any) -> None:
        """Report that something happened to a notebook."""
        if not self._listeners:
            return
        with self._guard:
            listeners = list(self._listeners)
        message = {"event": event, "notebook": real, "when": time.time(), **facts}
        for path, listener in listeners:
            if path in (None, real):
                listener(message)

    def subscribe(self, real: str | None, listener: Listener) -> Callable[[], None]:
        """Report the events of one notebook, or of all; returns a function that ends it.

        The listener must be quick.
        """
        entry = (real, listener)
        with self._guard:
            self._listeners.append(entry)

        def unsubscribe() -> None:
            with self._guard, contextlib.suppress(ValueError):
                self._listeners.remove(entry)

        return unsubscribe


_client: ContextVar[str] = ContextVar("client", default="")
_is_abandoned: ContextVar[Callable[[], bool] | None] = ContextVar("is_abandoned", default=None)


@contextlib.contextmanager
def act_for(client: str, is_abandoned: Callable[[], bool] | None = None) -> Iterator[None]:
    """Work for a client inside this block; threads and tasks that it starts know it too.

    `is_abandoned` tells whether the client does not wait for the answer any more.
    """
    tokens = _client.set(client), _is_abandoned.set(is_abandoned)
    try:
        yield
    finally:
        _client.reset(tokens[0])
        _is_abandoned.reset(tokens[1])


def is_abandoned() -> bool:
    """Whether the caller of the current work does not wait for it any more."""
    check = _is_abandoned.get()
    return check is not None and check()


class ClientWarnings(list[str]):
    """A list of warnings of which every client sees only its own.

    The journal of an engine is shared by all its clients.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[str, list[str]] = {}

    def append(self, text: str, /) -> None:
        """Add a warning for the current client."""
        self._parts.setdefault(_client.get(), []).append(text)

    def __contains__(self, text: object) -> bool:
        return text in self._parts.get(_client.get(), ())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._parts.get(_client.get(), ())))

    def __len__(self) -> int:
        return len(self._parts.get(_client.get(), ()))

    def clear(self) -> None:
        """Forget the warnings of the current client."""
        self._parts.pop(_client.get(), None)

    def forget(self, client: str) -> None:
        """Forget the warnings of a client that is gone."""
        self._parts.pop(client, None)
