"""An Airflow DAG that runs a notebook once for each year.

`python airflow_dag.py NOTEBOOK OUT` runs it in this process, with Airflow's own `dag.test()`.
"""

from __future__ import annotations

import sys

from airflow.sdk import dag, task

from cellwright.batch import run_batch


@dag(schedule=None, params={"notebook": "sales.ipynb", "out": "reports"})
def make_reports() -> None:
    """Make the reports of all years."""

    @task
    def run_reports(params: dict[str, str] | None = None) -> list[str]:
        """Run the notebook with every year; a failing cell fails the task."""
        given = params or {}
        report = run_batch([given["notebook"]], matrix={"year": [2024, 2025]}, out=given["out"])
        report.raise_for_status()
        return [result.job.output or "" for result in report.results]

    run_reports()


reports = make_reports()

if __name__ == "__main__":
    values = dict(zip(("notebook", "out"), sys.argv[1:3], strict=True))
    done = reports.test(run_conf=values)
    print(done.state)
    sys.exit(done.state != "success")
