"""`Memory`: what one look at a notebook leaves for the next, so that it looks only at what changed."""

from __future__ import annotations

from cellwright.dataflow._timeline import Tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.dataflow._history import JudgedCell
    from cellwright.dataflow._timeline import StepOutcome
    from cellwright.dataflow.facts import CellFacts
    from cellwright.dataflow.records import CellState, DataflowRun

MOST_KEPT = 500_000
"""Steps of an analysis that is kept; each leaves some 200 bytes, so that is about 100 MB."""

_MOST_UNUSED = 1_000


class Memory:
    """What the last analysis of a notebook found out, for the next one.

    Each part is used again only while all that it came from is the same, so that an answer is
    never another one than without it; of another notebook it is of no use, and does no harm. A
    part that an analysis did not use is dropped. It serves one analysis at a time, and always the
    same language.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin from nothing."""
        self.tokens = Tokens()
        self.facts: dict[str, CellFacts] = {}  # by text
        self.runs: dict[int, tuple[DataflowRun, StepOutcome]] = {}  # by order
        self.cells: dict[str, tuple[JudgedCell, StepOutcome]] = {}  # by id
        # States that follow from the cell itself, and from what the cells define, which are in
        # this order; with a state, why other cells that use the cell are stale.
        self.states: dict[str, tuple[JudgedCell, CellState, tuple[str, str] | None]] = {}
        self.order: Sequence[str] = ()
        self.defined: Sequence[CellFacts | None] = ()
        self._used_tokens = 0

    def end_analysis(self, facts: dict[str, CellFacts], work: int) -> None:
        """Keep what was read; forget all if it is too much, or mostly of texts that are gone."""
        self.facts = facts
        self._used_tokens = self._used_tokens or len(self.tokens)
        if work > MOST_KEPT or len(self.tokens) > 2 * self._used_tokens + _MOST_UNUSED:
            self.forget()
