"""The examples for Airflow, Dagster and Prefect, each with its library's own local runner."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

BIN = ROOT / ".dev" / "orchestrators" / "bin"
EXAMPLES = ROOT / "examples" / "orchestrators"
pytestmark = [pytest.mark.all, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", ["airflow_dag", "dagster_job", "prefect_flow"])
def test_a_batch_is_a_task(tmp_path: Path, name: str) -> None:
    cell = {"cell_type": "code", "outputs": [], "execution_count": None}
    cells = [
        {**cell, "id": "p", "metadata": {"tags": ["parameters"]}, "source": "year = 0"},
        {**cell, "id": "s", "metadata": {}, "source": "print(year)"},
    ]
    shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "sales.ipynb").write_text(json.dumps(shape))
    environ = {
        **os.environ,
        "HOME": str(tmp_path),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "DAGSTER_HOME": "",
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
        "DO_NOT_TRACK": "1",
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(BIN.parent),
    }
    environ.pop("PYTHONWARNINGS", None)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    if name == "airflow_dag":
        ready = run("airflow", "db", "migrate")
        assert ready.returncode == 0, ready.stderr[-2000:]
    done = run("python", str(EXAMPLES / f"{name}.py"), "sales.ipynb", "out")
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    for year in (2024, 2025):
        copy = json.loads((tmp_path / "out" / f"sales-year={year}.ipynb").read_bytes())
        assert "".join(copy["cells"][-1]["outputs"][0]["text"]) == f"{year}\n"
