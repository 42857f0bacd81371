"""How long to wait before a model that was busy is asked again."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits that double, and never all at the same moment.

    Args:
        first: seconds before the second try.
        most: the longest wait of our own.
        patience: the longest wait that a provider may ask for; beyond it we give up at once, since
            a person sits there.
    """

    first: float = 0.5
    most: float = 20.0
    patience: float = 60.0

    def wait(self, tries: int, asked: float | None) -> float | None:
        """Seconds to wait after so many tries; None to give up.

        Args:
            tries: how many there were.
            asked: how long the provider asked us to wait, if it did.
        """
        if asked is not None:
            return asked if asked <= self.patience else None
        longest = min(self.first * float(2 ** (tries - 1)), self.most)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  # no secret depends on it
