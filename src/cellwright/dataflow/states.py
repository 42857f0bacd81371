"""`staleness`: which results are fresh, which are stale, and why."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from cellwright.dataflow import _known_names as known_names
from cellwright.dataflow._history import History, analyse_within_limits
from cellwright.dataflow._timeline import ANYTHING, MADE_ANEW
from cellwright.dataflow.analyse import is_python
from cellwright.dataflow.records import CellState, Reason, quote_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cellwright.dataflow._history import FactsReader, JudgedCell
    from cellwright.dataflow._timeline import Binding, Mark
    from cellwright.dataflow.memory import Memory
    from cellwright.dataflow.records import DataflowCell, DataflowRun

_history_name = re.compile(r"_i?\d+").fullmatch
_MOST_NAMES = 3

_FAILURES = {
    "error": "its last run raised an error",
    "timed_out": "its last run was stopped for taking too long",
    "cancelled": "its last run was cancelled",
    "died": "the kernel died while it ran",
    "running": "it is still running",
}


def staleness(
    cells: Sequence[DataflowCell],
    runs: Iterable[DataflowRun],
    language: str = "python",
    *,
    kernel: str | None = None,
    should_stop: Callable[[], bool] | None = None,
    memory: Memory | None = None,
) -> list[CellState]:
    """Say of every cell whether its result is fresh or stale.

    **Fresh** means: its last run ended well, its text is the one that ran, and everything that it
    used came from the same runs of the same cells as it would if the notebook ran from top to
    bottom. So an edited cell makes those below stale that use what it makes, and no others; a cell
    that ran again makes stale what used its earlier result; imports, functions and literals whose
    text is unchanged stay what they are however often they run; but a name that holds a part of a
    list has a part of an old one when the list has been made anew. In doubt a cell is stale.

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
        should_stop: Asked now and then; if it returns true, the analysis ends.
        memory: What the last call for this notebook left. It makes the next one fast, and changes
            no answer. Where a state stays the same, the same object comes again.

    Raises:
        AnalysisStopped: `should_stop` returned true.
    """
    runs = list(runs)

    def find(reader: FactsReader) -> list[CellState]:
        return _judge_all(History(cells, runs, reader, kernel))

    return analyse_within_limits(find, language, should_stop, memory)


def _judge_all(history: History) -> list[CellState]:
    writer = ReasonWriter(history)
    memory, redefined = _compare_with_last(history)
    earlier, memory.states = memory.states, {}
    found: dict[str, CellState] = {}
    for judged in history.judge():
        cell = judged.cell.id
        known = earlier.get(cell)
        if known is not None and known[0] is judged and redefined.isdisjoint(judged.hidden):
            _, found[cell], cause = memory.states[cell] = known
            if cause is not None:
                writer.causes[cell] = cause
            continue
        reasons = writer.explain_own_run(judged)
        if judged.run and not judged.is_edited:
            reasons += writer.explain_inputs(judged) + writer.explain_hidden(judged)
        writer.remember(judged, reasons)
        ran = judged.run or judged.last_elsewhere
        found[cell] = CellState(
            cell,
            judged.index,
            ("stale" if reasons else "fresh") if ran else "never",
            tuple(reasons),
            tuple(_list_warnings(judged, reasons, writer)),
        )
        if judged.run is None or judged.is_edited:  # else other cells may be among the reasons
            memory.states[cell] = judged, found[cell], writer.causes.get(cell)
    return [
        found.get(cell.id) or CellState(cell.id, index, "not_code")
        for index, cell in enumerate(history.cells)
    ]


def _compare_with_last(history: History) -> tuple[Memory, set[str]]:
    """The memory, with states as far as they hold; and names that other cells define than then."""
    memory, read = history.reader.memory, history.reader.read
    order = [cell.id for cell in history.cells]
    defined = [read(cell.source) if cell.type == "code" else None for cell in history.cells]
    redefined: set[str] = set()
    if memory.order != order:
        memory.states = {}  # sentences tell the places of cells
    else:
        for was, now in zip(memory.defined, defined, strict=True):
            if was is not now:
                redefined.update(was.defines if was else (), now.defines if now else ())
    memory.order, memory.defined = order, defined
    return memory, redefined


def _list_warnings(
    judged: JudgedCell,
    reasons: list[Reason],
    writer: ReasonWriter,
) -> list[Reason]:
    history = writer.history
    told = {
        name
        for reason in reasons
        if reason.kind in {"unknown_name", "history"}
        for name in reason.names
    }
    found = []
    for name in judged.hidden:
        where = writer.find_definers().get(name, [])
        below = [index for index in where if index > judged.index]
        if below:
            cell = history.cells[below[0]].id
            sentence = f"It uses `{name}`, which only {writer.name_cell(cell)}, below it, defines."
            found.append(Reason("defined_below", sentence, (name,), cell))
        elif where and judged.index not in where:
            sentence = f"It uses `{name}`, which is deleted above it."
            found.append(Reason("undefined", sentence, (name,)))
        elif name not in told:
            sentence = f"It uses `{name}`, which no cell of the notebook defines."
            found.append(Reason("undefined", sentence, (name,)))
    if judged.is_intact:
        found += _warn_of_rerun(judged, history, writer)
    language = history.reader.language
    if not is_python(language) and judged.step.opaque:
        sentence = f"Names are not followed in {language}: only the order of runs counts."
        found.append(Reason("cannot_tell", sentence))
    elif judged.step.opaque:
        what = ", ".join(judged.step.opaque)
        sentence = f"What it uses and changes cannot be told, because of {what}."
        found.append(Reason("cannot_tell", sentence))
    return found


def _warn_of_rerun(judged: JudgedCell, history: History, writer: ReasonWriter) -> list[Reason]:
    """Warn of a fresh result that a run of the cell alone would change."""
    found = []
    for name, binding in sorted(judged.step.inputs.items()):
        now = history.now.get(name)
        if name == ANYTHING or not binding or not now or now.version == binding.version:
            continue
        last = now.marks.last.cell
        if last != judged.cell.id:
            sentence = f"Run alone now it would use `{name}` as {writer.name_cell(last)} left it."
            found.append(Reason("rerun_differs", sentence, (name,), last))
    return found


@dataclass(slots=True)
class ReasonWriter:
    """Words the reasons of one notebook. Knows which cells above turned out stale, and why."""

    history: History
    causes: dict[str, tuple[str, str]] = field(default_factory=dict)  # cell: kind, short clause
    _definers: dict[str, list[int]] | None = None

    def find_definers(self) -> dict[str, list[int]]:
        """Which cells define a name, by index."""
        if self._definers is None:
            self._definers = {}
            for index, cell in enumerate(self.history.cells):
                if cell.type == "code":
                    for name in self.history.reader.read(cell.source).defines:
                        self._definers.setdefault(name, []).append(index)
        return self._definers

    def name_cell(self, cell: str) -> str:
        """How a sentence names a cell."""
        index = self.history.index.get(cell)
        if index is None:
            return f"a deleted cell (id {quote_id(cell)})"
        return f"cell {index} (id {quote_id(cell)})"

    # --- The cell itself ---------------------------------------------------------------------------

    def explain_own_run(self, judged: JudgedCell) -> list[Reason]:
        """What is wrong with the cell's own last run."""
        run = judged.run
        if run is None:
            if judged.last_elsewhere is None:
                return [Reason("never", "It has not run.")]
            return [
                Reason(
                    "kernel",
                    "It ran in a kernel that is gone: what it defined does not exist any more.",
                )
            ]
        found = []
        if judged.is_edited:
            found.append(Reason("edited", "It was edited since it ran."))
        if run.status != "ok":
            kind = "running" if run.status == "running" else "failed"
            clause = _FAILURES.get(run.status, f"its last run ended as `{run.status}`")
            found.append(Reason(kind, f"{clause[0].upper()}{clause[1:]}."))
        return found

    def explain_hidden(self, judged: JudgedCell) -> list[Reason]:
        """Names that it found although no cell above defines them."""
        names = [name for name in judged.hidden if name not in judged.differing]
        found = []
        earlier = [name for name in names if _is_history(name)]
        others = [name for name in names if not _is_history(name)]
        if earlier:
            sentence = f"It uses {_list_names(earlier)}, an earlier output: which one depends on what ran before."
            found.append(Reason("history", sentence, tuple(earlier)))
        if others:
            sentence = (
                f"It uses {_list_names(others)}, which no cell above it defines, nor any that ran."
            )
            found.append(Reason("unknown_name", sentence, tuple(others)))
        return found

    # --- What it uses ------------------------------------------------------------------------------

    def explain_inputs(self, judged: JudgedCell) -> list[Reason]:
        """Why it saw something else than it would see from top to bottom."""
        groups: dict[tuple[str, str | None, str], list[str]] = {}
        differing = judged.differing
        # A name that its run did not use is there because another one may be something else now,
        # as after a cell above that may fail: that other one is the reason.
        used = judged.seen.inputs if judged.seen else differing
        if not used.keys().isdisjoint(differing):
            differing = {name: both for name, both in differing.items() if name in used}
        for name, (was, would) in sorted(differing.items()):
            group = self._explain_difference(judged, name, was, would)
            groups.setdefault(group, []).append(name)
        found = []
        for (kind, cell, clause), names in groups.items():
            real = [name for name in names if name != ANYTHING]
            real = [name for name in real if name not in known_names.BUILTINS] or real
            subject = _list_names(real) if real else "names that only running it could tell"
            found.append(Reason(kind, f"It uses {subject}, {clause}.", tuple(real), cell))
        return found

    def _explain_difference(
        self, judged: JudgedCell, name: str, was: Binding | None, would: Binding | None
    ) -> tuple[str, str | None, str]:
        """The kind, the other cell, and a clause that begins with `which`."""
        seen, wanted = self._find_first_difference(was, would)
        me = judged.cell.id
        if wanted and wanted.cell in self.causes and (not seen or seen.cell in {wanted.cell, me}):
            return self._explain_stale(name, wanted.cell)
        if seen and seen.cell == me:
            return "own_run", me, "which its own earlier run had already changed"
        if seen and seen.version.startswith(MADE_ANEW):
            clause = f"which still holds what {self.name_cell(seen.cell)} had made anew"
            return "upstream_rerun", seen.cell, clause
        if seen and seen.cell not in self.history.index:
            clause = f"which {self.name_cell(seen.cell)} had left behind"
            return "upstream_deleted", seen.cell, clause
        if seen and self.history.index[seen.cell] > judged.index:
            clause = f"which {self.name_cell(seen.cell)}, below it, had set before it ran"
            return "out_of_order", seen.cell, clause
        if wanted and wanted.cell in self.causes:
            return self._explain_stale(name, wanted.cell)
        if wanted:
            last = was.marks.last if was else None
            return self._explain_fresh(judged, name, seen or last, wanted)
        if seen:
            clause = f"which {self.name_cell(seen.cell)} set with a text that it has no more"
            kind = "upstream_edited" if seen.cell in self.causes else "other_source"
            return kind, seen.cell, clause
        clause = "which may not be the same in a run from top to bottom"
        return "opaque", None, clause

    def _find_first_difference(
        self, was: Binding | None, would: Binding | None
    ) -> tuple[Mark | None, Mark | None]:
        """The first contribution that is not the same on both sides."""
        left = list(was.marks) if was else []
        right = list(would.marks) if would else []
        self.history.reader.budget.spend(1 + (len(left) + len(right)) // 4)
        for one, two in itertools.zip_longest(left, right):
            if not (one and two and one[:2] == two[:2]):
                return one, two
        return (left[-1] if left else None), (right[-1] if right else None)

    def _explain_fresh(
        self, judged: JudgedCell, name: str, seen: Mark | None, wanted: Mark
    ) -> tuple[str, str, str]:
        who = self.name_cell(wanted.cell)
        if judged.run and wanted.order > judged.run.order:
            verb = self._choose_verb(name, wanted.cell, past=True)
            again = " again" if seen and seen.cell == wanted.cell else ""
            return "upstream_rerun", wanted.cell, f"which {who} {verb}{again} after this cell ran"
        source = f"{self.name_cell(seen.cell)} had set" if seen else "something else had set"
        verb = self._choose_verb(name, wanted.cell)
        clause = f"which {source} when it ran; from top to bottom {who} {verb} it later"
        return "other_source", wanted.cell, clause

    def _explain_stale(self, name: str, cell: str) -> tuple[str, str, str]:
        kind, cause = self.causes[cell]
        which = f"which {self.name_cell(cell)} {self._choose_verb(name, cell)}"
        match kind:
            case "edited":
                return "upstream_edited", cell, f"{which}; that cell was edited since it ran"
            case "never" | "kernel":
                return "upstream_never", cell, f"{which}; that cell has not run"
            case "failed":
                return "upstream_failed", cell, f"{which}; that cell did not end well"
            case "running":
                return "upstream_failed", cell, f"{which}; that cell is still running"
            case _:
                return "upstream_stale", cell, f"{which}; that cell is stale itself: {cause}"

    def _choose_verb(self, name: str, cell: str, *, past: bool = False) -> str:
        """What a cell, as it is now, does to a name."""
        facts = self.history.reader.read(self.history.by_id[cell].source)
        if facts.opaque:
            return "may have changed" if past else "may change"
        if name in facts.defines:
            return "defined" if past else "defines"
        return "changed" if past else "changes"

    def remember(self, judged: JudgedCell, reasons: list[Reason]) -> None:
        """Keep why this cell is stale, for the cells below that use it."""
        if not reasons:
            return
        first = reasons[0]
        who = self.name_cell(judged.cell.id)
        other = self.name_cell(first.cell) if first.cell else ""
        match first.kind:
            case "edited":
                cause = f"{who} was edited"
            case "never" | "kernel":
                cause = f"{who} has not run"
            case "failed" | "running":
                cause = (
                    f"the last run of {who} ended as `{judged.run.status if judged.run else ''}`"
                )
            case "own_run":
                cause = f"{who} ran again on its own result"
            case "upstream_rerun":
                cause = f"{other} ran after it"
            case "out_of_order":
                cause = f"{who} used what {other}, below it, had set"
            case "upstream_deleted":
                cause = f"{who} used what {other} had left behind"
            case "unknown_name":
                cause = f"{who} uses {_list_names(list(first.names))} that no cell defines"
            case _ if first.cell in self.causes:
                cause = self.causes[first.cell][1]
            case _:
                cause = f"{who} did not see what it would from top to bottom"
        self.causes[judged.cell.id] = (first.kind, cause)


def _is_history(name: str) -> bool:
    return name in known_names.HISTORY or bool(_history_name(name))


def _list_names(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - _MOST_NAMES} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
