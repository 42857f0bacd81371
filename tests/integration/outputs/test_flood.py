"""However much is printed, and in whatever pieces, memory does not grow with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FLOOD = Path(__file__).with_name("flood.py")


def flood(kind: str, megabytes: int, folder: Path) -> tuple[int, int]:
    words = [sys.executable, str(FLOOD), kind, str(megabytes), str(folder)]
    answer = subprocess.run(words, capture_output=True, text=True, check=True, timeout=100)
    grown, _, _, raw_bytes = answer.stdout.split()
    return int(grown), int(raw_bytes)


@pytest.mark.parametrize("kind", ["lines", "one line", "one piece"])
def test_100_megabytes_take_less_than_8(kind: str, tmp_path: Path) -> None:
    grown, raw_bytes = flood(kind, 100, tmp_path)
    assert raw_bytes > 99_000_000
    assert grown < 8 * 1024


@pytest.mark.parametrize("kind", ["open title", "progress", "tiny"])
def test_odd_floods_are_bounded_too(kind: str, tmp_path: Path) -> None:
    grown, raw_bytes = flood(kind, 1 if kind == "tiny" else 20, tmp_path)
    assert raw_bytes > 990_000
    assert grown < 8 * 1024


@pytest.mark.all
def test_a_million_tiny_pieces_are_bounded(tmp_path: Path) -> None:
    grown, raw_bytes = flood("tiny", 3, tmp_path)
    assert raw_bytes == 3_000_000
    assert grown < 8 * 1024


@pytest.mark.all
def test_a_line_of_a_gigabyte_is_bounded(tmp_path: Path) -> None:
    grown, raw_bytes = flood("one line", 1000, tmp_path)
    assert raw_bytes > 990_000_000
    assert grown < 8 * 1024
