"""A cell in flight, and what remains of it: outputs in the notebook, executions in the journal.

A cell that runs for long is saved now and then. Such a save is announced to the journal and not
confirmed, so that it is not an entry of the history: the next save of the same cell replaces it.
If another caller changes the notebook in between, or this process dies, the next reader finds
the notebook as it was announced, and only then it becomes an entry of its own.

Short cells of one run land together, so that not every one of them waits for the disk: one save
and one entry for all that ended since the last.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import NamedTuple

from cellwright.document.change import Change
from cellwright.document.edits import SetMetadata, SetOutputs
from cellwright.errors import (
    AmbiguousCell,
    CellNotFound,
    CellwrightError,
    DurabilityUnconfirmed,
    EditorSilent,
    EditorUnfit,
)
from cellwright.journal.executions import ExecutionRecord
from cellwright.workspace.hosts.host import SaveHooks
from cellwright.workspace.runs.widgets import drop_dangling_views, make_widget_edits
from cellwright.workspace.staleness import PARAMETERS
from cellwright.workspace.status import renew_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.change import State
    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.journal import Recording
    from cellwright.kernel.session import CellOutcome, Outcome
    from cellwright.outputs.collector import Collector
    from cellwright.workspace.hosts.host import Make
    from cellwright.workspace.notebook import OpenNotebook


# So that saving takes at most a tenth of the time that cells run.
REST = 9.0
"""The pause after a save, as a multiple of the time that the save took."""


class CellRun:
    """One cell of a run, from its turn on.

    `cell` is what it was when the run was asked for. `began` is when its kernel got it, in its
    `life`; 0 before that. `is_changed` says that a later cell has changed one of its displays,
    `is_unsaved` that this has not landed yet. `is_taken` says that a person has run the cell
    since: the outputs in the notebook are theirs. `injected` are the parameters that were set
    after it. `kernel` is what a notebook's metadata says about its kernel.
    """

    def __init__(self, cell: Cell, collector: Collector) -> None:
        self.cell = cell
        self.collector = collector
        self.count: int | None = None
        self.began = 0.0
        self.ended = 0.0
        self.life = ""
        self.is_unsaved = False
        self.is_changed = False
        self.is_over = False
        self.is_taken = False
        self.injected: tuple[str, CellOutcome] | None = None
        self.notes: list[str] = []
        self.kernel: dict[str, Any] = {}

    @property
    def is_empty(self) -> bool:
        """Whether it has no code: it is not run, and what it holds stays."""
        return not self.cell.source.strip()

    def begin(self, life: str) -> None:
        """Note that the kernel gets the cell now."""
        self.began, self.life = time.time(), life

    def end(self, outcome: Outcome) -> None:
        """Note that the cell is over."""
        self.count, self.ended = outcome.execution_count, self.began + outcome.seconds
        self.is_over = True
        self.collector.finish()

    def take_outputs(self) -> OutputsSoFar:
        """Return what it has said so far; as in Jupyter, a cell that still runs has no count."""
        self.is_unsaved = False  # what changes from now on is for the next landing
        outputs = self.collector.outputs(in_pieces=not self.is_over)  # there is more to come
        return OutputsSoFar(self, outputs, self.count if self.is_over else None)

    def find_in(self, notebook: Notebook) -> Cell | None:
        """Find the cell where it is now: by its id, or by its source where it has none."""
        if self.cell.id is not None:
            try:
                return notebook.cell(self.cell.id)
            except AmbiguousCell:
                pass  # its place tells
            except CellNotFound:
                return None
        cells, wanted = notebook.cells, self.cell.hash
        if self.cell.index < len(cells) and cells[self.cell.index].hash == wanted:
            return cells[self.cell.index]
        same = [cell for cell in cells if cell.hash == wanted]
        return same[0] if len(same) == 1 else None


class OutputsSoFar(NamedTuple):
    """The outputs of a cell at one moment."""

    run: CellRun
    outputs: list[dict[str, Any]]
    execution_count: int | None

    def make_edits(self, cell: Cell) -> list[Edit]:
        """Return the edits that put them into the notebook, and the times where Jupyter keeps them."""
        if self.run.is_empty:
            return []
        edits: list[Edit] = [SetOutputs(cell.index, self.outputs, self.execution_count)]
        run = self.run
        times = renew_times(cell, run.began, run.ended) if run.is_over else None
        if times is not None:
            edits.append(SetMetadata({"execution": times}, cell=cell.index))
        return edits


class InterimSaves:
    """Calls `save` while a cell says something, at most every `interval` seconds; 0 is never.

    The first save comes half an interval after the cell's first output, so that short cells have
    none. `save` returns whether it worked; if it did not, the next try comes later each time.
    """

    def __init__(self, save: Callable[[], Awaitable[bool]], interval: float) -> None:
        self._save = save
        self._interval = interval
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_saving = False

    def touch(self) -> None:
        """Note that the cell has said something."""
        self._news.set()
        if self._task is None and self._interval:
            self._task = asyncio.ensure_future(self._work())

    async def end(self) -> None:
        """Save no more; a save that has begun is waited for."""
        self._interval = 0.0
        if self._task is not None:
            if self._is_saving:
                await asyncio.wait([self._task])
            else:
                self._task.cancel()

    async def _work(self) -> None:
        pause = self._interval
        await asyncio.sleep(pause / 2)
        while self._interval:
            await self._news.wait()
            self._news.clear()
            began = time.monotonic()
            self._is_saving = True
            try:
                worked = await self._save()
            finally:
                self._is_saving = False
            if self._interval:
                pause = self._interval if worked else pause * 2
                await asyncio.sleep(max(pause, REST * (time.monotonic() - began)))


_NAMED = 3  # cells that a label names one by one


class Landed(NamedTuple):
    """What became of the outputs of a cell.

    Args:
        saved: whether they are in the notebook.
        stale: whether the cell was edited meanwhile.
        notes: what the caller has to know.
        save_error: the code of the error that kept them out of the notebook.
        artifact: the id of the artifact that has them instead.
    """

    saved: bool = False
    stale: bool = False
    notes: Sequence[str] = ()
    save_error: str | None = None
    artifact: str | None = None


class RunRecord:
    """Lands the outputs of one run and puts its cells on record; a check keeps nothing.

    It is used by one thread at a time.
    """

    def __init__(self, book: OpenNotebook, start: State, *, is_check: bool = False) -> None:
        self._book = book
        self._is_check = is_check
        self.widgets: dict[str, dict[str, Any]] | None = None
        """The widgets of the kernel, to be saved with the next landing; None leaves them to an editor."""
        self._landing = book.host.begin_landing(start)
        self._announced_cells: set[int] = set()
        # Of the last save that was announced and not confirmed:
        self._announced: tuple[Recording, Change, str] | None = None
        self._before: State | None = None  # what the notebook held before it
        self._newest: str | None = None  # the newest entry of the history then

    @property
    def needs_end(self) -> bool:
        """Whether `end` has anything to do."""
        return self._landing.needs_end

    @property
    def written(self) -> State | None:
        """What the notebook held after the last landing; None if nothing landed."""
        return self._landing.written

    def end(self) -> CellwrightError | None:
        """Finish: the run is over; returns why what had landed is not saved, if it is not."""
        try:
            self._landing.end()
        except DurabilityUnconfirmed:
            pass  # the new bytes are there
        except CellwrightError as failure:
            return failure
        return None

    def keep_unsaved(
        self,
        outputs: Sequence[dict[str, Any]],
        failure: CellwrightError,
        *,
        has_landed: bool = True,
    ) -> Landed:
        """Keep outputs that could not be saved; those that have landed in a page are still there."""
        artifact, where = self._keep(list(outputs))
        if has_landed and isinstance(failure, (EditorSilent, EditorUnfit)):
            where = f"in the page that has the notebook open, and {where.removeprefix('only ')}"
        note = f"The outputs are {where}: {failure.message}"
        return Landed(notes=[note], save_error=failure.code, artifact=artifact)

    def land_so_far(self, run: CellRun, outputs: Sequence[OutputsSoFar]) -> None:
        """Put what a cell has said until now into the notebook; not an entry of the history.

        Raises:
            CellwrightError: it could not be saved.
        """
        self.announce(run)
        self._land(
            _make_landing([run], outputs, {}, self.widgets), _describe_group([run]), is_last=False
        )

    def announce(self, run: CellRun) -> None:
        """Put on record that a cell runs, so that it is known if we die now."""
        if run.cell.index not in self._announced_cells:
            self._announced_cells.add(run.cell.index)
            seconds = time.time() - run.began
            executed = self._describe(run, "running", kernel=run.life, seconds=seconds)
            if executed is not None:
                self._record(executed)

    def land(
        self, ended: Sequence[tuple[CellRun, CellOutcome]], outputs: Sequence[OutputsSoFar]
    ) -> list[Landed]:
        """Put the outputs of cells that are over into the notebook, and the cells on record.

        All of them in one save; returns what became of each. `outputs` may be of more cells.
        """
        if self._is_check:
            return [Landed() for _ in ended]
        executed = [
            self._describe(run, ran.outcome.status, kernel=ran.kernel, seconds=ran.outcome.seconds)
            for run, ran in ended
        ]
        answers = self._land_or_keep(
            [run for run, _ in ended], outputs, [each for each in executed if each is not None]
        )
        for run, _ in ended:
            if run.injected is not None:
                self.record_parameters(*run.injected)
        return answers

    def record_parameters(self, source: str, ran: CellOutcome) -> None:
        """Remember code that is in no cell: what used it did not see what the notebook says."""
        if self._is_check:
            return
        self._record(
            ExecutionRecord(
                cell=PARAMETERS,
                index=-1,
                hash="",
                source=source,
                kernel=ran.kernel,
                status=ran.outcome.status,
                count=None,
                began=time.time() - ran.outcome.seconds,
                seconds=ran.outcome.seconds,
                actor=self._book.caller.actor,
            )
        )

    def _land_or_keep(
        self,
        runs: Sequence[CellRun],
        outputs: Sequence[OutputsSoFar],
        executed: Sequence[ExecutionRecord],
    ) -> list[Landed]:
        own = {each.run: each.outputs for each in outputs}
        edited: dict[CellRun, bool] = {}
        try:
            make = _make_landing(runs, outputs, edited, self.widgets)
            self._land(make, _describe_group(runs), executed=executed)
        except DurabilityUnconfirmed as failure:
            return [
                Landed(saved=True, stale=edited.get(run, False), notes=[failure.message])
                for run in runs
            ]
        except CellwrightError as failure:  # the cells ran all the same
            self._record(*executed)
            for each in outputs:
                each.run.is_unsaved = each.run not in runs
            return [self.keep_unsaved(own[run], failure, has_landed=False) for run in runs]
        return [self._describe_landed(run, own[run], edited) for run in runs]

    def _describe_landed(
        self, run: CellRun, own: list[dict[str, Any]], edited: dict[CellRun, bool]
    ) -> Landed:
        if run.is_taken:
            artifact, where = self._keep(own)
            note = f"A person ran the cell; these outputs are {where}"
            return Landed(notes=[note], artifact=artifact)
        if run not in edited:
            artifact, where = self._keep(own)
            note = f"The cell was deleted while it ran; its outputs are {where}"
            return Landed(notes=[note], artifact=artifact)
        if edited[run]:
            note = "The cell was edited while it ran; its outputs are of the source it had"
            return Landed(saved=True, stale=True, notes=[note])
        return Landed(saved=True)

    def _keep(self, outputs: list[dict[str, Any]]) -> tuple[str | None, str]:
        """Keep outputs that have no place in the notebook; returns an artifact, and words."""
        if outputs:
            content = json.dumps(outputs, ensure_ascii=False).encode("utf-8", "surrogatepass")
            try:
                store = self._book.hub.artifacts.stamp(self._book.origin)
                artifact = store.put(content, mime="application/json", name="outputs")
            except CellwrightError:
                pass
            else:
                return artifact.id, f"only in this answer and in artifact://{artifact.id}"
        return None, "only in this answer"

    def _describe(
        self, run: CellRun, status: str, *, kernel: str, seconds: float
    ) -> ExecutionRecord | None:
        """Describe a run of a cell for the record; None for an empty cell before any kernel."""
        cell = run.cell
        if not kernel:
            return None
        return ExecutionRecord(
            cell=cell.handle,
            index=cell.index,
            hash=cell.hash,
            source=cell.source,
            kernel=kernel,
            status=status,
            count=run.count,
            began=run.began,
            seconds=seconds,
            actor=self._book.caller.actor,
        )

    def _record(self, *executed: ExecutionRecord) -> None:
        for each in executed:
            self._book.journal.record_execution(self._book.real, each)

    # -- through the host, with the journal --------------------------------------------------

    def _land(
        self,
        make: Make,
        label: str,
        *,
        is_last: bool = True,
        executed: Sequence[ExecutionRecord] = (),
    ) -> None:
        """Let `make` put outputs into the notebook; `is_last` puts them and `executed` on record."""
        book, landing = self._book, self._landing
        journal, real, actor = book.journal, book.real, book.caller.actor
        recordings: list[Recording] = []
        befores: list[State] = []
        newest: list[str | None] = []
        made: list[Change] = []

        def make_and_announce(notebook: Notebook) -> Change:
            now = book.host.signature()
            if self._is_as_left(notebook, now):
                assert self._before is not None  # noqa: S101  # `_is_as_left` looked
                notebook.state = self._before  # the new outputs replace the earlier ones
            elif not is_last:  # else `begin` does that
                journal.catch_up(real, notebook.state, now, book.host.signature)
            befores[:] = [notebook.state]
            if not is_last:
                newest[:] = [self._find_newest()]
            change = make(notebook)
            made[:] = [change]
            # It does not wait for the disk: to do it beside the save would cost more than it takes.
            if change:
                recordings.append(journal.begin(real, change, actor=actor, label=label, kind="run"))
            elif self._announced is not None:
                self._announced[0].abandon()
            return change

        def confirm() -> None:
            self._before = self._announced = None
            if is_last:
                book.hub.actors.note(real, actor, "run")
                for recording in recordings:
                    recording.finish(landing.left, executed)
                if not recordings:
                    self._record(*executed)
            elif recordings:
                change = Change(made[0].before, made[0].after, made[0].origins)
                self._announced = (recordings[-1], change, label)  # without the text of its edits
                self._before, self._newest = befores[0], newest[0]
            recordings.clear()

        def abandon() -> None:
            for recording in recordings:
                recording.abandon()
            recordings.clear()
            if self._announced is not None and book.host.signature() == landing.left:
                # The notebook still holds the last save, which the new one was to replace.
                _, change, before = self._announced
                again = journal.begin(real, change, actor=actor, label=before, kind="run")
                self._announced = (again, change, before)

        hooks = SaveHooks(saved=confirm, failed=abandon)
        landing.land(make_and_announce, is_last=is_last, hooks=hooks)

    def _is_as_left(self, notebook: Notebook, now: str | None) -> bool:
        """Whether notebook and history are unchanged since a save of this very cell."""
        landing = self._landing
        return (
            self._before is not None
            and now is not None
            and now == landing.left  # quick to compare, but too coarse to be enough
            and self._find_newest() == self._newest
            and landing.written is not None
            and landing.written.holds_the_same(notebook.state)
        )

    def _find_newest(self) -> str | None:
        try:
            entries = self._book.journal.log(self._book.real, limit=1)
        except CellwrightError:
            return None
        return entries[0].id if entries else None


def _describe_group(runs: Sequence[CellRun]) -> str:
    """Return the label of cells that land together."""
    handles = [run.cell.handle for run in runs]
    if len(handles) <= _NAMED:
        return f"run {', '.join(handles)}"
    return f"run {handles[0]} … {handles[-1]} ({len(handles)} cells)"


def _make_landing(
    runs: Sequence[CellRun],
    outputs: Sequence[OutputsSoFar],
    edited: dict[CellRun, bool],
    widgets: dict[str, dict[str, Any]] | None,
) -> Make:
    """Return what puts outputs into a notebook, and the widgets that they show.

    `edited` then says of each of `runs` whether its cell was edited meanwhile; a cell that is gone
    is not in it.
    """
    landing = frozenset(runs)

    def make(notebook: Notebook) -> Change:
        edited.clear()
        edits: list[Edit] = []
        shown: dict[int, Any] = {}
        for each in outputs:
            cell = None if each.run.is_taken else each.run.find_in(notebook)
            if cell is not None and cell.type == "code":
                if widgets is not None:
                    each = each._replace(outputs=drop_dangling_views(each.outputs, widgets))  # noqa: PLW2901
                shown[cell.index] = each.outputs
                edits += each.make_edits(cell)
                if each.run in landing:
                    edited[each.run] = cell.hash != each.run.cell.hash
        # So that other programs know what to open it with; what is there stays.
        kernel = next((run.kernel for run in edited if run.kernel), None)
        if kernel and not kernel.keys() & notebook.metadata.keys():
            edits.append(SetMetadata(kernel))
        if widgets:
            edits += make_widget_edits(notebook, widgets, shown)
        return notebook.apply(edits)

    return make
