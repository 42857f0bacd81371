"""Many clients on two notebooks through the engine, which is killed under them again and again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from cellwright import Workspace
from cellwright.journal.place import default_path
from tests.conftest import ROOT
from tests.engines import Engine, engine_of_its_own, is_alive, wait_for
from tests.integration.engine.crowd import NOTEBOOKS
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Engine]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for path in NOTEBOOKS:
        (tmp_path / path).write_bytes(samples.write(samples.markdown("top", f"# {path}")))
    with engine_of_its_own(monkeypatch) as engine:
        yield engine


def leftovers(folder: Path) -> list[str]:
    """Processes that work in our places, except ourselves."""
    mark = f"XDG_RUNTIME_DIR={folder}/run\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes() and is_alive(int(process.name)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("clients", "operations", "kills"),
    [
        pytest.param(4, 12, 1, marks=pytest.mark.timeout(180)),
        pytest.param(8, 100, 0, marks=[pytest.mark.all, pytest.mark.timeout(600)]),
        pytest.param(8, 100, 5, marks=[pytest.mark.all, pytest.mark.timeout(900)]),
    ],
)
def test_no_edit_is_lost_and_every_output_is_where_it_belongs(
    engine: Engine, places: Path, *, clients: int, operations: int, kills: int
) -> None:
    tmp_path = Path.cwd()
    words = [sys.executable, "-m", "tests.integration.engine.crowd"]
    crowd = [
        subprocess.Popen(
            [*words, f"k{number}", str(operations), str(tmp_path / f"progress-{number}")],
            stdout=subprocess.PIPE,
            env={**os.environ, "CELLWRIGHT_LOCK_TIMEOUT": "120"},
        )
        for number in range(clients)
    ]
    killed = _kill(engine, kills, clients * operations, tmp_path, crowd)
    accounts = [json.loads(client.communicate()[0]) for client in crowd]
    assert [account["problem"] for account in accounts] == [None] * clients
    assert len(killed) == kills
    assert all(not is_alive(pid) for pid in killed)
    engine.stop()

    for path in NOTEBOOKS:
        content = json.loads((tmp_path / path).read_text())
        nbformat.validate(nbformat.from_dict(content))
        cells = {cell["id"]: cell for cell in content["cells"]}
        assert len(cells) == len(content["cells"])
        wanted = {k: v for account in accounts for k, v in account["cells"][path].items()}
        assert set(cells) == {"top", *wanted}
        for name, source in wanted.items():
            assert "".join(cells[name]["source"]) == source
        for account in accounts:
            for name, text in account["printed"][path].items():
                printed = "".join("".join(output["text"]) for output in cells[name]["outputs"])
                if text is not None:
                    assert printed == text, name

    with sqlite3.connect(default_path()) as journal:
        assert journal.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    journal.close()
    with Workspace() as workspace:
        for path in NOTEBOOKS:
            book = workspace.open(path)
            log = book.log()
            edits = sum(len(account["cells"][path]) for account in accounts)
            assert len([entry for entry in log if entry.kind == "edit"]) >= edits
            assert book.diff("first").cells
            book.restore("first")
            assert [cell.id for cell in book.read().cells] == ["top"]
    wait_for(lambda: leftovers(places) == [], "the end of every process", 30)


def _kill(
    engine: Engine, kills: int, total: int, folder: Path, crowd: list[subprocess.Popen[bytes]]
) -> list[int]:
    """Kill the engine at regular stages of the work."""
    killed: list[int] = []
    for kill in range(kills):
        stage = total * (kill + 1) // (kills + 1)
        while _done(folder) < stage and any(client.poll() is None for client in crowd):
            time.sleep(0.01)
        pid = wait_for(lambda: _pid(engine, killed), "an engine to kill", 60)
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)
    return killed


def _done(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("progress-*"))


def _pid(engine: Engine, before: list[int]) -> int | None:
    try:
        pid = engine.pid
    except (OSError, ConnectionError):
        return None
    return pid if pid not in before else None
