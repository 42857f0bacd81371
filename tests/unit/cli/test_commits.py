"""`strip`, `check-clean` and `lint`: what hooks before a commit do, and their exit codes."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright.cli.commands.git import strip_notebook
from cellwright.journal import Journal
from cellwright.journal.executions import ExecutionRecord
from tests.conftest import ROOT
from tests.unit.cli.calling import call

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, *cells: dict[str, Any]) -> bytes:
    found = [
        {"cell_type": "code", "metadata": {}, "source": "x", "outputs": [], "execution_count": None}
        | {"id": f"c{at}"}
        | cell
        for at, cell in enumerate(cells)
    ]
    shape = {"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(shape))
    return path.read_bytes()


def printed(text: str | list[str], count: int = 1) -> dict[str, Any]:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return {"outputs": [output], "execution_count": count}


def test_strip_removes_outputs_of_several_and_undo_brings_them_back(folder: Path) -> None:
    (folder / "sub").mkdir()
    clean = write(folder / "clean.ipynb", {})
    dirty = write(folder / "sub/dirty.ipynb", printed("1\n"), {"metadata": {"collapsed": True}})
    kept = write(folder / "kept.ipynb", printed("1\n") | {"metadata": {"tags": ["keep_output"]}})
    answer = call("strip", "**/*.ipynb", "--json")
    assert {row["path"]: row["stripped"] for row in answer.data["notebooks"]} == {
        "clean.ipynb": False,
        "kept.ipynb": False,
        "sub/dirty.ipynb": True,
    }
    cells = json.loads((folder / "sub/dirty.ipynb").read_bytes())["cells"]
    assert [cell["outputs"] for cell in cells] == [[], []]
    assert [cell["metadata"] for cell in cells] == [{}, {}]
    assert (folder / "clean.ipynb").read_bytes() == clean
    assert (folder / "kept.ipynb").read_bytes() == kept
    assert call("check-clean", "**/*.ipynb").code == 0
    assert call("undo", "sub/dirty.ipynb").code == 0
    assert (folder / "sub/dirty.ipynb").read_bytes() == dirty


def test_git_gets_the_same_bytes_of_cells_without_a_valid_id_every_time(folder: Path) -> None:
    """Otherwise it calls a notebook changed that was just committed, and changes no branch."""
    data = write(
        folder / "nb.ipynb", printed("1\n") | {"id": "bad id"}, printed("2\n") | {"id": ""}
    )
    once, again = (strip_notebook(each, ()) for each in (data, data.replace(b"1\\n", b"3\\n")))
    assert once == again
    first, second = (cell.id for cell in cellwright.Notebook(once).cells)
    assert first != second
    assert strip_notebook(once, ()) == once


def test_check_clean_names_cells_and_changes_nothing(folder: Path) -> None:
    before = write(folder / "n.ipynb", {}, printed("1\n"), {"metadata": {"scrolled": True}})
    write(folder / "good.ipynb", {})
    answer = call("check-clean", "good.ipynb", "n.ipynb")
    assert (answer.code, answer.text.splitlines()) == (
        1,
        ["n.ipynb: outputs or counts in 1", "n.ipynb: metadata that programs left"],
    )
    assert (folder / "n.ipynb").read_bytes() == before
    answer = call("check-clean", "good.ipynb", "n.ipynb", "--json")
    assert (answer.code, answer.json["error"]["code"]) == (1, "NOT_CLEAN")
    assert [len(row["problems"]) for row in answer.json["data"]["notebooks"]] == [0, 2]


def test_lint_looks_for_secrets_in_linear_time(folder: Path) -> None:
    text = "a." * 100_000 + " postgres://me:hunter22@host/db " + "ab-" * 70_000
    write(folder / "n.ipynb", printed(text))
    began = time.process_time()
    answer = call("lint", "n.ipynb")
    assert "shows a password in an address" in answer.text
    assert time.process_time() - began < 15  # the square of its length took minutes


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([{"metadata": {}}, {"id": "c0"}], "the id c0 is that of 2 cells"),
        ([{"outputs": "?"}], "not valid: "),
        ([printed("1", 5), printed("2", 3)], "cell c1 (index 1) is stale: a cell above it was run"),
        ([printed("AKIA" + "ABCDEFGH12345678")], "cell c0 (index 0) shows an access key of AWS"),
        ([printed(["ghp_" + "a1" * 9, "b2" * 9])], "shows a token of GitHub"),
        ([printed("postgres://me:hunter22@host/db")], "shows a password in an address"),
    ],
)
def test_lint_says_what_is_wrong(folder: Path, cells: list[dict[str, Any]], said: str) -> None:
    write(folder / "bad.ipynb", *cells)
    write(
        folder / "good.ipynb", printed("https://example.org/a:b@c sk-learn\n", 1), printed("2", 2)
    )
    answer = call("lint", "*.ipynb")
    assert answer.code == 1
    assert said in answer.text, answer.text
    assert "good.ipynb" not in answer.text
    assert "hunter22" not in answer.text


def test_lint_knows_results_that_are_stale_by_the_record(folder: Path) -> None:
    write(folder / "n.ipynb", {"source": "x = 1"}, printed("1\n") | {"source": "print(x)"})
    facts: dict[str, Any] = {"kernel": "k", "status": "ok", "began": 1.0, "seconds": 0.1}
    path = folder / "n.ipynb"
    with Journal() as journal:
        for cell in cellwright.read(path).cells:
            named = {"cell": cell.handle, "index": cell.index, "hash": cell.hash}
            run = ExecutionRecord(source=cell.source, count=1, actor="test", **named, **facts)
            journal.record_execution(str(path), run)
    assert call("lint", "n.ipynb").code == 0
    call("edit", "n.ipynb", "replace", "c0", "x = 2")
    answer = call("lint", "n.ipynb")
    assert answer.code == 1
    assert "cell c1 (index 1) is stale: " in answer.text


def test_what_cannot_be_read_is_reported_beside_the_others(folder: Path) -> None:
    (folder / "a.ipynb").write_text("{")
    write(folder / "b.ipynb", printed("1\n"))
    for name in ("strip", "check-clean", "lint"):
        answer = call(name, "a.ipynb", "b.ipynb")
        assert answer.code == 3, (name, answer)
        assert "a.ipynb" in answer.text + answer.err
    assert call("check-clean", "b.ipynb").code == 0, "the other was stripped"


def test_every_hook_is_a_command(folder: Path) -> None:
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    entries = [line.split()[1:] for line in hooks.splitlines() if line.startswith("  entry:")]
    assert [entry[1] for entry in entries] == ["strip", "check-clean", "upgrade", "lint"]
    write(folder / "n.ipynb", {})
    for name, *words in entries:
        assert name == "cellwright"
        assert call(*words, "n.ipynb").code == 0
