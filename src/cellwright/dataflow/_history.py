"""The two timelines: what ran in fact, and the notebook from top to bottom."""

from __future__ import annotations

from dataclasses import dataclass

from cellwright.dataflow import _tables as tables
from cellwright.dataflow._objects import Tokens
from cellwright.dataflow._timeline import ANYTHING, Timeline
from cellwright.dataflow.analyse import analyse
from cellwright.dataflow.facts import Uses
from cellwright.dataflow.records import source_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from cellwright.dataflow._timeline import Binding, Step
    from cellwright.dataflow.records import Cell, Run

_FORGOTTEN = Uses(opaque=("a text that is not known any more",))


@dataclass(frozen=True, slots=True)
class Judged:
    """One code cell on both timelines.

    `is_intact` says that its last run saw what it would see from top to bottom; `differing` are
    the names for which it did not: as it was, and as it would be. `hidden` are names that it reads
    although nothing above defines them.
    """

    cell: Cell
    index: int
    step: Step
    run: Run | None
    last_elsewhere: Run | None
    is_edited: bool
    differing: dict[str, tuple[Binding | None, Binding | None]]
    hidden: tuple[str, ...]

    @property
    def is_intact(self) -> bool:
        """Whether the result stands."""
        run = self.run
        return bool(
            run and run.status == "ok" and not (self.is_edited or self.differing or self.hidden)
        )


class History:
    """What happened in one life of a kernel, and what the notebook would do in a new one."""

    def __init__(
        self,
        cells: Sequence[Cell],
        runs: Iterable[Run],
        language: str,
        kernel: str | None,
        provided: Collection[str] = (),
    ) -> None:
        self.language = language
        self._known = tables.BUILTINS | tables.PROVIDED | frozenset(provided)
        self.cells = cells
        self.by_id = {cell.id: cell for cell in cells}
        self.index = {cell.id: index for index, cell in enumerate(cells)}
        every = sorted((run for run in runs if run.status != "pending"), key=lambda run: run.order)
        if kernel is None and every:
            kernel = every[-1].kernel
        self.runs = [run for run in every if run.kernel == kernel]
        self._elsewhere = {run.cell: run for run in every if run.kernel != kernel}
        self._tokens = Tokens()
        self.now = Timeline(self._tokens)
        self.ideal = Timeline(self._tokens)
        self._last: dict[str, tuple[Run, Step]] = {}
        self.defined_by_runs: set[str] = set()
        for run in self.runs:
            self._happen(run)

    def _happen(self, run: Run) -> None:
        facts = self._facts(run)
        step = self.now.step(facts)
        self._last[run.cell] = (run, step)
        self.defined_by_runs |= facts.defines
        version = f"{run.cell}@{run.order}"
        self.now.run(step, run.cell, version, run.order, surely=run.status == "ok")

    def _facts(self, run: Run) -> Uses:
        if run.source is not None:
            return analyse(run.source, self.language)
        cell = self.by_id.get(run.cell)
        if cell and source_hash(cell.source) == run.hash:
            return analyse(cell.source, self.language)
        return _FORGOTTEN

    def judge(self) -> Iterator[Judged]:
        """Walk the notebook from top to bottom and compare; `ideal` is then how that ends."""
        ideal = self.ideal = Timeline(self._tokens)
        for index, cell in enumerate(self.cells):
            if cell.type != "code":
                continue
            facts = analyse(cell.source, self.language)
            step = ideal.step(facts)
            run, seen = self._last.get(cell.id, (None, None))
            is_edited = bool(run and run.source_hash != source_hash(cell.source))
            differing = {} if seen is None or is_edited else _differing(seen, step)
            judged = Judged(
                cell,
                index,
                step,
                run,
                self._elsewhere.get(cell.id),
                is_edited,
                differing,
                self._hidden(step),
            )
            yield judged
            version, order = f"new {cell.id}", 0
            if run and judged.is_intact:
                version, order = f"{cell.id}@{run.order}", run.order
            ideal.run(step, cell.id, version, order, known=judged.is_intact)

    def _hidden(self, step: Step) -> tuple[str, ...]:
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


def _differing(seen: Step, wanted: Step) -> dict[str, tuple[Binding | None, Binding | None]]:
    found = {}
    for name in seen.inputs.keys() | wanted.inputs.keys():
        was, would = seen.inputs.get(name), wanted.inputs.get(name)
        if (was.version if was else None) != (would.version if would else None):
            found[name] = (was, would)
    return found
