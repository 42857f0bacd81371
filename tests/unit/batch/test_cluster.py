"""What comes back from a cluster, without one: it is saved on record, and loses no edit."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from cellwright import Workspace, read
from cellwright.batch.cluster import ClusterRunner, RunContent
from cellwright.batch.jobs import Job, JobOptions, JobResult
from tests.unit.workspace.memory import make_notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PRINTED = {"output_type": "stream", "name": "stdout", "text": "from the worker\n"}


class FakeClient:
    """A cluster with one worker, which runs nothing and fills in the outputs of all cells."""

    cluster = None

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    def subscribe_topic(self, name: str, hear: object) -> None:
        """No cell tells how far it is."""

    def submit(self, _: object, sent: Any, *_more: object, **_how: object) -> Any:
        def result() -> RunContent:
            self._meanwhile()
            shape = json.loads(sent.data)
            for cell in shape["cells"]:
                cell |= {"outputs": [PRINTED], "execution_count": 1}
            result = JobResult(Job(sent.name), "ok")
            return RunContent(result, "a worker", json.dumps(shape).encode(), {})

        return Mock(result=result)

    def get_events(self, _: str) -> list[Any]:
        return []


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.chdir(tmp_path)
    errors = {name: type(name, (Exception,), {}) for name in ("CancelledError", "KilledWorker")}
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(**errors))
    make_notebook(tmp_path, "print a", "print b", name="n.ipynb")
    with Workspace(tmp_path, cwd=str(tmp_path), actor="test:ada", engine=False) as workspace:
        yield workspace


def run(workspace: Workspace, job: Job, meanwhile: Callable[[], object]) -> JobResult:
    runner = ClusterRunner(FakeClient(meanwhile))
    return runner.run(workspace, job, JobOptions(), lambda _: None)


def test_outputs_from_a_worker_leave_what_others_edited_meanwhile(
    workspace: Workspace, tmp_path: Path
) -> None:
    book = workspace.open("n.ipynb")

    def edit() -> None:
        book.edit(
            [{"op": "replace", "cell": 0, "source": "mine"}, {"op": "insert", "source": "new"}]
        )

    result = run(workspace, Job("n.ipynb"), edit)
    assert (result.status, result.message) == ("ok", "")
    cells = read(tmp_path / "n.ipynb").cells
    assert [cell.source for cell in cells] == ["mine", "print b", "new"]
    assert cells[1].output_types == ["stream"]
    assert next(entry.label for entry in book.log()) == "run on a worker"
    book.undo()
    assert [cell.source for cell in read(tmp_path / "n.ipynb").cells] == ["mine", "print b", "new"]
    assert read(tmp_path / "n.ipynb").cells[1].output_types == []


def test_a_copy_that_is_replaced_can_be_brought_back(workspace: Workspace, tmp_path: Path) -> None:
    make_notebook(tmp_path, "precious", name="copy.ipynb")
    result = run(workspace, Job("n.ipynb", {}, "copy.ipynb"), lambda: None)
    assert result.status == "ok"
    copy = read(tmp_path / "copy.ipynb")
    assert [cell.source for cell in copy.cells] == ["print a", "print b"]
    assert [cell.output_types for cell in copy.cells] == [["stream"], ["stream"]]
    book = workspace.open("copy.ipynb")
    assert [entry.label for entry in book.log()][:2] == ["run on a worker", "copy of n.ipynb"]
    book.undo()
    assert [cell.output_types for cell in read(tmp_path / "copy.ipynb").cells] == [[], []]
    book.undo()
    assert [cell.source for cell in read(tmp_path / "copy.ipynb").cells] == ["precious"]


def test_what_cannot_be_merged_or_does_not_come_fails_its_job_and_no_other(
    workspace: Workspace, tmp_path: Path
) -> None:
    def ruin() -> None:
        (tmp_path / "n.ipynb").write_text("{")

    def lose() -> None:
        raise OSError("the scheduler is gone")

    result = run(workspace, Job("none.ipynb"), lose)
    assert (result.status, result.message[:19]) == ("failed", "NOTEBOOK_NOT_FOUND:")
    result = run(workspace, Job("n.ipynb"), lose)
    assert (result.status, "the scheduler is gone" in result.message) == ("failed", True)
    result = run(workspace, Job("n.ipynb"), ruin)
    assert result.status == "failed"
    assert result.message.startswith("INVALID_JSON: ")
    assert (tmp_path / "n.ipynb").read_text() == "{"
