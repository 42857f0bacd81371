"""A workspace in Python beside an engine that holds the notebook: the engine is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import cellwright
from cellwright.errors import OwnedElsewhere
from tests.engines import Engine, engine_of_its_own
from tests.unit.cli import samples
from tests.unit.cli.calling import process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)
EDIT = {"op": "replace", "cell": "b", "source": "x + 2"}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Engine]:
    monkeypatch.chdir(tmp_path)
    cells = [samples.code("a", "x = 40"), samples.code("b", "x")]
    (tmp_path / "nb.ipynb").write_bytes(samples.write(*cells))
    with engine_of_its_own(monkeypatch) as engine:
        assert process("run", "nb.ipynb").code == 0  # it owns the notebook from now on
        yield engine


async def test_python_edits_runs_and_undoes_in_the_kernel_that_the_engine_has(
    engine: Engine, tmp_path: Path
) -> None:
    with cellwright.Workspace(tmp_path) as workspace:
        book = workspace.open("nb.ipynb")
        answer = book.edit([EDIT], run="changed")
        assert answer.executions is not None
        assert answer.executions[0].outputs[0]["data"]["text/plain"] == "42"
        assert book.run(["b"]).ok
        assert book.undo().changed
    async with cellwright.AsyncWorkspace(tmp_path) as waiting:
        notebook = waiting.open("nb.ipynb")
        answer = await notebook.edit([EDIT], run="changed")
        assert answer.executions is not None
        assert answer.executions[0].outputs[0]["data"]["text/plain"] == "42"
    runs = engine.status()["runs"]
    assert [run["status"] for run in runs] == ["ok"] * 4
    with cellwright.Workspace(tmp_path, engine=False) as alone, pytest.raises(OwnedElsewhere):
        alone.open("nb.ipynb").undo()
