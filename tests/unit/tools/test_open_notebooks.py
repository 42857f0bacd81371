"""What a model is told about notebooks that a person has open, and which one it means then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cellwright import AsyncWorkspace
from cellwright.engine.live import LiveHost
from cellwright.tools.tool import ToolCaller
from cellwright.workspace.hosts.host import Presence
from tests.kernels.dialects import SCRIPT
from tests.unit.engine.scripted_editor import open_in_editor
from tests.unit.tools.conftest import Call
from tests.unit.workspace.memory import MemoryKernels, make_hub
from tests.unit.workspace.stages import make_content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Desk:
    """A folder with `first.ipynb`, `second.ipynb` and `closed.ipynb`; the person can go about."""

    def __init__(self, folder: Path) -> None:
        self.hub = make_hub(MemoryKernels())
        self.folder = folder
        content = make_content("script", SCRIPT)
        for name in ("first", "second"):
            open_in_editor(self.hub, folder / f"{name}.ipynb", content)
        (folder / "closed.ipynb").write_bytes(content)

    def go_to(self, name: str, when: float, **presence: Any) -> None:
        host = self.hub._hosts[str(self.folder / f"{name}.ipynb")]
        assert isinstance(host, LiveHost)
        (editor,) = host.editors
        editor.presence, editor.focused = Presence(focused=True, **presence), when


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    found = Desk(tmp_path)
    yield found
    found.hub.close()


@pytest.fixture
async def call(desk: Desk) -> AsyncIterator[Call]:
    folder = desk.folder
    async with AsyncWorkspace(folder, cwd=str(folder), hub=desk.hub) as workspace:
        yield Call(ToolCaller(workspace=workspace))


async def test_lists_and_reads_say_where_the_person_is(desk: Desk, call: Call) -> None:
    desk.go_to("first", 1.0, active="b", selected=("b", "c"), mode="command")
    text = (await call("notebook_list")).text
    assert text.count("open in an editor") == 2
    found = await call("notebook_read", path="first.ipynb")
    said = "It is open in an editor; the person is at cell b; also selected: c"
    assert said in found.text
    assert found.data["person"]["selected"] == ["b", "c"]
    desk.go_to("first", 2.0, active="b", mode="edit")
    assert "the person edits cell b" in (await call("notebook_read", path="first.ipynb")).text
    assert "editor" not in (await call("notebook_read", path="closed.ipynb")).text


async def test_a_tool_without_a_path_means_the_notebook_where_the_person_was_last(
    desk: Desk, call: Call
) -> None:
    desk.go_to("first", 1.0, active="a", mode="edit")
    desk.go_to("second", 2.0, active="b", selected=("b", "c"))
    await call("UpdateNotebookCell", "positron", cellId="c", content="print new")
    assert b"print new" in (desk.folder / "second.ipynb").read_bytes()
    found = await call("GetNotebookCells", "positron")
    assert [cell["selectionStatus"] for cell in found.data["cells"]] == [
        *("unselected", "unselected", "selected", "selected", "unselected")
    ]
    desk.go_to("first", 3.0, active="a", mode="edit")
    found = await call("GetNotebookCells", "positron", cellIds=["a"])
    assert found.data["cells"][0]["selectionStatus"] == "active"
    count = await call("get_cell_count", "manipulator")
    assert "5" in count.text


async def test_without_an_open_notebook_there_is_no_active_one(desk: Desk, call: Call) -> None:
    for real in list(desk.hub._hosts):
        desk.hub.remove_host(real)
    found = await call("GetNotebookCells", "positron")
    assert (found.is_error, found.data["code"]) == (True, "NO_ACTIVE_NOTEBOOK")
