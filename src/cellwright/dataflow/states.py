"""`staleness`: which results still stand, which do not, and why."""

from __future__ import annotations

from cellwright.dataflow._history import History, within_limits
from cellwright.dataflow._reasons import Narrator
from cellwright.dataflow._timeline import ANYTHING
from cellwright.dataflow.analyse import is_python
from cellwright.dataflow.records import CellState, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from cellwright.dataflow._history import FactsReader, Judged
    from cellwright.dataflow.records import Cell, Run


def staleness(
    cells: Sequence[Cell],
    runs: Iterable[Run],
    language: str = "python",
    *,
    kernel: str | None = None,
    provided: Collection[str] = (),
    count_from: int = 0,
    should_stop: Callable[[], bool] | None = None,
) -> list[CellState]:
    """Say of every cell whether what it shows still stands.

    **Fresh** means: its last run ended well, its text is the one that ran, and everything that it
    used came from the same runs of the same cells as it would if the notebook ran from top to
    bottom. So an edited cell makes those below stale that use what it makes, and no others; a cell
    that ran again makes stale what used its earlier result; imports, functions and literals whose
    text is unchanged stay what they are however often they run. In doubt a cell is stale.

    What is not followed: files, environment variables, the clock, and state inside libraries.
    In other languages than Python every cell may use and change everything, so that only the
    order from top to bottom leaves cells fresh; a warning says so. So may a cell that is too large
    to analyse (`CELL_LIMIT`), and every cell of a notebook that is (`NOTEBOOK_LIMIT`).

    Args:
        cells: The notebook as it is now, in order.
        runs: All that ran, also what is in no cell or in a deleted one.
        language: The kernel's language.
        kernel: The kernel that lives now; runs in other ones are gone. None means the one that
            the last run was in, be it alive or not.
        provided: Names that are there without a cell, such as parameters.
        count_from: The number of the first cell in sentences.
        should_stop: Asked now and then; if it returns true, the analysis ends.

    Raises:
        AnalysisStopped: `should_stop` returned true.
    """
    runs = list(runs)

    def find(reader: FactsReader) -> list[CellState]:
        return _judge_all(History(cells, runs, reader, kernel, provided), count_from)

    return within_limits(find, language, should_stop)


def _judge_all(history: History, count_from: int) -> list[CellState]:
    narrator = Narrator(history, count_from)
    definers = _definers(history)
    found: dict[str, CellState] = {}
    for judged in history.judge():
        reasons = narrator.own(judged)
        if judged.run and not judged.is_edited:
            reasons += narrator.upstream(judged) + narrator.hidden(judged)
        narrator.remember(judged, reasons)
        ran = judged.run or judged.last_elsewhere
        found[judged.cell.id] = CellState(
            judged.cell.id,
            judged.index,
            ("stale" if reasons else "fresh") if ran else "never",
            tuple(reasons),
            tuple(_warnings(judged, reasons, narrator, definers)),
        )
    return [
        found.get(cell.id) or CellState(cell.id, index, "not_code")
        for index, cell in enumerate(history.cells)
    ]


def _definers(history: History) -> dict[str, list[int]]:
    """Which cells define a name, by index."""
    found: dict[str, list[int]] = {}
    for index, cell in enumerate(history.cells):
        if cell.type == "code":
            for name in history.reader.read(cell.source).defines:
                found.setdefault(name, []).append(index)
    return found


def _warnings(
    judged: Judged, reasons: list[Reason], narrator: Narrator, definers: dict[str, list[int]]
) -> list[Reason]:
    history = narrator.history
    told = {
        name
        for reason in reasons
        if reason.kind in {"unknown_name", "history"}
        for name in reason.names
    }
    found = []
    for name in judged.hidden:
        where = definers.get(name, [])
        below = [index for index in where if index > judged.index]
        if below:
            cell = history.cells[below[0]].id
            sentence = f"It uses `{name}`, which only {narrator.label(cell)}, below it, defines."
            found.append(Reason("defined_below", sentence, (name,), cell))
        elif where and judged.index not in where:
            sentence = f"It uses `{name}`, which is deleted above it."
            found.append(Reason("undefined", sentence, (name,)))
        elif name not in told:
            sentence = f"It uses `{name}`, which no cell of the notebook defines."
            found.append(Reason("undefined", sentence, (name,)))
    if judged.is_intact:
        found += _would_differ(judged, history, narrator)
    language = history.reader.language
    if not is_python(language) and judged.step.opaque:
        sentence = f"Names are not followed in {language}: only the order of runs counts."
        found.append(Reason("cannot_tell", sentence))
    elif judged.step.opaque:
        what = ", ".join(judged.step.opaque)
        sentence = f"What it uses and changes cannot be told, because of {what}."
        found.append(Reason("cannot_tell", sentence))
    return found


def _would_differ(judged: Judged, history: History, narrator: Narrator) -> list[Reason]:
    """A result that stands, although running the cell alone now would give another."""
    found = []
    for name, binding in sorted(judged.step.inputs.items()):
        now = history.now.get(name)
        if name == ANYTHING or not binding or not now or now.version == binding.version:
            continue
        last = now.marks.last.cell
        if last != judged.cell.id:
            sentence = f"Run alone now it would use `{name}` as {narrator.label(last)} left it."
            found.append(Reason("rerun_differs", sentence, (name,), last))
    return found
