"""A Dagster job that runs a notebook once for each year.

`python dagster_job.py NOTEBOOK OUT` runs it in this process.
"""

import sys

from dagster import Config, job, op

from cellwright.batch import run_batch


class ReportConfig(Config):
    """Which notebook, and where its copies go."""

    notebook: str
    out: str


@op
def run_reports(config: ReportConfig) -> list[str]:
    """Run the notebook with every year; a failing cell fails the op."""
    report = run_batch([config.notebook], matrix={"year": [2024, 2025]}, out=config.out)
    report.raise_for_status()
    return [result.job.output or "" for result in report.results]


@job
def make_reports() -> None:
    """Make the reports of all years."""
    run_reports()


if __name__ == "__main__":
    values = dict(zip(("notebook", "out"), sys.argv[1:3], strict=True))
    done = make_reports.execute_in_process(run_config={"ops": {"run_reports": {"config": values}}})
    print("\n".join(done.output_for_node("run_reports")))
