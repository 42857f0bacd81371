"""Jobs of a batch on a Dask cluster: notebooks travel to workers and back by content.

Dask decides which worker runs what, and runs elsewhere what a lost worker had. A notebook runs in a
folder of its own on its worker; what it reads besides has to be reachable there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cellwright.batch.jobs import Job, JobResult, make_folder, refuse_job, run_job
from cellwright.config.directories import state_directory
from cellwright.config.loading import load
from cellwright.document.edits import ClearOutputs, SetMetadata, Splice
from cellwright.document.notebook import Notebook
from cellwright.errors import CellwrightError, ConfigError
from cellwright.outputs.artifacts import ArtifactStore

if TYPE_CHECKING:
    from cellwright.batch.jobs import JobOptions, Progress
    from cellwright.document.edits import Edit
    from cellwright.workspace.workspace import Workspace

_TOPIC = "cellwright-batch"
_ABOUT_KERNEL = ("kernelspec", "language_info", "widgets")
_artifact = re.compile(rb"artifact://([a-z2-7]{10})")


def connect_cluster(scheduler: str) -> Any:
    """Connect to a scheduler by its address, or start a cluster of a class by its name.

    Raises:
        ConfigError: `distributed` is missing, or there is no such scheduler or class.
    """
    try:
        import distributed
    except ImportError:
        raise ConfigError(
            "A cluster needs Dask, which is not installed", hint="pip install 'cellwright[batch]'"
        ) from None
    try:
        if "://" in scheduler or ":" in scheduler:
            return distributed.Client(scheduler, timeout=10, set_as_default=False)
        module, _, name = scheduler.rpartition(".")
        from importlib import import_module

        cluster = getattr(import_module(module or "distributed"), name)()
        return distributed.Client(cluster, set_as_default=False)
    except (OSError, ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"No Dask scheduler {scheduler}: {error}",
            hint="An address such as tcp://host:8786, or a class such as LocalCluster",
        ) from None


class ClusterRunner:
    """Runs jobs on a cluster; the same calls from several threads."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._futures: set[Any] = set()
        self._listeners: dict[str, Progress] = {}
        self._progress = f"cellwright-progress-{os.urandom(4).hex()}"
        client.subscribe_topic(self._progress, self._hear)

    def count_slots(self) -> int:
        """Return how many jobs may be under way: so many that no worker waits for one."""
        threads: dict[str, int] = self._client.nthreads()
        return max(2, 2 * sum(threads.values()))

    def run(
        self, workspace: Workspace, job: Job, options: JobOptions, listen: Progress
    ) -> JobResult:
        """Run one job somewhere, and save here what its cells show."""
        from distributed import CancelledError, KilledWorker

        try:
            revision = workspace.open(job.notebook).load().revision
            data = _prepare(workspace, job)
            key = f"cellwright-{job.key}-{os.urandom(4).hex()}"
            self._listeners[key] = listen
            sent = _SentJob(key, self._progress, os.path.basename(job.notebook), data, job)  # noqa: PTH119
            future = self._client.submit(run_content, sent, options, key=key, pure=False)
            self._futures.add(future)
            try:
                answer: RunContent = future.result()
            finally:
                self._futures.discard(future)
                del self._listeners[key]
            result = answer.result
            result.job = job
            result.notes += self._list_losses(key)
            result.notes += _save(workspace, job, answer, revision)
        except CancelledError:
            return JobResult(job, "cancelled", message="It was stopped")
        except KilledWorker as error:
            return JobResult(job, "died", message=f"Its workers were lost: {error}")
        except ImportError as error:
            return JobResult(job, "failed", message=f"Its worker has no Cellwright: {error}")
        except CellwrightError as error:
            return refuse_job(job, error)
        except Exception as error:  # noqa: BLE001  # whatever Dask or a worker says; the others go on
            why = f"No result came from the cluster: {type(error).__name__}: {error}"
            return JobResult(job, "failed", message=why)
        return result

    def cancel(self) -> None:
        """Cancel what is under way."""
        for future in list(self._futures):
            with contextlib.suppress(OSError, RuntimeError):
                future.cancel()

    def close(self) -> None:
        """Hang up; a cluster that was started here ends."""
        cluster = self._client.cluster
        self._client.close()
        if cluster is not None:
            cluster.close()

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Pass on what a worker says of a cell."""
        report = event[1]
        listen = self._listeners.get(report["job"])
        if listen is not None:
            listen(report)

    def _list_losses(self, key: str) -> list[str]:
        """Say which workers began the job and were lost."""
        events: Any = self._client.get_events(_TOPIC)
        began = [event["worker"] for _, event in events if event.get("job") == key]
        return [
            f"Worker {lost} was lost; it was run again on {then}"
            for lost, then in itertools.pairwise(began)
        ]


# -- on a worker --------------------------------------------------------------------------------


class _SentJob(NamedTuple):
    """A notebook on its way to a worker; that of a copy has its parameters as a cell."""

    key: str
    topic: str
    name: str
    data: bytes
    job: Job


class RunContent(NamedTuple):
    """What comes back: the notebook with its outputs, and the artifacts that it names, by id."""

    result: JobResult
    worker: str
    data: bytes
    artifacts: dict[str, tuple[str, str, bytes]]


def run_content(sent: _SentJob, options: JobOptions) -> RunContent:
    """Run a notebook given by content, on a worker."""
    from distributed import get_worker

    from cellwright import Workspace  # which lets its kernels call tools

    worker = get_worker()
    worker.log_event(_TOPIC, {"job": sent.key, "worker": worker.address})

    def tell(report: dict[str, Any]) -> None:
        if "status" in report:
            names = ("cell", "handle", "status")
            facts = {name: report.get(name) for name in names}
            worker.log_event(sent.topic, {"job": sent.key, **facts})

    is_copy = sent.job.output is not None
    with (
        tempfile.TemporaryDirectory(prefix="cellwright-", ignore_cleanup_errors=True) as folder,
        Workspace(folder, cwd=folder, actor="batch:worker", engine=False) as workspace,
    ):
        Path(folder, sent.name).write_bytes(sent.data)
        name = f"out/{sent.name}" if is_copy else sent.name
        job = Job(sent.name, {} if is_copy else sent.job.parameters, name if is_copy else None)
        result = run_job(workspace, job, options, tell, lambda: False)
        place = Path(folder, name)
        data = place.read_bytes() if place.exists() else b""
        return RunContent(result, worker.address, data, _read_artifacts(data, place))


def _read_artifacts(data: bytes, place: Path) -> dict[str, tuple[str, str, bytes]]:
    """Read the artifacts that a notebook made here, and names: outputs that are too long for it."""
    store = ArtifactStore(state_directory() / "artifacts")
    found = {}
    for name in {each.decode() for each in _artifact.findall(data)}:
        with contextlib.suppress(CellwrightError):
            about = store.get(name)
            if about.origin == f"notebook:{os.path.realpath(place)}":
                found[name] = about.mime, about.name, store.read(name, limit=about.size).data
    return found


# -- here ---------------------------------------------------------------------------------------


def _prepare(workspace: Workspace, job: Job) -> bytes:
    """Return what is sent; a copy is made first, and has no outputs until they come back."""
    book = workspace.open(job.notebook)
    if job.output is None:
        return book.load().to_bytes()
    make_folder(workspace, job.output)
    book.run([], output=job.output, parameters=job.parameters or None)
    copy = workspace.open(job.output)
    data = copy.load().to_bytes()
    copy.edit([ClearOutputs()], label="clear outputs")
    return data


def _save(workspace: Workspace, job: Job, answer: RunContent, revision: str) -> list[str]:
    """Save the outputs that came back, on record; returns what has to be said about it.

    A cell that was edited meanwhile keeps what it has.
    """
    if not answer.data:
        return []
    book = workspace.open(job.output or job.notebook)
    data = _keep_artifacts(answer, book.path)
    now, then = book.load(), Notebook(data)
    ran = {cell.handle: cell for cell in then.cells if cell.type == "code"}
    edits: list[Edit] = []
    notes: list[str] = []
    for cell in now.cells:
        found = ran.get(cell.handle)
        if found is not None and found.hash == cell.hash:
            shape = found.to_dict() if job.output is not None else cell.to_dict()
            news = {name: found.to_dict()[name] for name in ("outputs", "execution_count")}
            edits.append(Splice(cell.index, 1, [{**shape, **news}]))
        elif found is not None:
            notes.append(f"Cell {cell.handle} was edited meanwhile; its outputs are not saved")
    about = {name: then.metadata[name] for name in _ABOUT_KERNEL if name in then.metadata}
    record = then.metadata.get("papermill")
    if job.output is not None and isinstance(record, dict):
        paths = {"input_path": job.notebook, "output_path": job.output}
        facts = {"input_revision": revision, "parameters": dict(job.parameters)}
        about["papermill"] = {**record, **paths, **facts}
    edits.append(SetMetadata(about))
    book.edit(edits, base=now.revision, label=f"run on {answer.worker}")
    return notes


def _keep_artifacts(answer: RunContent, path: str) -> bytes:
    """Keep the artifacts here; returns the notebook with the ids that they have now."""
    data = answer.data
    if not answer.artifacts:
        return data
    limits = load()
    store = ArtifactStore(
        state_directory() / "artifacts",
        quota_bytes=limits.artifact_quota_bytes,
        max_artifact_bytes=limits.artifact_max_bytes,
        origin=f"notebook:{os.path.realpath(path)}",
    )
    for old, (mime, name, content) in answer.artifacts.items():
        new = store.put(content, mime=mime, name=name).id
        data = data.replace(f"artifact://{old}".encode(), f"artifact://{new}".encode())
    return data
