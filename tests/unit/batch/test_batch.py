"""A batch over kernels without a process: results, stops, retries, and what can be resumed."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.batch import run_batch
from cellwright.batch.batch import count_jobs
from cellwright.config.directories import state_directory
from cellwright.config.settings import Settings
from cellwright.errors import CellFailed
from cellwright.workspace.hub import Hub
from tests.unit.workspace.memory import MemoryKernels, make_hub, make_notebook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_notebook(tmp_path, "print a", "set x 1", "get x", name="good.ipynb")
    make_notebook(tmp_path, "print b", "raise ValueError no", "print c", name="bad.ipynb")
    return tmp_path


@pytest.fixture
def kernels() -> MemoryKernels:
    return MemoryKernels()


@pytest.fixture
def opened(folder: Path, kernels: MemoryKernels) -> Callable[[], Workspace]:
    return lambda: Workspace(folder, cwd=str(folder), hub=make_hub(kernels))


def run(opened: Callable[[], Workspace], *notebooks: str, **options: Any) -> Any:
    return run_batch(notebooks, open_workspace=opened, **{"jobs": 2, **options})


def outputs(path: Path) -> list[Any]:
    return [cell["outputs"] for cell in json.loads(path.read_bytes())["cells"]]


def test_copies_get_the_outputs_and_the_notebooks_stay_as_they_are(
    folder: Path, opened: Callable[[], Workspace], kernels: MemoryKernels
) -> None:
    before = {path.name: path.read_bytes() for path in folder.glob("*.ipynb")}
    report = run(opened, "good.ipynb", "bad.ipynb", out="out")
    assert {path.name: path.read_bytes() for path in folder.glob("*.ipynb")} == before
    good, bad = report.results
    assert (good.status, good.cells, good.ran) == ("ok", 3, 3)
    assert (bad.status, bad.cell, bad.index, bad.ran) == ("error", "c1", 1, 2)
    assert bad.message == "ValueError: no"
    assert not report.ok
    assert report.failed == [bad]
    with pytest.raises(CellFailed, match=r"bad\.ipynb, cell c1: ValueError: no"):
        report.raise_for_status()
    assert outputs(folder / "out" / "good.ipynb")[0][0]["text"] in ("a\n", ["a\n"])
    assert outputs(folder / "out" / "bad.ipynb")[2] == []
    assert len(kernels.made) == 2, "each had a kernel of its own"
    assert {kernel.launch.cwd for kernel in kernels.made} == {str(folder)}


def test_copies_say_how_their_run_went_as_papermill_does(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    run(opened, "good.ipynb", "bad.ipynb", out="out")
    good = json.loads((folder / "out" / "good.ipynb").read_bytes())
    found = good["metadata"]["papermill"]
    assert (found["exception"], found["input_path"]) == (False, "good.ipynb")
    assert found["output_path"] == "out/good.ipynb"
    assert found["start_time"] < found["end_time"]
    bad = json.loads((folder / "out" / "bad.ipynb").read_bytes())
    assert bad["metadata"]["papermill"]["exception"] is True
    states = [cell["metadata"]["papermill"]["status"] for cell in bad["cells"]]
    assert states == ["completed", "failed", "pending"]


def test_a_copy_that_runs_nothing_needs_no_kernel(
    folder: Path, opened: Callable[[], Workspace], kernels: MemoryKernels
) -> None:
    make_notebook(folder, name="empty.ipynb")
    assert run(opened, "empty.ipynb", out="out").results[0].status == "ok"
    with opened() as workspace:
        done = workspace.open("good.ipynb").run([], output="copy.ipynb")
    assert (list(done), done.done, kernels.made) == ([], True, [])
    assert (folder / "copy.ipynb").read_bytes() == (folder / "good.ipynb").read_bytes()


def test_without_out_notebooks_are_run_in_place(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    assert run(opened, "good.ipynb").ok
    assert outputs(folder / "good.ipynb")[0]
    assert "papermill" not in json.loads((folder / "good.ipynb").read_bytes())["metadata"]


def test_events_tell_what_happens(folder: Path, opened: Callable[[], Workspace]) -> None:
    del folder
    events: list[dict[str, Any]] = []
    run(opened, "bad.ipynb", out="out", progress=events.append)
    assert [event["event"] for event in events][:1] == ["start"]
    assert events[-1]["event"] == "end"
    assert (events[-1]["status"], events[-1]["cell"]) == ("error", "c1")
    cells = [(event["index"], event["status"]) for event in events if event["event"] == "cell"]
    assert cells[-1] == (1, "error")
    assert {event["of"] for event in events if event["event"] == "cell"} == {1, 2, 3}


def test_what_was_done_is_not_done_again_by_a_batch_that_resumes(
    folder: Path, opened: Callable[[], Workspace], kernels: MemoryKernels
) -> None:
    run(opened, "good.ipynb", "bad.ipynb", out="out")
    report = run(opened, "good.ipynb", "bad.ipynb", out="out", resume=True)
    assert [result.status for result in report.results] == ["skipped", "error"]
    assert len(kernels.made) == 3
    # What is on record in the copy alone counts, too: a batch may be killed between both.
    assert run(opened, "good.ipynb", out="out", resume=True).results[0].status == "skipped"
    # Another source, or no wish to resume, is another matter.
    make_notebook(folder, "print changed", name="good.ipynb")
    assert run(opened, "good.ipynb", out="out", resume=True).results[0].status == "ok"
    assert run(opened, "good.ipynb", out="out").results[0].status == "ok"


def test_in_place_a_batch_resumes_from_its_record(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    assert run(opened, "good.ipynb").results[0].status == "ok"
    assert run(opened, "good.ipynb", resume=True).results[0].status == "skipped"
    make_notebook(folder, "print changed", name="good.ipynb")
    assert run(opened, "good.ipynb", resume=True).results[0].status == "ok"
    assert run(opened, "good.ipynb").results[0].status == "ok"


def test_a_copy_that_was_not_finished_is_run_again(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    run(opened, "good.ipynb", out="out")
    path = folder / "out" / "good.ipynb"
    shape = json.loads(path.read_bytes())
    shape["metadata"].pop("papermill")
    path.write_text(json.dumps(shape))
    # The plan is another one, so that only the copy can tell.
    report = run(opened, "good.ipynb", "bad.ipynb", out="out", resume=True)
    assert report.results[0].status == "ok"


def test_a_failure_is_tried_again_as_often_as_asked(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    del folder
    report = run(opened, "bad.ipynb", out="out", retries=2)
    (result,) = report.results
    assert result.attempts == 3
    said = "cell c1 (index 1): ValueError: no"
    assert result.notes == [f"Attempt 1: {said}", f"Attempt 2: {said}"]
    assert run(opened, "good.ipynb", out="out", retries=2).results[0].attempts == 1


def test_every_attempt_counts_its_cells_anew(folder: Path, opened: Callable[[], Workspace]) -> None:
    del folder
    events: list[dict[str, Any]] = []
    run(opened, "bad.ipynb", out="out", retries=2, progress=events.append)
    pending = [event["of"] for event in events if event.get("status") == "pending"]
    assert pending == [1, 2, 3] * 3


def test_only_stale_leaves_out_what_is_fresh(
    folder: Path, opened: Callable[[], Workspace], kernels: MemoryKernels
) -> None:
    with opened() as workspace:
        workspace.open("good.ipynb").run()
    made = len(kernels.made)
    report = run(opened, "good.ipynb", "bad.ipynb", "missing.ipynb", out="out", only_stale=True)
    assert [result.status for result in report.results] == ["skipped", "error", "failed"]
    assert report.results[0].notes == ["Nothing is stale"]
    assert len(kernels.made) == made + 1
    make_notebook(folder, "print a", "set x 2", "get x", name="good.ipynb")
    assert run(opened, "good.ipynb", out="out", only_stale=True).results[0].status == "ok"


def test_after_a_failure_a_batch_that_fails_fast_starts_nothing(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    del folder
    names = [f"good{n}.ipynb" for n in range(5)]
    report = run(opened, "bad.ipynb", *names, jobs=1, fail_fast=True, out="out")
    assert [result.status for result in report.results] == ["error"] + ["cancelled"] * 5
    assert "1 failed" in report.summary()
    assert "5 not finished" in report.summary()


def test_what_cannot_be_run_at_all_is_a_failure_of_that_job_alone(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    (folder / "broken.ipynb").write_text("{")
    report = run(opened, "missing.ipynb", "broken.ipynb", "good.ipynb", out="out")
    assert [result.status for result in report.results] == ["failed", "failed", "ok"]
    assert report.results[0].message.startswith("NOTEBOOK_NOT_FOUND: ")


def test_ctrl_c_stops_what_runs_keeps_what_is_done_and_tells_it(
    folder: Path, opened: Callable[[], Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_notebook(folder, "print begun", "sleep 60", name="long.ipynb")
    begun = threading.Event()

    def look(event: dict[str, Any]) -> None:
        if (event["notebook"], event.get("status"), event.get("index")) == (
            "long.ipynb",
            "running",
            1,
        ):
            begun.set()

    from cellwright.batch import batch as module

    real = module.wait

    def wait(running: Any, **how: Any) -> Any:
        if len(running) == 1 and begun.wait(20):
            raise KeyboardInterrupt
        return real(running, **how)

    monkeypatch.setattr(module, "wait", wait)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(opened, "good.ipynb", "long.ipynb", out="out", progress=look)
    report = caught.value.report  # type: ignore[attr-defined]
    assert [result.status for result in report.results] == ["ok", "cancelled"]


def test_sys_exit_ends_a_notebook_well_unless_it_has_a_code(
    folder: Path, opened: Callable[[], Workspace]
) -> None:
    make_notebook(folder, "raise SystemExit 0", "print never", name="leaves.ipynb")
    make_notebook(folder, "raise SystemExit 3", "print never", name="fails.ipynb")
    report = run(opened, "leaves.ipynb", "fails.ipynb", out="out")
    assert [result.status for result in report.results] == ["ok", "error"]
    assert report.results[0].notes == ["Cell c0 (index 0) left the notebook: sys.exit()"]
    assert outputs(folder / "out" / "leaves.ipynb")[1] == []
    again = run(opened, "leaves.ipynb", "fails.ipynb", out="out", resume=True)
    assert [result.status for result in again.results] == ["skipped", "error"]


def test_as_many_run_at_once_as_there_are_cores_and_memory_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cellwright.batch import batch as module

    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(module.os, "cpu_count", lambda: 8)
    for free, most, expected in (
        ([2**40], 100, 8),
        ([2**40], 3, 3),
        ([2**40, 900 * 2**20], 100, 2),  # what a container may still take
        ([0], 100, 1),
        ([-1], 100, 1),
        ([], 100, 8),
    ):
        monkeypatch.setattr(module, "_list_free_memory", lambda free=free: free)
        assert count_jobs(most) == expected


def test_long_outputs_of_a_batch_keep_to_the_quota_of_artifacts(
    folder: Path, kernels: MemoryKernels
) -> None:
    quota, count = 2**20, 6
    names = [f"long{number}.ipynb" for number in range(count)]
    for name in names:
        make_notebook(folder, f"print {name}{'x' * 400_000}", name=name)
    settings = Settings(artifact_quota_bytes=quota, notebook_output_bytes=1024)

    def open_workspace() -> Workspace:
        return Workspace(folder, cwd=str(folder), hub=Hub(settings, kernels=kernels))  # type: ignore[arg-type]

    report = run_batch(names, open_workspace=open_workspace, jobs=1, out="out")
    assert report.ok
    kept = list((state_directory() / "artifacts").iterdir())
    assert 0 < sum(path.stat().st_size for path in kept) <= quota
    newest = (folder / "out" / names[-1]).read_text()
    (name,) = set(re.findall(r"artifact://([\w-]+)", newest))
    assert any(path.name.startswith(name) for path in kept), "the newest is kept"
