"""Whose Python runs: a run that takes an environment from a folder names it, once."""

from __future__ import annotations

import venv
from typing import TYPE_CHECKING

from cellwright import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_run_names_the_environment_that_it_found_beside_the_code_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    venv.create(tmp_path / ".venv", symlinks=True)
    with Workspace(tmp_path) as workspace:
        cells = workspace.eval(["import sys; print(sys.prefix)", "1"]).cells
        again = workspace.eval(["1"], session="another").cells
        asked = workspace.eval(["1"], session="third", kernel=str(tmp_path / ".venv"), runner=True)

    assert cells[0].text == f"{tmp_path / '.venv'}\n"
    assert cells[0].notes == [f"The Python that runs is that of {tmp_path / '.venv'}"]
    assert [cell.notes for cell in [cells[1], *again, *asked.cells]] == [[], [], []]


def test_an_environment_of_others_is_named_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    venv.create(tmp_path / ".venv", symlinks=True)
    (tmp_path / ".venv").chmod(0o777)
    with Workspace(tmp_path) as workspace:
        (cell,) = workspace.eval(["import sys; print(sys.prefix)"]).cells

    assert cell.text != f"{tmp_path / '.venv'}\n"
    assert cell.notes == [
        f"The environment {tmp_path / '.venv'} is not used: all users may write {tmp_path / '.venv'}"
    ]
