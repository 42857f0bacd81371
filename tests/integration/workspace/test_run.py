"""`Book.run`: cells run in the notebook's kernel, and their outputs are in the file."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from cellwright import Workspace, read
from cellwright.errors import (
    InvalidCell,
    InvalidEdit,
    KernelCannot,
    KernelMissing,
    ModeForbids,
)

if TYPE_CHECKING:
    from cellwright import Book

pytestmark = pytest.mark.timeout(120)

LEAVES_BYTES = '{"cell_type" :"raw","id": "odd",   "metadata":{"n":1e400},"source":"\\u00e9"}'


def write(folder: Path, *sources: str, name: str = "run.ipynb", minor: int = 5) -> None:
    cells: list[Any] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for source in sources
    ]
    for number, cell in enumerate(cells):
        if minor >= 5:
            cell["id"] = f"c{number}"
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor})
    (folder / name).write_text(text.replace('"cells": [', f'"cells": [{LEAVES_BYTES}, ', 1))


@pytest.fixture
def book(workspace: Workspace, folder: Path) -> Book:
    write(folder, "x = 20", "print('hello')\nx + 1", "1 / 0", "x = 'later'")
    return workspace.open("run.ipynb")


def on_disk(book: Book) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(book.raw())["cells"]
    return cells[1:]


def test_outputs_and_counts_land_in_the_file_and_no_other_byte_changes(book: Book) -> None:
    done = book.run(["c0", "c1"])
    assert [(run.cell, run.index, run.status, run.count) for run in done] == [
        ("c0", 1, "ok", 1),
        ("c1", 2, "ok", 2),
    ]
    assert all(run.saved and run.seconds >= 0 for run in done)
    cells = on_disk(book)
    assert [cell["execution_count"] for cell in cells] == [1, 2, None, None]
    assert cells[1]["outputs"] == [
        {"name": "stdout", "output_type": "stream", "text": ["hello\n"]},
        {
            "data": {"text/plain": ["21"]},
            "execution_count": 2,
            "metadata": {},
            "output_type": "execute_result",
        },
    ]
    assert LEAVES_BYTES.encode() in book.raw()
    assert [cell["outputs"] for cell in cells[2:]] == [[], []]


def test_all_cells_run_in_order_and_stop_at_the_first_failure(book: Book) -> None:
    done = book.run()
    assert [run.status for run in done] == ["ok", "ok", "error", "pending"]
    error = done[2].error
    assert error is not None
    assert (error.ename, error.evalue) == ("ZeroDivisionError", "division by zero")
    assert on_disk(book)[2]["outputs"][0]["ename"] == "ZeroDivisionError"
    assert [run.status for run in book.run(keep_going=True)] == ["ok", "ok", "error", "ok"]


def test_the_kernel_that_runs_may_be_asked_for_by_name(book: Book, workspace: Workspace) -> None:
    """It is the default one, so that nothing would be another and no variable is given up."""
    book.run(["c0"])
    (done,) = book.run(["c1"], kernel="python3")
    assert (done.status, done.count) == ("ok", 2)
    with pytest.raises(KernelMissing):
        book.run(["c1"], kernel="no-such-kernel")
    assert book.run(["c1"])[0].count == 3

    workspace.eval(["x = 1"], kernel="python3", session="named")
    (cell,) = workspace.eval(["x"], session="named").cells
    assert cell.text == "1\n"
    with pytest.raises(KernelCannot):
        workspace.eval(["x"], runner=True, session="named")


def test_the_kernel_stays_between_calls_until_a_restart(book: Book) -> None:
    book.run(["c0"])
    assert book.run(["c1"])[0].status == "ok"
    done = book.run(["c1"], restart=True)
    assert (done[0].status, done[0].error and done[0].error.ename) == ("error", "NameError")
    assert done[0].count == 1


def test_cells_before_and_from_one_on(book: Book) -> None:
    assert [run.cell for run in book.run(above="c2")] == ["c0", "c1"]
    assert [run.cell for run in book.run(below="c3")] == ["c3"]
    with pytest.raises(InvalidEdit, match="only one of"):
        book.run(["c0"], above="c2")
    with pytest.raises(InvalidCell, match="only code can run"):
        book.run(["odd"])


def test_runs_are_on_record_and_are_not_what_undo_takes_back(book: Book) -> None:
    book.edit([{"op": "replace", "cell": "c0", "source": "x = 30"}])
    book.run(["c0", "c1"])
    assert [entry.kind for entry in book.log()] == ["run", "run", "edit"]
    book.undo()
    assert read(book.path).cell("c0").source == "x = 20"
    assert on_disk(book)[1]["outputs"]  # of a cell that the undo did not concern


def test_a_cell_edited_while_it_runs_gets_its_outputs_marked_stale(
    book: Book, workspace: Workspace
) -> None:
    slow = "import time, pathlib\npathlib.Path('go').touch()\nwhile not pathlib.Path('edited').exists(): time.sleep(0.01)\nprint('old')"
    book.edit([{"op": "replace", "cell": "c0", "source": slow}])
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.extend(book.run(["c0"])))
    thread.start()
    place = workspace.cwd
    while not __import__("os").path.exists(f"{place}/go"):
        time.sleep(0.02)
    edits = [
        {"op": "replace", "cell": "c0", "source": "print('new')"},
        {"op": "insert", "source": "# first", "at": 0, "type": "markdown"},
    ]
    with Workspace(place) as other:
        other.open("run.ipynb").edit(edits)
    Path(place, "edited").touch()
    thread.join()
    assert (done[0].status, done[0].stale, done[0].saved) == ("ok", True, True)
    cell = read(book.path).cell("c0")
    assert (cell.index, cell.source) == (2, "print('new')")  # it moved, and kept its edit
    assert json.loads(book.raw())["cells"][2]["outputs"][0]["text"] == ["old\n"]


def test_a_cell_deleted_while_it_runs_keeps_its_outputs_in_the_answer(
    book: Book, workspace: Workspace
) -> None:
    code = (
        "import json, pathlib\n"
        "file = pathlib.Path('run.ipynb')\n"
        "shape = json.loads(file.read_text(), parse_float=str)\n"
        "shape['cells'] = [cell for cell in shape['cells'] if cell['id'] != 'c0']\n"
        "file.write_text(json.dumps(shape))\n"
        "print('gone')"
    )
    book.edit([{"op": "replace", "cell": "c0", "source": code}])
    (run,) = book.run(["c0"])
    assert (run.status, run.saved) == ("ok", False)
    assert run.outputs[0]["text"] == "gone\n"
    assert "deleted while it ran" in run.notes[0]
    assert workspace.open("run.ipynb").raw().count(b'"c0"') == 0


def test_a_dead_kernel_is_told_and_nothing_is_run_twice(book: Book, folder: Path) -> None:
    # It dies when its output has been seen, as the file shows: `flush` promises less.
    code = (
        "open('ledger', 'a').write('x')\nprint('be' + 'fore', flush=True)\nimport os, time\n"
        "while 'be' + 'fore' not in open('run.ipynb').read(): time.sleep(0.02)\nos.kill(os.getpid(), 9)"
    )
    book.edit([{"op": "replace", "cell": "c0", "source": code}])
    (run,) = book.run(["c0"])
    assert (run.status, run.state_kept) == ("died", False)
    assert "signal 9" in run.notes[0]
    assert (folder / "ledger").read_text() == "x"
    assert on_disk(book)[0]["outputs"][0]["text"] == ["before\n"]
    (run,) = book.run(["c3"])
    assert run.status == "ok"
    assert "had died" in run.notes[0]


def test_a_display_renewed_by_a_later_cell_is_renewed_in_the_file(
    workspace: Workspace, folder: Path
) -> None:
    write(
        folder,
        "from IPython.display import display\nh = display('old', display_id='d')",
        "h.update('new')",
    )
    book = workspace.open("run.ipynb")
    book.run()
    assert on_disk(book)[0]["outputs"][0]["data"]["text/plain"] == ["'new'"]
    assert on_disk(book)[0]["execution_count"] == 1
    assert on_disk(book)[1]["outputs"] == []


def test_the_notebook_stays_valid_whatever_a_cell_shows(workspace: Workspace, folder: Path) -> None:
    write(
        folder,
        "print('a\\x0cb\\u2028c\\r\\nd')\nimport sys; print('e', file=sys.stderr)",
        "display({'application/json': {'n': 1}, 'text/html': '<b>\\n</b>'}, raw=True)",
        "display({'image/png': 'aGk='}, raw=True)\n'last'",
        name="valid.ipynb",
    )
    raw = (folder / "valid.ipynb").read_text().replace(f"{LEAVES_BYTES}, ", "")
    (folder / "valid.ipynb").write_text(raw)
    book = workspace.open("valid.ipynb")
    assert [run.status for run in book.run()] == ["ok"] * 3
    nbformat.validate(nbformat.read(book.path, as_version=4))
    cells = json.loads(book.raw())["cells"]
    assert "".join(cells[0]["outputs"][0]["text"]) == "a\x0cb\u2028c\r\nd\n"
    assert cells[1]["outputs"][0]["data"] == {
        "application/json": {"n": 1},
        "text/html": ["<b>\n", "</b>"],
    }
    assert cells[2]["outputs"][0]["data"]["image/png"] == "aGk="


def test_a_notebook_without_ids_runs_too(workspace: Workspace, folder: Path) -> None:
    write(folder, "print(1)", "print(2)", minor=4)
    book = workspace.open("run.ipynb")
    assert [run.cell for run in book.run()] == ["cell-1", "cell-2"]
    assert [cell["outputs"][0]["text"] for cell in on_disk(book)] == [["1\n"], ["2\n"]]
    assert all("id" not in cell for cell in on_disk(book))


def test_a_reader_may_not_run(folder: Path) -> None:
    write(folder, "1")
    with Workspace(folder, mode="edit") as reader, pytest.raises(ModeForbids):
        reader.open("run.ipynb").run()


def test_every_run_is_remembered_with_its_source_and_the_life_of_its_kernel(book: Book) -> None:
    book.run(["c0", "c1"])
    book.edit([{"op": "replace", "cell": "c0", "source": "x = 5"}])
    book.run(["c0"], restart=True)
    with Workspace(book.workspace.cwd) as later:  # another process would see the same
        runs = later.open("run.ipynb").executions()
    assert [(run.cell, run.status, run.count) for run in runs] == [
        ("c0", "ok", 1),
        ("c1", "ok", 2),
        ("c0", "ok", 1),
    ]
    assert runs[0].kernel == runs[1].kernel != runs[2].kernel
    assert runs[0].hash != runs[2].hash == read(book.path).cell("c0").hash
    assert [run.order for run in runs] == sorted({run.order for run in runs})


def states(book: Book) -> dict[str, str]:
    return {cell.cell: cell.state for cell in book.stale().cells}


def test_what_is_stale_is_known_from_the_record_and_can_be_run(
    workspace: Workspace, folder: Path
) -> None:
    write(folder, "x = 1", "y = x + 1", "z = 'apart'", "y * 10")
    book = workspace.open("run.ipynb")
    assert set(states(book).values()) == {"never"}
    book.run()
    assert set(states(book).values()) == {"fresh"}

    book.edit([{"op": "replace", "cell": "c0", "source": "x = 5"}])
    assert states(book) == {"c0": "stale", "c1": "stale", "c2": "fresh", "c3": "stale"}
    why = {cell.cell: cell.stale_reason for cell in book.stale().cells}
    assert "edited" in why["c0"]
    assert "x" in why["c1"]
    assert why["c2"] is None

    done = book.run(stale=True)
    assert [run.cell for run in done] == ["c0", "c1", "c3"]
    assert done[-1].outputs[0]["data"]["text/plain"] == "60"
    assert set(states(book).values()) == {"fresh"}
    assert book.run(stale=True) == []


def test_a_new_kernel_needs_what_the_stale_cells_need(workspace: Workspace, folder: Path) -> None:
    write(folder, "x = 1", "y = x + 1", "z = 'apart'")
    workspace.open("run.ipynb").run()
    workspace.kernel("shutdown", "run.ipynb")
    with Workspace(folder) as later:  # its kernel has nothing yet
        book = later.open("run.ipynb")
        book.edit([{"op": "replace", "cell": "c1", "source": "y = x + 2"}])
        done = book.run(stale=True)
    assert [run.status for run in done] == ["ok"] * len(done)
    assert {"c0", "c1"} <= {run.cell for run in done}


def test_an_edit_and_its_run_are_one_call(workspace: Workspace, folder: Path) -> None:
    write(folder, "x = 1", "x + 1", "'apart'")
    book = workspace.open("run.ipynb")
    book.run()
    answer = book.edit([{"op": "replace", "cell": "c0", "source": "x = 41"}], run="stale")
    assert [run.cell for run in answer.executions] == ["c0", "c1"]
    assert answer.executions[1].outputs[0]["data"]["text/plain"] == "42"
    assert (answer.changed, answer.stale) == (True, [])
    assert "+x = 41" in answer.diff
    answer = book.edit([{"op": "replace", "cell": "c0", "source": "x = 7"}], run="changed")
    assert [run.cell for run in answer.executions] == ["c0"]
    assert [(cell.cell, "x" in cell.reason) for cell in answer.stale] == [("c1", True)]
    edits = [
        {"op": "insert", "source": "x * 2", "id": "new"},
        {"op": "insert", "source": "# text", "type": "markdown"},
    ]
    answer = book.edit(edits, run="changed")
    assert [(run.cell, run.status) for run in answer.executions] == [("new", "ok")]
    answer = book.edit([{"op": "replace", "cell": "c1", "source": "1 / 0"}], run="changed")
    assert answer.executions[0].status == "error"
    assert read(book.path).cell("c1").source == "1 / 0"  # the edit stands, and is said to
    assert answer.saved
    with pytest.raises(InvalidEdit, match="`run` is 'all'"):
        book.edit([], run="all")  # type: ignore[arg-type]


def test_outputs_that_cannot_be_saved_are_in_the_answer_and_said_to_be(book: Book) -> None:
    Path(book.path).chmod(0o444)
    before = book.raw()
    (run,) = book.run(["c1"])
    assert (run.status, run.saved) == ("error", False)  # x is not defined; it did run
    assert run.outputs[0]["text"] == "hello\n"
    assert any("only in this answer" in note and "read-only" in note for note in run.notes)
    assert book.raw() == before


def test_after_a_death_the_least_is_replayed(workspace: Workspace, folder: Path) -> None:
    write(folder, "x = 1", "y = x + 1", "z = 'apart'", "import os; os._exit(3)", "y * 10")
    book = workspace.open("run.ipynb")
    done = book.run()
    assert [run.status for run in done] == ["ok", "ok", "ok", "died", "pending"]
    assert (done[3].lost, done[3].replay) == (["c0", "c1", "c2"], [])
    assert "Variables lost: those of c0, c1, c2; cell c3 needs none of them" in done[3].notes

    (alone,) = book.run(["c4"])
    assert (alone.status, alone.state_kept) == ("error", True)
    assert (alone.lost, alone.replay) == (["c0", "c1", "c2"], ["c0", "c1"])
    assert "replay cell c4: c0, c1 and then c4" in alone.notes[-1]

    done = book.run(replay="c4")
    assert [(run.cell, run.status) for run in done] == [("c0", "ok"), ("c1", "ok"), ("c4", "ok")]
    assert done[-1].outputs[0]["data"]["text/plain"] == "20"
    assert [run.cell for run in book.run(replay="c4")] == ["c4"]  # all it needs is there now


def test_a_failure_has_its_place_and_its_traceback(workspace: Workspace, folder: Path) -> None:
    write(folder, "def f():\n    raise ValueError('inside')", "x = 1\n\nf()")
    (_, run) = workspace.open("run.ipynb").run()
    error = run.error
    assert error is not None
    assert (run.cell, run.index, error.line) == ("c1", 2, 3)  # its own line, not the one in c0
    assert (error.ename, error.evalue) == ("ValueError", "inside")
    assert error.traceback is not None
    assert any("Cell In[2], line 3" in line for line in error.traceback)
    assert error.traceback[-1] == "ValueError: inside"
    assert not any("\x1b" in line for line in error.traceback)


@pytest.mark.parametrize("tagged", [False, True])
def test_parameters_are_set_also_where_the_cell_is_empty(
    workspace: Workspace, folder: Path, *, tagged: bool
) -> None:
    write(folder, "", "print(x)")
    book = workspace.open("run.ipynb")
    if tagged:
        book.edit([{"op": "set_metadata", "cell": "c0", "metadata": {"tags": ["parameters"]}}])
    done = book.run(parameters={"x": 5})
    assert [execution.status for execution in done] == ["ok", "ok"]
    assert done[1].outputs[0]["text"] == "5\n"


def test_the_outputs_of_an_edit_and_its_run_come_as_text_within_a_budget(
    workspace: Workspace, folder: Path
) -> None:
    write(folder, "1", "2")
    book = workspace.open("run.ipynb")
    edits = [
        {"op": "replace", "cell": "c0", "source": "for i in range(100_000): print(i)"},
        {"op": "replace", "cell": "c1", "source": "'short'"},
    ]
    answer = book.edit(edits, run="changed")
    assert [row.cell for row in answer.outputs] == ["c0", "c1"]
    assert sum(len(row.text) for row in answer.outputs) < 4 * 8000 + 2 * 400
    assert answer.outputs[0].left_out
    assert "'short'" in answer.outputs[1].text
    assert answer.outputs[1].left_out == []
