"""A batch whose process is killed again and again: in the end every notebook was done, once."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from tests.unit.cli.calling import command

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.all, pytest.mark.timeout(2400)]
KILLS, NOTEBOOKS, SEED = 20, 24, 20


def test_twenty_kills_run_no_notebook_twice_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(NOTEBOOKS):
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        cells = [
            {**cell, "id": "a", "source": f"n = {number}"},
            {**cell, "id": "b", "source": "import time; time.sleep(0.2)"},
            {**cell, "id": "c", "source": "print(n)"},
        ]
        shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / f"n{number:02}.ipynb").write_text(json.dumps(shape))
    batch = command("batch", "n*.ipynb", "--out", "out", "-j", "2", "--json", "--resume")
    chance = random.Random(SEED)
    kills = 0
    while kills < KILLS:
        with subprocess.Popen(batch, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            # A moment that does not depend on how fast the machine is: after so many events.
            for _ in range(chance.randrange(1, 14)):
                if not running.stdout.readline():
                    break
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(chance.random() * 0.3)
            running.kill()
        kills += 1
    done = subprocess.run(batch, capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])["data"]
    assert {run["status"] for run in report["runs"]} <= {"ok", "skipped"}
    assert len(report["runs"]) == NOTEBOOKS
    with Workspace(".", engine=False) as workspace:
        for number in range(NOTEBOOKS):
            book = workspace.open(f"out/n{number:02}.ipynb")
            ends = [run for run in book.executions() if run.cell == "c" and run.status == "ok"]
            assert len(ends) == 1, (number, ends)
            assert book.load().metadata["papermill"]["exception"] is False
            assert "".join(book.load().cells[2].outputs[0].text) == f"{number}\n"  # type: ignore[union-attr]
