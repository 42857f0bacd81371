"""Floods of output: nothing is lost, and the reader's memory stays small."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("flood_reader.py")
MEGABYTES = 8
LINES = "for i in range({}): print(i)"
LONG_LINES = "for i in range({}): print('é' + str(i).rjust(98, 'x'))"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        (LINES, 200_000),
        pytest.param(LINES, 1_000_000, marks=pytest.mark.all),
        pytest.param(LONG_LINES, 1_000_000, marks=pytest.mark.all),
    ],
)
def test_a_flood_is_read_whole_in_little_memory(source: str, count: int) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), source.format(count)],
        capture_output=True,
        check=True,
        timeout=100,
    )

    facts = json.loads(done.stdout)
    digest = hashlib.sha256()
    for i in range(count):
        line = f"{i}\n" if source is LINES else f"é{i:x>98}\n"
        digest.update(line.encode())
    assert facts["status"] == "ok"
    assert facts["hash"] == digest.hexdigest()
    assert facts["added"] < MEGABYTES
