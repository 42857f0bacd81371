"""Outside changes of a file whose notebook is open: what the person saved stays saved."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.document.edits import SetOutputs
from cellwright.engine.live import LiveHost
from cellwright.engine.outside import OutsideChanges
from cellwright.errors import EditorLost, EditorUnfit
from tests.kernels.dialects import SCRIPT
from tests.unit.engine.scripted_editor import ClosedNotebook, ScriptedEditor, open_in_editor
from tests.unit.workspace.memory import MemoryKernels, make_hub
from tests.unit.workspace.stages import make_content

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.document.change import Change
    from cellwright.document.notebook import Notebook


def test_a_file_is_read_while_no_one_else_can_move_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older file, merged into what was saved after it was read, took the person's edit back."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors
    outside = editor.outside
    read_file, held = OutsideChanges._read_file, list[bool]()

    def read_and_look(self: OutsideChanges) -> Any:
        held.append(editor.guard._is_owned())  # type: ignore[attr-defined]
        return read_file(self)

    monkeypatch.setattr(OutsideChanges, "_read_file", read_and_look)
    shape = json.loads(path.read_bytes())
    shape["cells"][3]["source"] = "from git"
    path.write_text(json.dumps(shape), encoding="utf-8")
    page.type("b", "typed")
    outside.merge_new()
    assert held == [True]
    assert (page.find("b")["source"], page.find("c")["source"]) == ("typed", "from git")
    hub.close()


def test_what_a_page_saved_is_the_base_though_the_file_was_replaced_before_anyone_looked(
    tmp_path: Path,
) -> None:
    """Saved, replaced on disk and typed in again, all before the engine looks: nothing asks."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors
    host.read()
    since = page.version
    page.type("b", "saved")
    assert page.save()
    shape = json.loads(path.read_bytes())
    for cell in shape["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)  # as Jupyter saves it
    saved = json.dumps(shape, indent=1, sort_keys=True).encode() + b"\n"
    page.hash = hashlib.sha256(saved).hexdigest()
    page.find("b")["metadata"]["trusted"] = True  # which Jupyter does not save
    news = {"since": since, **page.answer("editor.read", {"since": since})}
    shape["cells"][3]["source"] = "from git"
    path.write_text(json.dumps(shape), encoding="utf-8")
    page.type("b", "typed since")
    editor.outside.note_saved(news)
    editor.outside.merge_new()
    assert (page.find("b")["source"], page.find("c")["source"]) == ("typed since", "from git")
    assert page.conflicts == []
    assert page.save(), "the page knows the file that was merged"
    hub.close()


def test_what_a_page_saved_is_the_base_though_it_was_changed_while_it_was_being_saved(
    tmp_path: Path,
) -> None:
    """JupyterLab notes the language of a new kernel then: nobody knew what it had saved."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors
    page.type("b", "saved")
    page.after_write = lambda: page.type("b", "typed")
    news = page.answer("editor.save", {})["news"]
    page.after_write = lambda: None
    shape = json.loads(path.read_bytes())
    shape["cells"][3]["source"] = "from git"
    path.write_text(json.dumps(shape), encoding="utf-8")
    editor.outside.note_saved(news)
    editor.outside.merge_new()
    assert (page.find("b")["source"], page.find("c")["source"]) == ("typed", "from git")
    assert page.conflicts == []
    assert page.save(), "the page knows the file that was merged"
    hub.close()


def test_a_file_that_has_nothing_new_is_known_in_the_step_in_which_that_is_found(
    tmp_path: Path,
) -> None:
    """What was said of it in a message of its own could come after a save, and be about the past."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors
    page.type("b", "the same")
    shape = json.loads(path.read_bytes())
    shape["cells"][2]["source"] = "the same"
    path.write_text(json.dumps(shape), encoding="utf-8")
    page.asked.clear()
    editor.outside.merge_new()
    assert [method for method, _ in page.asked if method == "editor.merged"] == []
    assert page.save(), "the page knows the file"
    assert page.conflicts == []
    hub.close()


def test_an_agent_does_not_save_over_a_file_that_could_not_be_merged(tmp_path: Path) -> None:
    """JupyterLab would ask the person, who has not saved anything."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    page.type("b", "typed")
    page.hash = "of a file that nobody has any more"
    shape = json.loads(path.read_bytes())
    shape["cells"][3]["source"] = "from git"
    path.write_text(json.dumps(shape), encoding="utf-8")
    written = path.read_bytes()
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace:
        book = workspace.open("nb.ipynb")
        for source in ("mine", "mine again"):
            answer = book.edit([{"op": "replace", "cell": "a", "source": source}])
            assert (answer.saved, len(answer.warnings)) == (False, 1)
            assert page.find("a")["source"] == source
        assert path.read_bytes() == written
        page.hash = hashlib.sha256(written).hexdigest()  # the person has chosen what to keep
        assert book.edit([{"op": "replace", "cell": "a", "source": "saved"}]).saved
    assert "editor.save" in [method for method, _ in page.asked]
    hub.close()


def test_an_agent_does_not_bring_back_a_file_that_was_deleted(tmp_path: Path) -> None:
    """The person may be closing its tab right now; if not, they may save it anew."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace:
        book = workspace.open("nb.ipynb")
        path.unlink()
        answer = book.edit([{"op": "replace", "cell": "a", "source": "mine"}])
        assert (answer.host, answer.saved, len(answer.warnings)) == ("tab", False, 1)
        assert page.find("a")["source"] == "mine"
        assert not path.exists()
        page.answer("editor.save", {})
        assert book.edit([{"op": "replace", "cell": "a", "source": "saved"}]).saved
    hub.close()


@pytest.mark.parametrize("saver", ["person", "agent"])
def test_what_a_program_writes_before_a_save_has_read_the_hash_reaches_the_page(
    tmp_path: Path, saver: str
) -> None:
    """JupyterLab takes the hash of the file for that of its save: it would write over the change."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors

    def write_from_git() -> None:
        shape = json.loads(path.read_bytes())
        shape["cells"][3]["source"] = "from git"
        path.write_text(json.dumps(shape), encoding="utf-8")

    page.after_write = write_from_git
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace:
        if saver == "agent":
            book = workspace.open("nb.ipynb")
            assert book.edit([{"op": "replace", "cell": "b", "source": "mine"}]).saved
        else:
            host.read()
            page.type("b", "mine")
            assert page.save()
            host.merge_outside()  # before the page can say that it has saved
            since = page.told
            news = {"since": since, **page.answer("editor.read", {"since": since})}
            editor.outside.note_saved(news)
            host.merge_outside()
    page.after_write = lambda: None
    assert (page.find("b")["source"], page.find("c")["source"]) == ("mine", "from git")
    page.type("a", "typed")
    assert page.save(), "it has what the file has"
    editor.outside.merge_new()
    here = [cell["source"] for cell in json.loads(path.read_bytes())["cells"]]
    assert here == [cell["source"] for cell in page.cells]
    assert {"mine", "from git", "typed"} <= set(here)
    assert page.conflicts == []
    hub.close()


@pytest.mark.parametrize("is_forgotten", [False, True])
@pytest.mark.parametrize("more", ["", "typed since"])
def test_what_a_page_says_of_a_save_counts_though_it_was_read_in_between(
    tmp_path: Path, more: str, is_forgotten: bool
) -> None:
    """Then nobody knew what the page had saved, and the person was asked about git's change."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors
    assert editor.outside is not None
    host.read()
    since = page.told
    page.type("b", "mine")
    assert page.save()
    news = {"since": since, **page.answer("editor.read", {"since": since})}
    if more:
        page.type("a", more)
    if is_forgotten:  # since an edit did not become what it was to become
        editor.document.forget()
    host.read()  # by a run, before anyone has looked at what the page says
    editor.outside.note_saved(news)
    shape = json.loads(path.read_bytes())
    shape["cells"][3]["source"] = "from git"
    path.write_text(json.dumps(shape), encoding="utf-8")
    page.type("a", "typed")
    host.merge_outside()
    assert [page.find(cell)["source"] for cell in "abc"] == ["typed", "mine", "from git"]
    assert page.save(), "it has what the file has"
    assert page.conflicts == []
    # What comes even later is about a file that the page does not have any more.
    base = editor.outside._base
    editor.outside.note_saved(news)
    assert editor.outside._base is base
    hub.close()


def test_what_a_page_says_of_a_save_counts_for_an_agent_though_the_file_was_looked_at_before(
    tmp_path: Path,
) -> None:
    """The person saves, git writes, the person types, the engine looks; only then come the news."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors
    assert editor.outside is not None
    host.read()
    since = page.told
    page.type("b", "mine")
    assert page.save()
    shape = json.loads(path.read_bytes())
    for cell in shape["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)  # as Jupyter saves it
    saved = json.dumps(shape, indent=1, sort_keys=True).encode() + b"\n"
    page.hash = hashlib.sha256(saved).hexdigest()
    news = {"since": since, **page.answer("editor.read", {"since": since})}
    shape["cells"][3]["source"] = "from git"
    path.write_text(json.dumps(shape), encoding="utf-8")
    page.type("a", "typed")
    host.merge_outside()  # nobody knows yet what page and file agreed on
    assert page.find("c")["source"] != "from git"
    editor.outside.note_saved(news)
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace:
        edit = {"op": "insert", "source": "by the agent"}
        assert workspace.open("nb.ipynb").edit([edit]).saved, "the page is asked which to keep"
    assert [page.find(cell)["source"] for cell in "abc"] == ["typed", "mine", "from git"]
    assert page.conflicts == []
    hub.close()


@pytest.mark.parametrize("asked", ["editor.read", "editor.change"])
def test_a_page_that_has_just_closed_the_notebook_leaves_it_to_the_file(
    tmp_path: Path, asked: str
) -> None:
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    answer = page.answer

    def refuse(method: str, params: dict[str, Any]) -> Any:
        if method == asked:
            raise ClosedNotebook
        return answer(method, params)

    page.answer = refuse  # type: ignore[method-assign]
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace:
        changed = workspace.open("nb.ipynb").edit(
            [{"op": "replace", "cell": "a", "source": "in the file"}]
        )
    assert (changed.host, changed.saved) == ("file", True)
    assert path.read_bytes().count(b"in the file") == 1
    assert page.find("a")["source"] != "in the file"
    hub.close()


def test_an_edit_whose_page_is_gone_before_it_is_saved_is_not_called_saved(tmp_path: Path) -> None:
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    before = path.read_bytes()
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    connection: Any = host.editors[0].connection

    def close() -> None:
        connection.is_closed = True  # after this request is answered

    page.typed = close
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace, pytest.raises(EditorLost):
        workspace.open("nb.ipynb").edit([{"op": "replace", "cell": "a", "source": "lost"}])
    assert path.read_bytes() == before
    hub.close()


def test_a_page_that_goes_while_it_is_asked_is_not_the_notebook_any_more(tmp_path: Path) -> None:
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    connection: Any = host.editors[0].connection
    answer = page.answer

    def go(*_: object) -> Any:
        connection.is_closed = True
        raise ConnectionResetError

    page.answer = go  # type: ignore[method-assign]
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace:
        book = workspace.open("nb.ipynb")
        assert [cell.handle for cell in book.read().cells][:2] == ["intro", "a"]
        connection.is_closed, page.answer = False, answer  # type: ignore[method-assign]
        page.answer = go  # type: ignore[method-assign]
        changed = book.edit([{"op": "replace", "cell": "a", "source": "in the file"}])
    assert (changed.saved, b"in the file" in path.read_bytes()) == (True, True)
    hub.close()


def test_a_page_without_changes_takes_what_the_file_has_become_since_it_was_read(
    tmp_path: Path,
) -> None:
    """What it has read was an early save of a cell that runs, which is not on record."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    (editor,) = host.editors
    page.hash = "of an early save"
    shape = json.loads(path.read_bytes())
    shape["cells"][3]["source"] = "newer"
    path.write_text(json.dumps(shape), encoding="utf-8")
    editor.outside = OutsideChanges(host, editor)
    editor.outside.merge_new()
    assert page.find("c")["source"] == "newer"
    assert not page.dirty
    hub.close()


def test_outputs_from_the_file_are_taken_though_another_program_writes_text_otherwise(
    tmp_path: Path,
) -> None:
    """One string or lines: such outputs looked as if the page had changed them, and stayed."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    shape = json.loads(make_content("script", SCRIPT))
    cell = next(each for each in shape["cells"] if each["id"] == "b")
    stream = {"output_type": "stream", "name": "stdout", "text": "1\n2\n"}
    cell |= {"outputs": [stream], "execution_count": 1}
    page = open_in_editor(hub, path, json.dumps(shape).encode())
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    host.merge_outside()
    stream["text"], cell["source"], cell["execution_count"] = "3\n4\n", "changed", 2
    path.write_text(json.dumps(shape), encoding="utf-8")
    host.merge_outside()
    found = page.find("b")
    assert (found["source"], found["execution_count"]) == ("changed", 2)
    assert "".join(found["outputs"][0]["text"]) == "3\n4\n"
    assert not page.dirty
    hub.close()


def test_what_is_typed_while_a_file_is_merged_is_still_to_be_saved(tmp_path: Path) -> None:
    """The page was clean when the engine looked; then it was called saved with what was typed."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    shape = json.loads(path.read_bytes())
    shape["cells"][3]["source"] = "from git"
    path.write_text(json.dumps(shape), encoding="utf-8")

    def type_once() -> None:
        page.typed = lambda: None
        page.type("b", "typed")

    page.typed = type_once
    host.merge_outside()
    assert (page.find("b")["source"], page.find("c")["source"]) == ("typed", "from git")
    assert page.dirty
    assert page.save()
    assert b"typed" in path.read_bytes()
    assert not page.dirty
    shape["cells"] = json.loads(path.read_bytes())["cells"][:-1]
    path.write_text(json.dumps(shape), encoding="utf-8")
    host.merge_outside()
    assert len(page.cells) == len(shape["cells"])
    assert not page.dirty, "nobody typed: it is as the file is"
    hub.close()


def land_lines(host: LiveHost, counts: list[int], line: str = "line €\n") -> None:
    """Land what a cell says, again and again, as a run does: each from before its first output."""
    start = host.read().state
    landing = host.begin_landing(start)
    for count in counts:

        def make(notebook: Notebook, count: int = count) -> Change:
            notebook.state = start
            stream = {"output_type": "stream", "name": "stdout", "text": line * count}
            return notebook.apply([SetOutputs("b", [stream], None)])

        landing.land(make, is_last=False)


def list_landings(page: ScriptedEditor) -> list[dict[str, Any]]:
    return [params["edits"][0] for method, params in page.asked if method == "editor.land"]


def test_of_a_stream_that_grows_only_what_is_new_travels(tmp_path: Path) -> None:
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    land_lines(host, [1, 3, 3, 10])
    edits = list_landings(page)
    assert [edit["edit"] for edit in edits] == ["outputs", "grow", "grow", "grow"]
    assert [edit["text"] for edit in edits[1:]] == ["line €\n" * 2, "", "line €\n" * 7]
    assert "".join(page.find("b")["outputs"][0]["text"]) == "line €\n" * 10
    answers = [
        page.seen[params["request"]] for method, params in page.asked if method == "editor.land"
    ]
    assert all(not answer["cells"] for answer in answers[1:]), "nor does it travel back"
    # What the engine believes of the page is so.
    known = json.loads(host.editors[0].document.build().to_bytes())
    host.editors[0].document.forget()
    assert json.loads(host.read().to_bytes()) == known
    hub.close()


def test_a_long_text_lands_in_pieces_so_that_the_page_does_not_stand_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellwright.engine.live.LONGEST_PIECE", 100)
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    line = "€ 😀\n"
    land_lines(host, [70, 71, 200], line=line)
    edits = list_landings(page)
    assert [edit["edit"] for edit in edits] == ["outputs", *["grow"] * 9]
    lengths = [len(edit.get("text", "")) for edit in edits[1:]]
    assert lengths == [100, 80, len(line), 100, 100, 100, 100, 100, 16]
    assert edits[1]["at"] == 125, "a smiley has two units"
    assert "".join(page.find("b")["outputs"][0]["text"]) == line * 200
    known = json.loads(host.editors[0].document.build().to_bytes())
    host.editors[0].document.forget()
    assert json.loads(host.read().to_bytes()) == known
    hub.close()


@pytest.mark.parametrize("end", ["refuses", "is gone"])
def test_a_page_that_takes_only_the_first_pieces_of_a_text_gets_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """All of it again, or in the file if it has closed the notebook."""
    monkeypatch.setattr("cellwright.engine.live.LONGEST_PIECE", 100)
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    answer, landings = page.answer, []

    def stop_at_the_third(method: str, params: dict[str, Any]) -> Any:
        if method == "editor.land":
            landings.append(params["edits"][0]["edit"])
            if len(landings) == 3:
                if end == "is gone":
                    raise ClosedNotebook
                return {**answer("editor.read", params), "applied": False}  # the person runs it
        return answer(method, params)

    page.answer = stop_at_the_third  # type: ignore[method-assign]
    land_lines(host, [100])
    if end == "refuses":
        assert landings == ["outputs", "grow", "grow", "outputs"]
        assert "".join(page.find("b")["outputs"][0]["text"]) == "line €\n" * 100
    else:
        assert landings == ["outputs", "grow", "grow"]
        there = {cell["id"]: cell for cell in json.loads(path.read_bytes())["cells"]}
        assert "".join(there["b"]["outputs"][0]["text"]) == "line €\n" * 100
    hub.close()


def test_an_editor_that_has_not_added_all_is_found_out_and_gets_all_of_it(tmp_path: Path) -> None:
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    apply = page._apply_one

    def drop_some(edit: str, cell: Any = None, **facts: Any) -> None:
        apply(edit, cell, **{**facts, "text": facts["text"][:-3]} if edit == "grow" else facts)

    page._apply_one = drop_some  # type: ignore[method-assign]
    land_lines(host, [1, 5])
    assert [edit["edit"] for edit in list_landings(page)] == ["outputs", "grow", "outputs"]
    assert "".join(page.find("b")["outputs"][0]["text"]) == "line €\n" * 5
    hub.close()


def test_a_text_that_moves_the_cursor_of_a_page_lands_whole(tmp_path: Path) -> None:
    """What a page makes of it, the page alone knows."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    land_lines(host, [1, 2], line="10 %\r")
    assert [edit["edit"] for edit in list_landings(page)] == ["outputs", "outputs"]
    hub.close()


def test_an_editor_that_puts_cells_in_another_order_is_found_out(tmp_path: Path) -> None:
    """A page once put two new cells in the wrong order, and the edit was called done."""
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    put = page._put
    page._put = lambda cell, _: put(cell, "a")  # type: ignore[method-assign]
    edits = [{"op": "insert", "source": word, "after": "a"} for word in ("one", "two")]
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace, pytest.raises(EditorUnfit):
        workspace.open("nb.ipynb").edit(edits)
    hub.close()


@pytest.mark.parametrize("how", ["active", "running"])
def test_a_cell_where_the_person_is_or_that_they_run_is_not_moved_but_its_neighbours_are(
    tmp_path: Path, how: str
) -> None:
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    page = open_in_editor(hub, path, make_content("script", SCRIPT))
    host = hub._hosts[str(path)]
    assert isinstance(host, LiveHost)
    editor = host.editors[0]
    if how == "active":
        editor.presence = editor.presence.replace(active="a")
    else:
        editor.running["a"] = "running"
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub) as workspace:
        workspace.open("nb.ipynb").edit([{"op": "move", "cell": "a", "at": 4}])
    changes = [params for method, params in page.asked if method == "editor.change"]
    edits = [(edit["edit"], edit["cell"]) for params in changes for edit in params["edits"]]
    assert edits == [("move", "b"), ("move", "c")]
    assert [cell["id"] for cell in page.cells] == ["intro", "b", "c", "a", "bad"]
    hub.close()
