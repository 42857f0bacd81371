"""Cells that a person runs in a page, and what becomes of them when the page goes."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import person_runs
from cellwright.engine.editors import Editors
from cellwright.errors import KernelCannot
from cellwright.kernel.events import Finished, Started
from cellwright.outputs.events import ErrorEvent, StreamEvent
from cellwright.workspace.caller import Caller
from tests.kernels.dialects import SCRIPT
from tests.unit.engine.scripted_editor import EditorConnection, ScriptedEditor
from tests.unit.workspace.memory import MemoryKernels, make_hub
from tests.unit.workspace.stages import make_content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

KERNEL = {"id": "k", "server": "http://localhost:1", "token": "t"}


class Kernel:
    """A kernel that is listened to, and says what a test says."""

    def __init__(self) -> None:
        self.process = "one"
        self.is_open = False
        self.interrupts = 0
        self.say: Any = None

    def follow(self, _: object, on_event: Any) -> Kernel:
        self.say = on_event
        return self

    async def open(self) -> None:
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False

    async def interrupt(self) -> None:
        self.interrupts += 1

    def begin(self, request: str, count: int, *texts: str) -> None:
        self.say(request, Started(count))
        for text in texts:
            self.say(request, StreamEvent("stdout", text))


class Room:
    """An engine's editors, with a notebook `nb.ipynb`."""

    def __init__(self, path: Path, kernel: Kernel, hub: Any) -> None:
        self.path, self.kernel, self.hub = path, kernel, hub
        self.editors = Editors(hub)
        self.caller = Caller(path.parent, cwd=str(path.parent), actor="lab:ada", hub=hub)

    async def open_page(self, name: str = "nb.ipynb") -> Page:
        page = Page(self, (self.path.parent / name))
        await page.say("register", kernel=KERNEL)
        return page

    def outputs(self, cell: str) -> tuple[str, int | None]:
        """What a cell of the file has printed, and its count."""
        cells = json.loads(self.path.read_bytes())["cells"]
        found = next(each for each in cells if each["id"] == cell)
        text = "".join("".join(each.get("text", "!")) for each in found["outputs"])
        return text, found["execution_count"]

    async def end_runs(self) -> list[tuple[str, str, int | None, str]]:
        """Wait until nothing runs, and return what is on record."""
        for run in self.hub.runs.list():
            await self.hub.runs.get(run.run).wait(10)
        records = self.hub.journal.executions(str(self.path))
        return [(run.cell, run.status, run.count, run.actor) for run in records]


class Page:
    """A page that has the notebook open."""

    def __init__(self, room: Room, path: Path) -> None:
        self.room, self.name = room, path.name
        self.editor = ScriptedEditor(path.read_bytes(), path)
        self.connection: Any = EditorConnection(self.editor)

    async def say(self, method: str, **params: Any) -> Any:
        params = {"path": self.name, **params}
        room = self.room
        return await room.editors.handle(self.connection, room.caller, f"editor.{method}", params)

    async def run(self, cell: str, request: str) -> None:
        """Do what a page does when the person runs a cell."""
        source = self.editor.find(cell)["source"]
        await self.say("executed", cell=cell, status="pending")
        about = {"cell": cell, "source": source, "request": request}
        await self.say("executed", status="pending", **about)

    async def close(self) -> None:
        """Close it, without a word."""
        self.connection.is_closed = True
        await self.room.editors.forget(self.connection)


@asynccontextmanager
async def make_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    kernel = Kernel()
    monkeypatch.setattr(person_runs, "_follow", kernel.follow)
    path.write_bytes(make_content("script", SCRIPT))  # noqa: ASYNC240  # small, and before all else
    hub = make_hub(MemoryKernels(), loop=asyncio.get_running_loop())
    try:
        yield Room(path, kernel, hub)
    finally:
        await hub.end_kernels()
        hub.release_resources()


async def test_what_comes_after_the_page_was_closed_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page = await room.open_page()
        await page.run("b", "r1")
        room.kernel.begin("r1", 4, "one\n")
        await page.run("c", "r2")  # it waits behind the first
        await page.close()
        assert room.hub.list_active_cells(str(room.path)) == {"b": "running", "c": "pending"}
        room.kernel.say("r1", StreamEvent("stdout", "two\n"))
        room.kernel.say("r1", Finished("ok", 4))
        room.kernel.begin("r2", 5)
        room.kernel.say("r2", ErrorEvent("ValueError", "wrong"))
        room.kernel.say("r2", Finished("error", 5))
        assert sorted(await room.end_runs()) == [
            ("b", "ok", 4, "lab:ada"),
            ("c", "error", 5, "lab:ada"),
        ]
        assert room.outputs("b") == ("one\ntwo\n", 4)
        assert room.outputs("c") == ("!", 5)
        await asyncio.sleep(0)
        assert not room.kernel.is_open
        assert not room.hub.leases.owns(str(room.path))


async def test_a_kernel_that_speaks_before_its_page_loses_no_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page = await room.open_page()
        room.kernel.begin("r1", 4, "one\n")
        await page.run("b", "r1")
        room.kernel.say("r1", Finished("ok", 4))  # and the page has not said so yet
        await page.close()
        await room.end_runs()
        assert room.outputs("b") == ("one\n", 4)


async def test_what_a_page_has_shown_to_its_end_is_the_pages_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page, before = await room.open_page(), room.path.read_bytes()
        await page.run("b", "r1")
        room.kernel.begin("r1", 4, "one\n")
        room.kernel.say("r1", Finished("ok", 4))
        about = {"source": page.editor.find("b")["source"], "count": 4, "life": "one"}
        await page.say("executed", cell="b", status="ok", **about)
        await page.close()
        assert await room.end_runs() == [("b", "ok", 4, "lab:ada")]
        assert room.path.read_bytes() == before


async def test_a_notebook_that_is_opened_again_gets_what_came_meanwhile_and_then_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page = await room.open_page()
        await page.run("b", "r1")
        room.kernel.begin("r1", 4, "one\n")
        await page.close()
        later = await room.open_page()
        room.kernel.say("r1", StreamEvent("stdout", "two\n"))
        room.kernel.say("r1", Finished("ok", 4))
        await room.end_runs()
        found = later.editor.find("b")
        assert ("".join(found["outputs"][0]["text"]), found["execution_count"]) == ("one\ntwo\n", 4)
        assert room.outputs("b") == ("one\ntwo\n", 4)
        assert not later.editor.dirty


async def test_a_page_that_comes_back_keeps_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection was broken, and the page still shows what the cell says."""
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page = await room.open_page()
        await page.run("b", "r1")
        await page.close()
        back = await room.open_page()
        await back.run("b", "r1")
        room.kernel.begin("r1", 4, "one\n")
        await room.end_runs()
        assert back.editor.find("b")["outputs"] == []
        assert not any(method == "editor.land" for method, _ in back.editor.asked)
        await back.say("gone", renamed="other.ipynb")  # renamed, it is still the page's
        assert not any(not run.ended for run in room.hub.runs.list())


async def test_of_a_cell_that_is_run_twice_the_second_run_lands_and_both_are_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page = await room.open_page()
        await page.run("b", "r1")
        room.kernel.begin("r1", 4, "one\n")
        await page.run("b", "r2")
        await page.close()
        room.kernel.say("r1", Finished("ok", 4))
        room.kernel.begin("r2", 5, "two\n")
        room.kernel.say("r2", Finished("ok", 5))
        assert sorted(await room.end_runs()) == [
            ("b", "ok", 4, "lab:ada"),
            ("b", "ok", 5, "lab:ada"),
        ]
        assert room.outputs("b") == ("two\n", 5)


async def test_a_cell_that_the_kernel_refused_leaves_the_notebook_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page, before = await room.open_page(), room.path.read_bytes()
        await page.run("b", "r1")
        await page.close()
        room.kernel.say("r1", Finished("ok"))
        assert await room.end_runs() == []
        assert room.path.read_bytes() == before


async def test_cancelling_it_interrupts_the_kernel_and_ending_the_engine_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        page = await room.open_page()
        for cell, request in (("b", "r1"), ("c", "r2")):
            await page.run(cell, request)
        room.kernel.begin("r1", 4, "one\n")
        await page.close()
        (first,) = [run for run in room.hub.runs.list() if "b" in run.cells]
        run = room.hub.runs.get(first.run)
        run.cancel()
        while not room.kernel.interrupts:
            await asyncio.sleep(0)
        room.kernel.say("r1", Finished("cancelled", 4))
        await run.wait(10)
        assert room.outputs("b") == ("one\n", 4)
        room.kernel.begin("r2", 5, "said\n")
        await room.hub.end_kernels()
        assert room.kernel.interrupts == 1
        assert room.outputs("c")[0] == "said\n"


async def test_another_kernel_than_that_of_the_page_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_room(tmp_path / "nb.ipynb", monkeypatch) as room:
        await room.open_page()
        with pytest.raises(KernelCannot):
            await room.hub.sessions.open_notebook(
                str(room.path),
                room.caller,
                kernel="another",
                notebook_kernel="python3",
                address=room.hub._hosts[str(room.path)].kernel(),
            )
