"""Which cells to run: so that no result is stale, or to give one cell what it needs."""

from __future__ import annotations

from cellwright.dataflow._history import History, analyse_within_limits
from cellwright.dataflow.records import DataflowRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from cellwright.dataflow._history import FactsReader, JudgedCell
    from cellwright.dataflow._timeline import Binding
    from cellwright.dataflow.records import DataflowCell

_TRIES = 30  # each adds at least one cell; beyond that, all of them is the honest answer


def stale_closure(
    cells: Sequence[DataflowCell],
    runs: Iterable[DataflowRun],
    language: str = "python",
    *,
    kernel: str | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[DataflowCell]:
    """The cells to run, from top to bottom, so that no result is stale after that.

    That takes the stale ones, those that never ran, those whose state they need and that is not
    there any more, those that use what is made anew, and those that give names back the meaning
    that they have at the end.

    Raises:
        AnalysisStopped: `should_stop`, which is asked now and then, returned true.
    """
    runs = list(runs)

    def find(reader: FactsReader) -> list[DataflowCell]:
        plan = _Plan(cells, runs, reader, kernel)
        wanted = {judged.cell.id for judged in plan.judged if not judged.is_intact}
        return plan.complete(wanted, downstream=True)

    return analyse_within_limits(find, language, should_stop)


def replay(
    cells: Sequence[DataflowCell],
    runs: Iterable[DataflowRun],
    target: str,
    language: str = "python",
    *,
    kernel: str | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[DataflowCell]:
    """The cells to run first, from top to bottom, to give one cell what it needs.

    With a `kernel` in which nothing has run yet, that is all that it needs; otherwise what is
    there already is left out. The cell itself is not in the list. Cells that set up the kernel
    itself (`%load_ext`, `%cd`, `%matplotlib`) count as needed by every cell below them.

    Raises:
        AnalysisStopped: `should_stop`, which is asked now and then, returned true.
    """
    runs = list(runs)

    def find(reader: FactsReader) -> list[DataflowCell]:
        plan = _Plan(cells, runs, reader, kernel)
        setup = set()
        for judged in plan.judged:
            if judged.cell.id == target:
                break
            if judged.step.facts.environment and not judged.is_intact:
                setup.add(judged.cell.id)
        found = plan.complete({target, *setup}, downstream=False)
        return [cell for cell in found if cell.id != target]

    return analyse_within_limits(find, language, should_stop)


class _Plan:
    """Tries plans out on the timelines until one works."""

    def __init__(
        self,
        cells: Sequence[DataflowCell],
        runs: Sequence[DataflowRun],
        reader: FactsReader,
        kernel: str | None,
    ) -> None:
        if kernel is None:
            kernel = max(runs, key=lambda run: run.order).kernel if runs else ""
        self._kernel = kernel
        self._order = max((run.order for run in runs), default=0)
        self._code = [cell for cell in cells if cell.type == "code" and cell.source.strip()]
        self._before = History(cells, runs, reader, kernel)
        self.judged = list(self._before.judge())

    def _try_out(self, plan: Collection[str]) -> History:
        """What would be if the cells of the plan ran now."""
        return self._before.fork(
            DataflowRun(cell.id, self._order + k, kernel=self._kernel, source=cell.source)
            for k, cell in enumerate((c for c in self._code if c.id in plan), 1)
        )

    def complete(self, wanted: set[str], *, downstream: bool) -> list[DataflowCell]:
        """Add cells until the plan gives what it is for, or nothing is left to add."""
        code = {cell.id for cell in self._code}
        judged = {each.cell.id: each for each in self.judged}
        intact = {cell for cell, each in judged.items() if each.is_intact}
        right = _find_right_names(self._before)
        plan = _add_needs(wanted & code, judged, self._before) & code
        for _ in range(_TRIES):
            history = self._try_out(plan)
            judged = {each.cell.id: each for each in history.judge()}
            more: set[str] = set()
            for cell, each in judged.items():
                if cell in plan and not each.is_intact:
                    for name, (_was, would) in each.differing.items():
                        more |= _find_makers(name, would, judged)
                elif downstream and cell in intact and not each.is_intact:
                    more.add(cell)
            if downstream:  # what stood right before has to do so after
                for name in right - _find_right_names(history):
                    more |= _find_makers(name, history.ideal.get(name), judged)
            more = (more & code) - plan
            if not more:
                break
            plan |= _add_needs(more, judged, history) & code
        else:
            plan |= code if downstream else set()
        return [cell for cell in self._code if cell.id in plan]


def _add_needs(cells: set[str], judged: dict[str, JudgedCell], history: History) -> set[str]:
    """The cells, and those that make what they need and what is not there as it should be."""
    found: set[str] = set()
    waiting = list(cells)
    while waiting:
        cell = waiting.pop()
        if cell in found or cell not in judged:
            continue
        found.add(cell)
        for name, wanted in judged[cell].step.inputs.items():
            now = history.now.get(name)
            if wanted and not (now and now.version == wanted.version):
                waiting += _find_makers(name, wanted, judged)
    return found


def _find_makers(name: str, binding: Binding | None, judged: dict[str, JudgedCell]) -> set[str]:
    """The cells that have to run to make a name what it should be, given what they need."""
    found = set()
    for mark in binding.marks.newest_first() if binding else ():
        found.add(mark.cell)
        maker = judged.get(mark.cell)
        if maker and name in maker.step.inputs:
            break  # it needs the name itself, and so what came before
    return found


def _find_right_names(history: History) -> set[str]:
    """Names that have the value that a run from top to bottom would give them."""
    return {
        name
        for name, binding in history.now.names.items()
        if (would := history.ideal.get(name)) and would.version == binding.version
    }
