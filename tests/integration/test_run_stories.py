"""What users of other tools ask for in vain: edit and run in one, told truthfully.

Each story is told twice, by processes on real files: through the engine, and in each process alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import cellwright

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.engines import Engine

    Say = Callable[..., tuple[int, dict[str, Any]]]

NAME = "nb.ipynb"


def write(folder: Path, *sources: str) -> None:
    notebook = cellwright.Notebook()
    notebook.apply(
        [
            {"op": "insert", "source": source, "id": f"c{place}"}
            for place, source in enumerate(sources)
        ]
    )
    cellwright.write(notebook, folder / NAME)


@pytest.fixture(params=["engine", "alone"])
def say(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    shared_engine: Engine,  # noqa: ARG001  # each story has a notebook of its own
) -> Say:
    """Call the command as a process of its own; gives its exit code and its answer as data."""
    ways = {"engine": "always", "alone": "never"}
    environ = {**os.environ, "CELLWRIGHT_ENGINE": ways[request.param]}

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", "cellwright", *words, "--json"],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


@pytest.fixture
def keeps_kernels(request: pytest.FixtureRequest) -> bool:
    """Whether a kernel outlives the command that started it."""
    return bool(request.node.callspec.params["say"] == "engine")


def outputs(folder: Path, cell: str) -> str:
    shown = cellwright.read(folder / NAME).cell(cell).outputs
    return "".join(str(getattr(output, "text", "")) for output in shown)


def test_one_call_edits_and_runs_and_the_file_has_the_outputs(say: Say, tmp_path: Path) -> None:
    write(tmp_path, "x = 1", "print(x)")
    code, answer = say("edit", NAME, "replace", "c1", "print('new')", "--run", "changed")
    assert code == 0
    assert [run["status"] for run in answer["data"]["executions"]] == ["ok"]
    assert "+print('new')" in answer["data"]["diff"]
    assert outputs(tmp_path, "c1") == "new\n"


def test_a_cell_that_raised_is_never_called_a_success(say: Say, tmp_path: Path) -> None:
    write(tmp_path, "x = 1", "1 / 0", "print('never')")
    code, answer = say("run", NAME)
    assert (code, answer["ok"], answer["error"]["code"]) == (1, False, "CELL_FAILED")
    assert "c1" in answer["error"]["message"]
    assert "index 1" in answer["error"]["message"]
    statuses = [run["status"] for run in answer["data"]["executions"]]
    assert statuses == ["ok", "error", "pending"]
    assert outputs(tmp_path, "c2") == ""


def test_what_an_edit_made_stale_is_said_with_its_reason_and_run(say: Say, tmp_path: Path) -> None:
    write(tmp_path, "x = 1", "y = 'apart'", "print(x + 1)")
    assert say("run", NAME)[0] == 0
    assert say("edit", NAME, "replace", "c0", "x = 41")[0] == 0
    states = {cell["cell"]: cell for cell in say("stale", NAME)[1]["data"]["cells"]}
    assert states["c0"]["state"] == states["c2"]["state"] == "stale"
    assert states["c1"]["state"] == "fresh"
    assert "x" in states["c2"]["stale_reason"]
    code, answer = say("run", NAME, "--stale")
    assert code == 0
    assert {"c0", "c2"} <= {run["cell"] for run in answer["data"]["executions"]}
    assert outputs(tmp_path, "c2") == "42\n"
    after = {cell["cell"]: cell["state"] for cell in say("stale", NAME)[1]["data"]["cells"]}
    assert after["c2"] == "fresh"


def test_a_write_against_an_old_revision_is_refused_where_it_would_lose_something(
    say: Say, tmp_path: Path
) -> None:
    write(tmp_path, "a = 1", "b = 2")
    revision = say("read", NAME)[1]["data"]["revision"]
    assert say("edit", NAME, "replace", "c0", "a = 'theirs'")[0] == 0
    code, answer = say("edit", NAME, "replace", "c0", "a = 'mine'", "--base", revision)
    assert (code, answer["error"]["code"]) == (6, "CONFLICT")
    assert answer["error"]["cells"][0]["current"] == "a = 'theirs'"
    assert say("edit", NAME, "replace", "c1", "b = 'mine'", "--base", revision)[0] == 0
    sources = [cell.source for cell in cellwright.read(tmp_path / NAME).cells]
    assert sources == ["a = 'theirs'", "b = 'mine'"]


def test_an_undo_brings_the_outputs_back(say: Say, tmp_path: Path) -> None:
    write(tmp_path, "print('kept')")
    assert say("run", NAME)[0] == 0
    assert say("edit", NAME, "delete", "c0")[0] == 0
    assert not cellwright.read(tmp_path / NAME).cells
    assert say("undo", NAME)[0] == 0
    assert outputs(tmp_path, "c0") == "kept\n"


def test_a_few_characters_of_a_cell_are_edited_without_the_rest(say: Say, tmp_path: Path) -> None:
    write(tmp_path, "first = 1\nsecond = 2\n\nthird = 3")
    edits = tmp_path / "edits.json"
    edits.write_text(
        json.dumps(
            [{"op": "replace_text", "cell": "c0", "old": "second = 2", "new": "second = 22"}]
        )
    )
    code, answer = say("edit", NAME, "apply", str(edits))
    assert code == 0
    changed = [line for line in answer["data"]["diff"].splitlines()[2:] if line[:1] in "+-"]
    assert changed == ["-second = 2", "+second = 22"]
    assert cellwright.read(tmp_path / NAME).cell("c0").source.splitlines()[1] == "second = 22"


def test_a_kernel_lives_from_one_command_to_the_next(
    say: Say, tmp_path: Path, *, keeps_kernels: bool
) -> None:
    write(tmp_path, "x = 20", "print(x + 1)")
    assert say("run", NAME, "c0")[0] == 0
    code, _ = say("run", NAME, "c1")
    assert (code == 0) is keeps_kernels  # and alone it says so, by failing
    if keeps_kernels:
        assert outputs(tmp_path, "c1") == "21\n"


def test_after_a_death_nothing_is_run_again_and_the_way_back_is_told(
    say: Say, tmp_path: Path, *, keeps_kernels: bool
) -> None:
    write(
        tmp_path,
        "open('ran', 'a').write('0')\nx = 1",
        "unrelated = 2",
        "import os\nos._exit(3)",
        "print(x)",
    )
    code, answer = say("run", NAME, "--all")
    assert (code, answer["error"]["code"]) == (4, "KERNEL_DIED")
    dead = answer["data"]["executions"][2]
    assert (dead["status"], dead["state_kept"]) == ("died", False)
    assert (tmp_path / "ran").read_text() == "0"
    if keeps_kernels:
        code, answer = say("run", NAME, "--replay", "c3")
        assert code == 0
        assert [run["cell"] for run in answer["data"]["executions"]] == ["c0", "c3"]
        assert (tmp_path / "ran").read_text() == "00"
        assert outputs(tmp_path, "c3") == "1\n"


@pytest.mark.parametrize("say", ["engine"], indirect=True)  # alone, it ends with its process
def test_a_long_run_is_left_and_found_again(say: Say, tmp_path: Path) -> None:
    write(tmp_path, "import time\nfor i in range(20):\n    print(i)\n    time.sleep(0.1)")
    code, answer = say("run", NAME, "--detach", "0.3")
    assert (code, answer["data"]["done"]) == (0, False)
    run = answer["data"]["run"]
    assert run in [row["run"] for row in say("runs")[1]["data"]["runs"] if row["ended"] is None]
    code, answer = say("attach", run)
    assert (code, answer["data"]["done"]) == (0, True)
    assert outputs(tmp_path, "c0").split()[-1] == "19"


def test_code_in_a_kernel_calls_the_tools_of_its_session(say: Say, tmp_path: Path) -> None:
    write(
        tmp_path,
        "import json, os, urllib.request\n"
        "def tool(name, **params):\n"
        "    address = os.environ['CELLWRIGHT_TOOL_BRIDGE_URL'] + '/tools/' + name\n"
        "    token = os.environ['PI_TOOL_BRIDGE_TOKEN']\n"
        "    headers = {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'}\n"
        "    asked = urllib.request.Request(address, json.dumps(params).encode(), headers)\n"
        "    return json.load(urllib.request.urlopen(asked))\n"
        "print(tool('notebook_list')['data']['total'])\n"
        "edit = {'op': 'insert', 'source': '# made by a kernel', 'type': 'markdown'}\n"
        f"print(tool('notebook_edit', path={NAME!r}, edits=[edit])['ok'])",
    )
    code, answer = say("run", NAME)
    assert code == 0, answer
    assert outputs(tmp_path, "c0") == "1\nTrue\n"
    assert cellwright.read(tmp_path / NAME).cells[1].source == "# made by a kernel"
