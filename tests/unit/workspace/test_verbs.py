"""What every verb does, whatever the notebook lives in and whichever face it is called through.

Here the notebooks are in files, in memory and in an editor, and kernels have no process. The same tests run
with real kernels in an engine in `tests/integration/workspace/test_verbs.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import AsyncWorkspace, Insert, Notebook, Replace, Workspace
from cellwright.errors import (
    AlreadyExists,
    CellNotFound,
    ChangeNotFound,
    Conflict,
    InvalidEdit,
    KernelMissing,
    ModeForbids,
    NotebookNotFound,
    NothingToUndo,
    OutsideRoot,
    RunNotFound,
    SessionNotFound,
    UnknownRevision,
)
from cellwright.workspace.api.answers import NotebookRow, WatchAnswer
from cellwright.workspace.hosts.memory import MemoryHost
from tests.kernels.dialects import SCRIPT
from tests.unit.engine.scripted_editor import open_in_editor
from tests.unit.workspace.memory import MemoryKernels, make_hub
from tests.unit.workspace.stages import Stage, make_content

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(
    params=["file", "memory", "tab", "file, awaited", "memory, awaited", "tab, awaited"]
)
def stage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    monkeypatch.chdir(tmp_path)
    host, _, awaited = request.param.partition(", ")
    hub = make_hub(MemoryKernels())
    for name, minor in (("nb.ipynb", 5), ("old.ipynb", 4)):
        content = make_content("script", SCRIPT, minor)
        if host == "tab":
            open_in_editor(hub, tmp_path / name, content)
        elif host == "file":
            (tmp_path / name).write_bytes(content)
        else:
            hub.add_host(str(tmp_path / name), MemoryHost(Notebook(content), name=name))
    if host == "memory":
        for name in ("new.ipynb", "made.ipynb", "none.ipynb"):
            hub.add_host(str(tmp_path / name), MemoryHost(name=name))
    make = AsyncWorkspace if awaited else Workspace
    stage = Stage(
        lambda **options: make(hub=hub, **options),
        language="script",
        dialect=SCRIPT,
        host=host,
        is_async=bool(awaited),
    )
    try:
        yield stage
    finally:
        stage.close()
        hub.close()


@pytest.fixture
def book(stage: Stage) -> Any:
    return stage.workspace().open("nb.ipynb")


def replace(cell: str, source: str, **more: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "cell": cell, "source": source, **more}]


def sources(book: Any) -> list[str]:
    return [cell.source for cell in book.read().cells]


def text_of(execution: Any) -> str:
    """What a cell printed or has as its value."""
    return "".join(
        output["text"] if "text" in output else output["data"]["text/plain"]
        for output in execution.outputs
    )


# -- reading ------------------------------------------------------------------------------------


def test_read_gives_cells_text_and_revision(stage: Stage, book: Any) -> None:
    answer = book.read()
    assert (answer.path, answer.nbformat) == ("nb.ipynb", "4.5")
    assert [cell.id for cell in answer.cells] == ["intro", "a", "b", "c", "bad"]
    assert [cell.type for cell in answer.cells] == ["markdown", *["code"] * 4]
    assert "# %% [code] cell:1" in answer.text
    assert answer.revision == book.load().revision
    first, second = answer.cells[:2]
    assert (first.status, first.has_output, first.stale) == (None, None, None)
    assert (second.status, second.has_output, second.execution_count) == ("ok", True, 7)
    assert second.source == stage.dialect.keep("x", "one")
    assert answer.others == []


def test_read_leaves_the_text_out_and_says_what_is_stale_on_request(book: Any) -> None:
    answer = book.read(text=False, stale=True)
    assert answer.text is None
    assert [cell.stale for cell in answer.cells] == [None, *[False] * 4]  # none is on record


def test_select_gives_a_part_of_the_text(stage: Stage, book: Any) -> None:
    answer = book.select("cell=a")
    assert answer.text.endswith(stage.dialect.keep("x", "one"))
    assert (answer.selector, answer.total_cells) == ("cell=a", 5)
    assert answer.revision == book.read().revision
    assert "Sales" in [row.title for row in book.select("outline").outline]
    raw = book.select("raw")
    assert (raw.total_cells, raw.revision) == (None, None)
    assert raw.total_lines == book.raw().decode().count("\n")


def test_outputs_are_text_within_a_budget(stage: Stage, book: Any) -> None:
    answer = book.outputs()
    assert [(cell.handle, cell.outputs) for cell in answer.cells] == [("a", 1)]
    assert "42" in answer.cells[0].text
    book.edit(replace("b", stage.dialect.flood(3000)))  # type: ignore[misc]
    book.run(["b"])
    answer = book.outputs(["b", "a"], max_tokens=100)
    assert len(answer.cells[0].text) < 1000
    assert answer.cells[0].left_out
    assert {cell.handle for cell in answer.cells} | {*answer.cells_left_out} == {"a", "b"}


def test_load_and_raw_give_the_notebook_itself(stage: Stage, book: Any) -> None:
    assert book.raw() == make_content(stage.language, stage.dialect)
    notebook = book.load()
    assert notebook.cell("a").source == stage.dialect.keep("x", "one")
    notebook.apply(replace("a", "of the caller alone"))
    assert book.load().cell("a").source == stage.dialect.keep("x", "one")


def test_list_names_the_files_below(stage: Stage, tmp_path: Path) -> None:
    content = make_content(stage.language, stage.dialect)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "there.ipynb").write_bytes(content)
    rows = stage.workspace(cwd=str(tmp_path / "sub")).list()
    assert rows == [NotebookRow("there.ipynb", len(content))]


# -- editing ------------------------------------------------------------------------------------


def test_edit_saves_and_says_what_it_did(stage: Stage, book: Any) -> None:
    before = book.read().revision
    answer = book.edit(replace("a", "x = 2"), base=before, label="two")
    assert (answer.changed, answer.saved, answer.host) == (True, True, stage.host)
    assert (answer.before, answer.revision) == (before, book.read().revision)
    assert [(cell.kind, cell.handle) for cell in answer.cells] == [("edited", "a")]
    assert "+x = 2" in answer.diff
    assert answer.others == answer.warnings == []
    assert (answer.run, answer.executions) == (None, None)
    assert sources(book)[1] == "x = 2"
    again = book.edit(replace("a", "x = 2"))
    assert (again.changed, again.change) == (False, None)
    others = stage.workspace(actor="test:bob").open("nb.ipynb").edit(replace("c", "1")).others
    assert [(other.actor, other.did) for other in others] == [("test:ada", "edit")]


def test_typed_edits_and_paths_as_objects(stage: Stage, tmp_path: Path) -> None:
    book = stage.workspace().open(tmp_path / "nb.ipynb")
    book.edit((Replace("a", "x = 3"), Insert("z = 1", id="z", after="a")))
    assert sources(book)[1:3] == ["x = 3", "z = 1"]


def test_a_dry_run_shows_the_diff_and_changes_nothing(book: Any) -> None:
    before = book.raw()
    dry = book.edit([{"op": "delete", "cell": "c"}], dry_run=True)
    assert (dry.saved, dry.changed, dry.change) == (False, True, None)
    assert [cell.kind for cell in dry.cells] == ["deleted"]
    change = book.edit(replace("a", "x = 2")).change
    now = book.raw()
    for dry in (
        book.write("# %% [code]\nx", dry_run=True),
        book.undo(dry_run=True),
        book.restore("first", dry_run=True),
    ):
        assert (dry.saved, dry.changed) == (False, True)
    assert (book.raw(), [entry.id for entry in book.log()]) == (now, [change])
    assert before != now


def test_a_backup_holds_what_was_there_before(stage: Stage, book: Any) -> None:
    before = book.raw()
    answer = book.edit(replace("a", "x = 2"), backup=True)
    assert "backup" in answer.backup
    if stage.host == "file":
        assert Path(answer.backup).read_bytes() == before
    assert book.edit(replace("a", "x = 3")).backup is None


def test_create_makes_an_empty_notebook_once(stage: Stage) -> None:
    workspace = stage.workspace()
    answer = workspace.create("new.ipynb", kernel="python3")
    assert (answer.changed, answer.saved, answer.cells) == (True, True, [])
    with pytest.raises(AlreadyExists):
        workspace.create("new.ipynb")
    book = workspace.open("new.ipynb")
    assert json.loads(book.raw())["metadata"]["kernelspec"]["name"] == "python3"
    assert [entry.kind for entry in book.log()] == ["create"]


def test_write_makes_the_notebook_say_what_a_text_says(stage: Stage) -> None:
    workspace = stage.workspace()
    book = workspace.open("new.ipynb")
    book.write("# %% [code]\nx = 1\n# %% [markdown]\nhello")
    assert sources(book) == ["x = 1", "hello"]
    read = book.read()
    book.edit(replace(read.cells[1].handle, "changed by another"))
    book.write(read.text.replace("x = 1", "x = 2"), base=read.revision, label="text")
    assert sources(book) == ["x = 2", "changed by another"]
    assert book.log()[0].label == "text"
    made = workspace.open("made.ipynb")
    made.edit([{"op": "insert", "source": "1"}], create=True)
    assert sources(made) == ["1"]


def test_upgrade_gives_every_cell_an_id(stage: Stage) -> None:
    book = stage.workspace().open("old.ipynb")
    before = book.raw()
    if stage.host == "tab":  # an editor has given every cell one
        assert len({cell.id for cell in book.read().cells} - {None}) == 5
        return
    assert [cell.id for cell in book.read().cells] == [None] * 5
    assert (book.upgrade(dry_run=True).changed, book.raw()) == (True, before)
    assert book.upgrade().changed
    answer = book.read()
    assert (answer.nbformat, None in [cell.id for cell in answer.cells]) == ("4.5", False)
    assert book.upgrade().changed is False  # it is of that version already
    book.undo()
    assert book.raw() == before


def test_a_conflict_shows_both_sides_and_the_rest_is_merged(stage: Stage, book: Any) -> None:
    base = book.load().revision
    stage.workspace(actor="test:bob").open("nb.ipynb").edit(replace("a", "x = 5"))
    before = book.raw()
    with pytest.raises(Conflict) as caught:
        book.edit([*replace("b", "y = 1"), *replace("a", "x = 6")], base=base)
    (cell,) = caught.value.cells
    assert (cell.handle, cell.current, cell.other) == ("a", "x = 5", "x = 6")
    assert book.raw() == before  # all or nothing
    assert book.edit(replace("b", "y = 1"), base=base).changed
    assert sources(book)[1:3] == ["x = 5", "y = 1"]
    with pytest.raises(UnknownRevision):
        book.edit(replace("a", "x"), base="f" * 12)


# -- history ------------------------------------------------------------------------------------


def test_undo_and_redo_and_restore(book: Any) -> None:
    original = book.raw()
    book.edit(replace("a", "x = 9", outputs="clear"))
    book.edit([{"op": "delete", "cell": "intro"}])
    assert len(sources(book)) == 4
    book.undo()
    assert sources(book)[0] == "# Sales"
    change = book.undo().concerns
    assert book.raw() == original  # outputs too
    assert book.redo().concerns == change
    assert sources(book)[1] == "x = 9"
    assert book.diff("first").cells[0].kind == "edited"
    assert book.diff(f"{change}^", change).cells[0].kind == "edited"
    book.restore("first")
    assert book.raw() == original
    assert book.backups()
    with pytest.raises(ChangeNotFound):
        book.undo("ffffffff")
    with pytest.raises(ChangeNotFound):
        book.restore("ffffffff")


def test_undo_takes_the_callers_own_changes(stage: Stage, book: Any) -> None:
    book.edit(replace("a", "of ada"))
    bob = stage.workspace(actor="test:bob").open("nb.ipynb")
    bob.edit(replace("b", "of bob"))
    book.undo()
    assert sources(book)[2] == "of bob"
    with pytest.raises(NothingToUndo):
        book.undo()


def test_several_changes_are_undone_as_one(book: Any) -> None:
    original = book.raw()
    edits = (replace("a", "x = 9", outputs="clear"), [{"op": "delete", "cell": "intro"}])
    ids = [book.edit(each).change for each in edits]
    assert book.undo(ids).concerns == f"{ids[1]} {ids[0]}"
    assert book.raw() == original
    assert [entry.kind for entry in book.log()] == ["undo", "edit", "edit"]
    with pytest.raises(NothingToUndo):
        book.undo(ids)
    with pytest.raises(ChangeNotFound):
        book.undo([*ids, "ffffffff"])


def test_log_and_blame_name_changes_and_who_made_them(stage: Stage, book: Any) -> None:
    one = book.edit(replace("a", "x = 2"), label="two").change
    two = stage.workspace(actor="test:bob").open("nb.ipynb").edit(replace("c", "1")).change
    entries = book.log()
    assert [(entry.id, entry.actor, entry.label) for entry in entries] == [
        (two, "test:bob", ""),
        (one, "test:ada", "two"),
    ]
    assert book.log(limit=1) == entries[:1]
    assert [(row.handle, row.change, row.actor) for row in book.blame()[1:4]] == [
        ("a", one, "test:ada"),
        ("b", None, None),
        ("c", two, "test:bob"),
    ]
    assert book.warnings() == []


# -- running ------------------------------------------------------------------------------------


def test_run_puts_outputs_into_the_notebook_and_reports_on_the_way(stage: Stage, book: Any) -> None:
    told: list[dict[str, Any]] = []
    done = book.run(["a", "b", "c"], progress=told.append)
    assert [(each.cell, each.status, each.saved) for each in done] == [
        ("a", "ok", True),
        ("b", "ok", True),
        ("c", "ok", True),
    ]
    assert (done.done, done.ok) == (True, True)
    assert told[0] == {"run": done.run}
    assert "apart\n" in [event.get("text") for event in told]
    assert done[2].outputs == [{"output_type": "stream", "name": "stdout", "text": "apart\n"}]
    assert text_of(done[1]) == "'one'"
    assert "'one'" in book.outputs(["b"]).cells[0].text
    assert [cell["execution_count"] for cell in json.loads(book.raw())["cells"][1:]] == [
        *(done[place].count for place in range(3)),
        None,
    ]
    # The first of a kernel is on record at once; short ones after it land together.
    # In a tab, where a person watches, all do.
    together = ["run c", "run b"] if stage.host == "tab" else ["run b, c"]
    assert [entry.label for entry in book.log()] == [*together, "run a"]
    assert [run.cell for run in book.executions()] == ["a", "b", "c"]
    assert [cell.status for cell in book.read().cells[1:]] == ["ok", "ok", "ok", "never"]
    assert stage.workspace().open("nb.ipynb").run(["b"])[0].status == "ok"  # the same kernel


def test_an_edit_can_run_what_it_changed_and_says_what_is_stale(stage: Stage, book: Any) -> None:
    book.run(["a", "b", "c"])
    answer = book.edit(replace("a", stage.dialect.keep("x", "two")), run="changed")
    assert [(each.cell, each.status) for each in answer.executions] == [("a", "ok")]
    assert (answer.done, answer.saved) == (True, True)
    assert "b" in [each.cell for each in answer.stale]
    assert all(each.reason for each in answer.stale)
    again = book.run(stale=True, keep_going=True)
    assert text_of(next(each for each in again if each.cell == "b")) == "'two'"
    if stage.language == "python":  # elsewhere names are not followed, and all may be stale
        assert [each.cell for each in again if each.status == "ok"] == ["b"]
        states = [cell.state for cell in book.stale().cells if cell.cell in ("a", "b", "c")]
        assert states == ["fresh"] * 3
    answer = book.edit(replace("c", stage.dialect.out("said")), run="stale", keep_going=True)
    assert "c" in [each.cell for each in answer.executions]
    assert "said" in next(row.text for row in answer.outputs if row.cell == "c")
    book.undo()  # the source, and what it had printed; the kernel is as it is
    assert sources(book)[3] == stage.dialect.out("apart")
    with pytest.raises(InvalidEdit, match="`run` is 'all'"):
        book.edit([], run="all")


def test_the_first_failure_ends_a_run_unless_it_keeps_going(stage: Stage, book: Any) -> None:
    book.edit([{"op": "move", "cell": "bad", "at": 1}])
    done = book.run()
    assert [(each.cell, each.status) for each in done] == [
        ("bad", "error"),
        ("a", "pending"),
        ("b", "pending"),
        ("c", "pending"),
    ]
    assert (done.ok, done[0].is_failure) == (False, True)
    error = done[0].error
    assert (error.ename, error.evalue) == stage.dialect.failure
    assert any("ValueError" in line for line in error.traceback)
    done = book.run(keep_going=True)
    assert [each.status for each in done] == ["error", "ok", "ok", "ok"]


def test_timeouts_and_deaths(stage: Stage, book: Any) -> None:
    die = stage.dialect.leave(3)  # type: ignore[misc]
    book.edit(replace("b", stage.dialect.sleep(60)) + replace("c", die))
    (late,) = book.run(["b"], timeout=0.3)
    assert (late.status, late.state_kept) == ("timed_out", True)
    (dead,) = book.run(["c"])
    assert (dead.status, dead.state_kept) == ("died", False)
    (after,) = book.run(["a"])
    assert after.status == "ok"


def test_a_check_compares_and_writes_nothing(book: Any) -> None:
    book.run(["b"], keep_going=True)
    book.run(["a", "b", "c"])
    before = book.raw()
    done = book.run(["a", "b", "c"], check=True)
    assert [each.check.result for each in done] == ["same"] * 3
    assert [each.saved for each in done] == [False] * 3
    assert book.raw() == before


def test_a_run_can_be_left_and_followed_and_stopped(stage: Stage) -> None:
    workspace = stage.workspace()
    book = workspace.open("nb.ipynb")
    book.edit(replace("b", f"{stage.dialect.out('on')}\n{stage.dialect.sleep(60)}"))
    done = book.run(["a", "b"], detach=0)
    assert not done.done
    told: list[dict[str, Any]] = []
    found = workspace.attach(done.run, progress=told.append, wait=0.01)
    assert (found.done, found.run, found.kind) == (False, done.run, "run")
    assert found.cancelled is None
    assert [each.cell for each in found.answer] == ["a", "b"], "what is known so far"
    assert not found.answer.done
    while not any(event.get("text") == "on\n" for event in told):
        told.clear()
        workspace.attach(done.run, progress=told.append, wait=0.1)
    assert workspace.runs()[0].cells == {"a": "ok", "b": "running"}
    assert [cell.status for cell in book.read().cells[1:3]] == ["ok", "running"]
    stopped = workspace.cancel(done.run)
    assert (stopped.cancelled, stopped.state) == (True, "done")
    assert [each.status for each in stopped.answer] == ["ok", "cancelled"]
    assert done[1].status == "pending"  # what was answered then
    assert "on" in book.outputs(["b"]).cells[0].text
    assert workspace.cancel(done.run).cancelled is False


def test_a_watch_reports_what_another_does_until_it_is_told_to_end(stage: Stage) -> None:
    workspace, other = stage.workspace(), stage.workspace(actor="test:bob").open("nb.ipynb")
    told: list[dict[str, Any]] = []
    assert workspace.watch("nb.ipynb", progress=told.append, wait=0.05) == WatchAnswer(0)

    def until() -> bool:
        return len(told) > 0

    # A run that continues by itself: what it does is heard while this caller only watches.
    run = other.run(["c", "a"], detach=0).run
    workspace.attach(run)
    other.edit(replace("b", stage.dialect.sleep(0.3)))
    other.run(["b"], detach=0)
    assert workspace.watch("nb.ipynb", progress=told.append, until=until).events == len(told)
    assert {event["event"] for event in told} <= {"cell", "run_ended"}


# -- code without a notebook, sessions and kernels ----------------------------------------------


def test_eval_keeps_state_in_sessions(stage: Stage) -> None:
    workspace, dialect = stage.workspace(), stage.dialect
    told: list[dict[str, Any]] = []
    code = [dialect.keep("n", "six"), {"code": dialect.recall("n"), "title": "look"}]
    answer = workspace.eval(code, session="one", progress=told.append)
    assert [(row.status, row.cell) for row in answer.cells] == [("ok", None)] * 2
    assert (answer.cells[1].text, answer.cells[1].title) == ("'six'\n", "look")
    assert (answer.session, answer.done) == ("one", True)
    assert told[0] == {"run": answer.run}
    assert {"cell": 1, "text": "'six'\n"} in told or stage.language == "python"
    recall = [dialect.recall("n")]
    assert workspace.eval(recall, session="one").cells[0].text == "'six'\n"
    failed = workspace.eval([*recall, *recall], session="two").cells
    assert [row.status for row in failed] == ["error", "pending"]
    assert failed[0].error.ename == "NameError"
    assert workspace.eval(recall, session="one", per_call=True).cells[0].status == "error"


def test_kernels_of_sessions_can_be_looked_at_restarted_and_ended(stage: Stage) -> None:
    workspace, dialect = stage.workspace(), stage.dialect
    workspace.eval([dialect.keep("n", "six")], session="one")
    (mine,) = [row for row in workspace.sessions() if row.session == "one"]
    assert (mine.state, mine.kind, mine.executions) == ("idle", "eval", 1)
    assert workspace.kernel("status", "one").state == "idle"
    assert workspace.kernel("interrupt", "one").interrupted is False
    workspace.kernel("restart", "one")
    assert workspace.eval([dialect.recall("n")], session="one").cells[0].status == "error"
    workspace.kernel("shutdown", "one")
    with pytest.raises(SessionNotFound):
        workspace.kernel("status", "one")
    with pytest.raises(InvalidEdit):
        workspace.kernel("nonsense", "one")
    book = workspace.open("nb.ipynb")
    book.run(["a"])
    assert workspace.kernel("status", "nb.ipynb").kind == "notebook"
    workspace.kernel("shutdown", "nb.ipynb")
    assert book.run(["b"])[0].status == "error"


def test_input_is_answered_or_asked_for(stage: Stage) -> None:
    workspace = stage.workspace()
    asked: list[str] = []

    async def ask(request: Any) -> str:
        asked.append(request.prompt.strip())
        return "Ada"

    code = [f"{stage.dialect.ask('first?')}\n{stage.dialect.ask('then?')}"]  # type: ignore[misc]
    answer = workspace.eval(code, answers=["Bob"], ask=ask, session="ask")
    assert (answer.cells[0].text, asked) == ("Bob\nAda\n", ["then?"])


def test_long_output_is_an_artifact(stage: Stage) -> None:
    workspace = stage.workspace()
    (row,) = workspace.eval([stage.dialect.flood(20_000)], session="long").cells  # type: ignore[misc]
    assert (row.truncated, row.total_lines) == (True, 20_000)
    part = workspace.artifact(row.artifact, offset=0, limit=10)
    assert (part.text, part.next_offset) == ("0\n1\n2\n3\n4\n", 10)
    assert workspace.artifact(row.artifact, offset=part.size - 2).next_offset is None


# -- what is refused ----------------------------------------------------------------------------


def test_errors(stage: Stage, tmp_path: Path) -> None:
    workspace = stage.workspace(root=str(tmp_path))
    book = workspace.open("nb.ipynb")
    with pytest.raises(CellNotFound) as caught:
        book.edit(replace("aa", "x"))
    assert caught.value.hint
    with pytest.raises(InvalidEdit):
        book.edit([{"op": "nonsense"}])
    with pytest.raises(NotebookNotFound):
        workspace.open("none.ipynb").read()
    for path in ("/etc/passwd", "../nb.ipynb"):
        with pytest.raises(OutsideRoot):
            workspace.open(path).read()
    with pytest.raises(RunNotFound):
        workspace.attach("r0")
    with pytest.raises(RunNotFound):
        workspace.cancel("r0")
    with pytest.raises(KernelMissing):
        book.run(["a"], kernel="no-such-kernel")
    with pytest.raises(InvalidEdit):
        book.run(["a"], timeout=-1)
    assert book.raw() == make_content(stage.language, stage.dialect)


@pytest.mark.parametrize("mode", ["ask", "edit"])
def test_modes_forbid(stage: Stage, mode: str) -> None:
    workspace = stage.workspace(mode=mode)
    book = workspace.open("nb.ipynb")
    assert len(book.read().cells) == 5
    assert book.log() == []
    assert isinstance(workspace.runs(), list)
    for forbidden in (
        lambda: book.edit(replace("a", "x")),
        lambda: book.edit(replace("a", "x"), dry_run=True),
        lambda: book.write("x"),
        lambda: book.run(["a"]),
        lambda: workspace.eval(["1"]),
        lambda: workspace.create("new.ipynb"),
        lambda: workspace.cancel("r0"),
        lambda: workspace.kernel("restart", "default"),
        lambda: book.restore("first"),
        book.undo,
        book.redo,
        book.upgrade,
    ):
        with pytest.raises(ModeForbids):
            forbidden()
    assert not Path("new.ipynb").exists()


def test_a_workspace_can_be_closed_twice(stage: Stage) -> None:
    workspace = stage.workspace()
    workspace.eval([stage.dialect.out("x")], session="closing")
    workspace.close()
    workspace.close()
