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


def start(folder: Path, name: str, *words: str, **environ: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        command = [str(BIN / "dask"), *words, "--no-dashboard"]
        return subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **environ}
        )


def find_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


def write(path: Path, *sources: str, said: str = "") -> None:
    stored = [{"output_type": "stream", "name": "stdout", "text": said}] if said else []
    cell = {"cell_type": "code", "metadata": {}, "outputs": stored, "execution_count": None}
    cells = [{**cell, "id": f"c{at}", "source": source} for at, source in enumerate(sources)]
    shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(shape))


def read_texts(path: Path) -> list[str]:
    cells = json.loads(path.read_bytes())["cells"]
    return ["".join("".join(each.get("text", "")) for each in cell["outputs"]) for cell in cells]


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
    address = find_address()
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


def test_a_cluster_does_what_this_machine_does(tmp_path: Path) -> None:
    """One worker, which has a folder of state of its own, as on another machine."""
    here = tmp_path / "here"
    here.mkdir()
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    wait = (
        f"import os, time\nopen({str(begun)!r}, 'w').close()\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.02)"
    )
    write(here / "long.ipynb", "print('x' * 5_000)")
    write(here / "copied.ipynb", "print(year)", said="2020\n")
    write(here / "edited.ipynb", wait, "print('old')", "print('kept')")
    (here / "broken.ipynb").write_text("{")
    address = find_address()
    environ = {**os.environ, "CELLWRIGHT_NOTEBOOK_OUTPUT_BYTES": "1024"}

    def run(*words: str) -> tuple[int, str, str]:
        command = [str(BIN / "cellwright"), *words]
        done = subprocess.run(
            command, cwd=here, env=environ, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    processes = [start(tmp_path, "scheduler", "scheduler", "--host", address)]
    try:
        words = ("worker", address, "--nthreads", "2", "--no-nanny")
        elsewhere = {"XDG_STATE_HOME": str(tmp_path / "there")}
        limit = {"CELLWRIGHT_NOTEBOOK_OUTPUT_BYTES": "1024"}
        processes.append(start(tmp_path, "worker", *words, **elsewhere, **limit))

        # What cannot be run is a failure of that notebook alone, and each cell tells how far it is.
        names = ("long.ipynb", "copied.ipynb", "broken.ipynb", "missing.ipynb")
        copies = ("batch", *names, "-p", "year=2026", "--out", "out", "--scheduler", address)
        code, said, _ = run(*copies, "--json")
        *events, last = map(json.loads, said.splitlines())
        assert code == 1, said
        rows = last["data"]["runs"]
        assert [row["status"] for row in rows] == ["ok", "ok", "failed", "failed"], rows
        assert rows[3]["message"].startswith("NOTEBOOK_NOT_FOUND: ")
        cells = [
            (event["index"], event["status"], event["of"])
            for event in events
            if event["event"] == "cell" and event["notebook"] == "copied.ipynb"
        ]
        assert cells[-1] == (1, "ok", 2), cells
        assert read_texts(here / "out" / "copied.ipynb") == ["", "2026\n"]
        assert read_texts(here / "copied.ipynb") == ["2020\n"]
        # The long output came along, and the copy has a history here.
        text = read_texts(here / "out" / "long.ipynb")[-1]
        name = text.partition("artifact://")[2][:10]
        assert run("artifact", name)[1].strip() == "x" * 5_000
        code, said, _ = run("log", "out/long.ipynb", "--json")
        labels = [entry["label"] for entry in json.loads(said)["data"]["entries"]]
        assert "run on tcp://127.0.0.1:" in labels[0]
        assert labels[-1] == "copy of long.ipynb"
        code, said, _ = run(*copies, "--resume", "--json")
        rows = json.loads(said.splitlines()[-1])["data"]["runs"]
        assert [row["status"] for row in rows] == ["skipped", "skipped", "failed", "failed"]

        # In place, what was edited meanwhile stays, and keeps its outputs.
        words = ("batch", "edited.ipynb", "-p", "z=1", "--scheduler", address, "--json")
        command = [str(BIN / "cellwright"), *words]
        with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, text=True) as batch:
            wait_for(begun.exists, "the first cell", 60)
            assert run("edit", "edited.ipynb", "replace", "c1", "print('new')")[0] == 0
            assert run("edit", "edited.ipynb", "insert", "--at", "0", "# mine")[0] == 0
            gate.touch()
            said, _ = batch.communicate(timeout=100)
        (row,) = json.loads(said.splitlines()[-1])["data"]["runs"]
        assert row["notes"] == ["Cell c1 was edited meanwhile; its outputs are not saved"], row
        sources = [
            "".join(c["source"]) for c in json.loads((here / "edited.ipynb").read_bytes())["cells"]
        ]
        assert (sources[0], sources[2]) == ("# mine", "print('new')")
        assert read_texts(here / "edited.ipynb") == ["", "", "", "kept\n"]

        # What is fresh is not sent.
        write(here / "fresh.ipynb", "print(1)")
        assert run("run", "fresh.ipynb", "--no-engine")[0] == 0
        code, said, _ = run(
            "batch", "fresh.ipynb", "--only-stale", "--scheduler", address, "--json"
        )
        (row,) = json.loads(said.splitlines()[-1])["data"]["runs"]
        assert (row["status"], row["notes"]) == ("skipped", ["Nothing is stale"]), row
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)
