"""`NotebookRun`: limits, stops, expected errors, progress, and the truth about dead kernels."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.document.edits import Replace
from cellwright.errors import InvalidEdit
from cellwright.journal.executions import ExecutionRecord
from cellwright.kernel.transport import Code
from cellwright.workspace.api.requests import RunRequest
from cellwright.workspace.hosts.file import FileHost
from cellwright.workspace.runs.execution import (
    Execution,
    Executions,
    find_failing_line,
    strip_traceback,
)
from cellwright.workspace.runs.notebook_access import KernelAccess
from cellwright.workspace.runs.run import RunOptions
from tests.unit.workspace.memory import (
    Gate,
    MemoryKernels,
    cancel_newest,
    cells_of,
    make_notebook,
    run,
    session_of,
    texts,
    until,
)

if TYPE_CHECKING:
    from cellwright import Book, Workspace
    from cellwright.kernel.session import CellOutcome

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def book(folder: Path, runner: Workspace) -> Book:
    make_notebook(folder, "print a", "print b", "print c")
    return runner.open("m.ipynb")


def use(book: Book, folder: Path, *sources: str, **cells: Any) -> Book:
    make_notebook(folder, *sources, **cells)
    return book


def statuses(done: Executions) -> list[str]:
    return [execution.status for execution in done]


async def occupy(book: Book) -> tuple[Gate, asyncio.Task[CellOutcome]]:
    """Have the kernel of a notebook busy with something else, until the gate is opened."""
    await run(book, "c0")
    gate = Gate()
    code = Code("input x", allow_stdin=True)
    other = asyncio.ensure_future(session_of(book).run(code, timeout=0, ask=gate.ask))
    await gate.reached.wait()
    return gate, other


async def test_progress_names_each_cell_by_index_and_handle(book: Book) -> None:
    reports: list[dict[str, Any]] = []
    await run(book, "c1", "c2", progress=reports.append)
    assert reports.pop(0).keys() == {"run"}
    named = ((each, name) for each in reports for name in ("began", "seconds"))
    times = [each.pop(name) for each, name in named if name in each]
    assert all(isinstance(each, float) for each in times)
    assert len(times) == 4
    assert reports == [
        {"cell": 1, "handle": "c1", "status": "pending", "title": "print b"},
        {"cell": 2, "handle": "c2", "status": "pending", "title": "print c"},
        {"cell": 1, "handle": "c1", "status": "running"},
        {"cell": 1, "handle": "c1", "text": "b\n"},
        {"cell": 1, "handle": "c1", "status": "ok"},
        {"cell": 2, "handle": "c2", "status": "running"},
        {"cell": 2, "handle": "c2", "text": "c\n"},
        {"cell": 2, "handle": "c2", "status": "ok"},
    ]


async def test_progress_tells_results_and_displays_as_text_and_as_they_are(
    book: Book, folder: Path
) -> None:
    use(book, folder, "show text/html <b>x</b>", "result 42")
    reports: list[dict[str, Any]] = []
    await run(book, progress=reports.append)
    said = [report for report in reports if "text" in report]
    assert [each["text"] for each in said] == ["x\n", "42\n"]
    assert said[0]["output"]["data"]["text/html"] == "<b>x</b>"
    assert "output" not in said[1]  # the text says it all


async def test_a_run_knows_every_execution_as_soon_as_it_is_over(book: Book, folder: Path) -> None:
    use(book, folder, "update d old", "update d new", "input x\nraise E x", "print never")
    gate = Gate()
    whole = asyncio.ensure_future(run(book, ask=gate.ask))
    await gate.reached.wait()
    runs = book.workspace.caller.hub.runs
    going = runs.get(runs.list()[0].run)
    early = going.answer()
    assert isinstance(early, Executions)
    assert (statuses(early), early.done) == (["ok", "ok", "running", "pending"], False)
    gate.opened.set()
    await whole
    answer = going.answer()
    assert isinstance(answer, Executions)
    assert (statuses(answer), answer.done) == (["ok", "ok", "error", "pending"], True)
    # The second changed the display of the first.
    assert answer[0].outputs[0]["data"] == {"text/plain": "new"}
    shapes = [execution.to_json() for execution in answer]
    assert [Execution.from_json(shape).to_json() for shape in shapes] == shapes


async def test_the_time_limit_ends_the_cell_that_runs_and_the_rest_stays_pending(
    book: Book, folder: Path
) -> None:
    use(book, folder, "print a", "print b\nsleep 60", "print c")
    # Long enough for the first cell on a machine that has much else to do.
    done = await run(book, time_limit=1.0, keep_going=True)
    assert statuses(done) == ["ok", "timed_out", "pending"]
    assert done[1].state_kept
    assert "time limit of 1 s for the run" in " ".join(done[1].notes)
    assert "Command timed out after" in texts(book, 1)
    assert "time limit" in done[2].notes[0]
    assert cells_of(book)[2]["outputs"] == []


async def test_a_cell_that_is_deaf_when_the_time_is_over_costs_the_kernel(
    book: Book, folder: Path
) -> None:
    use(book, folder, "set x 1", "stuck 60")
    await run(book, "c0")
    (done,) = await run(book, "c1", time_limit=0.2)
    assert (done.status, done.state_kept) == ("timed_out", False)
    assert (done.lost, done.replay) == (["c0"], ["c0"])


async def test_the_time_limit_holds_while_another_has_the_kernel(book: Book, folder: Path) -> None:
    use(book, folder, "print a", "print b", c1={"outputs": [], "execution_count": 7})
    gate, other = await occupy(book)
    done = await run(book, "c1", time_limit=0.05)
    assert statuses(done) == ["pending"]
    assert cells_of(book)[1]["execution_count"] == 7  # it did not run, and nothing was cleared
    gate.opened.set()
    assert (await other).outcome.status == "ok"


async def test_each_cell_has_its_own_timeout(book: Book, folder: Path) -> None:
    use(book, folder, "sleep 60", "print b")
    done = await run(book, timeout=0.1, time_limit=30, keep_going=True)
    assert statuses(done) == ["timed_out", "ok"]


@pytest.mark.parametrize("name", ["timeout", "time_limit"])
def test_no_time_is_less_than_none(name: str) -> None:
    with pytest.raises(InvalidEdit, match=f"a {name} of -1 s"):
        RunOptions.of(RunRequest("m.ipynb", **{name: -1.0}))  # type: ignore[arg-type]


async def test_a_stop_interrupts_the_cell_and_ends_the_run(
    book: Book, kernels: MemoryKernels, folder: Path
) -> None:
    use(book, folder, "print a\nsleep 60", "print b")
    going = asyncio.ensure_future(run(book, keep_going=True))
    await until(lambda: bool(kernels.made) and kernels.made[0]._running)
    cancel_newest(book)
    done = await going
    assert statuses(done) == ["cancelled", "pending"]
    assert texts(book) == "a\n"
    assert not done[1].notes


async def test_a_stop_while_another_has_the_kernel_changes_nothing(
    book: Book, folder: Path
) -> None:
    use(book, folder, "print a", "print b", c1={"execution_count": 7})
    gate, other = await occupy(book)
    going = asyncio.ensure_future(run(book, "c1"))
    await until(lambda: session_of(book).waiting > 0)
    cancel_newest(book)
    (done,) = await going
    assert (done.status, done.saved) == ("cancelled", False)
    assert "before its turn" in done.notes[0]
    assert cells_of(book)[1]["execution_count"] == 7
    assert [row.cell for row in book.executions()] == ["c0"]
    gate.opened.set()
    await other


async def test_an_error_that_its_tag_announces_is_told_and_stops_nothing(
    book: Book, folder: Path
) -> None:
    tagged = {"metadata": {"tags": ["raises-exception"]}}
    use(book, folder, "raise ValueError no", "print b", "raise ValueError no", c0=tagged)
    done = await run(book)
    assert statuses(done) == ["error", "ok", "error"]
    assert [(each.expected, each.is_failure) for each in done] == [
        (True, False),
        (False, False),
        (False, True),
    ]


# -- dead kernels -------------------------------------------------------------------------------


async def test_after_a_death_the_answer_says_whose_state_is_lost_and_what_to_replay(
    book: Book, folder: Path
) -> None:
    use(book, folder, "set x 1", "raise E x", "print y", "die 9", "print z")
    done = await run(book, keep_going=True)
    assert statuses(done) == ["ok", "error", "ok", "died", "ok"]
    # Names are not followed in this language: all that had run above it.
    assert (done[3].lost, done[3].replay) == (["c0", "c2"], ["c0", "c2"])
    assert "names are not followed in script" in done[3].notes[-1]
    assert "replay cell c3: c0, c2 and then c3" in done[3].notes[-1]
    # The next one found the kernel dead, and ran in a new one.
    assert (done[4].lost, done[4].replay) == (["c0", "c2"], ["c0", "c2"])
    assert done[4].state_kept


async def test_cells_that_ran_before_a_kernel_that_does_not_start_are_not_lost(
    book: Book, folder: Path
) -> None:
    use(book, folder, "print a", "die 9", "die 9", "die 9", "print b")
    done = await run(book, keep_going=True)
    assert statuses(done) == ["ok", "died", "died", "pending", "pending"]
    assert done[3].notes
    assert texts(book) == "a\n"


async def test_a_replay_runs_what_is_missing_and_then_the_cell(
    book: Book, kernels: MemoryKernels, folder: Path
) -> None:
    use(book, folder, "set x 1", "set y 2", "get x", "print never")
    await run(book, "c0", "c1")
    kernels.made[0].kill()
    done = await run(book, replay="c2")
    assert [(each.cell, each.status) for each in done] == [
        ("c0", "ok"),
        ("c1", "ok"),
        ("c2", "ok"),
    ]
    done = await run(book, replay="c2")
    assert [each.cell for each in done] == ["c2"]  # all that it needs is there


# -- what is told of an error -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("traceback", "line"),
    [
        (["\x1b[36mCell\x1b[39m In[3], line 2\n 1 x\n", "Cell In[2], line 7"], 2),
        (["Cell In[3], line 2", "Cell In[2], line 7", "Cell In[3], line 5"], 5),
        (["Cell In[1], line 2"], None),
        (['  File "<cell 3>", line 4, in <module>', '  File "/a/b.py", line 9'], 4),
        (['  File "/a/b.py", line 9'], None),
        ([], None),
    ],
)
def test_the_line_of_a_cell_that_failed_is_found(traceback: list[str], line: int | None) -> None:
    assert find_failing_line(strip_traceback(traceback), 3) == line


def test_a_traceback_is_plain_and_its_end_is_kept() -> None:
    assert strip_traceback(["\x1b[31mred\x1b[0m\nnext"]) == ["red", "next"]
    found = strip_traceback([str(number) for number in range(100)])
    assert found[0] == "[40 lines before this one are in the outputs]"
    assert (found[1], found[-1], len(found)) == ("40", "99", 61)


async def test_a_cell_without_code_is_no_matter_for_a_kernel(book: Book, folder: Path) -> None:
    use(book, folder, "print a", "  \n", "print c")
    done = await run(book)
    assert statuses(done) == ["ok", "ok", "ok"]
    assert [execution.count for execution in done] == [1, None, 2]
    assert [cell["execution_count"] for cell in cells_of(book)] == [1, None, 2]


async def test_what_a_kernel_changes_is_saved_by_the_person_who_has_it_open(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is written with every change; an editor is asked to save agents' changes only."""
    saves: list[str] = []
    monkeypatch.setattr(FileHost, "save", lambda host: saves.append(host.real))
    caller = book.workspace.caller
    access = KernelAccess(caller.open("m.ipynb"))
    await access.apply([Replace("c0", "print by kernel")])
    assert book.load().cell("c0").source == "print by kernel"
    assert saves == []
    caller.open("m.ipynb").change(lambda notebook: notebook.apply([Replace("c0", "x")]))
    assert len(saves) == 1


async def test_a_tagged_cell_is_skipped_keeps_what_it_holds_and_is_told(
    book: Book, folder: Path
) -> None:
    stored = {"output_type": "stream", "name": "stdout", "text": ["old\n"]}
    tagged = {"metadata": {"tags": ["skip-execution"]}, "outputs": [stored], "execution_count": 4}
    use(book, folder, "print a", "print b", "print c", c1=tagged)
    done = await run(book)
    assert [each.cell for each in done] == ["c0", "c2"]
    assert done.skipped == ["c1"]
    assert Executions.from_json(done.to_json()).skipped == ["c1"]
    assert cells_of(book)[1]["outputs"] == [stored]
    assert cells_of(book)[1]["execution_count"] == 4
    named = await run(book, "c1")
    assert (named.skipped, texts(book, 1)) == ([], "b\n")


async def test_a_cell_without_code_keeps_what_it_holds(book: Book, folder: Path) -> None:
    stored = {"output_type": "stream", "name": "stdout", "text": ["old\n"]}
    use(book, folder, " \n", "print b", c0={"outputs": [stored], "execution_count": 4})
    assert statuses(await run(book)) == ["ok", "ok"]
    assert cells_of(book)[0]["outputs"] == [stored]
    assert cells_of(book)[0]["execution_count"] == 4


async def test_both_streams_are_in_the_order_in_which_the_kernel_sent_them(
    book: Book, folder: Path
) -> None:
    use(book, folder, "print 1\nwarn 2\nprint 3\nwarn 4")
    (done,) = await run(book)
    assert [(each["name"], each["text"]) for each in done.outputs] == [
        ("stdout", "1\n"),
        ("stderr", "2\n"),
        ("stdout", "3\n"),
        ("stderr", "4\n"),
    ]
    assert texts(book) == "1\n2\n3\n4\n"


async def test_a_redo_brings_back_what_ran_between_a_change_and_its_undo(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, "print a")
    book = runner.open("m.ipynb")
    book.edit({"op": "insert", "source": "print b", "id": "new"})
    assert (await run(book)).ok
    before = (folder / "m.ipynb").read_bytes()
    book.undo()
    assert "print b" not in book.read().text
    book.redo()
    assert (folder / "m.ipynb").read_bytes() == before


async def test_outputs_that_are_in_the_file_but_perhaps_not_on_the_disk_are_saved_with_a_note(
    book: Book, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_folder: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("cellwright.document.disk.save._sync_folder", fail)
    done = await run(book)
    assert [(each.status, each.saved) for each in done] == [("ok", True)] * 3
    assert all("m.ipynb" in " ".join(each.notes) for each in done)
    assert b"c\\n" in (folder / "m.ipynb").read_bytes()


async def test_what_died_with_its_engine_is_told_whatever_was_put_on_record_last(
    book: Book, runner: Workspace
) -> None:
    """A short cell may land after the next one is on record as running."""
    cells = book.read().cells
    for number, status in ((1, "running"), (0, "ok")):
        record = ExecutionRecord(
            cell=f"c{number}",
            index=number,
            hash=cells[number].hash,
            source=cells[number].source,
            kernel="of an engine that was killed",
            status=status,
            count=1,
            began=1000.0 + number,
            seconds=0.1,
            actor="test:ada",
        )
        runner.caller.hub.journal.record_execution(Path(book.path), record)
    first, second = [await run(book, "c2") for _ in range(2)]
    assert first[0].lost == ["c0"]
    assert any("Variables lost: those of c0" in note for note in first[0].notes)
    assert second[0].lost == []
