"""Many notebooks: run with parameters, in parallel, each in a kernel of its own, with a report.

    from cellwright.batch import run_batch

    report = run_batch(["sales.ipynb"], matrix={"year": [2024, 2025]}, out="reports")
    report.raise_for_status()

It is a plain function that blocks, so that it is also a task of Airflow, Dagster or Prefect.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.batch.batch import run_batch as run_batch
    from cellwright.batch.jobs import Job as Job
    from cellwright.batch.jobs import JobResult as JobResult
    from cellwright.batch.jobs import plan_jobs as plan_jobs
    from cellwright.batch.jobs import read_parameters as read_parameters
    from cellwright.batch.report import BatchReport as BatchReport
    from cellwright.batch.report import write_report as write_report

# Not imported here: pytest imports our plugin, which is in this room, in every project.
_HOME_OF = {
    "BatchReport": "report",
    "Job": "jobs",
    "JobResult": "jobs",
    "plan_jobs": "jobs",
    "read_parameters": "jobs",
    "run_batch": "batch",
    "write_report": "report",
}
__all__ = sorted(_HOME_OF)  # noqa: PLE0605  # a list, made from the table above


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
