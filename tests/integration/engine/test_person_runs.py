"""What a person runs in an editor is on record, and wins over what an agent runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cellwright import connect
from tests.engines import wait_for
from tests.integration.engine.live_editor import LiveEditor
from tests.kernels.dialects import PYTHON
from tests.unit.workspace.stages import make_content

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.engines import Engine

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def editor(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared_engine: Engine,  # noqa: ARG001  # each test has a notebook of its own
) -> Iterator[LiveEditor]:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "nb.ipynb"
    path.write_bytes(make_content("python", PYTHON))
    found = LiveEditor(path)
    yield found
    found.close()


@pytest.fixture
def book(editor: LiveEditor) -> Iterator[Any]:
    workspace = connect(actor="test:agent")
    assert workspace is not None
    with workspace:
        yield workspace.open(editor.path)


def run_as_person(editor: LiveEditor, cell: str, count: int, **facts: Any) -> None:
    """Do what a page does when the person runs a cell, and the kernel is quick."""
    source = editor.find(cell)["source"]
    editor.say("executed", cell=cell, status="pending")
    about = {"cell": cell, "source": source, "count": count, "life": "one", "began": 1000.0}
    editor.say("executed", status="running", **about)
    editor.find(cell).update(outputs=[], execution_count=count)
    editor.type(cell, source)  # the page notes a change
    editor.say("executed", **{**about, "status": "ok", "seconds": 1.5, **facts})


def test_what_a_person_runs_is_on_record(editor: LiveEditor, book: Any) -> None:
    for cell, source in (("a", "x = 1"), ("b", "y = x + 1"), ("c", "z = 3")):
        editor.type(cell, source)
    run_as_person(editor, "a", 1)
    run_as_person(editor, "b", 2)
    run_as_person(editor, "c", 3, status="error")
    records = book.executions()
    assert [(run.cell, run.status, run.count, run.kernel, run.actor) for run in records] == [
        ("a", "ok", 1, "one", "lab:ada"),
        ("b", "ok", 2, "one", "lab:ada"),
        ("c", "error", 3, "one", "lab:ada"),
    ]
    view = {cell.handle: cell for cell in book.read().cells}
    assert (view["a"].status, view["c"].status) == ("ok", "error")
    assert view["a"].last_run.duration_ms == 1500
    editor.type("a", "x = 2")
    stale = {cell.cell: cell.state for cell in book.stale().cells}
    assert (stale["a"], stale["b"]) == ("stale", "stale")


def test_a_cell_that_a_person_runs_now_is_running(editor: LiveEditor, book: Any) -> None:
    before = book.read().cells[1].status
    for status in ("pending", "running"):
        editor.say("executed", cell="a", status=status, life="one")
        assert book.read().cells[1].status == status
    editor.close()
    wait_for(lambda: book.read().cells[1].status == before, "the page to be gone")


def test_a_person_who_runs_the_cell_of_an_agent_wins(
    editor: LiveEditor, book: Any, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nprint('agent', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('more')"
    editor.type("a", wait)
    run = book.run(["a"], detach=0.0)
    wait_for(lambda: "agent" in str(editor.find("a").get("outputs")), "the agent's first output")
    mine = [{"output_type": "stream", "name": "stdout", "text": "mine"}]
    editor.say("executed", cell="a", status="pending")
    editor.find("a").update(outputs=mine, execution_count=None)
    editor.type("a", wait)
    go.touch()
    answer = book.workspace.attach(run.run).answer
    (execution,) = answer
    assert "A person ran the cell" in execution.notes[0]
    assert "more" in str(execution.outputs)
    assert editor.find("a")["outputs"] == mine
    assert not execution.saved
