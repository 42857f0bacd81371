"""Git starts the drivers in the worktree of anyone: they take nothing from it, and can be missing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from cellwright.app import installation
from cellwright.cli.commands.git import driver_settings
from cellwright.errors import ConfigError
from cellwright.mcp.clients import NAMES, build_snippet
from tests.integration.cli.test_git import Repo
from tests.integration.hostile import doors, repository
from tests.integration.hostile.repository import KINDS, NAME, UNSAFE, Hostile, code, notebook
from tests.unit.cli.calling import succeed

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = [name for name in KINDS if name.startswith(("module ", "program ", "environment "))]
BASE = notebook(code("a = 1", id="one"), code("b = 1", id="two"))
OURS, THEIRS = BASE.replace("a = 1", "a = 2"), BASE.replace("b = 1", "b = 2")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # Many shells have an empty entry there, which means the current folder.
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path}")
    hostile = Hostile(tmp_path).plant(PLANTED)
    monkeypatch.chdir(hostile.folder)
    return hostile


@pytest.fixture
def repo(hostile: Hostile) -> Repo:
    repo = Repo(hostile.folder)
    succeed("git", "install")
    repo.commits(
        ("base", None, BASE.encode()),
        ("main", "base", OURS.encode()),
        ("theirs", "base", THEIRS.encode()),
    )
    return repo


def test_git_runs_nothing_of_the_worktree(hostile: Hostile, repo: Repo) -> None:
    assert "# %% [code] one\n" in repo.git("log", "-p")
    repo.file.write_text(BASE.replace("b = 1", "b = 3"))
    assert "+b = 3" in repo.git("diff")
    repo.git("checkout", "--quiet", NAME)
    repo.git("merge", "--quiet", "--no-edit", "theirs")
    sources = [cell["source"] for cell in json.loads(repo.file.read_bytes())["cells"]]
    assert ["".join(source) for source in sources] == ["a = 2", "b = 2"]
    assert "a = 2" in repo.git("show", "HEAD^:" + NAME)
    assert hostile.executed() == []


def test_git_shows_and_merges_itself_when_the_drivers_are_gone(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = hostile.outside.parent / "installed" / "bin" / "py thon"
    monkeypatch.setattr(sys, "executable", str(python))
    repo = Repo(hostile.folder)
    succeed("git", "install")
    repo.commits(
        ("base", None, BASE.encode()),
        ("main", "base", OURS.encode()),
        ("theirs", "base", THEIRS.encode()),
    )
    shown = repo.git("log", "-p")
    assert '+   "source": "a = 2",' in shown
    assert repo.run("merge", "--quiet", "--no-edit", "theirs").returncode in (0, 1)  # as git does
    assert "fatal" not in repo.run("status").stderr.decode()
    text = repo.file.read_text()
    assert "a = 2" in text
    assert "b = 2" in text


def test_what_git_shows_of_a_notebook_obeys_no_one(repo: Repo) -> None:
    for text in (notebook(code(UNSAFE, id="one")), f'{{"cells": [ "{UNSAFE}'):
        repo.file.write_text(text, encoding="utf-8")
        shown = repo.run("diff", "--no-color").stdout.decode()
        assert not set(UNSAFE) - set("0123456789;[]tJm") & set(shown)


@pytest.mark.parametrize("client", NAMES)
def test_the_settings_of_clients_start_an_isolated_python(client: str) -> None:
    said = build_snippet(client, "/root", []).text

    assert '"-I"' in said
    assert sys.executable in said


def test_a_package_that_only_a_variable_finds_is_started_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import cellwright

    folder = os.path.dirname(os.path.dirname(cellwright.__file__))  # noqa: PTH120
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere:{folder}")
    assert installation.find_start_command().words[1] == "-P"


def test_a_cache_is_refused_or_another_installation_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache" / "archive-v0" / "x"
    cache.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(cache))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f".:relative:{cache}")
    with pytest.raises(ConfigError) as caught:
        driver_settings()
    assert "uv tool install" in str(caught.value.hint)

    lasting = tmp_path / "bin" / "cellwright"
    lasting.parent.mkdir()
    shutil.copy("/bin/sh", lasting)
    monkeypatch.setenv("PATH", f".:{tmp_path / 'bin'}")
    assert installation.find_start_command().words == (str(lasting),)
    assert shlex.quote(str(lasting)) in driver_settings()["merge.cellwright.driver"]

    monkeypatch.delenv("UV_CACHE_DIR")
    monkeypatch.setenv("PATH", "")
    assert installation.find_start_command().words[0] == sys.executable
    (tmp_path / "cache" / "CACHEDIR.TAG").write_text("")
    with pytest.raises(ConfigError):
        installation.find_start_command()


def write_all(repo: Repo, branch: str, files: dict[str, str | bytes], start: str | None) -> None:
    """Make a branch with one commit that has these files."""
    repo.git("checkout", "--quiet", "-b", branch, *([start] if start else []))
    for name, data in files.items():
        place = repo.folder / name
        place.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "replace"))
    repo.git("add", "--", *(f"./{name}" for name in files))
    repo.git("commit", "--quiet", "--message", branch)


def merge_and_settle(
    hostile: Hostile, evil: dict[str, str | bytes], way: str = "merge", *, is_named: bool = False
) -> None:
    """Merge a branch with these files in one way, and settle each with the merge tool."""
    repo = Repo(hostile.folder)
    succeed("git", "install", "--strip")
    write_all(repo, "start", dict.fromkeys(evil, BASE), None)
    write_all(repo, "evil", evil, "start")
    write_all(repo, "mine", dict.fromkeys(evil, OURS), "start")
    how = {"merge": "--no-edit", "rebase": "--quiet"}.get(way)
    runs = [repo.run(way, *([how] if how else []), "evil")]
    left = repo.git("diff", "--name-only", "--diff-filter=U", "-z").split("\0")[:-1]
    tool = ("mergetool", "--tool=cellwright", "--no-prompt", "--")
    runs += [repo.run(*tool, f"./{name}", stdin=b"2\n" * 50) for name in left]
    said = b"".join(part for done in runs for part in (done.stdout, done.stderr)).decode()
    assert "Traceback" not in said
    assert "bug in Cellwright" not in said
    if not is_named:  # git itself says names as they are
        assert doors.find_raw(said) is None, (way, doors.find_raw(said))
    assert hostile.executed() == []
    assert hostile.is_outside_untouched()


@pytest.mark.parametrize(
    "way",
    ["merge", *(pytest.param(way, marks=pytest.mark.all) for way in ("cherry-pick", "rebase"))],
)
def test_merging_a_hostile_branch_runs_nothing_and_shows_nothing_raw(
    way: str, hostile: Hostile
) -> None:
    # Both sides changed the same cell, so that the tool shows theirs.
    theirs = notebook(code(repository.PAYLOAD, id="one"), code("b = 1", id="two"))
    merge_and_settle(hostile, {"source.ipynb": theirs}, way)


@pytest.mark.all
@pytest.mark.parametrize("part", range(6))
def test_merging_every_hostile_notebook_runs_nothing_and_shows_nothing_raw(
    part: int, hostile: Hostile
) -> None:
    names = list(repository.NOTEBOOKS)[part::6]
    merge_and_settle(hostile, {f"{name}.ipynb": repository.NOTEBOOKS[name] for name in names})


@pytest.mark.all
def test_merging_files_with_hostile_names_runs_nothing(hostile: Hostile) -> None:
    merge_and_settle(hostile, dict.fromkeys(repository.NAMES.values(), THEIRS), is_named=True)
