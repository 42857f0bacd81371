"""What happens to notebooks, told to whoever watches."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from cellwright.workspace.events import Events

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import Workspace

EDIT = [{"op": "replace", "cell": "sum", "source": "total + 1"}]


def test_a_listener_hears_of_its_notebook_or_of_all_until_it_ends() -> None:
    events = Events()
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

    answers: list[dict[str, Any]] = []
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
    assert answers == [{"events": 2}]
    first, second = told
    assert (first["event"], first["kind"], first["actor"]) == ("changed", "edit", "test:ada")
    assert (first["change"], first["cells"]) == (answer["change"], ["sum"])
    assert first["revision"] == answer["revision"]
    assert (second["event"], second["notebook"]) == ("outside", book.real)


def test_a_watch_ends_after_its_time(workspace: Workspace) -> None:
    assert workspace.watch(progress=lambda _: None, wait=0.05) == {"events": 0}
