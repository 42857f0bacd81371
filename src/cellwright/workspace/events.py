"""What happens to notebooks, for whoever watches: edits, runs, and changes made without us."""

from __future__ import annotations

import contextlib
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Event = dict[str, Any]
    Listener = Callable[[Event], object]


class Events:
    """Tells listeners what happens, in the thread in which it happens; they must be quick."""

    def __init__(self) -> None:
        self._listeners: list[tuple[str | None, Listener]] = []
        self._guard = threading.Lock()

    def publish(self, real: str, event: str, **facts: Any) -> None:
        """Something happened to a notebook."""
        if not self._listeners:
            return
        with self._guard:
            listeners = list(self._listeners)
        told = {"event": event, "notebook": real, "when": time.time(), **facts}
        for path, listener in listeners:
            if path in (None, real):
                listener(told)

    def subscribe(self, real: str | None, listener: Listener) -> Callable[[], None]:
        """Be told of one notebook, or of all; returns how to end that."""
        entry = (real, listener)
        with self._guard:
            self._listeners.append(entry)

        def end() -> None:
            with self._guard, contextlib.suppress(ValueError):
                self._listeners.remove(entry)

        return end
