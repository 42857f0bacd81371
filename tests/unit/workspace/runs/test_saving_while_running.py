"""A long cell is in the file while it runs: seldom, safely, and without a mark on the history."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from cellwright import Workspace, read
from cellwright.document import files
from cellwright.errors import CellwrightError, NotSaved, SaveError
from cellwright.workspace.api.requests import OutputsRequest
from cellwright.workspace.hosts import file as file_host
from cellwright.workspace.hosts.file import FileLanding
from cellwright.workspace.runs.landing import InterimSaves
from cellwright.workspace.verbs import perform_on_loop
from tests.unit.workspace.memory import (
    Gate,
    MemoryKernels,
    cancel_newest,
    cells_of,
    make_notebook,
    run,
    texts,
    until,
)

if TYPE_CHECKING:
    from cellwright import Book

pytestmark = pytest.mark.timeout(60)

LONG = "print one\ninput more\nprint two"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "0.02")


@pytest.fixture
def book(folder: Path, runner: Workspace, monkeypatch: pytest.MonkeyPatch) -> Book:
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "0.02")
    make_notebook(folder, LONG, "print other")
    return runner.open("m.ipynb")


def kinds(book: Book) -> list[tuple[str, str]]:
    return [(entry.kind, entry.label) for entry in book.log()]


def save_outside(book: Book) -> None:
    """Save as another program would, into the same file."""
    shape = json.loads(book.raw())
    shape["cells"][1]["source"] = "print theirs"
    Path(book.path).write_text(json.dumps(shape))


def on_record(book: Book) -> list[str]:
    """The history without a look at the file, which `log` would take."""
    return [entry.kind for entry in book.workspace.caller.journal.log(book.real)]


async def test_what_a_long_cell_has_said_is_in_the_file_before_it_ends(book: Book) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
    await until(lambda: texts(book) == "one\n")
    shape = json.loads(book.raw())["cells"][0]
    assert (shape["execution_count"], going.done()) == (None, False)  # as Jupyter has it
    nbformat.validate(nbformat.read(book.path, as_version=4))
    gate.opened.set()
    (done,) = await going
    assert (done.status, done.saved, done.count) == ("ok", True, 1)
    assert texts(book) == "one\n\ntwo\n"
    assert json.loads(book.raw())["cells"][0]["execution_count"] == 1


async def test_only_the_end_of_a_run_is_in_the_history(book: Book) -> None:
    gate = Gate()
    before = book.raw()
    saves: list[str] = []
    going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
    await until(lambda: texts(book) == "one\n")
    saves.append(texts(book))
    assert on_record(book) == []
    gate.opened.set()
    await going
    assert kinds(book) == [("run", "run c0")]
    entry = book.log()[0].id
    state = book.workspace.caller.journal.state(book.real, entry, "before")
    assert state.layout.to_bytes() == before  # not what was saved in between


async def test_many_saves_leave_no_more_in_the_journal_than_one(
    book: Book, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves: list[bool] = []
    save = FileLanding.land

    def count(self: Any, make: Any, *, is_last: bool = True, **facts: Any) -> None:
        save(self, make, is_last=is_last, **facts)
        saves.append(is_last)

    monkeypatch.setattr(FileLanding, "land", count)
    turns: list[int] = []

    async def ask(_: object) -> str:
        turns.append(len(saves))
        await until(lambda: len(saves) > turns[-1])
        return ""

    make_notebook(folder, "\n".join(f"print {'x' * 5000}{n}\ninput x" for n in range(8)))
    await run(book, "c0", ask=ask)
    assert saves == [False] * (len(saves) - 1) + [True]
    assert len(saves) > 8
    path = book.workspace.caller.journal.path
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        counts = {
            name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
            for name in ("state", "change", "execution")
        }
        (kept,) = database.execute("SELECT sum(size) FROM piece").fetchone()
    assert counts == {"state": 2, "change": 1, "execution": 2}
    assert kept < 2 * len(book.raw())  # before and after, not all that was in between


async def test_an_edit_meanwhile_is_kept_and_nothing_is_called_outside(
    book: Book, folder: Path
) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
    await until(lambda: texts(book) == "one\n")
    with Workspace(folder, actor="test:bob") as other:
        edits = [
            {"op": "replace", "cell": "c1", "source": "print edited"},
            {"op": "insert", "source": "# first", "type": "markdown", "at": 0, "id": "m"},
        ]
        other.open("m.ipynb").edit(edits, label="bob's")
    assert texts(book, 1) == "one\n"  # what was said so far came along
    gate.opened.set()
    (done,) = await going
    assert (done.saved, done.stale) == (True, False)
    assert texts(book, 1) == "one\n\ntwo\n"
    assert [cell.source for cell in read(book.path).cells][::2] == ["# first", "print edited"]
    assert kinds(book) == [("run", "run c0"), ("edit", "bob's"), ("run", "run c0")]
    book.undo(book.log()[1].id)
    assert texts(book) == "one\n\ntwo\n"  # the run is no part of that change


async def test_a_look_at_the_history_meanwhile_does_no_harm(book: Book) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
    await until(lambda: texts(book) == "one\n")
    assert kinds(book) == [("run", "run c0")]  # it looked at the file, and knows whose that is
    gate.opened.set()
    await going
    assert kinds(book) == [("run", "run c0"), ("run", "run c0")]


async def test_what_an_outside_editor_saves_meanwhile_stays(book: Book) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
    await until(lambda: texts(book) == "one\n")
    save_outside(book)
    gate.opened.set()
    await going
    assert read(book.path).cell("c1").source == "print theirs"
    assert texts(book) == "one\n\ntwo\n"
    assert [kind for kind, _ in kinds(book)] == ["run", "outside"]


async def test_what_was_saved_outside_is_on_record_before_the_run_that_found_it(
    book: Book,
) -> None:
    await run(book, "c1")
    save_outside(book)
    await run(book, "c1")
    newest, found, first = book.workspace.caller.journal.log(book.real)
    assert [each.kind for each in (first, found, newest)] == ["run", "outside", "run"]
    assert found.after == newest.before


async def test_a_save_that_fails_meanwhile_is_not_the_end(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, tries = Gate(), []

    def refuse(real: str, *_: Any, **__: Any) -> Any:
        tries.append(real)
        raise NotSaved(real, "write", "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace_file", refuse)
        going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
        await until(lambda: len(tries) >= 1)
        await until(lambda: not _is_saving(book))
        assert texts(book) == ""
    gate.opened.set()
    (done,) = await going
    assert (done.status, done.saved) == ("ok", True)
    assert texts(book) == "one\n\ntwo\n"
    assert kinds(book) == [("run", "run c0")]


async def test_what_cannot_be_saved_in_the_end_is_kept_aside_and_said_to_be(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(real: str, *_: Any, **__: Any) -> Any:
        raise NotSaved(real, "write", "no space left")

    monkeypatch.setattr(files, "replace_file", refuse)
    executions = await run(book, "c1")
    (done,) = executions
    assert (done.status, done.saved, texts(book, 1)) == ("ok", False, "")
    assert (done.save_error, executions.ok) == ("NOT_SAVED", False)
    with pytest.raises(SaveError):
        executions.raise_for_status()
    (note,) = done.notes
    assert "no space left" in note
    assert f"artifact://{done.artifact}:" in note
    assert done.artifact is not None
    kept = json.loads(book.workspace.artifact(done.artifact).text or "")
    assert kept == list(done.outputs)
    assert kept == [{"name": "stdout", "output_type": "stream", "text": "other\n"}]


async def test_a_later_save_that_fails_leaves_the_one_before_it_explained(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_notebook(Path(book.path).parent, "print one\ninput a\nprint two\ninput b\nprint three")
    gate = Gate()
    answers = asyncio.Queue[str]()
    going = asyncio.ensure_future(run(book, ask=lambda _: answers.get()))
    await until(lambda: texts(book) == "one\n")
    failures = []

    def refuse(real: str, *_: Any, **__: Any) -> Any:
        failures.append(real)
        raise NotSaved(real, "write", "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace_file", refuse)
        answers.put_nowait("")
        await until(lambda: bool(failures))
        await until(lambda: not _is_saving(book))
        assert texts(book) == "one\n"
        assert kinds(book) == [("run", "run c0")]  # and not `outside`
    answers.put_nowait("")
    await going
    assert texts(book) == "one\n\ntwo\n\nthree\n"
    assert {kind for kind, _ in kinds(book)} == {"run"}
    gate.opened.set()


def _is_saving(book: Book) -> bool:
    """Whether somebody has the lock of the file."""
    from cellwright.document.disk.lock import FileLock
    from cellwright.errors import Locked

    try:
        with FileLock(book.real, 0):
            return False
    except Locked:
        return True


async def test_another_writer_is_not_waited_for_long(
    book: Book, kernels: MemoryKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cellwright.document.disk.lock import FileLock

    monkeypatch.setattr(file_host, "_SHORT_WAIT", 0.01)
    gate = Gate()
    with FileLock(book.real, 1):
        going = asyncio.ensure_future(run(book, "c0", ask=gate.ask))
        await gate.reached.wait()
        gate.opened.set()
        await until(lambda: bool(kernels.made) and not kernels.made[0]._running)
    (done,) = await going
    assert (done.saved, texts(book)) == (True, "one\n\ntwo\n")


async def test_a_short_cell_is_saved_once(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    save = FileLanding.land

    def count(self: Any, make: Any, *, is_last: bool = True, **facts: Any) -> None:
        calls.append(is_last)
        save(self, make, is_last=is_last, **facts)

    monkeypatch.setattr(FileLanding, "land", count)
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "30")
    patient = Workspace(Path(book.path).parent, hub=book.workspace.caller.hub)
    await run(patient.open("m.ipynb"), "c1")
    assert calls == [True]


async def test_no_interval_means_only_at_the_end(
    folder: Path, runner: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "0")
    make_notebook(folder, LONG)
    gate = Gate()
    book = runner.open("m.ipynb")
    going = asyncio.ensure_future(run(book, ask=gate.ask))
    await gate.reached.wait()
    assert len(asyncio.all_tasks()) < 12
    assert texts(book) == ""
    gate.opened.set()
    await going
    assert texts(book) == "one\n\ntwo\n"


@pytest.mark.usefixtures("often")
async def test_a_display_of_an_earlier_cell_is_renewed_while_a_long_one_runs(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, "update d old", "update d new\ninput x\nprint end")
    gate = Gate()

    def shown(book: Book) -> str:
        (output,) = cells_of(book)[0]["outputs"] or [{}]
        return "".join(output.get("data", {}).get("text/plain", ""))

    book = runner.open("m.ipynb")
    going = asyncio.ensure_future(run(book, ask=gate.ask))
    await until(lambda: shown(book) == "new")
    assert not going.done()
    gate.opened.set()
    done = await going
    assert done[0].outputs[0]["data"] == {"text/plain": "new"}  # in the answer, too
    assert cells_of(book)[0]["execution_count"] == 1


async def test_a_run_that_is_cancelled_leaves_what_it_said_and_that_it_was(book: Book) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(book, "c0", "c1", ask=gate.ask))
    await gate.reached.wait()
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert texts(book).startswith("one\n")
    (record,) = [row for row in book.executions() if row.status != "running"]
    assert (record.cell, record.status) == ("c0", "cancelled")
    assert kinds(book) == [("run", "run c0")]


# -- how often ----------------------------------------------------------------------------------


class Clock:
    """A loop's time that passes as fast as it is slept away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.real_sleep = asyncio.sleep
        monkeypatch.setattr("cellwright.workspace.runs.landing.asyncio.sleep", self.sleep)
        monkeypatch.setattr("cellwright.workspace.runs.landing.time.monotonic", lambda: self.now)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await self.real_sleep(0)


@pytest.mark.parametrize(
    ("cost", "works", "expected"),
    [
        (0.0, True, [1.0, 3.0, 5.0, 7.0]),
        (1.0, True, [1.0, 11.0, 21.0, 31.0]),  # a tenth of the time
        (0.0, False, [1.0, 5.0, 13.0, 29.0]),  # later each time
    ],
)
async def test_saving_takes_little_of_the_time(
    monkeypatch: pytest.MonkeyPatch, cost: float, works: bool, expected: list[float]
) -> None:
    clock, times = Clock(monkeypatch), []
    over = asyncio.Event()

    async def save() -> bool:
        times.append(clock.now)
        clock.now += cost
        if len(times) == 4:
            over.set()
        saves.touch()  # it never stops talking
        return works

    saves = InterimSaves(save, 2.0)
    saves.touch()
    await over.wait()
    await saves.end()
    assert times == expected


# -- short cells land together -------------------------------------------------------------------


@pytest.fixture
async def short(folder: Path, runner: Workspace, monkeypatch: pytest.MonkeyPatch) -> Book:
    """Short cells in a kernel that has run before, and an interval that never ends by itself."""
    monkeypatch.setenv("CELLWRIGHT_RUN_SAVE_INTERVAL", "600")
    make_notebook(folder, "print zero", "print one", "print two", "input more", "print four")
    book = runner.open("m.ipynb")
    await run(book, "c0")
    return book


@pytest.fixture
def landings(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One element for each save, whether it was the last of its cells."""
    found: list[bool] = []
    land = FileLanding.land

    def count(self: Any, make: Any, *, is_last: bool = True, **facts: Any) -> None:
        land(self, make, is_last=is_last, **facts)
        found.append(is_last)

    monkeypatch.setattr(FileLanding, "land", count)
    return found


def texts_of(book: Book) -> list[str]:
    return [texts(book, place) for place in range(5)]


async def test_short_cells_land_in_one_save_as_one_entry(short: Book, landings: list[bool]) -> None:
    done = await run(short, "c0", "c1", "c2", "c4")
    assert landings == [True]
    assert [(each.status, each.saved, each.notes) for each in done] == [("ok", True, [])] * 4
    assert texts_of(short) == ["zero\n", "one\n", "two\n", "", "four\n"]
    assert [entry.label for entry in short.log()] == ["run c0 … c4 (4 cells)", "run c0"]
    records = short.workspace.caller.journal.executions(short.real)
    assert [(each.cell, each.status) for each in records] == [
        (cell, "ok") for cell in ("c0", "c0", "c1", "c2", "c4")
    ]


async def test_what_waits_lands_within_the_interval_while_the_next_cell_runs(
    short: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(short.workspace.caller.settings), "run_save_interval", 0.4)
    gate = Gate()
    going = asyncio.ensure_future(run(short, "c1", "c2", "c3", ask=gate.ask))
    await gate.reached.wait()
    (active,) = short.workspace.caller.hub.runs._active.values()
    await until(lambda: [each.saved for each in active.answer()] == [True, True, False])
    assert texts_of(short)[1:3] == ["one\n", "two\n"]
    gate.opened.set()
    assert [each.saved for each in await going] == [True] * 3


async def test_an_answer_calls_a_cell_saved_only_when_it_is(short: Book) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(short, "c1", "c2", "c3", ask=gate.ask))
    await gate.reached.wait()
    (active,) = short.workspace.caller.hub.runs._active.values()
    found = active.answer()
    assert [(each.status, each.saved) for each in found][:2] == [("ok", False)] * 2
    assert texts_of(short)[1:3] == ["", ""]
    # The first that waits is on record, as a cell under which we would have died.
    records = short.workspace.caller.journal.executions(short.real)
    assert [(each.cell, each.status) for each in records[1:]] == [("c1", "running")]
    gate.opened.set()
    assert [each.saved for each in await going] == [True] * 3


async def test_a_verb_on_the_notebook_sees_what_waits(short: Book) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(short, "c1", "c2", "c3", ask=gate.ask))
    await gate.reached.wait()
    answer = await perform_on_loop(short.workspace.caller, OutputsRequest(short.name, ["c1", "c2"]))
    assert [cell.text.splitlines()[-1] for cell in answer.cells] == ["one", "two"]
    assert texts_of(short)[1:3] == ["one\n", "two\n"]
    gate.opened.set()
    await going
    assert texts_of(short)[1:3] == ["one\n", "two\n"]


async def test_a_run_that_is_stopped_or_fails_leaves_what_came_before_in_the_file(
    short: Book, folder: Path
) -> None:
    gate = Gate()
    going = asyncio.ensure_future(run(short, "c1", "c2", "c3", ask=gate.ask))
    await gate.reached.wait()
    cancel_newest(short)
    done = await going
    assert [(each.status, each.saved) for each in done] == [
        ("ok", True),
        ("ok", True),
        ("cancelled", True),
    ]
    assert texts_of(short)[1:4] == ["one\n", "two\n", ""]
    make_notebook(folder, "print zero", "print one", "raise Oops no", "print no", "print no")
    done = await run(short)
    assert [(each.status, each.saved) for each in done][:4] == [
        ("ok", True),
        ("ok", True),
        ("error", True),
        ("pending", False),
    ]
    assert texts_of(short)[:2] == ["zero\n", "one\n"]


async def test_short_cells_that_cannot_be_saved_say_so_each_with_its_outputs(
    short: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise NotSaved("m.ipynb", "write", "the disk is full")

    monkeypatch.setattr(file_host.files, "update", refuse)
    done = await run(short, "c1", "c2")
    assert [(each.status, each.saved, each.save_error) for each in done] == [
        ("ok", False, "NOT_SAVED")
    ] * 2
    store = short.workspace.caller.hub.artifacts
    kept = [json.loads(store.read(each.artifact or "").data) for each in done]
    assert [outputs[0]["text"] for outputs in kept] == ["one\n", "two\n"]
    records = short.workspace.caller.journal.executions(short.real)
    assert [each.cell for each in records] == ["c0", "c1", "c2"]


async def test_a_bug_in_a_landing_reaches_the_caller_of_the_run_and_no_other(
    short: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    gate = Gate()
    going = asyncio.ensure_future(run(short, "c1", "c2", "c3", ask=gate.ask))
    await gate.reached.wait()
    monkeypatch.setattr(FileLanding, "land", fail)
    await perform_on_loop(short.workspace.caller, OutputsRequest(short.name, ["c1"]))
    gate.opened.set()
    with pytest.raises(CellwrightError) as caught:
        await going
    assert "ZeroDivisionError" in caught.value.message


async def test_nothing_new_is_not_saved_again() -> None:
    calls: list[None] = []

    async def save() -> bool:
        calls.append(None)
        return True

    saves = InterimSaves(save, 0.01)
    saves.touch()
    await until(lambda: len(calls) == 1)
    waits = saves._news.wait()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await waits
    assert len(calls) == 1
    await saves.end()


async def test_the_end_waits_for_a_save_that_has_begun() -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), []

    async def save() -> bool:
        begun.set()
        await may_end.wait()
        ended.append(None)
        return True

    saves = InterimSaves(save, 0.01)
    saves.touch()
    await begun.wait()
    ending = asyncio.ensure_future(saves.end())
    await asyncio.sleep(0)
    assert not ending.done()
    may_end.set()
    await ending
    assert len(ended) == 1
