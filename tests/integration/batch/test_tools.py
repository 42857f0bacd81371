"""Cells of a batch and of `pytest --cellwright` call the tools of their session."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)

ASKS = "from cellwright_kernel import session\nassert session.call_tool('notebook_list')['ok']"
BATCH = "from cellwright.batch import run_batch; run_batch(['a.ipynb']).raise_for_status()"


@pytest.mark.parametrize(
    "words", [("-c", BATCH), ("-m", "pytest", "-q", "--cellwright", ".")], ids=["batch", "pytest"]
)
def test_a_cell_may_call_a_tool(tmp_path: Path, words: tuple[str, ...]) -> None:
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": ASKS, "outputs": []}
    shape = {
        "cells": [{**cell, "execution_count": None}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "a.ipynb").write_text(json.dumps(shape))
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
