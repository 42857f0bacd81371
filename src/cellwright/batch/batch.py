"""Run the jobs of a batch, several at a time, and keep a record from which it can be resumed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.batch.jobs import JobOptions, JobResult, is_fresh, is_recorded, plan_jobs, run_job
from cellwright.batch.report import BatchReport
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from cellwright.batch.cluster import ClusterRunner
    from cellwright.batch.jobs import Job
    from cellwright.workspace.workspace import Workspace

    Progress = Callable[[dict[str, Any]], object]

_PICTURES_KEPT = 32 * 2**20
_KERNEL_BYTES = 400 * 2**20
"""What one notebook may need, its kernel and the next one's; so many run as there is memory for."""


def run_batch(
    notebooks: Sequence[str | os.PathLike[str]],
    *,
    parameters: Sequence[Mapping[str, Any]] = (),
    matrix: Mapping[str, Sequence[Any]] | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    retries: int = 0,
    timeout: float = 0,
    time_limit: float = 0,
    kernel: str | None = None,
    server: str | None = None,
    keep_going: bool = False,
    only_stale: bool = False,
    fail_fast: bool = False,
    resume: bool = False,
    scheduler: str | None = None,
    progress: Progress | None = None,
    open_workspace: Callable[[], Workspace] | None = None,
) -> BatchReport:
    """Run notebooks, each in a kernel of its own, and return how all of them went.

    Args:
        notebooks: their paths.
        parameters: sets of parameters; each notebook is run with every one of them.
        matrix: values by name; each notebook is run with every combination.
        out: a folder or a template for copies, which hold the outputs; without it notebooks are
            run in place.
        jobs: how many run at once; by default as many as there are cores and memory for.
        retries: how often a notebook that failed is run again.
        timeout: seconds for each cell.
        time_limit: seconds for each notebook.
        kernel: a kernelspec, interpreter or environment for all of them.
        server: the address of a Jupyter server whose kernels run them; `local` is none, whatever
            the setting `server` says.
        keep_going: also run the cells after one that failed.
        only_stale: leave out notebooks in which nothing is stale.
        fail_fast: start no further notebook after one has failed, and stop those that run.
        resume: leave out what an earlier batch of the same notebooks and parameters has done, and
            continue what it has begun: with the first unfinished cell if its kernel still lives,
            else with the first one.
        scheduler: the address of a Dask scheduler, or one of Dask's cluster classes by name, to run
            notebooks on its workers; they travel by content.
        progress: gets `{"event": "start" | "cell" | "end", "job", …}` as it happens; from several
            threads, one at a time.
        open_workspace: opens the workspace of one thread; by default one that uses the engine if
            there is one.

    Raises:
        InvalidEdit: two jobs would write to one file.
        KeyboardInterrupt: with `report` as its attribute, what was done until then.
    """
    plan = plan_jobs(
        [os.fspath(path) for path in notebooks],
        parameters=parameters,
        matrix=matrix,
        out=None if out is None else os.fspath(out),
    )
    options = JobOptions(timeout, time_limit, kernel, retries, keep_going, server)
    batch = _Batch(
        plan,
        options,
        progress or _ignore,
        open_workspace or _open_workspace,
        fail_fast=fail_fast,
        resume=resume,
        only_stale=only_stale,
    )
    if scheduler is None:
        return batch.run(jobs or count_jobs(len(plan)))
    from cellwright.batch.cluster import ClusterRunner, connect_cluster

    batch.cluster = cluster = ClusterRunner(connect_cluster(scheduler))
    try:
        return batch.run(jobs or cluster.count_slots())
    finally:
        cluster.close()


def _ignore(_: dict[str, Any]) -> None:
    """Nobody watches."""


def _open_workspace() -> Workspace:
    from cellwright import Workspace  # which lets its kernels call tools

    return Workspace(actor="python:batch")


def count_jobs(most: int) -> int:
    """Return how many notebooks may run at once: one for each core, if there is memory for them.

    At least one; cores are those that this process may use.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = min(most, cores or 1)
    free = min(_list_free_memory(), default=None)
    if free is not None:
        found = min(found, free // _KERNEL_BYTES)
    return max(1, found)


def _list_free_memory() -> list[int]:
    """What the machine has left, and what a container may still take, in bytes."""
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        free = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(free.split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):  # `max` is not a number
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text("ascii"))
        found.append(most - int((group / "memory.current").read_text("ascii")))
    return found


class _Batch:
    """The jobs of one batch while they run."""

    def __init__(
        self,
        plan: list[Job],
        options: JobOptions,
        progress: Progress,
        open_workspace: Callable[[], Workspace],
        *,
        fail_fast: bool,
        resume: bool,
        only_stale: bool,
    ) -> None:
        self._plan = plan
        self._options = options
        self._fail_fast = fail_fast
        self._resume = resume
        self._only_stale = only_stale
        self._progress = progress
        self._open_workspace = open_workspace
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._own = threading.local()
        self._opened: list[Workspace] = []
        self._runs: dict[str, tuple[Workspace, str]] = {}
        self._record = BatchRecord(plan)
        self._done: dict[str, str] = {}
        self._begun: dict[str, float] = {}
        self._pictures_left = _PICTURES_KEPT
        self.cluster: ClusterRunner | None = None

    def run(self, jobs: int) -> BatchReport:
        """Run all of them, so many at a time."""
        began = time.time()
        if self._resume:
            self._done, self._begun = self._record.read()
        results: list[JobResult | None] = [None] * len(self._plan)
        self._record.begin(keeps=self._resume)
        pool = ThreadPoolExecutor(jobs, thread_name_prefix="batch")
        try:
            waiting = iter(enumerate(self._plan))
            running: dict[Future[JobResult], int] = {}
            # Not all at once: a thousand results that wait would be a thousand in memory.
            while True:
                while len(running) < jobs and not self._over.is_set():
                    place, job = next(waiting, (-1, None))
                    if job is None:
                        break
                    running[pool.submit(self._run_job, job)] = place
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    results[running.pop(future)] = result = self._bound(future.result())
                    if self._fail_fast and not result.ok:
                        self.stop()
        except KeyboardInterrupt as interrupt:
            self.stop()
            pool.shutdown(wait=True)
            for future, place in running.items():
                results[place] = future.result()
            interrupt.report = self._report(results, began)  # type: ignore[attr-defined]
            raise
        finally:
            pool.shutdown(wait=True)
            for workspace in self._opened:
                workspace.close()
            self._record.close()
        return self._report(results, began)

    def _bound(self, result: JobResult) -> JobResult:
        """Keep no more pictures than a report may have in all: it is in memory until its end."""
        size = sum(len(data) for each in result.changed for _, data in (*each.old, *each.new))
        if size > self._pictures_left:
            result.changed = [replace(each, old=[], new=[]) for each in result.changed]
            result.notes.append("Its pictures are not in the report, which has too many")
        else:
            self._pictures_left -= size
        return result

    def stop(self) -> None:
        """Start no further job, and stop the runs of those that run."""
        self._over.set()
        if self.cluster is not None:
            self.cluster.cancel()
        with self._guard:
            runs = list(self._runs.values())
        for workspace, run in runs:
            with contextlib.suppress(CellwrightError):
                workspace.cancel(run)

    def _report(self, results: list[JobResult | None], began: float) -> BatchReport:
        found = [
            result or JobResult(job, "cancelled", message="It was not started")
            for job, result in zip(self._plan, results, strict=True)
        ]
        return BatchReport(found, began=began, seconds=time.time() - began)

    def _run_job(self, job: Job) -> JobResult:
        workspace: Workspace | None = getattr(self._own, "workspace", None)
        if workspace is None:
            workspace = self._own.workspace = self._open_workspace()
            with self._guard:
                self._opened.append(workspace)
        reason = self._find_reason_to_skip(workspace, job)
        if reason is not None:
            result = JobResult(job, "skipped", notes=[reason])
        else:
            self._tell(job, event="start")
            begun = self._begun.get(job.key)
            if begun is None:
                self._record.add_begun(job)
            try:
                listen = self._listen(job)
                if self.cluster is not None:
                    result = self.cluster.run(workspace, job, self._options, listen)
                else:
                    is_over = self._over.is_set
                    result = run_job(workspace, job, self._options, listen, is_over, begun=begun)
            finally:
                with self._guard:
                    self._runs.pop(job.key, None)
        if result.status == "ok" and job.output is None:
            self._record.add(job, workspace.open(job.notebook).load().revision)
        self._tell(job, event="end", **_without_job(result))
        return result

    def _find_reason_to_skip(self, workspace: Workspace, job: Job) -> str | None:
        if self._resume and self._is_done(workspace, job):
            return "It was done by an earlier batch"
        return "Nothing is stale" if self._only_stale and is_fresh(workspace, job) else None

    def _is_done(self, workspace: Workspace, job: Job) -> bool:
        """Whether it was done before, with the notebook as it is; a copy says so itself."""
        if job.output is not None:
            return is_recorded(workspace, job)
        try:
            return self._done.get(job.key) == workspace.open(job.notebook).load().revision
        except CellwrightError:
            return False

    def _listen(self, job: Job) -> Progress:
        workspace: Workspace = self._own.workspace
        total = 0
        waits = True

        def listen(report: dict[str, Any]) -> None:
            nonlocal total, waits
            if "run" in report:
                with self._guard:
                    self._runs[job.key] = workspace, report["run"]
                if self._over.is_set():
                    threading.Thread(target=self.stop, daemon=True).start()
            elif "status" in report:
                if report["status"] == "pending":
                    total = total + 1 if waits else 1  # of another attempt
                waits = report["status"] == "pending"
                self._tell(
                    job,
                    event="cell",
                    cell=report.get("handle"),
                    index=report.get("cell"),
                    status=report["status"],
                    of=total,
                )

        return listen

    def _tell(self, job: Job, **facts: Any) -> None:
        with self._guard:
            self._progress(
                {"job": job.name, "notebook": job.notebook, "output": job.output, **facts}
            )


def _without_job(result: JobResult) -> dict[str, Any]:
    shape = result.to_json()
    return {
        name: shape[name]
        for name in (
            "ok",
            "status",
            "seconds",
            "attempts",
            "cells",
            "ran",
            "cell",
            "index",
            "message",
        )
    }


class BatchRecord:
    """The jobs of a plan that were begun or done, a line each, in the user's state folder."""

    def __init__(self, plan: Sequence[Job]) -> None:
        from cellwright.config.directories import state_directory

        here = hashlib.sha256(os.fsencode(Path.cwd()))
        for job in plan:
            here.update(job.key.encode())
        self._folder = state_directory() / "batches"
        self._path = self._folder / f"{here.hexdigest()[:24]}.jsonl"
        self._file: Any = None
        self._guard = threading.Lock()

    def read(self) -> tuple[dict[str, str], dict[str, float]]:
        """Return what the notebooks of done jobs were then, and when jobs were begun, by key."""
        done: dict[str, str] = {}
        begun: dict[str, float] = {}
        for line in self._lines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                shape = json.loads(line)
                if "begun" in shape:
                    begun[shape["begun"]] = float(shape["at"])
                else:
                    done[shape["done"]] = shape["revision"]
        return done, begun

    def _lines(self) -> Iterator[str]:
        try:
            yield from self._path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return

    def begin(self, *, keeps: bool) -> None:
        """Begin to write; without `keeps` what an earlier batch wrote is forgotten."""
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self._file = self._path.open("a" if keeps else "w", encoding="utf-8")
        except OSError:
            self._file = None  # then it cannot be resumed, but it can be run

    def add_begun(self, job: Job) -> None:
        """Put on record that a job begins now."""
        self._write({"begun": job.key, "at": time.time()})

    def add(self, job: Job, revision: str) -> None:
        """Put on record that a job was done, and left the notebook like this."""
        self._write({"done": job.key, "revision": revision})

    def _write(self, shape: dict[str, Any]) -> None:
        with self._guard, contextlib.suppress(OSError, ValueError):
            if self._file is not None:
                self._file.write(json.dumps(shape) + "\n")
                self._file.flush()
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
