"""Keys stay with who has them: neither the engine nor its kernels get them unasked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.app.workspaces import open_workspace
from tests.conftest import ROOT
from tests.engines import Engine, engine_of_its_own

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRETS = ("OPENAI_API_KEY", "GITHUB_TOKEN", "AZURE_CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY")
# The code goes through the engine, so that it must not have the key in one piece.
ASK = (
    "import os; print(sorted(name for name in os.environ if 'terces-ks'[::-1] in os.environ[name]))"
)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    for name in SECRETS:
        monkeypatch.setenv(name, "sk-secret")
    with engine_of_its_own(monkeypatch) as engine:
        yield engine


def read_memory(pid: int) -> bytes:
    """All that a process can write to, as root may read it."""
    found = []
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights, *_ = line.split()
            if rights.startswith("rw") and "[v" not in line:
                start, end = (int(part, 16) for part in span.split("-"))
                memory.seek(start)
                found.append(memory.read(end - start))
    return b"".join(found)


@pytest.mark.root
def test_the_engine_never_has_a_key_of_its_clients(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_PASS_VARIABLES", "AWS_*")
    monkeypatch.setenv("PLAIN", "a-plain-value-of-the-client")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "no such secret")
    with open_workspace(tmp_path, actor="test:ada", start=True, warn=pytest.fail) as workspace:
        cell = workspace.eval(["import os; print(os.environ['AWS_SECRET_ACCESS_KEY'])"]).cells[0]
        assert cell.text == "no such secret\n"  # passed, as that client's settings say
        cell = workspace.eval([ASK]).cells[0]
        assert cell.text == "[]\n"
        cell = workspace.eval(["os.environ['OPENAI_API_KEY']"]).cells[0]
        assert any("CELLWRIGHT_PASS_VARIABLES=OPENAI_API_KEY" in note for note in cell.notes)
        memory = read_memory(engine.pid)
    assert b"sk-secret" not in Path(f"/proc/{engine.pid}/environ").read_bytes()
    assert b"a-plain-value-of-the-client" in memory  # it is in there, if it is anywhere
    where = memory.find(b"sk-secret")
    assert where < 0, memory[max(0, where - 100) : where + 100]


PROGRAM = """
import ctypes, os, sys
if len(sys.argv) == 1:
    for right in (19, 21, 38):  # what lets root read any process; without them it is as any user
        ctypes.CDLL(None).prctl(24, right, 0, 0, 0)
    os.execv(sys.executable, [*sys.orig_argv, "again"])
import subprocess
from cellwright.engine.launch import connect_or_start
from tests.conftest import ROOT
from tests.engines import Engine
connect_or_start().close()
child = subprocess.Popen(["sleep", "60"])
for pid in (child.pid, Engine().pid):
    try:
        print(len(open(f"/proc/{pid}/environ", "rb").read()) > 0)
    except PermissionError as error:
        print("denied")
child.kill()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has it")
def test_the_engine_cannot_be_read_by_processes_of_its_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with engine_of_its_own(monkeypatch, started=False):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert done.stdout.split() == ["True", "denied"], done.stderr
