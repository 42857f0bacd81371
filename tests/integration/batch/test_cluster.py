"""A batch on a real Dask scheduler with real workers, one of which is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.engines import wait_for

if TYPE_CHECKING:
    from pathlib import Path

BIN = ROOT / ".dev" / "cluster" / "bin"
pytestmark = [pytest.mark.all, pytest.mark.timeout(600)]


def start(folder: Path, name: str, *words: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        command = [str(BIN / "dask"), *words, "--no-dashboard"]
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)


def test_a_cluster_is_started_by_the_name_of_its_class(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "id": "a", "source": "print(1)"}]
    shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "n.ipynb").write_text(json.dumps(shape))

    def run(scheduler: str) -> subprocess.CompletedProcess[str]:
        words = [str(BIN / "cellwright"), "batch", "n.ipynb", "--out", "out", "--scheduler"]
        return subprocess.run(
            [*words, scheduler], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    for name in ("LocalCluster", "distributed.LocalCluster"):
        done = run(name)
        assert (done.returncode, "1 run: 1 ok" in done.stderr) == (0, True), done.stderr
    done = run("NoSuchCluster")
    assert (done.returncode, "No Dask scheduler NoSuchCluster" in done.stderr) == (2, True)


def test_a_lost_worker_costs_nothing_and_is_told(tmp_path: Path) -> None:
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    begun = tmp_path / "begun"
    begun.mkdir()
    # Each says which worker began it, and those of the one that is killed wait for that.
    source = (
        "import os, time, pathlib\n"
        f"place = pathlib.Path({str(begun)!r})\n"
        "(place / f'{n}-{os.getpid()}').touch()\n"
        "time.sleep(0.3)\nprint(n)"
    )
    for number in range(60):
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        cells = [
            {**cell, "id": "a", "source": f"n = {number}"},
            {**cell, "id": "b", "source": source},
        ]
        shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (notebooks / f"n{number}.ipynb").write_text(json.dumps(shape))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    processes = [start(tmp_path, "scheduler", "scheduler", "--host", address)]
    try:
        for number in range(3):
            words = ("worker", address, "--nthreads", "1", "--no-nanny", "--name", f"w{number}")
            processes.append(start(tmp_path, f"worker{number}", *words))
        command = [str(BIN / "cellwright"), "batch", *sorted(p.name for p in notebooks.iterdir())]
        words = ["--out", "out", "--scheduler", address, "--report", "json"]
        with subprocess.Popen([*command, *words], cwd=notebooks, stderr=subprocess.PIPE) as batch:
            wait_for(lambda: len(list(begun.iterdir())) >= 12, "twelve to begin", 300)
            os.kill(processes[2].pid, signal.SIGKILL)
            _, said = batch.communicate(timeout=400)
        assert batch.returncode == 0, said
        report = json.loads((notebooks / "cellwright-batch.json").read_bytes())
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)
    assert [run["status"] for run in report["runs"]] == ["ok"] * 60
    assert len({run["notebook"] for run in report["runs"]}) == 60
    for number in range(60):
        cells = json.loads((notebooks / "out" / f"n{number}.ipynb").read_bytes())["cells"]
        assert "".join(cells[1]["outputs"][0]["text"]) == f"{number}\n"
    notes = [note for run in report["runs"] for note in run["notes"]]
    assert any("was lost; it was run again on" in note for note in notes), notes
