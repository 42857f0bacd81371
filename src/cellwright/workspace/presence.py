"""Who else is at work on a notebook, as far as this process has seen."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RECENT = 300.0
_MOST_ACTORS = 32


class Presence:
    """The last thing that everybody did to each notebook; forgotten after some minutes."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, tuple[str, float]]] = {}
        self._guard = threading.Lock()

    def note(self, real: str, actor: str, did: str) -> None:
        """Somebody did something to a notebook just now."""
        now = time.monotonic()
        with self._guard:
            actors = self._seen.setdefault(real, {})
            actors.pop(actor, None)
            actors[actor] = (did, now)
            while len(actors) > _MOST_ACTORS:
                actors.pop(next(iter(actors)))
            for path in [path for path, seen in self._seen.items() if _is_old(seen, now)]:
                del self._seen[path]

    def others(self, real: str, actor: str) -> list[dict[str, Any]]:
        """What others did to it lately, the newest first."""
        now = time.monotonic()
        with self._guard:
            seen = [
                {"actor": who, "did": did, "seconds": round(now - when, 1)}
                for who, (did, when) in self._seen.get(real, {}).items()
                if who != actor and now - when < _RECENT
            ]
        return sorted(seen, key=lambda one: one["seconds"])


def _is_old(seen: dict[str, tuple[str, float]], now: float) -> bool:
    return all(now - when > _RECENT for _, when in seen.values())
