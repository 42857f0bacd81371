"""Notebooks on the kernels of a Jupyter server: chosen by call or setting, lost and found again."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from cellwright.batch import run_batch
from cellwright.errors import KernelCannot, KernelError
from tests.engines import wait_for
from tests.integration.kernel.remote.servers import end, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cellwright.batch import BatchReport
    from tests.integration.kernel.remote.servers import RealServer

pytestmark = pytest.mark.timeout(180)
WHERE = "import os; print(os.getcwd())"


def write(path: Path, *sources: str) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "id": f"c{at}", "source": text} for at, text in enumerate(sources)]
    shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(shape))


def printed(path: Path) -> str:
    cells = json.loads(path.read_bytes())["cells"]
    return "".join("".join(each.get("text", "")) for cell in cells for each in cell["outputs"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealServer]:
    with running("gateway", tmp_path / "gateway") as server:
        monkeypatch.setenv("CELLWRIGHT_SERVER_TOKEN", server.token)
        yield server


@pytest.mark.all
def test_a_server_is_chosen_by_call_for_a_notebook_or_by_setting(
    folder: Path, gateway: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "n.ipynb", WHERE)
    there, here = str(gateway.root), str(folder)
    with Workspace(".", engine=False) as workspace:
        book = workspace.open("n.ipynb")
        book.run(server=gateway.url)
        assert there in printed(folder / "n.ipynb")
        book.run()  # the notebook keeps to it
        assert there in printed(folder / "n.ipynb")
        (row,) = workspace.sessions()
        assert (row.server, row.kernel, row.state) == (gateway.url, "python3", "idle")
        with pytest.raises(KernelCannot):
            book.run(server="local")
        book.run(server="local", restart=True)
        assert here in printed(folder / "n.ipynb")
        specs = {spec.name: spec for spec in workspace.kernel_specs(server=gateway.url)}
        assert (specs["python3"].language, specs["python3"].server) == ("python", gateway.url)

        monkeypatch.setenv("CELLWRIGHT_SERVER", gateway.url)
    with Workspace(".", engine=False) as workspace:
        assert there in workspace.eval([WHERE]).cells[0].text
        assert here in workspace.eval([WHERE], session="near", server="local").cells[0].text
        workspace.open("n.ipynb").run(output="copy.ipynb")
        assert there in printed(folder / "copy.ipynb")
        assert [row.server for row in workspace.kernel_specs() if row.default] == [gateway.url]
    assert run_batch(["n.ipynb"], out="out").ok
    assert there in printed(folder / "out/n.ipynb")


def test_a_server_that_gave_no_kernel_is_not_kept_to(folder: Path) -> None:
    write(folder / "n.ipynb", WHERE)
    with Workspace(".", engine=False) as workspace:
        book = workspace.open("n.ipynb")
        for restart in (False, True):
            with pytest.raises(KernelError, match="nothing listens"):
                book.run(server="http://127.0.0.1:1", restart=restart)
            book.run()
            assert str(folder) in printed(folder / "n.ipynb")


def test_a_gateway_that_is_stopped_and_started_is_told_and_the_notebook_runs_again(
    folder: Path, tmp_path: Path, gateway: RealServer
) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    wait = (
        f"import os, time\nwith open({str(begun)!r}, 'a') as file: file.write('x')\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    )
    write(folder / "a.ipynb", "x = 1", wait, "print('done')")
    reports: list[BatchReport] = []

    def work() -> None:
        reports.append(run_batch(["a.ipynb"], out="out", server=gateway.url, retries=1))

    thread = threading.Thread(target=work)
    thread.start()
    wait_for(lambda: begun.exists() and begun.read_text() == "x", "the first cell", 60)
    end(gateway.process)
    with running("gateway", tmp_path / "again", token=gateway.token, port=gateway.port):
        wait_for(lambda: begun.read_text() == "xx", "the second attempt", 90)
        gate.touch()
        thread.join(60)
    (result,) = reports[0].results
    assert (result.status, result.attempts) == ("ok", 2)
    assert result.notes[0].startswith("Attempt 1: cell c1 (index 1): "), result.notes
    assert "died" in result.notes[0]
    assert printed(folder / "out/a.ipynb") == "done\n"
