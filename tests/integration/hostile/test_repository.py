"""A whole hostile repository through commands, tools and git: nothing runs, leaks or forges."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cellwright.cli.main import COMMANDS
from cellwright.tools.profiles import PROFILES
from tests.integration.cli.test_git import Repo
from tests.integration.hostile import doors
from tests.integration.hostile.repository import FORGED, KINDS, NAMES, NOTEBOOKS, Hostile
from tests.unit.cli.calling import succeed

if TYPE_CHECKING:
    from pathlib import Path

# One of each sort; the others go the same ways, and take longer.
QUICK = [
    *("plain.ipynb", "id.ipynb", "cell type.ipynb", "source.ipynb", "error.ipynb", "html.ipynb"),
    *("kernelspec name.ipynb", "broken.ipynb", "shape.ipynb", "link.ipynb", "fifo.ipynb"),
    *(NAMES["escapes"], NAMES["newline"], NAMES["dash"], NAMES["shell"]),
]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    hostile = Hostile(tmp_path).plant()
    monkeypatch.chdir(hostile.folder)
    return hostile


def paths(repo: Hostile) -> list[str]:
    """Every notebook, also those that are none, and ways out."""
    found = sorted(str(path.relative_to(repo.folder)) for path in repo.folder.rglob("*.ipynb"))
    return [*found, "linked/other.ipynb", "../outside/other.ipynb", "nothing.ipynb"]


def test_there_are_enough_kinds_of_things() -> None:
    assert len(KINDS) >= 40
    assert len(NOTEBOOKS) >= 40


def test_every_command_goes_through_the_repository() -> None:
    found = [doors.reading_commands("x.ipynb"), doors.refused_commands("x.ipynb")]
    words = [*doors.GENERAL_COMMANDS, *(each for some in found for each in some)]
    assert {command for command, *_ in words} | doors.ELSEWHERE.keys() == COMMANDS.keys()


def test_every_tool_goes_through_the_repository() -> None:
    found = [*doors.reading_calls("x.ipynb"), *doors.refused_calls("x.ipynb")]
    called = {name for name, _ in [*found, *doors.GENERAL_CALLS]}
    tools = {tool.name for tool in PROFILES["all"]}
    assert called == tools


def check_commands(repo: Hostile, names: list[str]) -> int:
    count = 0
    for path in names:
        for words in doors.reading_commands(path):
            code, shown = doors.type_command(*words)
            assert doors.find_raw(shown) is None, (words, doors.find_raw(shown))
            assert code != 70, (words, shown)
            count += 1
    assert repo.executed() == []
    assert repo.is_outside_untouched()
    return count


async def check_tools(repo: Hostile, names: list[str]) -> int:
    calls = [call for path in names for call in doors.reading_calls(path)]
    results = await doors.call_tools(repo.folder, [*doors.GENERAL_CALLS, *calls])
    for what, result in results:
        assert doors.find_forged(result) is None, (what, doors.find_forged(result))
        assert "SECRET-OF-THE-USER" not in result.text, what
        assert result.data.get("code") not in ("INTERNAL_ERROR", "CELLWRIGHT_ERROR"), what
    assert repo.executed() == []
    assert repo.is_outside_untouched()
    return len(results)


def test_commands_show_nothing_raw_and_run_nothing(repo: Hostile) -> None:
    assert check_commands(repo, QUICK) > 200
    for path in QUICK:
        for words in doors.refused_commands(path):
            code, shown = doors.type_command(*words)
            assert doors.find_raw(shown) is None, (words, doors.find_raw(shown))
            assert code not in (0, 70), (words, shown)
    assert repo.executed() == []
    assert repo.is_outside_untouched()
    for words in doors.GENERAL_COMMANDS:
        code, shown = doors.type_command(*words)
        assert doors.find_raw(shown) is None, (words, doors.find_raw(shown))
        assert code == 0, (words, shown)


@pytest.mark.parametrize("path", ["kernelspec name.ipynb", "kernelspec path.ipynb"])
def test_a_kernel_that_a_notebook_names_is_not_started_and_not_shown_raw(
    path: str, repo: Hostile
) -> None:
    code, shown = doors.type_command("run", path)

    assert code == 4, shown
    assert doors.find_raw(shown) is None, shown
    assert f"\n{FORGED}" not in shown
    assert repo.executed() == []


@pytest.mark.anyio
async def test_tools_say_nothing_in_the_name_of_a_notebook(repo: Hostile) -> None:
    assert await check_tools(repo, QUICK) > 200
    calls = [call for path in QUICK for call in doors.refused_calls(path)]
    for what, result in await doors.call_tools(repo.folder, calls):
        assert doors.find_forged(result) is None, (what, doors.find_forged(result))
        assert result.is_error, what
    assert repo.is_outside_untouched()


@pytest.mark.all
def test_every_command_on_every_notebook(repo: Hostile) -> None:
    assert check_commands(repo, paths(repo)) > 850


@pytest.mark.all
@pytest.mark.anyio
async def test_every_tool_on_every_notebook(repo: Hostile) -> None:
    assert await check_tools(repo, paths(repo)) > 900


@pytest.mark.all
def test_every_command_as_a_process_in_the_folder_imports_nothing_of_it(repo: Hostile) -> None:
    for words in [*doors.reading_commands("plain.ipynb"), *doors.GENERAL_COMMANDS]:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "cellwright", *words],
            cwd=repo.folder,
            env={**os.environ, "PYTHONPATH": ":."},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode not in (66, 70), (words, done.stderr)
    assert repo.executed() == []


@pytest.mark.all
@pytest.mark.parametrize(
    "path", ["link.ipynb", "gone.ipynb", "linked/other.ipynb", "linked/n.ipynb"]
)
def test_nothing_is_written_through_a_link_that_leads_out(path: str, repo: Hostile) -> None:
    for words in (
        ["edit", "insert", "--root", ".", path, "x = 1"],
        ["new", "--root", ".", path],
        ["write", "--root", ".", path],
        ["upgrade", "--root", ".", path],
        ["undo", "--root", ".", path],
    ):
        code, _ = doors.type_command(*words)
        assert code != 0, words
        assert repo.is_outside_untouched(), words


@pytest.mark.all
def test_git_shows_all_of_it(repo: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for path in repo.folder.rglob("*.ipynb"):
        if not path.is_symlink() and not path.is_file():
            path.rmdir() if path.is_dir() else path.unlink()  # git has no such things
    git = Repo(repo.folder)
    succeed("git", "install")
    git.git("add", "--all")
    git.git("commit", "--quiet", "--message", "everything")
    shown = git.run("log", "-p", "--no-color", "--", "*.ipynb").stdout.decode()
    assert doors.find_raw(shown) is None, doors.find_raw(shown)
    assert git.run("blame", "source.ipynb").returncode == 0
    for words in (
        *(["status", "--short"], ["diff", "HEAD"], ["show", "--stat"], ["stash"]),
        *(["checkout", "--quiet", "-b", "other"], ["grep", "-c", "x", "--", "*.ipynb"]),
    ):
        git.run(*words)
        assert repo.executed() == [], words
    assert "SECRET-OF-THE-USER" not in shown
    assert repo.executed() == []
