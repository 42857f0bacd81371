"""A notebook that is open in an editor, through a real engine with a real kernel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import connect
from cellwright.errors import EditorSilent
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
def file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared_engine: Engine,  # noqa: ARG001  # each test has a notebook of its own
) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "nb.ipynb"
    path.write_bytes(make_content("python", PYTHON))
    return path


@pytest.fixture
def editor(file: Path) -> Iterator[LiveEditor]:
    found = LiveEditor(file)
    yield found
    found.close()


@pytest.fixture
def book(file: Path) -> Iterator[Any]:
    workspace = connect(actor="test:agent")
    assert workspace is not None
    with workspace:
        yield workspace.open(file.name)


def test_an_edit_happens_in_the_editor_and_is_saved_by_it(editor: LiveEditor, book: Any) -> None:
    editor.type("a", "x = 'typed'")
    answer = book.edit([{"op": "replace", "cell": "b", "source": "y = 2"}])
    assert (answer.host, answer.saved, answer.changed) == ("tab", True, True)
    assert [editor.find(cell)["source"] for cell in "ab"] == ["x = 'typed'", "y = 2"]
    saved = json.loads(editor.file.read_bytes())  # type: ignore[union-attr]
    assert ["".join(cell["source"]) for cell in saved["cells"][1:3]] == ["x = 'typed'", "y = 2"]
    # What the person typed is on record as theirs, beside the edit.
    assert [entry.kind for entry in book.log()] == ["edit"]


def test_a_run_lands_in_the_editor_while_it_runs_and_is_saved_at_its_end(
    editor: LiveEditor, book: Any, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.01)"
    editor.type("a", f"import os, time\nprint('early', flush=True)\n{wait}\nprint('late')")
    run = book.run(["a"], detach=0.0)
    wait_for(lambda: editor.find("a")["outputs"], "the first output in the editor")
    go.touch()
    assert book.workspace.attach(run.run).state == "done"
    assert "".join(editor.find("a")["outputs"][0]["text"]) == "early\nlate\n"
    assert editor.find("a")["execution_count"] == 1
    assert not editor.dirty
    assert b'"late\\n"' in editor.file.read_bytes()  # type: ignore[union-attr]


def test_when_the_editor_goes_in_the_middle_of_a_run_the_outputs_are_in_the_file(
    editor: LiveEditor, book: Any, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    editor.type("b", wait)
    book.edit([{"op": "replace", "cell": "a", "source": "print('first')"}])
    run = book.run(["a", "b"], detach=0.0)
    wait_for(lambda: "begun" in str(editor.find("b").get("outputs")), "the first output")
    editor.close()
    go.touch()
    assert book.workspace.attach(run.run).state == "done"
    cells = {cell["id"]: cell for cell in json.loads((tmp_path / "nb.ipynb").read_bytes())["cells"]}
    assert "".join(cells["a"]["outputs"][0]["text"]) == "first\n"
    assert "".join(cells["b"]["outputs"][0]["text"]) == "begun\n"
    answer = book.edit([{"op": "replace", "cell": "c", "source": "now a file"}])
    assert answer.host == "file"


def test_an_editor_that_does_not_answer_is_an_error_and_the_file_is_not_touched(
    editor: LiveEditor, book: Any
) -> None:
    before = editor.file.read_bytes()  # type: ignore[union-attr]
    editor.is_silent = True
    with pytest.raises(EditorSilent):
        book.edit([{"op": "replace", "cell": "a", "source": "behind its back"}])
    assert editor.file.read_bytes() == before  # type: ignore[union-attr]


def test_the_page_where_the_person_was_last_answers(
    editor: LiveEditor, book: Any, file: Path
) -> None:
    other = LiveEditor(file, focused=True)
    book.edit([{"op": "replace", "cell": "a", "source": "there"}])
    assert (other.find("a")["source"], editor.find("a")["source"] != "there") == ("there", True)
    other.close()
    wait_for(lambda: book.read().cells[1].source == editor.find("a")["source"], "the other page")


def change_on_disk(file: Path, **sources: str) -> None:
    """Change cells as git or another editor does: a new file in the place of the old one."""
    shape = json.loads(file.read_bytes())
    for cell in shape["cells"]:
        if cell["id"] in sources:
            cell["source"] = sources[cell["id"]]
    new = file.with_suffix(".new")
    new.write_text(json.dumps(shape, indent=1), encoding="utf-8")
    new.replace(file)


def test_what_another_program_writes_is_merged_into_the_editor(
    editor: LiveEditor, book: Any, file: Path
) -> None:
    editor.type("a", "typed = 1")
    change_on_disk(file, b="from_disk = 2")
    wait_for(lambda: editor.find("b")["source"] == "from_disk = 2", "the merge")
    assert (editor.find("a")["source"], editor.conflicts) == ("typed = 1", [])
    assert book.edit([{"op": "replace", "cell": "c", "source": "agent = 3"}]).saved
    saved = {cell["id"]: "".join(cell["source"]) for cell in json.loads(file.read_bytes())["cells"]}
    assert [saved[cell] for cell in "abc"] == ["typed = 1", "from_disk = 2", "agent = 3"]


def test_a_cell_that_both_sides_changed_stays_as_typed_and_both_versions_are_shown(
    editor: LiveEditor, file: Path
) -> None:
    editor.type("a", "mine")
    change_on_disk(file, a="theirs", b="only theirs")
    wait_for(lambda: editor.conflicts, "the conflict")
    (conflict,) = editor.conflicts
    assert conflict == {"cell": "a", "current": "mine", "other": "theirs"}
    assert [editor.find(cell)["source"] for cell in "ab"] == ["mine", "only theirs"]


def test_what_one_page_saves_comes_into_the_other_and_nothing_is_lost(
    editor: LiveEditor, book: Any, file: Path
) -> None:
    other = LiveEditor(file, focused=True)
    try:
        editor.type("a", "typed = 'in the first page'")
        book.edit([{"op": "replace", "cell": "b", "source": "agent = 1"}])
        wait_for(lambda: editor.find("b")["source"] == "agent = 1", "the first page to follow")
        assert (other.find("b")["source"], other.dirty) == ("agent = 1", False)
        # The person comes back to the first page, which has changes of its own.
        editor.say("presence", focused=True)
        assert book.edit([{"op": "replace", "cell": "c", "source": "agent = 2"}]).saved
        wanted = ["typed = 'in the first page'", "agent = 1", "agent = 2"]
        wait_for(lambda: [other.find(cell)["source"] for cell in "abc"] == wanted, "the other page")
        assert [editor.find(cell)["source"] for cell in "abc"] == wanted
        wait_for(lambda: not other.dirty, "the other page to be as the file is")
        saved = json.loads(file.read_bytes())["cells"]
        assert ["".join(cell["source"]) for cell in saved if cell["id"] in "abc"] == wanted
    finally:
        other.close()


def test_what_was_changed_in_a_page_is_saved_there_though_the_person_left_it(
    editor: LiveEditor, book: Any, file: Path
) -> None:
    other = LiveEditor(file, focused=True)
    # The person goes to the first page while the edit is on its way.
    other.typed = lambda: editor.say("presence", focused=True)
    answer = book.edit([{"op": "replace", "cell": "a", "source": "kept = 1"}])
    assert answer.saved
    assert b"kept = 1" in file.read_bytes()
    other.close()


def test_a_page_that_is_renamed_or_loaded_again_is_the_notebook_again(
    editor: LiveEditor, book: Any, file: Path
) -> None:
    # A page that is loaded again: the new one may be there before the old one is gone, or after.
    again = LiveEditor(file)
    editor.close()
    assert book.edit([{"op": "replace", "cell": "a", "source": "one"}]).host == "tab"
    assert again.find("a")["source"] == "one"
    new = file.with_name("new.ipynb")
    file.rename(new)
    again.say("gone")
    again.path, again.file = new.name, new
    again.say("register")
    moved = book.workspace.open(new.name)
    assert moved.edit([{"op": "replace", "cell": "a", "source": "two"}]).host == "tab"
    assert again.find("a")["source"] == "two"
    assert not file.exists()
    again.close()
    wait_for(
        lambda: moved.edit([{"op": "replace", "cell": "a", "source": "three"}]).host == "file",
        "the page to be gone",
    )


def test_a_kernel_reads_and_edits_its_notebook_through_the_page_that_runs_its_cell(
    editor: LiveEditor,
) -> None:
    before = editor.file.read_bytes()  # type: ignore[union-attr]
    target = "jupyter.notebook.manipulator.v1"
    editor.say("manipulate", kind="open", comm="k", target=target, data={}, cell="a")

    def ask(method: str, **params: Any) -> Any:
        data = {"method": method, "request_id": f"r{len(editor.replies)}", "params": params}
        editor.say("manipulate", kind="msg", comm="k", data=data, cell="a")
        return wait_for(
            lambda: next(
                (r for r in editor.replies if r["request_id"] == data["request_id"]), None
            ),
            method,
        )

    count = ask("get_cell_count")["result"]["count"]
    assert count == len(editor.cells)
    cell = {"cell_type": "code", "source": "made", "metadata": {}}
    assert ask("splice_cell_range", start=0, delete_count=0, cells=[cell])["status"] == "ok"
    assert (editor.cells[0]["source"], len(editor.cells)) == ("made", count + 1)
    assert editor.dirty
    assert editor.file.read_bytes() == before, "saving is the person's"  # type: ignore[union-attr]
    refused = ask("execute_cell_range", start=0, end=1)["error"]
    assert refused["code"] == "EXECUTION_FAILED"
    assert ask("no_such_method")["error"]["code"] == "UNKNOWN_METHOD"


def test_a_kernel_edits_the_page_that_runs_its_cell_though_the_person_goes_to_another(
    editor: LiveEditor, file: Path
) -> None:
    """Also if a save of this one was merged there, and if that one hears of the comm later."""
    other = LiveEditor(file)
    answer, places = editor.answer, iter("abc")
    opened: dict[str, Any] = {"comm": "k", "target": "jupyter.notebook.manipulator.v1", "data": {}}

    def answer_late(method: str, params: dict[str, Any]) -> Any:
        if method == "editor.read":
            other.say("presence", focused=True, active=next(places, None), selected=[])
            other.say("manipulate", kind="open", **opened)
        return answer(method, params)

    editor.answer = answer_late  # type: ignore[method-assign]
    editor.say("manipulate", kind="open", cell="a", **opened)
    cells = [{"cell_type": "code", "source": "made", "metadata": {}}]
    params = {"start": 0, "delete_count": 0, "cells": cells}
    data = {"method": "splice_cell_range", "request_id": "r", "params": params}
    editor.say("manipulate", kind="msg", comm="k", data=data, cell="a")
    wait_for(lambda: editor.replies, "the answer")
    assert editor.replies[0]["status"] == "ok"
    found = [[cell["source"] for cell in page.cells].count("made") for page in (editor, other)]
    assert found == [1, 0]
    other.close()


def test_what_was_written_while_the_page_was_away_is_merged_when_it_is_back(
    editor: LiveEditor, book: Any, file: Path
) -> None:
    book.edit([{"op": "replace", "cell": "b", "source": "b = 1"}])
    known = editor.hash
    editor.close()
    wait_for(
        lambda: book.edit([{"op": "replace", "cell": "c", "source": "c = 1"}]).host == "file",
        "the page to be gone",
    )
    # The page is the same as before, with what the person typed meanwhile.
    back = LiveEditor(file, content=editor)
    assert back.hash == known
    back.type("a", "typed = 1")
    wait_for(lambda: back.find("c")["source"] == "c = 1", "the merge")
    assert book.edit([{"op": "replace", "cell": "b", "source": "b = 2"}]).saved
    saved = {cell["id"]: "".join(cell["source"]) for cell in json.loads(file.read_bytes())["cells"]}
    assert [saved[cell] for cell in "abc"] == ["typed = 1", "b = 2", "c = 1"]
    back.close()
