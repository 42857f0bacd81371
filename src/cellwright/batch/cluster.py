"""Jobs of a batch on a Dask cluster: notebooks travel to workers and back by content.

Dask decides which worker runs what, and runs elsewhere what a lost worker had. A notebook runs in a
folder of its own on its worker; what it reads besides has to be reachable there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.batch.jobs import Job, JobResult, run_job
from cellwright.errors import ConfigError

if TYPE_CHECKING:
    from cellwright.batch.jobs import JobOptions
    from cellwright.workspace.workspace import Workspace

_TOPIC = "cellwright-batch"


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

    def count_slots(self) -> int:
        """Return how many jobs may be under way: so many that no worker waits for one."""
        threads: dict[str, int] = self._client.nthreads()
        return max(2, 2 * sum(threads.values()))

    def run(self, workspace: Workspace, job: Job, options: JobOptions) -> JobResult:
        """Run one job somewhere, and save its notebook here."""
        from distributed import CancelledError, KilledWorker

        data = workspace.open(job.notebook).load().to_bytes()
        name = os.path.basename(job.notebook)  # noqa: PTH119
        key = f"cellwright-{job.key}-{os.urandom(4).hex()}"
        future = self._client.submit(
            run_content, key, data, name, job.parameters, options, key=key, pure=False
        )
        self._futures.add(future)
        try:
            answer: tuple[JobResult, bytes] = future.result()
        except CancelledError:
            return JobResult(job, "cancelled", message="It was stopped")
        except KilledWorker as error:
            return JobResult(job, "died", message=f"Its workers were lost: {error}")
        finally:
            self._futures.discard(future)
        result, content = answer
        result.job = job
        result.notes += self._list_losses(key)
        if content:
            _save_content(workspace, job, content)
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

    def _list_losses(self, key: str) -> list[str]:
        """Say which workers began the job and were lost."""
        events: Any = self._client.get_events(_TOPIC)
        began = [event["worker"] for _, event in events if event.get("job") == key]
        return [
            f"Worker {lost} was lost; it was run again on {then}"
            for lost, then in itertools.pairwise(began)
        ]


def run_content(
    key: str, data: bytes, name: str, parameters: dict[str, Any], options: JobOptions
) -> tuple[JobResult, bytes]:
    """Run a notebook given by content, on a worker; returns the result and the new content."""
    from distributed import get_worker

    from cellwright import Workspace  # which lets its kernels call tools

    worker = get_worker()
    worker.log_event(_TOPIC, {"job": key, "worker": worker.address})
    with (
        tempfile.TemporaryDirectory(prefix="cellwright-", ignore_cleanup_errors=True) as folder,
        Workspace(folder, cwd=folder, actor="batch:worker", engine=False) as workspace,
    ):
        place = Path(folder, name)
        place.write_bytes(data)
        job = Job(name, parameters, f"out/{name}")
        result = run_job(workspace, job, options, lambda _: None, lambda: False)
        copy = Path(folder, "out", name)
        return result, copy.read_bytes() if copy.exists() else b""


def _save_content(workspace: Workspace, job: Job, content: bytes) -> None:
    """Save what came back, with the paths that the notebook has here."""
    from cellwright.batch.jobs import make_folder
    from cellwright.document.edits import SetMetadata
    from cellwright.document.files import write
    from cellwright.document.notebook import Notebook

    notebook = Notebook(content)
    if job.output is None:
        notebook.apply(SetMetadata({"papermill": None}))
    else:
        paths = {"input_path": job.notebook, "output_path": job.output}
        notebook.apply(SetMetadata({"papermill": paths}))
        make_folder(workspace, job.output)
    write(notebook, workspace.open(job.output or job.notebook).path)
