"""The two timelines: what ran in fact, and the notebook from top to bottom."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass, replace

from cellwright.dataflow import _known_names as known_names
from cellwright.dataflow._timeline import ANYTHING, Timeline
from cellwright.dataflow.analyse import analyse
from cellwright.dataflow.budget import NOTEBOOK_LIMIT, TooMuchWork, WorkBudget
from cellwright.dataflow.facts import CellFacts
from cellwright.dataflow.memory import Memory
from cellwright.dataflow.records import source_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from cellwright.dataflow._timeline import Binding, Step
    from cellwright.dataflow.records import DataflowCell, DataflowRun

    Found = TypeVar("Found")

_NO_RUN: tuple[None, None] = (None, None)
_NOT_KNOWN: tuple[None, None] = (None, None)
_FORGOTTEN = CellFacts(opaque=("a text that is not known any more",))
_TOO_LARGE = CellFacts(opaque=("a notebook too large to analyse",))


class FactsReader:
    """Looks at the texts of one notebook, each once, and counts the work.

    If not `follows_names`, no text is analysed: each may do anything. What is in the `memory` is
    not done again; it counts as if it were.
    """

    def __init__(
        self, language: str, budget: WorkBudget, memory: Memory, *, follows_names: bool = True
    ) -> None:
        self.language = language
        self.budget = budget
        self.memory = memory
        self._follows_names = follows_names
        self.known: dict[str, CellFacts] = {}

    def read(self, source: str) -> CellFacts:
        """What a text does to names."""
        facts = self.known.get(source)
        if facts is None:
            if self._follows_names or source.isspace():
                facts = self.memory.facts.get(source) or analyse(source, self.language)
            else:
                facts = _TOO_LARGE if source else CellFacts()
            self.known[source] = facts
            self.budget.spend(facts.work)
        return facts


def analyse_within_limits(
    find: Callable[[FactsReader], Found],
    language: str,
    should_stop: Callable[[], bool] | None,
    memory: Memory | None = None,
) -> Found:
    """Find something out about a notebook; without following names if that is too much work."""
    reader = FactsReader(language, WorkBudget(NOTEBOOK_LIMIT, should_stop), memory or Memory())
    try:
        found = find(reader)
    except TooMuchWork:
        reader.memory.forget()
        budget = WorkBudget(sys.maxsize, should_stop)
        return find(FactsReader(language, budget, Memory(), follows_names=False))
    reader.memory.end_analysis(reader.known, reader.budget.spent)
    return found


@dataclass(frozen=True, slots=True)
class JudgedCell:
    """One code cell on both timelines.

    `is_intact` says that its last run saw what it would see from top to bottom; `differing` are
    the names for which it did not: as it was, and as it would be. `hidden` are names that it reads
    although nothing above defines them. `seen` is what the last run saw and did.
    """

    cell: DataflowCell
    index: int
    step: Step
    run: DataflowRun | None
    seen: Step | None
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
        self._memory = memory = reader.memory
        self._earlier_runs, memory.runs = memory.runs, {}
        self.now = Timeline(memory.tokens, reader.budget)
        self.ideal = Timeline(memory.tokens, reader.budget)
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
        facts, memory = self._read_facts(run), self._memory
        if facts.stable and run.cell in self.last_runs:
            self.now.begin_again(facts, run.cell, run.order)
        known = memory.runs.get(run.order) or self._earlier_runs.get(run.order)
        if known and known[0] == run and self.now.repeat(known[1], facts):
            memory.runs[run.order] = known
            self.last_runs[run.cell] = run, known[1].step
            return
        spent = self.reader.budget.spent
        step = self.now.look(facts)
        self.last_runs[run.cell] = (run, step)
        outcome = self.now.run(
            step,
            run.cell,
            f"{run.cell}@{run.order}",
            run.order,
            surely=run.status == "ok",
            before=known[1] if known else None,
            work=self.reader.budget.spent - spent,
        )
        if outcome is not None:
            memory.runs[run.order] = run, outcome

    def _read_facts(self, run: DataflowRun) -> CellFacts:
        if run.source is not None:
            return self.reader.read(run.source)
        cell = self.by_id.get(run.cell)
        if cell and source_hash(cell.source) == run.hash:
            return self.reader.read(cell.source)
        return _FORGOTTEN

    def judge(self) -> Iterator[JudgedCell]:
        """Walk the notebook from top to bottom and compare; `ideal` is then how that ends."""
        memory, budget = self._memory, self.reader.budget
        earlier, memory.cells = memory.cells, {}
        ideal = self.ideal = Timeline(memory.tokens, budget)
        for index, cell in enumerate(self.cells):
            if cell.type != "code":
                continue
            facts = self.reader.read(cell.source)
            run, seen = self.last_runs.get(cell.id, _NO_RUN)
            elsewhere = self._elsewhere.get(cell.id)
            judged, before = earlier.get(cell.id, _NOT_KNOWN)
            if (
                judged is not None
                and before is not None
                and judged.cell == cell
                and judged.seen is seen  # and so of the same run
                and judged.last_elsewhere == elsewhere
                and ideal.repeat(before, facts)
            ):
                if judged.index != index:
                    judged = replace(judged, index=index)
                memory.cells[cell.id] = judged, before
                yield judged
                continue
            spent = budget.spent
            step = ideal.look(facts)
            work = budget.spent - spent
            is_edited = run is not None and _is_edited(cell, run)
            differing = {} if seen is None or is_edited else _find_differing(seen, step)
            judged = JudgedCell(
                cell,
                index,
                step,
                run,
                seen,
                elsewhere,
                is_edited,
                differing,
                self._find_hidden(step),
            )
            yield judged
            version, order = f"new {cell.id}", 0
            if run and judged.is_intact:
                version, order = f"{cell.id}@{run.order}", run.order
            outcome = ideal.run(
                step,
                cell.id,
                version,
                order,
                known=judged.is_intact,
                before=before,
                work=work,
            )
            if outcome is not None:
                memory.cells[cell.id] = judged, outcome

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


def _is_edited(cell: DataflowCell, run: DataflowRun) -> bool:
    if run.source is not None:
        return run.source != cell.source
    return run.hash != source_hash(cell.source)


def _find_differing(seen: Step, wanted: Step) -> dict[str, tuple[Binding | None, Binding | None]]:
    found = {}
    for name in seen.inputs.keys() | wanted.inputs.keys():
        was, would = seen.inputs.get(name), wanted.inputs.get(name)
        if (was.version if was else None) != (would.version if would else None):
            found[name] = (was, would)
    return found
