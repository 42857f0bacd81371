"""What commands that start processes answer with `--json`, compared with golden files.

See tests/unit/cli/golden.py for how to write the files anew.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require_tool
from tests.engines import engine_of_its_own
from tests.unit.cli.calling import call
from tests.unit.cli.stories import PROCESS_STORIES, check_story, files

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["files"]  # a fixture


@pytest.fixture
def _own_kernelspecs(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands see one kernelspec, and ipykernel's own; never those of this machine."""
    for variable in ("CONDA_PREFIX", "JUPYTER_PREFER_ENV_PATH", "VIRTUAL_ENV", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(places / "jupyter-data"))
    monkeypatch.setenv("JUPYTER_PATH", str(places / "jupyter"))
    monkeypatch.setattr("cellwright.kernel.discovery._SYSTEM", ())
    folder = places / "jupyter" / "kernels" / "ir"
    folder.mkdir(parents=True)
    spec = {"argv": ["R", "{connection_file}"], "display_name": "R", "language": "R"}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


@pytest.mark.usefixtures("_own_kernelspecs")
@pytest.mark.parametrize("name", PROCESS_STORIES)
def test_every_answer_in_json_is_as_it_is_written_down(
    name: str, files: Path, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "git":
        subprocess.run([require_tool("git"), "init", "--quiet", files], check=True)
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    engine = engine_of_its_own(monkeypatch, started=False) if name == "engine" else nullcontext()
    with engine:
        check_story(name, files, places)


@pytest.mark.usefixtures("folder")
def test_a_mode_that_forbids_running_ends_eval_with_its_code() -> None:
    answer = call("eval", "1", "--mode", "ask", "--json")
    assert (answer.code, answer.error["code"]) == (5, "MODE_FORBIDS")
