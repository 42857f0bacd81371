"""What the engine answers its clients, with the engine in this process and no kernel."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import service as service_module
from cellwright.engine import wire
from cellwright.errors import InvalidCall
from cellwright.workspace.api.requests import VERBS
from cellwright.workspace.hub import Hub
from tests.unit.cli import samples
from tests.unit.engine.lines import Line, serving
from tests.unit.workspace.memory import MemoryKernels

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


def code(answer: dict[str, Any]) -> str | None:
    return answer["error"]["data"]["code"] if "error" in answer else None


REPLACE = {"op": "replace", "cell": "sum", "source": "total + 1"}

# --- The greeting --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"wire": "1"},
        {"wire": None},
        {"cwd": 5},
        {"cwd": "not/absolute", "folder": None},
        {"cwd": "/\0", "folder": None, "root": 5},
        {"mode": None},
        {"actor": ["x"]},
        {"environ": {"A": 1}},
        {"environ": []},
        {"folder": "here"},
    ],
)
async def test_a_greeting_that_is_wrong_is_refused(wrong: dict[str, Any], places: Path) -> None:
    async with serving(places) as (service, connect):
        client = await connect()
        assert code(await client.greet(**wrong)) == "INVALID_CALL"
        assert code(await client.call("list")) == "INVALID_CALL"
        assert service.status()["clients"] == []


async def test_nothing_but_status_is_answered_before_the_greeting(places: Path) -> None:
    async with serving(places) as (_, connect):
        client = await connect()
        for verb in (*VERBS, "nonsense"):
            assert code(await client.call(verb, path="nb.ipynb")) == "INVALID_CALL"
        assert (await client.call("status"))["result"]["clients"] == []
        assert code(await client.greet()) is None
        assert code(await client.greet()) == "INVALID_CALL"
        assert code(await client.greet(mode="god")) == "INVALID_CALL"


async def test_an_unknown_mode_is_refused(places: Path) -> None:
    async with serving(places) as (_, connect):
        client = await connect()
        assert code(await client.greet(mode="god")) == "INVALID_EDIT"


async def test_a_client_that_sees_other_files_is_refused_and_not_confused(places: Path) -> None:
    async with serving(places) as (service, connect):
        client = await connect()
        answer = await client.greet(folder=[1, 2])
        assert code(answer) == "ENGINE_DRAINING"
        assert "other files" in answer["error"]["message"]
        assert not service.draining


# --- Versions ------------------------------------------------------------------------------------


async def test_a_newer_client_drains_it_and_an_older_does_not(places: Path) -> None:
    async with serving(places) as (service, connect):
        first, old, new, other = [await connect() for _ in range(4)]
        await first.greet()
        assert code(await old.greet(wire=wire.VERSION - 1)) == "ENGINE_DRAINING"
        assert service.status()["draining"] is None
        assert code(await new.greet(wire=wire.VERSION + 1)) == "ENGINE_DRAINING"
        assert str(wire.VERSION + 1) in service.status()["draining"]
        # Nobody new; whoever is here goes on, but begins no session.
        assert code(await other.greet()) == "ENGINE_DRAINING"
        assert code(await first.call("read", path="nb.ipynb")) is None
        assert code(await first.call("eval", cells=["1"])) == "ENGINE_DRAINING"
        assert code(await first.call("run", path="nb.ipynb")) == "ENGINE_DRAINING"
        assert code(await first.call("edit", path="nb.ipynb", edits=[REPLACE])) is None
        assert not service.is_empty
        assert not service.leaving.is_set()


async def test_a_drained_one_leaves_when_it_is_empty(places: Path) -> None:
    async with serving(places) as (service, connect):
        client = await connect()
        await client.greet()
        watching = asyncio.ensure_future(service.watch())
        service.drain("a test")
        await asyncio.sleep(0)
        client.writer.close()
        async with asyncio.timeout(10):
            await watching
        assert service.leaving.is_set()


async def test_an_idle_one_leaves_by_itself_and_takes_no_more_calls(places: Path) -> None:
    async with serving(places, engine_idle_timeout=1.0) as (service, connect):
        client = await connect()
        async with asyncio.timeout(10):
            await service.watch()
        assert code(await client.greet()) == "ENGINE_DRAINING"


async def test_one_whose_socket_is_gone_makes_room(places: Path) -> None:
    async with serving(places) as (service, connect):
        client = await connect()
        await client.greet()
        watching = asyncio.ensure_future(service.watch())
        await asyncio.sleep(0)
        (places / "s").unlink()
        async with asyncio.timeout(10):
            await service.is_draining.wait()
        assert code(await client.call("read", path="nb.ipynb")) is None
        client.writer.close()
        async with asyncio.timeout(10):
            await watching


async def test_leaving_waits_for_no_thread_that_is_stuck(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "_THREADS_WITHIN", 0.05)
    stuck = threading.Event()
    async with serving(places) as (service, _):
        service._files.submit(stuck.wait, 60)
        async with asyncio.timeout(10):
            await service.close()
    stuck.set()


# --- Each client for itself ----------------------------------------------------------------------


async def test_modes_and_roots_are_each_clients_own(places: Path, folder: Path) -> None:
    inside = folder / "inside"
    inside.mkdir()
    async with serving(places) as (_, connect):
        asker, agent, confined = [await connect() for _ in range(3)]
        await asker.greet(mode="ask")
        await agent.greet()
        await confined.greet(root=str(inside))
        edit = {"path": "nb.ipynb", "edits": [REPLACE]}
        assert code(await asker.call("read", path="nb.ipynb")) is None
        for verb, params in (
            ("edit", edit),
            ("run", {"path": "nb.ipynb"}),
            ("eval", {"cells": ["1"]}),
            ("cancel", {"run": "r1"}),
            ("kernel", {"action": "restart", "session": "default"}),
            ("stop", {}),
        ):
            assert code(await asker.call(verb, **params)) == "MODE_FORBIDS", verb
        assert code(await confined.call("read", path="nb.ipynb")) == "OUTSIDE_ROOT"
        where = str(folder / "nb.ipynb")
        assert code(await confined.call("watch", path=where, wait=0)) == "OUTSIDE_ROOT"
        assert code(await confined.call("kernel", action="status", session=where)) == "OUTSIDE_ROOT"
        assert code(await agent.call("edit", **edit)) is None


async def test_the_status_names_nothing_of_another_root(
    places: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "Hub", partial(Hub, kernels=MemoryKernels()))
    roots = [folder / "a", folder / "b"]
    async with serving(places) as (_, connect):
        free, unknown, *confined = [await connect() for _ in range(4)]
        await free.greet()
        for root, client in zip(roots, confined, strict=True):
            root.mkdir()
            await client.greet(root=str(root))
            answer = await client.call("eval", cells=["1"], session=root.name, kernel="memory")
            assert code(answer) is None

        async def list_names(client: Line) -> tuple[list[str], list[str]]:
            found = (await client.call("status"))["result"]
            names = [each["session"] for each in found["sessions"]]
            return names, [each["subject"] for each in found["runs"]]

        for root, client in zip(roots, confined, strict=True):
            assert await list_names(client) == ([root.name], [root.name])
        for client in (free, unknown):  # the command line asks before any greeting
            assert [sorted(each) for each in await list_names(client)] == [["a", "b"]] * 2


@pytest.mark.parametrize("name", ["\ud800.ipynb", "a\0b.ipynb", "x/" * 3000, "\udcff/nb.ipynb"])
async def test_what_is_no_path_is_called_so_by_every_verb(name: str, places: Path) -> None:
    needed: dict[str, dict[str, Any]] = {
        "edit": {"edits": []},
        "restore": {"change": "x"},
        "select": {"selector": "1"},
        "write": {"text": ""},
        "write_file": {"text": "", "base": None},
    }
    async with serving(places) as (_, connect):
        client = await connect()
        await client.greet()
        for verb, kind in VERBS.items():
            if "path" in kind.FIELDS and verb not in ("watch", "kernel"):
                answer = await client.call(verb, path=name, **needed.get(verb, {}))
                assert code(answer) != "INTERNAL_ERROR", (verb, answer)


async def test_a_relative_path_is_seen_from_the_clients_folder(places: Path, folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    async with serving(places) as (_, connect):
        here, there = await connect(), await connect()
        await here.greet()
        folder_there = [other.stat().st_dev, other.stat().st_ino]
        await there.greet(cwd=str(other), folder=folder_there)
        assert code(await here.call("read", path="nb.ipynb")) is None
        assert code(await there.call("read", path="nb.ipynb")) == "NOTEBOOK_NOT_FOUND"
        assert code(await there.call("create", path="new.ipynb")) is None
    assert (other / "new.ipynb").exists()


async def test_others_are_told_who_did_what(places: Path) -> None:
    async with serving(places) as (_, connect):
        ada, bob = await connect(), await connect()
        await ada.greet(actor="test:ada")
        await bob.greet(actor="test:bob")
        edit = {"path": "nb.ipynb", "edits": [REPLACE]}
        assert (await ada.call("edit", **edit))["result"]["others"] == []
        edit["edits"] = [{"op": "replace", "cell": "load", "source": "total = 1"}]
        (other,) = (await bob.call("edit", **edit))["result"]["others"]
        assert (other["actor"], other["did"]) == ("test:ada", "edit")
        assert 0 <= other["seconds"] < 30


async def test_a_watcher_hears_of_anothers_edit_until_it_has_enough(places: Path) -> None:
    async with serving(places) as (_, connect):
        watcher, editor = await connect(), await connect()
        await watcher.greet(actor="test:watcher")
        await editor.greet(actor="test:editor")
        await watcher.send(wire.make_call(7, "watch", {"path": "nb.ipynb"}))
        while True:  # its ear must be there first
            answer = await editor.call("edit", path="nb.ipynb", edits=[{**REPLACE, "source": "1"}])
            assert code(answer) is None
            await editor.call("undo", path="nb.ipynb")
            try:
                async with asyncio.timeout(0.2):
                    event = (await watcher.receive())["params"]
            except TimeoutError:
                continue
            break
        assert (event["call"], event["event"], event["actor"]) == (7, "changed", "test:editor")
        await watcher.send(wire.make_notification("stop", {"call": 7}))
        while "result" not in (message := await watcher.receive()):
            pass
        assert (message["id"], message["result"]["events"] > 0) == (7, True)


async def test_who_wants_no_events_gets_the_answer_alone(places: Path) -> None:
    async with serving(places) as (service, connect):
        silent, editor = await connect(), await connect()
        await silent.greet(actor="test:silent")
        await editor.greet(actor="test:editor")
        listeners = len(service.hub.events._listeners)  # the engine has some of its own
        await silent.send(wire.make_call(7, "watch", {"path": "nb.ipynb", "silent": True}))
        while len(service.hub.events._listeners) == listeners:
            await asyncio.sleep(0.01)
        await editor.call("edit", path="nb.ipynb", edits=[REPLACE])
        await silent.send(wire.make_notification("stop", {"call": 7}))
        answer = await silent.receive()
        assert (answer["id"], answer["result"]) == (7, {"events": 1})


async def test_no_client_gets_anothers_warnings(places: Path) -> None:
    async with serving(places) as (service, connect):
        ada, bob = await connect(), await connect()
        await ada.greet(actor="test:ada")
        await bob.greet(actor="test:bob")
        journal = service.hub.journal
        real = journal.begin

        def failing(path: str, change: Any, **facts: Any) -> Any:
            if facts["actor"] == "test:ada":
                journal._recorder._warn("Ada's history is full")
            return real(path, change, **facts)

        journal.begin = failing  # type: ignore[method-assign]
        edits = [{"op": "insert", "source": "x"}]
        plain, warned = (
            asyncio.ensure_future(client.call("edit", path="nb.ipynb", edits=edits))
            for client in (bob, ada)
        )
        assert (await plain)["result"]["warnings"] == []
        assert (await warned)["result"]["warnings"] == ["Ada's history is full"]
        assert (await ada.call("warnings", path="nb.ipynb"))["result"] == []


# --- Whose turn it is ----------------------------------------------------------------------------


class Work:
    """Takes the place of the verbs; calls for notebooks named `slow…` wait until `go`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self, _: object, request: Any) -> dict[str, Any]:
        self.begun.append(request.path)
        if request.path.startswith("slow"):
            await self.go.wait()
        raise InvalidCall("done")


@pytest.fixture
def work(places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    sizes = {"slow": 1, "slow-large": 2**18, "slow-huge": 2**24, "small": 1, "large": 2**18}
    for name, size in sizes.items():
        with (tmp_path / f"{name}.ipynb").open("wb") as file:
            file.truncate(size)
    made = Work(places)
    monkeypatch.setattr("cellwright.engine.service.perform_on_loop", made)
    return made


def ask_often(verb: str, path: str) -> list[dict[str, Any]]:
    return [wire.make_call(number, verb, {"path": path}) for number in range(100, 130)]


async def test_few_clients_at_once_have_a_large_notebook_read_and_a_small_one_does_not_wait(
    work: Work,
) -> None:
    """Threads of Python share one processor: each busy one makes all other clients slower."""
    async with serving(work.folder) as (_, connect):
        clients = [await connect() for _ in range(5)]
        for client in clients:
            await client.greet()
        *greedy, small = clients
        for each in greedy:
            await each.send(*ask_often("read", "slow-large.ipynb"))
        assert code(await small.call("read", path="small.ipynb")) == "INVALID_CALL"
        assert work.begun.count("slow-large.ipynb") == 2
        work.go.set()
        answers = [await each.receive() for each in greedy for _ in range(30)]
    assert len(answers) == work.begun.count("slow-large.ipynb") == 120


@pytest.mark.parametrize(
    ("process", "verb", "asked", "beside"),
    [
        (1, "read", "slow.ipynb", "small.ipynb"),
        (1, "outputs", "slow-large.ipynb", "large.ipynb"),
        (None, "outputs", "slow-huge.ipynb", "large.ipynb"),  # each client is another process
        (None, "stale", "slow-large.ipynb", "large.ipynb"),
    ],
)
async def test_who_asks_for_much_waits_for_itself_and_no_one_else_does(
    process: int | None, verb: str, asked: str, beside: str, work: Work
) -> None:
    async with serving(work.folder) as (_, connect):
        greedy, small = [await connect(process) for _ in range(4)], await connect(2)
        for each in (*greedy, small):
            await each.greet()
        for each in greedy:
            await each.send(*ask_often(verb, asked))
        assert code(await small.call("read", path=beside)) == "INVALID_CALL"
        assert 1 <= work.begun.count(asked) <= 4
        work.go.set()
        answers = [await each.receive() for each in greedy for _ in range(30)]
    assert len(answers) == work.begun.count(asked) == 120


async def test_who_has_much_to_wait_for_does_not_keep_others_from_writing(
    work: Work,
) -> None:
    """A write that waits for other calls of its client has not taken the turn of its notebook."""
    async with serving(work.folder) as (_, connect):
        greedy, small = await connect(), await connect()
        await greedy.greet()
        await small.greet()
        edit = wire.make_call(99, "edit", {"path": "small.ipynb", "edits": []})
        await greedy.send(*ask_often("read", "slow.ipynb"), edit)
        answer = await small.call("edit", path="small.ipynb", edits=[])
        assert code(answer) == "INVALID_CALL"
        work.go.set()
        assert len([await greedy.receive() for _ in range(31)]) == 31


async def test_what_a_client_that_is_gone_waited_for_is_not_done(work: Work) -> None:
    async with serving(work.folder) as (service, connect):
        greedy, small = await connect(), await connect()
        await greedy.greet()
        await small.greet()
        await greedy.send(*ask_often("read", "slow.ipynb"))
        await small.call("read", path="small.ipynb")
        begun = len(work.begun)
        greedy.writer.close()
        while len(service.status()["clients"]) > 1:
            await asyncio.sleep(0.01)
        work.go.set()
        await small.call("read", path="small.ipynb")
        assert len(work.begun) == begun + 1
