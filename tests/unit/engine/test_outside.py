"""Outside changes of a file whose notebook is open: what the person saved stays saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.engine.live import LiveHost
from cellwright.engine.outside import OutsideChanges
from cellwright.errors import EditorLost
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
