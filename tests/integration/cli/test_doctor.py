"""`cellwright doctor` asks git, in a process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.calling import succeed
from tests.unit.cli.test_control import EVIL, assert_tame, evil

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["evil"]  # a fixture


def test_places_are_shown_tamely(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders and files of settings may have any name too."""
    place = evil.parent / f"state{EVIL}"
    place.mkdir()
    (place / "cellwright.toml").write_text("lock_timeout = 7\n", encoding="utf-8")
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    assert_tame(succeed("doctor"))
    assert_tame(succeed("config", "--origin"))
    (place / "cellwright").mkdir(exist_ok=True)
    (place / "cellwright" / "journal.sqlite3").write_bytes(b"no database at all" * 99)
    assert_tame(succeed("edit", evil, "delete", "c"))


@pytest.mark.usefixtures("folder")
def test_the_doctor_answers_with_versions_folders_and_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CELLWRIGHT_ENGINE")  # it starts none, and tells of settings
    report = succeed("doctor", "--json").data
    assert list(report) == [
        "cellwright",
        "python",
        "platform",
        "packages",
        "pictures",
        "runtime directory",
        "state directory",
        "config directory",
        "settings",
        "journal",
        "git",
        "problems",
    ]
    assert report["packages"].keys() == {"msgspec", "nbformat", "click", "rich"}
    assert report["problems"] == []
    assert report["state directory"] == f"{os.environ['XDG_STATE_HOME']}/cellwright"
    assert report["settings"] == "all default"
