"""What happens to notebooks, told to whoever watches."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.errors import OutsideRoot, RunNotFound
from cellwright.workspace.activity import NotebookEvents
from cellwright.workspace.api.answers import WatchAnswer
from cellwright.workspace.hosts.file import FileHost
from cellwright.workspace.verbs import running
from tests.unit.workspace.memory import MemoryKernels, make_hub, make_notebook

if TYPE_CHECKING:
    from pathlib import Path

EDIT = [{"op": "replace", "cell": "sum", "source": "total + 1"}]


def test_a_listener_hears_of_its_notebook_or_of_all_until_it_ends() -> None:
    events = NotebookEvents()
    one: list[str] = []
    every: list[str] = []
    end = events.subscribe("a", lambda event: one.append(event["event"]))
    events.subscribe(None, lambda event: every.append(event["notebook"]))
    events.publish("a", "changed", actor="x")
    events.publish("b", "changed", actor="x")
    end()
    end()
    events.publish("a", "again")
    assert (one, every) == (["changed"], ["a", "b", "a"])


def test_a_watch_tells_of_edits_here_and_of_changes_made_without_us(
    workspace: Workspace, folder: Path
) -> None:
    told: list[dict[str, Any]] = []
    book = workspace.open("nb.ipynb")
    ready, seen = threading.Event(), threading.Event()

    def take(event: dict[str, Any]) -> None:
        told.append(event)
        seen.set()

    def until() -> bool:
        ready.set()
        return len(told) >= 2

    answers: list[WatchAnswer] = []
    watcher = threading.Thread(
        target=lambda: answers.append(workspace.watch("nb.ipynb", progress=take, until=until))
    )
    watcher.start()
    assert ready.wait(20)
    answer = book.edit(EDIT)
    assert seen.wait(20)
    path = folder / "nb.ipynb"
    path.write_bytes(path.read_bytes().replace(b"What we sold", b"What they sold"))
    watcher.join(20)
    assert answers == [WatchAnswer(2)]
    first, second = told
    assert (first["event"], first["kind"], first["actor"]) == ("changed", "edit", "test:ada")
    assert (first["change"], first["cells"]) == (answer.change, ["sum"])
    assert first["revision"] == answer.revision
    assert (second["event"], second["notebook"]) == ("outside", book.real)


def test_an_edit_that_is_saved_and_not_yet_told_is_not_called_outside(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_LOOK_EVERY", 0.05)
    ready, saved, looked, told = (threading.Event() for _ in range(4))
    sign, publish = FileHost.signature, NotebookEvents.publish
    heard: list[str] = []

    def look(host: FileHost) -> str | None:
        found = sign(host)
        if looked.is_set():
            assert told.wait(20)
        elif saved.is_set():
            looked.set()
        return found

    def publish_late(events: NotebookEvents, notebook: str, event: str, **facts: Any) -> None:
        saved.set()
        assert looked.wait(20)
        publish(events, notebook, event, **facts)
        told.set()

    def until() -> bool:
        ready.set()
        return bool(heard)

    watcher = threading.Thread(
        target=lambda: workspace.watch(
            "nb.ipynb", progress=lambda event: heard.append(event["event"]), until=until
        )
    )
    watcher.start()
    assert ready.wait(20)
    monkeypatch.setattr(FileHost, "signature", look)
    monkeypatch.setattr(NotebookEvents, "publish", publish_late)
    workspace.open("nb.ipynb").edit(EDIT)
    watcher.join(20)
    assert heard == ["changed"]


def test_a_watch_of_all_notebooks_hears_of_those_in_the_root_alone(folder: Path) -> None:
    (folder / "inside").mkdir()
    for place in ("inside/in.ipynb", "out.ipynb"):
        (folder / place).write_bytes((folder / "nb.ipynb").read_bytes())
    with Workspace(actor="test:bob") as bob:
        confined = Workspace(folder / "inside", hub=bob.caller.hub)
        told: list[str] = []

        def until() -> bool:
            if not told:  # once its ear is there
                for place in ("out.ipynb", "inside/in.ipynb"):
                    bob.open(place).edit([{"op": "insert", "source": "1"}])
            return bool(told)

        confined.watch(progress=lambda event: told.append(event["notebook"]), until=until)
    assert told
    assert {*told} == {str(folder / "inside" / "in.ipynb")}


def test_runs_and_sessions_outside_the_root_do_not_exist(folder: Path) -> None:
    make_notebook(folder, "print a")
    hub = make_hub(MemoryKernels())
    workspace = Workspace(folder, hub=hub)
    with contextlib.closing(hub):
        done = workspace.open("m.ipynb").run()
        (folder / "inside").mkdir()
        confined = Workspace(folder / "inside", hub=hub)
        assert [run.run for run in workspace.runs()] == [done.run]
        assert len(workspace.sessions()) == 1
        assert confined.runs() == confined.sessions() == []
        with pytest.raises(RunNotFound):
            confined.attach(done.run)
        with pytest.raises(RunNotFound):
            confined.cancel(done.run)
        for name in (str(folder / "m.ipynb"), "../m.ipynb"):
            with pytest.raises(OutsideRoot):
                confined.kernel("shutdown", name)
        assert len(workspace.sessions()) == 1


def test_a_watch_ends_after_its_time(workspace: Workspace) -> None:
    assert workspace.watch(progress=lambda _: None, wait=0.05) == WatchAnswer(0)
