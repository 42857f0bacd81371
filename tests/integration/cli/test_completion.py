"""The completion scripts work in the shells they are for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require_tool
from tests.unit.cli import samples
from tests.unit.cli.calling import call, succeed

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ["bash", "zsh", "fish"]
SCRIPTS = Path(sys.executable).parent


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_is_for_both_names_of_the_command(shell: str) -> None:
    answer = succeed("completion", shell)
    assert answer.err == ""
    for variable in ("_CELLWRIGHT_COMPLETE", "_CW_COMPLETE"):
        assert variable in answer.text


def test_the_script_for_bash_can_be_read_by_bash(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(succeed("completion", "bash").out)
    subprocess.run([require_tool("bash"), "-n", script], check=True)


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _{0}_completion {0}"),
        ("zsh", "#compdef {0}"),
        ("fish", "complete --no-files --command {0} "),
    ],
)
def test_every_script_is_in_the_words_of_its_shell(shell: str, line: str) -> None:
    script = succeed("completion", shell).text
    for name in ("cellwright", "cw"):
        assert line.format(name) in script


def test_another_shell_is_wrong_usage() -> None:
    assert call("completion", "tcsh").code == 2


def complete(name: str, words: Sequence[str]) -> list[str]:
    """What bash would offer for the last word."""
    line = " ".join([name, *words])
    script = SCRIPTS / name
    env = {
        **os.environ,
        f"_{name.upper()}_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run([script], env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["cellwright", "cw"])
def test_commands_and_options_are_completed_for_both_names(name: str) -> None:
    assert complete(name, ["re"]) == ["plain,read", "plain,redo"]
    assert "plain,--json" in complete(name, ["read", "--j"])
    assert complete(name, ["edit", "nb.ipynb", "replace-"]) == ["plain,replace-text"]
    assert complete(name, ["read", "--mode", "a"]) == ["plain,ask", "plain,agent"]


@pytest.mark.parametrize("words", [["read", "n"], ["edit", "n"], ["log", "n"], ["upgrade", "n"]])
def test_notebooks_are_completed_as_files(words: list[str]) -> None:
    assert complete("cellwright", words) == ["file,n"]


def test_cells_and_selectors_of_a_notebook_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    assert complete("cellwright", ["run", "nb.ipynb", "l"]) == ["plain,load", "plain,later"]
    assert complete("cellwright", ["run", "nb.ipynb", "load", "x.ip"]) == ["file,x.ip"]
    assert complete("cellwright", ["edit", "nb.ipynb", "replace", "pl"]) == ["plain,plot"]
    assert complete("cellwright", ["edit", "nb.ipynb", "move", "load", "--after", "re"]) == [
        "plain,results"
    ]
    # Bash has the words that end with : and = as words of their own.
    assert complete("cellwright", ["read", "nb.ipynb", ":", "out"]) == ["plain,outline"]
    assert complete("cellwright", ["read", "nb.ipynb", ":", "cell", "=", "lo"]) == ["plain,load"]
    assert complete("cellwright", ["read", "nb.ipynb", ":", "section", "=", "R"]) == [
        "plain,Results"
    ]
    assert complete("cellwright", ["read", "nb.ipynb:cell=pl"]) == ["plain,nb.ipynb:cell=plot"]
    assert complete("cellwright", ["read", "nowhere.ipynb:cell=pl"]) == [""]
