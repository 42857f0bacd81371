"""Sentences that say why, once for every way in which a result can be out of date."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from cellwright.dataflow import _tables as tables
from cellwright.dataflow._timeline import ANYTHING
from cellwright.dataflow.records import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.dataflow._history import History, Judged
    from cellwright.dataflow._timeline import Binding, Mark

_history_name = re.compile(r"_i?\d+").fullmatch
_MOST_NAMES = 3

_FAILURES = {
    "error": "its last run raised an error",
    "timed_out": "its last run was stopped for taking too long",
    "cancelled": "its last run was cancelled",
    "died": "the kernel died while it ran",
    "running": "it is still running",
}


@dataclass(slots=True)
class Narrator:
    """Words the reasons of one notebook. Knows which cells above turned out stale, and why."""

    history: History
    count_from: int
    causes: dict[str, tuple[str, str]] = field(default_factory=dict)  # cell: kind, short clause

    def label(self, cell: str) -> str:
        """How a sentence names a cell."""
        index = self.history.index.get(cell)
        if index is None:
            return f"a deleted cell (id {cell})"
        return f"cell {index + self.count_from} (id {cell})"

    # --- The cell itself ---------------------------------------------------------------------------

    def own(self, judged: Judged) -> list[Reason]:
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

    def hidden(self, judged: Judged) -> list[Reason]:
        """Names that it found although no cell above defines them."""
        names = [name for name in judged.hidden if name not in judged.differing]
        found = []
        earlier = [name for name in names if _is_history(name)]
        others = [name for name in names if not _is_history(name)]
        if earlier:
            sentence = f"It uses {_names(earlier)}, an earlier output: which one depends on what ran before."
            found.append(Reason("history", sentence, tuple(earlier)))
        if others:
            sentence = (
                f"It uses {_names(others)}, which no cell above it defines, nor any that ran."
            )
            found.append(Reason("unknown_name", sentence, tuple(others)))
        return found

    # --- What it uses ------------------------------------------------------------------------------

    def upstream(self, judged: Judged) -> list[Reason]:
        """Why it saw something else than it would see from top to bottom."""
        groups: dict[tuple[str, str | None, str], list[str]] = {}
        for name, (was, would) in sorted(judged.differing.items()):
            group = self._difference(judged, name, was, would)
            groups.setdefault(group, []).append(name)
        found = []
        for (kind, cell, clause), names in groups.items():
            real = [name for name in names if name != ANYTHING]
            real = [name for name in real if name not in tables.BUILTINS] or real
            subject = _names(real) if real else "names that only running it could tell"
            found.append(Reason(kind, f"It uses {subject}, {clause}.", tuple(real), cell))
        return found

    def _difference(
        self, judged: Judged, name: str, was: Binding | None, would: Binding | None
    ) -> tuple[str, str | None, str]:
        """The kind, the other cell, and a clause that begins with `which`."""
        seen, wanted = self._first_difference(was, would)
        me = judged.cell.id
        if wanted and wanted.cell in self.causes and (not seen or seen.cell in {wanted.cell, me}):
            return self._from_stale(name, wanted.cell)
        if seen and seen.cell == me:
            return "own_run", me, "which its own earlier run had already changed"
        if seen and seen.cell not in self.history.index:
            clause = f"which {self.label(seen.cell)} had left behind"
            return "upstream_deleted", seen.cell, clause
        if seen and self.history.index[seen.cell] > judged.index:
            clause = f"which {self.label(seen.cell)}, below it, had set before it ran"
            return "out_of_order", seen.cell, clause
        if wanted and wanted.cell in self.causes:
            return self._from_stale(name, wanted.cell)
        if wanted:
            last = was.marks.last if was else None
            return self._from_fresh(judged, name, seen or last, wanted)
        if seen:
            clause = f"which {self.label(seen.cell)} set with a text that it has no more"
            kind = "upstream_edited" if seen.cell in self.causes else "other_source"
            return kind, seen.cell, clause
        clause = "of which nobody can tell whether they would be the same from top to bottom"
        return "opaque", None, clause

    def _first_difference(
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

    def _from_fresh(
        self, judged: Judged, name: str, seen: Mark | None, wanted: Mark
    ) -> tuple[str, str, str]:
        who = self.label(wanted.cell)
        if judged.run and wanted.order > judged.run.order:
            verb = self._verb(name, wanted.cell, past=True)
            again = " again" if seen and seen.cell == wanted.cell else ""
            return "upstream_rerun", wanted.cell, f"which {who} {verb}{again} after this cell ran"
        source = f"{self.label(seen.cell)} had set" if seen else "something else had set"
        verb = self._verb(name, wanted.cell)
        clause = f"which {source} when it ran; from top to bottom {who} {verb} it later"
        return "other_source", wanted.cell, clause

    def _from_stale(self, name: str, cell: str) -> tuple[str, str, str]:
        kind, cause = self.causes[cell]
        which = f"which {self.label(cell)} {self._verb(name, cell)}"
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

    def _verb(self, name: str, cell: str, *, past: bool = False) -> str:
        """What a cell, as it is now, does to a name."""
        facts = self.history.reader.read(self.history.by_id[cell].source)
        if facts.opaque:
            return "may have changed" if past else "may change"
        if name in facts.defines:
            return "defined" if past else "defines"
        return "changed" if past else "changes"

    def remember(self, judged: Judged, reasons: list[Reason]) -> None:
        """Keep why this cell is stale, for the cells below that use it."""
        if not reasons:
            return
        first = reasons[0]
        who = self.label(judged.cell.id)
        other = self.label(first.cell) if first.cell else ""
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
                cause = f"{who} uses {_names(list(first.names))} that no cell defines"
            case _ if first.cell in self.causes:
                cause = self.causes[first.cell][1]
            case _:
                cause = f"{who} did not see what it would from top to bottom"
        self.causes[judged.cell.id] = (first.kind, cause)


def _is_history(name: str) -> bool:
    return name in tables.HISTORY or bool(_history_name(name))


def _names(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - _MOST_NAMES} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
