"""`cellwright lab`: what it starts, and what it says of an installation without the extension."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cellwright import server
from cellwright.cli.commands import lab
from tests.unit.cli.calling import call

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("place", ["beside us", "where Jupyter looks", "nowhere"])
def test_an_installation_without_the_extension_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A checkout that was installed before `./dev lab` has none, and JupyterLab says nothing of it."""
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, words: started.append(words))
    monkeypatch.setattr(lab, "require_package", lambda *_: None)
    monkeypatch.setattr(server, "__file__", str(tmp_path / "server" / "__init__.py"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    folders = {"beside us": "server/labextensions", "where Jupyter looks": "share/labextensions"}
    if place in folders:
        (tmp_path / folders[place] / "cellwright-lab").mkdir(parents=True)
    answer = call("lab", "--no-browser")
    assert answer.code == 0
    assert ("no extension of JupyterLab" in answer.err) == (place == "nowhere")
    assert started[0][-1] == "--no-browser"
