"""Outside changes of a file whose notebook is open: what the person saved stays saved."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.engine.live import LiveHost
from cellwright.engine.outside import OutsideChanges
from cellwright.errors import EditorLost, EditorUnfit
from tests.kernels.dialects import SCRIPT
from tests.unit.engine.scripted_editor import open_in_editor
from tests.unit.workspace.memory import MemoryKernels, make_hub
from tests.unit.workspace.stages import make_content

if TYPE_CHECKING:
    from pathlib import Path


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
    (edits,) = [params["edits"] for method, params in page.asked if method == "editor.change"]
    assert [(edit["edit"], edit["cell"]) for edit in edits] == [("move", "b"), ("move", "c")]
    assert [cell["id"] for cell in page.cells] == ["intro", "b", "c", "a", "bad"]
    hub.close()
