"""How much work an analysis may do, counted in steps: the same text always costs the same."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CELL_LIMIT = 300_000
"""Steps to analyse the text of one cell; beyond that the cell is not analysed."""

NOTEBOOK_LIMIT = 5_000_000
"""Steps to compare a notebook with what ran; beyond that none of its cells is analysed."""

_BETWEEN_CHECKS = 1_000


class AnalysisStopped(Exception):
    """The caller's `should_stop` returned true before the analysis ended."""


class TooMuchWork(Exception):
    """The analysis took more steps than it may."""


class WorkBudget:
    """Counts steps, and ends the analysis when there are too many or the caller wants it to end."""

    __slots__ = ("_limit", "_next_check", "_should_stop", "spent")

    def __init__(self, limit: int, should_stop: Callable[[], bool] | None = None) -> None:
        self.spent = 0
        self._limit = limit
        self._should_stop = should_stop
        self._next_check = _BETWEEN_CHECKS

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            TooMuchWork: The limit is passed.
            AnalysisStopped: `should_stop`, which is asked every thousand steps, returned true.
        """
        self.spent += steps
        while self.spent >= self._next_check:
            self._next_check += _BETWEEN_CHECKS
            if self.spent > self._limit:
                raise TooMuchWork
            if self._should_stop is not None and self._should_stop():
                raise AnalysisStopped
