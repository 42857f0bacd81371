"""A Prefect flow that runs a notebook once for each year.

`python prefect_flow.py NOTEBOOK OUT` runs it in this process.
"""

from __future__ import annotations

import sys

from prefect import flow, task

from cellwright.batch import run_batch


@task(retries=1)
def run_reports(notebook: str, out: str) -> list[str]:
    """Run the notebook with every year; a failing cell fails the task."""
    report = run_batch([notebook], matrix={"year": [2024, 2025]}, out=out)
    report.raise_for_status()
    return [result.job.output or "" for result in report.results]


@flow
def make_reports(notebook: str, out: str) -> list[str]:
    """Make the reports of all years."""
    return run_reports(notebook, out)


if __name__ == "__main__":
    print("\n".join(make_reports(*sys.argv[1:3])))
