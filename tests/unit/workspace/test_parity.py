"""Four ways to the same verbs, in this process or over the engine, awaited or not: one behaviour."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cellwright.engine.remote import EngineBook

from cellwright.engine import aio
from cellwright.engine.client import connect
from cellwright.errors import (
    CellNotFound,
    CellwrightError,
    ChangeNotFound,
    Conflict,
    InvalidEdit,
    KernelMissing,
    ModeForbids,
    NotebookNotFound,
    NothingToUndo,
    OutsideRoot,
    RunNotFound,
    UnknownRevision,
)
from cellwright.workspace.workspace import AsyncBook, AsyncWorkspace, Book, Workspace
from tests.conftest import PLACES
from tests.unit.cli import samples
from tests.engines import engine_of_its_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(120)

NOTEBOOK = samples.write(
    samples.markdown("intro", "# Sales"),
    samples.code("a", "x = 1", samples.STREAM, count=7),
    samples.code("b", "y = x + 1\nprint(y)"),
    samples.code("c", "y * 10"),
    samples.code("bad", "1 / 0"),
)

# --- The same verbs ------------------------------------------------------------------------------

INSIDE = {"record_run", "record_execution", "require"}


def verbs(kind: type) -> dict[str, inspect.Signature]:
    found = {
        name: value
        for name, value in vars(kind).items()
        if name[0] != "_" and inspect.isfunction(value) and name not in INSIDE
    }
    return {name: inspect.signature(value) for name, value in found.items()}


@pytest.mark.parametrize("other", [AsyncWorkspace, Workspace])
def test_workspaces_have_the_same_verbs_with_the_same_signatures(other: type) -> None:
    here, there = verbs(Workspace), verbs(other)
    more = {"status", "stop"} if other is Workspace else set()  # the engine's own
    assert set(there) == set(here) | more
    for name, signature in here.items():
        if name not in ("open", "close"):  # which answer with what is theirs
            assert there[name] == signature, name
            assert getattr(other, name).__doc__ == getattr(Workspace, name).__doc__
        assert list(there[name].parameters) == list(signature.parameters)


@pytest.mark.parametrize("other", [AsyncBook, EngineBook])
def test_books_have_the_same_verbs_with_the_same_signatures(other: type) -> None:
    here, there = verbs(Book), verbs(other)
    assert set(there) == set(here)
    for name, signature in here.items():
        assert list(there[name].parameters) == list(signature.parameters), name
        if name != "load":
            assert there[name] == signature, name
        assert getattr(other, name).__doc__ == getattr(Book, name).__doc__


def test_verbs_of_async_ones_are_awaited_and_no_others() -> None:
    for kind in (AsyncWorkspace, AsyncBook):
        for name in verbs(kind):
            awaited = inspect.iscoroutinefunction(getattr(kind, name))
            assert awaited == (name != "open"), name


# --- The same behaviour --------------------------------------------------------------------------


class Driver:
    """A workspace of any kind, driven as if it blocked."""

    def __init__(self, make: Callable[..., Any], *, is_async: bool) -> None:
        self._make = make
        self._is_async = is_async
        self._loop = asyncio.new_event_loop() if is_async else None
        self._made: list[Any] = []

    def workspace(self, **options: Any) -> Any:
        made = self._wait(self._make(**{"actor": "test:ada", **options}))
        self._made.append(made)
        return _Blocking(made, self._wait) if self._is_async else made

    def _wait(self, value: Any) -> Any:
        if self._loop is not None and inspect.isawaitable(value):
            return self._loop.run_until_complete(value)
        return value

    def close(self) -> None:
        for made in self._made:
            self._wait(made.close())
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()


class _Blocking:
    def __init__(self, target: Any, wait: Callable[[Any], Any]) -> None:
        self._target = target
        self._wait = wait

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            found = self._wait(value(*args, **options))
            return _Blocking(found, self._wait) if name == "open" else found

        return call


@pytest.fixture(scope="module")
def shared_places() -> Iterator[Path]:
    """Places with an engine, for all tests of this file: each has notebooks of its own."""
    folder = Path(tempfile.mkdtemp(prefix="cw"))
    with pytest.MonkeyPatch.context() as patch:
        _move(patch, folder)
        with engine_of_its_own(patch):
            yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _move(patch: pytest.MonkeyPatch, folder: Path) -> None:
    for variable, name in PLACES.items():
        (folder / name).mkdir(mode=0o700, exist_ok=True)
        patch.setenv(variable, str(folder / name))


@pytest.fixture(params=["in process", "engine", "async in process", "async engine"])
def driver(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Driver]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(NOTEBOOK)
    kind = request.param
    if kind.endswith("engine"):
        _move(monkeypatch, request.getfixturevalue("shared_places"))
    makers = {
        "in process": Workspace,
        "async in process": AsyncWorkspace,
        "engine": connect,
        "async engine": aio.connect,
    }
    driver = Driver(makers[kind], is_async=kind.startswith("async"))
    try:
        yield driver
    finally:
        if kind.endswith("engine"):
            last = driver.workspace()
            for session in last.sessions():
                with contextlib.suppress(CellwrightError):
                    last.kernel("shutdown", session["session"])
        driver.close()


def replace(cell: str, source: str, **more: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "cell": cell, "source": source, **more}]


def sources(book: Any) -> list[str]:
    return [cell["source"] for cell in book.read()["cells"]]


def test_reading_and_editing(driver: Driver, tmp_path: Path) -> None:
    workspace = driver.workspace()
    assert workspace.list() == [{"path": "nb.ipynb", "size": len(NOTEBOOK)}]
    book = workspace.open("nb.ipynb")
    read = book.read()
    assert [cell["id"] for cell in read["cells"]] == ["intro", "a", "b", "c", "bad"]
    assert "# %% [code] cell:1" in read["text"]
    answer = book.edit(replace("a", "x = 2"), base=read["revision"], label="two")
    assert (answer["changed"], answer["saved"], answer["host"]) == (True, True, "file")
    assert answer["others"] == answer["warnings"] == []
    assert sources(book)[1] == "x = 2"
    dry = book.edit([{"op": "delete", "cell": "c"}], dry_run=True)
    assert (dry["saved"], len(sources(book))) == (False, 5)
    assert book.select("cell=a")["text"].endswith("x = 2")
    assert book.raw() == (tmp_path / "nb.ipynb").read_bytes()
    assert book.load().cell("a").source == "x = 2"
    assert [entry["label"] for entry in book.log()] == ["two"]
    assert book.blame()[1]["label"] == "two"
    assert book.warnings() == []


def test_typed_edits_and_paths_as_objects(driver: Driver, tmp_path: Path) -> None:
    from cellwright import Insert, Replace

    book = driver.workspace().open(tmp_path / "nb.ipynb")
    book.edit((Replace("a", "x = 3"), Insert("z = 1", id="z", after="a")))
    assert sources(book)[1:3] == ["x = 3", "z = 1"]


def test_writing_text_and_creating(driver: Driver) -> None:
    workspace = driver.workspace()
    workspace.create("new.ipynb", kernel="python3")
    with pytest.raises(CellwrightError) as caught:
        workspace.create("new.ipynb")
    assert caught.value.code == "ALREADY_EXISTS"
    book = workspace.open("new.ipynb")
    book.write("# %% [code]\nx = 1\n# %% [markdown]\nhello")
    assert sources(book) == ["x = 1", "hello"]
    made = workspace.open("made.ipynb")
    made.edit([{"op": "insert", "source": "1"}], create=True)
    assert sources(made) == ["1"]


def test_a_conflict_shows_both_sides(driver: Driver) -> None:
    book = driver.workspace().open("nb.ipynb")
    base = book.load().revision
    driver.workspace(actor="test:bob").open("nb.ipynb").edit(replace("a", "x = 5"))
    with pytest.raises(Conflict) as caught:
        book.edit(replace("a", "x = 6"), base=base)
    (cell,) = caught.value.cells
    assert (cell.handle, cell.current, cell.other) == ("a", "x = 5", "x = 6")
    answer = book.edit(replace("b", "y = 1"), base=base)  # elsewhere: merged
    assert sources(book)[1:3] == ["x = 5", "y = 1"]
    assert answer["changed"]
    with pytest.raises(UnknownRevision):
        book.edit(replace("a", "x"), base="f" * 12)


def test_errors(driver: Driver, tmp_path: Path) -> None:
    workspace = driver.workspace(root=str(tmp_path))
    book = workspace.open("nb.ipynb")
    with pytest.raises(CellNotFound) as caught:
        book.edit(replace("aa", "x"))
    assert caught.value.hint
    with pytest.raises(InvalidEdit):
        book.edit([{"op": "nonsense"}])
    with pytest.raises(NotebookNotFound):
        workspace.open("none.ipynb").read()
    with pytest.raises(OutsideRoot):
        workspace.open("/etc/passwd").read()
    with pytest.raises(CellwrightError) as failed:
        workspace.open("../nb.ipynb").read()
    assert failed.value.code == "OUTSIDE_ROOT"
    with pytest.raises(RunNotFound):
        workspace.attach("r0")
    with pytest.raises(RunNotFound):
        workspace.cancel("r0")
    with pytest.raises(KernelMissing):
        book.run(["a"], kernel="no-such-kernel")
    assert book.read()["cells"][1]["source"] == "x = 1"


@pytest.mark.parametrize("mode", ["ask", "edit"])
def test_modes_forbid(driver: Driver, mode: str) -> None:
    workspace = driver.workspace(mode=mode)
    book = workspace.open("nb.ipynb")
    assert len(book.read()["cells"]) == 5
    for forbidden in (
        lambda: book.edit(replace("a", "x")),
        lambda: book.run(["a"]),
        lambda: workspace.eval(["1"]),
        lambda: workspace.create("new.ipynb"),
        book.undo,
    ):
        with pytest.raises(ModeForbids):
            forbidden()
    assert not Path("new.ipynb").exists()


def test_undo_and_redo_and_restore(driver: Driver, tmp_path: Path) -> None:
    book = driver.workspace().open("nb.ipynb")
    book.edit(replace("a", "x = 9", outputs="clear"))
    book.edit([{"op": "delete", "cell": "intro"}])
    assert len(sources(book)) == 4
    book.undo()
    assert sources(book)[0] == "# Sales"
    book.undo()
    assert (tmp_path / "nb.ipynb").read_bytes() == NOTEBOOK  # outputs too
    book.redo()
    assert sources(book)[1] == "x = 9"
    assert book.diff("first")["cells"][0]["kind"] == "edited"
    book.restore("first")
    assert (tmp_path / "nb.ipynb").read_bytes() == NOTEBOOK
    assert book.backups()


def test_several_changes_are_undone_as_one(driver: Driver, tmp_path: Path) -> None:
    book = driver.workspace().open("nb.ipynb")
    edits = (replace("a", "x = 9", outputs="clear"), [{"op": "delete", "cell": "intro"}])
    ids = [book.edit(each)["change"] for each in edits]
    assert book.undo(ids)["concerns"] == f"{ids[1]} {ids[0]}"
    assert (tmp_path / "nb.ipynb").read_bytes() == NOTEBOOK
    assert [entry["kind"] for entry in book.log()] == ["undo", "edit", "edit"]
    with pytest.raises(NothingToUndo):
        book.undo(ids)
    with pytest.raises(ChangeNotFound):
        book.undo([*ids, "ffffffff"])


def test_running_and_what_is_stale(driver: Driver) -> None:
    book = driver.workspace().open("nb.ipynb")
    told: list[dict[str, Any]] = []
    done = book.run(["a", "b"], progress=told.append)
    assert [(each.cell, each.status, each.saved) for each in done] == [
        ("a", "ok", True),
        ("b", "ok", True),
    ]
    assert done.done
    assert told[0] == {"run": done.run}
    assert "2\n" in [event.get("text") for event in told]
    assert done[1].outputs == [{"output_type": "stream", "name": "stdout", "text": "2\n"}]
    assert book.run(["c"])[0].outputs[0]["data"]["text/plain"] == "20"
    assert "20" in str(book.outputs(["c"]))
    assert {run["cell"] for run in book.executions()} == {"a", "b", "c"}
    answer = book.edit(replace("a", "x = 4"), run="changed")
    assert [each["status"] for each in answer["executions"]] == ["ok"]
    assert [each["cell"] for each in answer["stale"]] == ["b", "c"]
    again = book.run(stale=True, keep_going=True)
    assert [each.cell for each in again if each.status == "ok"] == ["b", "c"]
    assert again[1].outputs[0]["data"]["text/plain"] == "50"
    assert [c["state"] for c in book.stale()["cells"] if c["cell"] in "abc"] == ["fresh"] * 3
    book.undo()  # the source, and what it had printed; the kernel is as it is
    assert sources(book)[1] == "x = 1"


def test_a_cell_that_fails_is_told_with_its_traceback(driver: Driver) -> None:
    book = driver.workspace().open("nb.ipynb")
    done = book.run(["bad", "a"], keep_going=True)
    assert [each.status for each in done] == ["ok", "error"]
    failed = done[1]
    assert (failed.error, failed.line, failed.is_failure) == (
        ("ZeroDivisionError", "division by zero"),
        1,
        True,
    )
    assert any("ZeroDivisionError" in line for line in failed.traceback)


def test_timeouts_and_deaths(driver: Driver) -> None:
    book = driver.workspace().open("nb.ipynb")
    book.edit(replace("b", "import time; time.sleep(60)") + replace("c", "import os; os._exit(3)"))
    (late,) = book.run(["b"], timeout=0.3)
    assert (late.status, late.state_kept) == ("timed_out", True)
    (dead,) = book.run(["c"])
    assert (dead.status, dead.state_kept) == ("died", False)
    (after,) = book.run(["a"])
    assert after.status == "ok"


def test_eval_sessions_and_kernels(driver: Driver) -> None:
    workspace = driver.workspace()
    told: list[dict[str, Any]] = []
    answer = workspace.eval(["n = 6", "n * 7"], session="one", progress=told.append)
    assert [row["status"] for row in answer["cells"]] == ["ok", "ok"]
    assert (answer["cells"][1]["text"], answer["done"]) == ("42\n", True)
    assert told[0] == {"run": answer["run"]}
    assert {"cell": 1, "text": "42\n"} in told
    assert workspace.eval(["n"], session="one")["cells"][0]["text"] == "6\n"
    assert workspace.eval(["n"], session="two")["cells"][0]["status"] == "error"
    mine = [row for row in workspace.sessions() if row["session"] == "one"]
    assert mine[0]["state"] == "idle"
    names = [v["name"] for v in workspace.kernel("variables", "one")["variables"]]
    assert names == ["n"]
    workspace.kernel("restart", "one")
    assert workspace.eval(["n"], session="one")["cells"][0]["status"] == "error"
    workspace.kernel("shutdown", "one")
    with pytest.raises(CellwrightError) as caught:
        workspace.kernel("status", "one")
    assert caught.value.code == "SESSION_NOT_FOUND"
    assert [spec["name"] for spec in workspace.kernel_specs() if spec.get("default")] == ["python3"]


def test_input_is_answered_or_asked_for(driver: Driver) -> None:
    workspace = driver.workspace()
    asked: list[str] = []

    async def ask(request: Any) -> str:
        asked.append(request.prompt)
        return "Ada"

    code = ["print(input('first? ')); print(input('then? '))"]
    answer = workspace.eval(code, answers=["Bob"], ask=ask, session="ask")
    assert (answer["cells"][0]["text"], asked) == ("Bob\nAda\n", ["then? "])
    assert workspace.eval(code, session="ask")["cells"][0]["status"] == "error"


def test_long_output_is_an_artifact(driver: Driver) -> None:
    workspace = driver.workspace()
    code = "for i in range(20000): print(i)"
    row = workspace.eval([code], session="long")["cells"][0]
    assert row["truncated"]
    part = workspace.artifact(row["artifact"], offset=0, limit=10)
    assert (part["text"], part["next_offset"]) == ("0\n1\n2\n3\n4\n", 10)


def test_a_run_can_be_left_and_followed_and_stopped(driver: Driver) -> None:
    workspace = driver.workspace()
    book = workspace.open("nb.ipynb")
    book.edit(replace("b", "import time\nprint('on', flush=True)\ntime.sleep(60)"))
    done = book.run(["a", "b"], detach=0)
    assert not done.done
    told: list[dict[str, Any]] = []
    found = workspace.attach(done.run, progress=told.append, wait=0.01)
    assert (found["done"], found["run"], found["kind"]) == (False, done.run, "run")
    while not any(event.get("text") == "on\n" for event in told):
        told.clear()
        workspace.attach(done.run, progress=told.append, wait=0.1)
    assert workspace.runs()[0]["cells"] == {"a": "ok", "b": "running"}
    stopped = workspace.cancel(done.run)
    assert (stopped["cancelled"], stopped["state"]) == (True, "done")
    assert [each["status"] for each in stopped["answer"]["executions"]] == ["ok", "cancelled"]
    assert done[1].status == "pending"  # what was answered then
    assert "on" in str(book.outputs(["b"]))
    assert workspace.cancel(done.run)["cancelled"] is False


def test_the_callers_variables_and_folder_rule(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "there.ipynb").write_bytes(NOTEBOOK)
    environ = {**os.environ, "COLOUR": "red"}
    workspace = driver.workspace(cwd=str(tmp_path / "sub"), environ=environ)
    assert workspace.list() == [{"path": "there.ipynb", "size": len(NOTEBOOK)}]
    code = ["import os; print(os.environ['COLOUR'], os.getcwd())"]
    text = workspace.eval(code, session="env")["cells"][0]["text"]
    assert text == f"red {tmp_path / 'sub'}\n"


def test_a_watch_hears_what_another_does(driver: Driver) -> None:
    workspace = driver.workspace()
    told: list[dict[str, Any]] = []
    assert workspace.watch("nb.ipynb", progress=told.append, wait=0.05) == {"events": 0}
    asked: list[int] = []

    def until() -> bool:
        asked.append(1)
        return len(asked) > 1

    assert workspace.watch(progress=told.append, until=until) == {"events": 0}
    assert told == []


def test_a_closed_one_can_do_nothing_harmful(driver: Driver) -> None:
    workspace = driver.workspace()
    workspace.eval(["1"], session="closing")
    workspace.close()
    workspace.close()
