"""Many notebooks: run with parameters, in parallel, each in a kernel of its own, with a report.

    from cellwright.batch import run_batch

    report = run_batch(["sales.ipynb"], matrix={"year": [2024, 2025]}, out="reports")
    report.raise_for_status()

It is a plain function that blocks, so that it is also a task of Airflow, Dagster or Prefect.
"""

from __future__ import annotations

from cellwright.batch.batch import run_batch
from cellwright.batch.jobs import Job, JobResult, plan_jobs, read_parameters
from cellwright.batch.report import BatchReport, write_report

__all__ = [
    "BatchReport",
    "Job",
    "JobResult",
    "plan_jobs",
    "read_parameters",
    "run_batch",
    "write_report",
]
