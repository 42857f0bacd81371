"""However much a cell prints: nothing is lost, memory stays, and it can be stopped."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.kernels.fleet import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

REAL = [kind for kind in KINDS if kind.name in ("runner", "ipykernel 7")]
every_real = pytest.mark.parametrize("kind", REAL, ids=str)
pytestmark = pytest.mark.timeout(300)


def drown(kind: Kind, folder: Path, code: str, interrupt: float = 0) -> dict[str, Any]:
    words = [sys.executable, "-m", "tests.kernels.drowning", kind.name, str(folder), code]
    done = subprocess.run(
        [*words, str(interrupt)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def hashed(pieces: Iterable[str]) -> tuple[int, str]:
    size, state = 0, hashlib.sha256()
    for piece in pieces:
        data = piece.encode()
        size += len(data)
        state.update(data)
    return size, state.hexdigest()


def check_whole(found: dict[str, Any], lines: Iterable[str]) -> None:
    size, digest = hashed(lines)
    assert (found["status"], found["after"]) == ("ok", "ok")
    assert (found["raw_bytes"], found["artifact_bytes"]) == (size, size)
    assert (found["sha256"], found["artifact_truncated"]) == (digest, False)
    assert found["kept_bytes"] <= 50 * 1024


@every_real
def test_two_hundred_thousand_lines_arrive_whole_in_little_memory(
    kind: Kind, tmp_path: Path
) -> None:
    found = drown(kind, tmp_path, "for i in range(200_000): print(i)")
    check_whole(found, (f"{number}\n" for number in range(200_000)))
    assert found["lines"] == 200_000
    assert found["megabytes"] < 8


@pytest.mark.all
@every_real
def test_a_million_lines_arrive_whole_in_little_memory(kind: Kind, tmp_path: Path) -> None:
    found = drown(kind, tmp_path, "for i in range(1_000_000): print(i)")
    check_whole(found, (f"{number}\n" for number in range(1_000_000)))
    assert found["megabytes"] < 8


@pytest.mark.all
@every_real
def test_a_hundred_megabytes_arrive_whole_in_little_memory(kind: Kind, tmp_path: Path) -> None:
    found = drown(kind, tmp_path, "line = 'x' * 99\nfor i in range(1_000_000): print(line)")
    line = "x" * 99 + "\n"
    check_whole(found, (line for _ in range(1_000_000)))
    assert found["megabytes"] < 8


@pytest.mark.all
@every_real
def test_a_gigabyte_in_one_line_is_kept_up_to_the_stated_cap(kind: Kind, tmp_path: Path) -> None:
    code = "import sys\npart = 'x' * 1_000_000\nfor i in range(1000): sys.stdout.write(part)"
    found = drown(kind, tmp_path, code)
    assert (found["status"], found["after"]) == ("ok", "ok")
    assert found["raw_bytes"] == 1_000_000_000
    assert found["artifact_truncated"]
    assert 290_000_000 <= found["artifact_bytes"] <= 300_000_000
    assert found["megabytes"] < 64


@every_real
def test_a_flood_can_be_interrupted(kind: Kind, tmp_path: Path) -> None:
    found = drown(kind, tmp_path, "i = 0\nwhile True: print(i); i += 1", interrupt=1)
    assert (found["status"], found["state_kept"], found["after"]) == ("cancelled", True, "ok")
    assert found["seconds"] < 1 + 5
    assert found["lines"] > 1000
