"""How often somebody may ask."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_KNOWN = 4096


class Bucket:
    """Lets each key through `burst` times at once, and then `rate` times a second."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._known: dict[str, tuple[float, float]] = {}

    def takes(self, key: str) -> bool:
        """Whether it may once more."""
        now = self._clock()
        left, then = self._known.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        while len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        allowed = left >= 1
        self._known[key] = (left - 1 if allowed else left, now)
        return allowed
