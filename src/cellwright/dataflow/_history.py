"""The two timelines: what ran in fact, and the notebook from top to bottom."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass

from cellwright.dataflow import _known_names as known_names
from cellwright.dataflow._timeline import ANYTHING, Timeline, Tokens
from cellwright.dataflow.analyse import analyse
from cellwright.dataflow.budget import NOTEBOOK_LIMIT, TooMuchWork, WorkBudget
from cellwright.dataflow.facts import CellFacts
from cellwright.dataflow.records import source_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from cellwright.dataflow._timeline import Binding, Step
    from cellwright.dataflow.records import DataflowCell, DataflowRun

    Found = TypeVar("Found")

_FORGOTTEN = CellFacts(opaque=("a text that is not known any more",))
_TOO_LARGE = CellFacts(opaque=("a notebook too large to analyse",))


class FactsReader:
    """Looks at the texts of one notebook, each once, and counts the work.

    If not `follows_names`, no text is analysed: each may do anything.
    """

    def __init__(self, language: str, budget: WorkBudget, *, follows_names: bool = True) -> None:
        self.language = language
        self.budget = budget
        self._follows_names = follows_names
        self._known: dict[str, CellFacts] = {}

    def read(self, source: str) -> CellFacts:
        """What a text does to names."""
        facts = self._known.get(source)
        if facts is None:
            if self._follows_names or source.isspace():
                facts = analyse(source, self.language)
            else:
                facts = _TOO_LARGE if source else CellFacts()
            self._known[source] = facts
            self.budget.spend(facts.work)
        return facts


def analyse_within_limits(
    find: Callable[[FactsReader], Found],
    language: str,
    should_stop: Callable[[], bool] | None,
) -> Found:
    """Find something out about a notebook; without following names if that is too much work."""
    try:
        return find(FactsReader(language, WorkBudget(NOTEBOOK_LIMIT, should_stop)))
    except TooMuchWork:
        budget = WorkBudget(sys.maxsize, should_stop)
        return find(FactsReader(language, budget, follows_names=False))


@dataclass(frozen=True, slots=True)
class JudgedCell:
    """One code cell on both timelines.

    `is_intact` says that its last run saw what it would see from top to bottom; `differing` are
    the names for which it did not: as it was, and as it would be. `hidden` are names that it reads
    although nothing above defines them.
    """

    cell: DataflowCell
    index: int
    step: Step
    run: DataflowRun | None
    last_elsewhere: DataflowRun | None
    is_edited: bool
    differing: dict[str, tuple[Binding | None, Binding | None]]
    hidden: tuple[str, ...]

    @property
    def is_intact(self) -> bool:
        """Whether the result is what a run from top to bottom would give."""
        run = self.run
        return bool(
            run and run.status == "ok" and not (self.is_edited or self.differing or self.hidden)
        )


class History:
    """What happened in one life of a kernel, and what the notebook would do in a new one."""

    def __init__(
        self,
        cells: Sequence[DataflowCell],
        runs: Iterable[DataflowRun],
        reader: FactsReader,
        kernel: str | None,
    ) -> None:
        self.reader = reader
        self._known = known_names.BUILTINS | known_names.PROVIDED
        self.cells = cells
        self.by_id = {cell.id: cell for cell in cells}
        self.index = {cell.id: index for index, cell in enumerate(cells)}
        every = sorted((run for run in runs if run.status != "pending"), key=lambda run: run.order)
        if kernel is None and every:
            kernel = every[-1].kernel
        self._elsewhere = {run.cell: run for run in every if run.kernel != kernel}
        self._tokens = Tokens()
        self.now = Timeline(self._tokens, reader.budget)
        self.ideal = Timeline(self._tokens, reader.budget)
        self.last_runs: dict[str, tuple[DataflowRun, Step]] = {}
        for run in every:
            if run.kernel == kernel:
                self.add_run(run)

    def fork(self, runs: Iterable[DataflowRun]) -> History:
        """The same with more runs, in the same kernel, after all others."""
        longer = copy.copy(self)
        longer.now = self.now.copy()
        longer.last_runs = dict(self.last_runs)
        for run in runs:
            longer.add_run(run)
        return longer

    def add_run(self, run: DataflowRun) -> None:
        """The next run in this kernel."""
        step = self.now.look(self._read_facts(run))
        self.last_runs[run.cell] = (run, step)
        version = f"{run.cell}@{run.order}"
        self.now.run(step, run.cell, version, run.order, surely=run.status == "ok")

    def _read_facts(self, run: DataflowRun) -> CellFacts:
        if run.source is not None:
            return self.reader.read(run.source)
        cell = self.by_id.get(run.cell)
        if cell and source_hash(cell.source) == run.hash:
            return self.reader.read(cell.source)
        return _FORGOTTEN

    def judge(self) -> Iterator[JudgedCell]:
        """Walk the notebook from top to bottom and compare; `ideal` is then how that ends."""
        ideal = self.ideal = Timeline(self._tokens, self.reader.budget)
        for index, cell in enumerate(self.cells):
            if cell.type != "code":
                continue
            facts = self.reader.read(cell.source)
            step = ideal.look(facts)
            run, seen = self.last_runs.get(cell.id, (None, None))
            is_edited = bool(run and run.source_hash != source_hash(cell.source))
            differing = {} if seen is None or is_edited else _find_differing(seen, step)
            judged = JudgedCell(
                cell,
                index,
                step,
                run,
                self._elsewhere.get(cell.id),
                is_edited,
                differing,
                self._find_hidden(step),
            )
            yield judged
            version, order = f"new {cell.id}", 0
            if run and judged.is_intact:
                version, order = f"{cell.id}@{run.order}", run.order
            ideal.run(step, cell.id, version, order, known=judged.is_intact)

    def _find_hidden(self, step: Step) -> tuple[str, ...]:
        """Names that a cell reads and that nothing above defines, nor Python, nor itself."""
        if step.facts.syntax_error:  # then it only mentions names
            return ()
        own = step.facts.defines
        return tuple(
            sorted(
                name
                for name, binding in step.inputs.items()
                if (binding is None or (binding.is_deleted and not step.opaque))
                and name != ANYTHING
                and name not in own
                and name not in self._known
            )
        )


def _find_differing(seen: Step, wanted: Step) -> dict[str, tuple[Binding | None, Binding | None]]:
    found = {}
    for name in seen.inputs.keys() | wanted.inputs.keys():
        was, would = seen.inputs.get(name), wanted.inputs.get(name)
        if (was.version if was else None) != (would.version if would else None):
            found[name] = (was, would)
    return found
