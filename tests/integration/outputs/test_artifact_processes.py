"""Several processes share one folder, and any may be killed at any moment."""

from __future__ import annotations

import hashlib
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

from cellwright.outputs.artifacts import ArtifactStore

WORKER = Path(__file__).with_name("artifact_worker.py")


def start(folder: Path, mark: str, count: int, quota: int = 2**30) -> subprocess.Popen[str]:
    words = [sys.executable, str(WORKER), str(folder), mark, str(count), str(quota)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def check_all(store: ArtifactStore) -> int:
    """Everything that is listed is whole, and from one writer alone."""
    found = store.list()
    for artifact in found:
        data = store.read(artifact.id, 0, artifact.size).data
        assert hashlib.sha256(data).hexdigest() == artifact.sha256
        data = store.read(artifact.id, 0, 2**20).data
        assert len(data) == artifact.size
        assert len(set(data.splitlines())) == 1
        assert data.count(b"\n") == 20_000
    return len(found)


def test_four_processes_write_at_once(tmp_path: Path) -> None:
    workers = [start(tmp_path, f"worker-{number}", 15) for number in range(4)]
    ids = [line for worker in workers for line in worker.communicate(timeout=100)[0].split()]
    assert [worker.returncode for worker in workers] == [0] * 4
    store = ArtifactStore(tmp_path)
    assert check_all(store) == 60
    assert {artifact.id for artifact in store.list()} == set(ids)


def test_the_quota_holds_with_four_processes(tmp_path: Path) -> None:
    quota = 3_000_000
    workers = [start(tmp_path, f"worker-{number}", 10, quota) for number in range(4)]
    for worker in workers:
        worker.communicate(timeout=100)
        assert worker.returncode == 0
    store = ArtifactStore(tmp_path, quota_bytes=quota)
    store.make_room()
    assert 1 <= check_all(store) <= quota // 220_000
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= quota


def test_a_kill_leaves_whole_artifacts_and_nothing_that_stays(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    for attempt in range(8):
        worker = start(tmp_path, f"worker-{attempt}", 10_000)
        assert worker.stdout is not None
        for _ in range(random.Random(attempt).randint(1, 12)):
            assert re.fullmatch("[a-z2-7]{10}\n", worker.stdout.readline())
        os.kill(worker.pid, signal.SIGKILL)
        worker.stdout.close()
        assert worker.wait(timeout=20) == -signal.SIGKILL
        check_all(store)
    whole = check_all(store)
    assert whole >= 8
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    store.make_room()
    assert check_all(store) == whole
    assert len(list(tmp_path.iterdir())) == 2 * whole
