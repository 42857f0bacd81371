"""Forgetting: what is recorded about notebooks is removed, with the artifacts of their runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from cellwright.config.settings import Settings
from cellwright.errors import NotebookNotFound
from cellwright.workspace.hub import Hub
from tests.unit.workspace import memory

if TYPE_CHECKING:
    from pathlib import Path


async def test_history_and_artifacts_of_a_notebook_go_and_those_of_others_stay(
    folder: Path,
) -> None:
    settings = Settings(notebook_output_bytes=1024)
    hub = Hub(settings, kernels=memory.MemoryKernels(), loop=asyncio.get_running_loop())
    workspace = Workspace(folder, actor="test:ada", hub=hub)
    for name in ("a.ipynb", "b.ipynb"):
        memory.make_notebook(folder, f"print {'long ' * 1000}", name=name)
        await memory.run(workspace.open(name))
        workspace.open(name).edit([{"op": "insert", "source": "x"}])
    origins = {artifact.origin for artifact in hub.artifacts.list()}
    assert origins == {f"notebook:{folder / name}" for name in ("a.ipynb", "b.ipynb")}
    before = (folder / "a.ipynb").read_bytes()

    counted = workspace.forget("a.ipynb", dry_run=True)
    assert len(hub.artifacts.list()) == 2
    assert workspace.forget("a.ipynb") == counted

    assert (counted.notebooks, counted.executions, counted.artifacts) == (1, 1, 1)
    assert counted.changes >= 2
    assert (folder / "a.ipynb").read_bytes() == before
    assert workspace.open("a.ipynb").log() == workspace.open("a.ipynb").executions() == []
    assert workspace.open("b.ipynb").log() != []
    assert [each.origin for each in hub.artifacts.list()] == [f"notebook:{folder / 'b.ipynb'}"]

    (folder / "b.ipynb").unlink()  # a notebook that is gone can be forgotten too
    assert workspace.forget("b.ipynb").artifacts == 1
    assert hub.artifacts.list() == []
    await hub.end_kernels()
    hub.release_resources()


def test_a_path_that_never_was_a_notebook_has_nothing_to_forget(folder: Path) -> None:
    memory.make_notebook(folder, "x", name="a.ipynb")
    memory.make_notebook(folder, "x", name="new.ipynb")
    with Workspace(folder, actor="test:ada") as workspace:
        workspace.open("a.ipynb").edit([{"op": "insert", "source": "x"}])
        with pytest.raises(NotebookNotFound):
            workspace.forget("aa.ipynb")
        assert workspace.forget("new.ipynb").changes == 0
        (folder / "a.ipynb").unlink()
        assert workspace.forget("a.ipynb", before=1).changes == 0
        assert workspace.forget("a.ipynb").changes == 1


def test_all_means_all_in_the_root(folder: Path) -> None:
    memory.make_notebook(folder, "x", name="in.ipynb")
    (folder / "other").mkdir()
    memory.make_notebook(folder / "other", "x")
    with Workspace(actor="test:ada") as everywhere, Workspace(folder / "other") as inside:
        for name in ("in.ipynb", "other/m.ipynb"):
            everywhere.open(name).edit([{"op": "insert", "source": "x"}])
        store = everywhere.caller.hub.artifacts
        for origin in ("", f"root:{folder / 'other'}", f"notebook:{folder / 'in.ipynb'}"):
            store.stamp(origin).put(b"x")

        found = inside.forget(before=4e9)

        assert (found.path, found.changes, found.artifacts) == (None, 1, 1)
        assert everywhere.open("other/m.ipynb").log() == []
        assert len(everywhere.open("in.ipynb").log()) == 1
        assert everywhere.forget(before=1.0).changes == 0
        assert everywhere.forget().artifacts == 2
        assert store.list() == []
