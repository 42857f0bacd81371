"""`cellwright run`: which cells, with what, how long, and what it says and ends with."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import engine_of_its_own
from tests.unit.cli import samples
from tests.unit.cli.calling import Answer, call, process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def notebook(folder: Path) -> Path:
    parameters = samples.code("par", "year = 2020\nregions = []")
    parameters["metadata"] = {"tags": ["parameters"]}
    cells = [
        parameters,
        samples.code("show", "print(year, regions)"),
        samples.code("bad", "x = 1\n1 / 0"),
        samples.code("slow", "import time\ntime.sleep(60)"),
    ]
    path = folder / "run.ipynb"
    path.write_bytes(samples.write(*cells))
    return path


def run(*words: str) -> Answer:
    return call("run", "run.ipynb", *words, "--no-engine")


def outputs(path: Path) -> list[list[dict[str, Any]]]:
    return [cell["outputs"] for cell in json.loads(path.read_bytes())["cells"]]


def test_a_range_runs_with_parameters_and_a_failure_is_told_with_its_place(notebook: Path) -> None:
    answer = run("par-bad", "-p", "year=2026", "-p", 'regions=["n", "s"]', "-p", "yaer=1")
    assert answer.code == 1
    assert answer.text == "2026 ['n', 's']\n"
    assert "cell bad (index 2), line 2: ZeroDivisionError: division by zero" in answer.err
    assert "    ----> 2 1 / 0\n" in answer.err
    assert "`yaer` is not assigned in cell par" in answer.err
    assert "\nerror: cell bad (index 2), line 2: " in answer.err
    assert re.search(r"\nrun.ipynb: 2 ok, 1 failed \(3 cells, \d+\.\d s\)\n", answer.err)
    assert outputs(notebook)[1][0]["text"] == ["2026 ['n', 's']\n"]
    assert b"2026" not in notebook.read_bytes().partition(b'"outputs"')[0]


def test_the_error_is_whole_in_json(notebook: Path) -> None:
    answer = run("bad", "--json")
    failed = answer.json["data"]["executions"][0]
    assert answer.json["error"]["message"].startswith("cell bad (index 2), line 2: ZeroDivision")
    assert failed["error"]["line"] == 2
    assert failed["error"]["traceback"][-1] == "ZeroDivisionError: division by zero"
    assert outputs(notebook)[2][0]["ename"] == "ZeroDivisionError"


def test_a_check_says_what_is_the_same_and_changes_nothing(notebook: Path) -> None:
    assert run("0-1").code == 0
    before = notebook.read_bytes()
    same = run("0-1", "--check")
    assert (same.code, same.text) == (0, "   0  par          same\n   1  show         same\n")
    differs = run("0-2", "--check", "--restart", "-p", "year=1")
    assert differs.code == 1
    assert "      -[stdout] 2020 []\n      +[stdout] 1 []\n" in differs.text
    assert "   2  bad          failed\n" in differs.text
    data = run("0-1", "--check", "-p", "year=1", "--json")
    assert (data.code, data.json["ok"]) == (1, False)
    assert [each["check"]["result"] for each in data.json["data"]["executions"]] == [
        "same",
        "differs",
    ]
    assert "differ from the file" in data.json["error"]["message"]
    assert notebook.read_bytes() == before


def test_what_takes_too_long_ends_it_with_124(notebook: Path) -> None:
    answer = run("slow", "--timeout", "0.5")
    assert answer.code == 124
    assert "cell slow (index 3), line 2: timed out\n" in answer.err
    assert "Command timed out after 0.5 seconds" in str(outputs(notebook)[3])
    answer = run("par", "show", "--time-limit", "0.000001", "--json")
    assert (answer.code, answer.json["error"]["code"]) == (124, "EXECUTION_TIMED_OUT")
    assert [each["status"] for each in answer.json["data"]["executions"]] == ["pending"] * 2
    assert outputs(notebook)[1] == []


@pytest.mark.usefixtures("notebook")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--all", "par"], 2, "--all runs all cells"),
        (["--all", "--replay", "par"], 2, "--all runs all cells"),
        (["--all", "--stale"], 2, "--all runs all cells"),
        (["par", "--above", "show"], 3, "only one of"),
        (["-p", "year.json"], 3, "NAME=VALUE, and a file of them as `-p @FILE`"),
        (["-p", "a b=1"], 3, "`a b` cannot be the name"),
        (["3-0"], 3, "ends before it begins"),
        (["zz"], 3, "No cell `zz`"),
        (["--timeout", "-1"], 3, "a timeout of -1 s"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], code: int, message: str) -> None:
    answer = run(*words)
    assert (answer.code, message in answer.err) == (code, True), answer


def test_outputs_that_cannot_be_saved_fail_the_command_with_the_artifact_that_has_them(
    notebook: Path,
) -> None:
    notebook.chmod(0o444)
    answer = run("par", "show", "--json")
    assert answer.code == 3
    assert answer.json["ok"] is False
    assert answer.json["error"]["code"] == "READ_ONLY"
    show = answer.json["data"]["executions"][1]
    assert (show["status"], show["saved"], show["save_error"]) == ("ok", False, "READ_ONLY")
    assert f"artifact://{show['artifact']}" in show["notes"][-1]
    kept = json.loads(call("artifact", show["artifact"], "--no-engine").text)
    assert kept == show["outputs"]
    edit = call("edit", "run.ipynb", "replace", "show", "1", "--run", "changed", "--no-engine")
    assert edit.code == 3  # READ_ONLY, before anything ran


def test_the_first_save_of_a_run_says_which_kernel_it_was(folder: Path) -> None:
    path = folder / "bare.ipynb"
    shape = {"cells": [samples.code("a", "1")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(shape), encoding="utf-8")
    assert call("run", "bare.ipynb", "--no-engine").code == 0
    metadata = json.loads(path.read_bytes())["metadata"]
    assert metadata["kernelspec"] == {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    }
    assert metadata["language_info"]["name"] == "python"
    assert metadata["language_info"]["file_extension"] == ".py"


def test_what_a_notebook_says_about_its_kernel_stays(folder: Path) -> None:
    path = folder / "named.ipynb"
    said = {"language_info": {"name": "python"}}
    shape = {
        "cells": [samples.code("a", "1")],
        "metadata": said,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(shape), encoding="utf-8")
    assert call("run", "named.ipynb", "--no-engine").code == 0
    assert json.loads(path.read_bytes())["metadata"] == said


def test_a_copy_is_run_in_a_kernel_of_its_own_in_the_notebooks_folder(
    notebook: Path, folder: Path
) -> None:
    cells = [samples.code("a", "import os\nn = 1"), samples.code("b", "print(os.getcwd(), n)")]
    notebook.write_bytes(samples.write(*cells))
    before = notebook.read_bytes()
    (folder / "out").mkdir()
    (folder / "given.toml").write_text("n = 5\n")
    answer = run("-o", "out/copy.ipynb", "-p", "@given.toml", "-p", "m=2")
    assert answer.code == 0, answer
    assert "out/copy.ipynb: 3 ok" in answer.err  # the parameters are a cell of the copy
    assert notebook.read_bytes() == before
    (said,) = outputs(folder / "out" / "copy.ipynb")[2]
    assert said["text"] == [f"{folder} 1\n"]  # set before the cell that sets it: it has no tag
    assert run("-o", "run.ipynb").code == 3
    assert run("-p", "@nowhere.json").code == 2
    assert call("run", "a.ipynb", "b.ipynb", "-o", "c.ipynb").code == 2


def test_several_notebooks_run_even_if_one_fails_and_one_comes_from_stdin(folder: Path) -> None:
    for name, source in (("one", "1 / 0"), ("two", "print(2)"), ("three", "3")):
        (folder / f"{name}.ipynb").write_bytes(samples.write(samples.code("a", source)))
    answer = call("run", "one.ipynb", "t*.ipynb", "--no-engine")
    assert answer.code == 1
    assert answer.text == "3\n2\n"
    assert "3 notebooks: 2 ok, 1 failed" in answer.err
    answer = call("run", "none.ipynb", "two.ipynb", "--no-engine", "--json")
    assert answer.code == 3
    assert answer.json["error"]["code"] == "NOTEBOOK_NOT_FOUND"
    assert answer.json["data"]["notebooks"][1]["executions"][0]["status"] == "ok"
    given = (folder / "two.ipynb").read_bytes()
    answer = call("run", "-", "-o", "four.ipynb", "--no-engine", stdin=given)
    assert (answer.code, answer.text) == (0, "2\n")
    assert outputs(folder / "four.ipynb")[0][0]["text"] == ["2\n"]
    entries = call("log", "four.ipynb", "--json").data["entries"]
    assert [entry["kind"] for entry in entries] == ["run", "create"]
    one = (folder / "one.ipynb").read_bytes()
    assert call("run", "-", "-o", "one.ipynb", "--mode", "ask", stdin=given).code != 0
    assert (folder / "one.ipynb").read_bytes() == one
    assert call("run", "-", "-o", "one.ipynb", "--no-engine", stdin=given).code == 0
    copy, *_ = [
        e["id"] for e in call("log", "one.ipynb", "--json").data["entries"] if e["kind"] == "edit"
    ]
    assert call("backup", "one.ipynb", "--restore", f"{copy}^").code == 0
    assert (folder / "one.ipynb").read_bytes() == one
    assert call("run", "-", "-o", "no.ipynb", stdin=b"{").code == 3
    assert not (folder / "no.ipynb").exists()
    assert call("run", "-", "--no-engine", stdin=given).code == 2


def test_a_notebook_from_stdin_is_run_as_a_copy_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = samples.code("a", "n = 1")
    first["metadata"] = {"tags": ["parameters"]}
    (folder / "one.ipynb").write_bytes(samples.write(first, samples.code("b", "print(n)")))
    given = (folder / "one.ipynb").read_bytes()
    words = ("-p", "n=5", "-o")
    with engine_of_its_own(monkeypatch):
        for name, source, stdin in (("file", "one.ipynb", b""), ("pipe", "-", given)):
            answer = process("run", source, *words, f"{name}.ipynb", stdin=stdin)
            assert (answer.code, answer.text) == (0, "5\n"), answer
        assert process("sessions", "--json").data["sessions"] == [], "their kernels were their own"
    sources = [
        [cell["source"] for cell in json.loads((folder / f"{name}.ipynb").read_bytes())["cells"]]
        for name in ("file", "pipe")
    ]
    assert sources[0] == sources[1]
    assert len(sources[1]) == 3, "the parameters are a cell"
