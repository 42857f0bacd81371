"""`cellwright doctor` asks git, and `cellwright demo` types commands, in processes."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

from cellwright.journal import Journal
from tests.unit.cli.calling import call, succeed
from tests.unit.cli.test_control import EVIL, assert_tame, evil

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
    monkeypatch.delenv("CELLWRIGHT_SPARE_KERNEL")
    report = succeed("doctor", "--json").data
    assert list(report) == [
        "cellwright",
        "python",
        "platform",
        "kernels",
        "extras",
        "packages",
        "pictures",
        "editors",
        "runtime directory",
        "state directory",
        "config directory",
        "settings",
        "journal",
        "git",
        "problems",
    ]
    assert {"ipykernel", "msgspec", "pydantic"} < report["packages"].keys()
    assert report["editors"]["VS Code, Cursor and others"].startswith("are invisible")
    assert report["kernels"]["python3"].endswith(" (the default: own environment)")
    extras = {"acp", "assistant", "batch", "charts", "images", "jupyter-ai", "lab", "mcp"}
    assert report["extras"].keys() == extras
    assert report["extras"]["mcp"].startswith("installed (mcp ")
    assert report["problems"] == []
    assert report["state directory"] == f"{os.environ['XDG_STATE_HOME']}/cellwright"
    assert report["settings"] == "all default"


@pytest.mark.usefixtures("folder")
def test_the_doctor_names_damage_and_repairs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CELLWRIGHT_ENGINE")
    succeed("new", "a.ipynb")
    succeed("edit", "a.ipynb", "insert", "x = 1")
    before = succeed("log", "a.ipynb", "--json").data
    state = Path(os.environ["XDG_STATE_HOME"], "cellwright")
    (state / "journal.sqlite3").rename(state / "journal.sqlite3.broken-20260101-000000-1")
    assert call("doctor", "--json").json["data"]["problems"] == ["journal"]
    assert succeed("doctor", "--repair", "--json").data["problems"] == []
    assert succeed("log", "a.ipynb", "--json").data == before


@pytest.mark.usefixtures("folder")
def test_no_damage_of_the_journal_ends_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(Journal, "describe", fail)
    found = call("doctor", "--json")
    assert found.code == 1
    assert found.json["data"]["problems"] == ["journal"]


def test_the_doctor_says_what_to_install_when_cells_cannot_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = folder / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "lib" / "python3.12" / "site-packages" / "pip").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("version = 3.12.1\n", encoding="utf-8")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    done = call("doctor")
    assert done.code == 1
    (line,) = [line for line in done.text.splitlines() if line.startswith("kernels ")]
    assert "PROBLEM: " in line
    assert f"{venv}/bin/python -m pip install ipykernel" in line
    assert "Something is wrong: kernels" in done.err


def test_the_doctor_says_how_to_install_an_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "mcp":
            raise metadata.PackageNotFoundError
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    done = succeed("doctor")
    assert "mcp needs mcp: pip install 'cellwright[mcp]'\n" in done.text
    assert folder.exists()


def test_the_demo_plays_to_its_end_and_leaves_nothing_behind(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELLWRIGHT_ENGINE")
    monkeypatch.delenv("CI", raising=False)  # there, an engine is used only if asked for
    before = sorted(path.name for path in places.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(places))
    steps = succeed("demo", "--json").data["steps"]
    assert [step["exit"] for step in steps] == [0, 0, 0, 0, 0, 6, 0, 0]
    assert all(step["command"].startswith("cellwright ") for step in steps)
    assert sorted(path.name for path in places.iterdir()) == before
    mark = f"CELLWRIGHT_RUNTIME_DIR={places}/cellwright-".encode()
    for process in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            assert mark not in process.read_bytes(), process
