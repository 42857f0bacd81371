"""Which notebooks a batch runs with which parameters, and where copies are saved."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cellwright.batch import Job, plan_jobs, read_parameters
from cellwright.batch.jobs import describe_run
from cellwright.errors import InvalidEdit
from cellwright.workspace.runs.execution import CellError, Execution, Executions


def test_every_notebook_has_every_set_and_every_point_of_the_matrix() -> None:
    jobs = plan_jobs(
        ["a.ipynb", "b.ipynb"],
        parameters=[{"region": "n"}, {"region": "s"}],
        matrix={"year": [1, 2], "k": [True]},
        out="out",
    )
    assert len(jobs) == len({job.key for job in jobs}) == 8
    assert jobs[0] == Job(
        "a.ipynb", {"region": "n", "year": 1, "k": True}, "out/a-region=n,year=1,k=true.ipynb"
    )
    assert jobs[-1].name == "b.ipynb region=s year=2 k=True"


@pytest.mark.parametrize(
    ("out", "notebook", "output"),
    [
        ("out", "a.ipynb", "out/a.ipynb"),
        ("out", "docs/deep/a.ipynb", "out/docs/deep/a.ipynb"),
        ("out", "../a.ipynb", "out/a.ipynb"),
        ("out", "/else/a.ipynb", "out/a.ipynb"),
        ("{folder}/{stem}-{year}", "docs/a.ipynb", "docs/a-7.ipynb"),
        ("x/{index}.ipynb", "a.ipynb", "x/0.ipynb"),
        ("x/copy.ipynb", "docs/a.ipynb", "x/copy.ipynb"),
    ],
)
def test_a_copy_is_named_by_folder_or_template(out: str, notebook: str, output: str) -> None:
    (job,) = plan_jobs([notebook], parameters=[{"year": 7}], out=out)
    assert job.output == output


@pytest.mark.parametrize("value", ["../../etc/passwd", "a/b", "x\0y", "..", ".hidden", ""])
def test_a_value_leads_no_copy_out_of_its_folder(value: str) -> None:
    (job,) = plan_jobs(["a.ipynb"], parameters=[{"v": value}], out="out/{v}.ipynb")
    assert job.output is not None
    folder, _, name = job.output.rpartition("/")
    assert folder == "out"
    assert not name.startswith(".")
    assert "\0" not in name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameters": [{"a": 1}, {"a": 2}]}, "two jobs would write to n.ipynb"),
        ({"parameters": [{"a": 1}, {"a": 2}], "out": "{stem}"}, "two jobs would write to n.ipynb"),
        ({"parameters": [{"a": 1}, {"a": 2}], "out": "c.ipynb"}, "two jobs would write to c.ipynb"),
        ({"out": "{nothing}"}, "the template {nothing}"),
        ({"out": "{stem.x}"}, "the template"),
        ({"out": "{0}"}, "the template"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_anything_runs(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidEdit) as caught:
        plan_jobs(["n.ipynb"], **options)
    assert words in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("path", "text", "sets"),
    [
        ("p.csv", "a,b\n1,x\n2.5,true\n", [{"a": 1, "b": "x"}, {"a": 2.5, "b": True}]),
        ("p.tsv", "a\tb\n1\t\n", [{"a": 1, "b": ""}]),
        # As a spreadsheet saves it: a mark of UTF-8, and a text of two lines in quotes.
        ("p.csv", '\ufeffa,b\r\n"x\ny, z",1\r\n', [{"a": "x\ny, z", "b": 1}]),
        ("p.csv", "a,b\nx\u2028y,1\n", [{"a": "x\u2028y", "b": 1}]),
        ("p.json", '\ufeff{"a": 1}', [{"a": 1}]),
        ("p.json", '[{"a": [1]}, {"a": null}]', [{"a": [1]}, {"a": None}]),
        ("p.json", '{"a": 1}', [{"a": 1}]),
        ("p.toml", "a = 1\n", [{"a": 1}]),
    ],
)
def test_sets_of_parameters_are_read_from_files(
    path: str, text: str, sets: list[dict[str, Any]]
) -> None:
    assert read_parameters(path, text) == sets


def test_yaml_is_read_if_its_library_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InvalidEdit) as caught:
        read_parameters("p.yaml", "a: 1")
    assert "cellwright[batch]" in (caught.value.hint or "")
    library = SimpleNamespace(safe_load=json.loads, YAMLError=json.JSONDecodeError)
    monkeypatch.setitem(sys.modules, "yaml", library)
    assert read_parameters("p.yml", '[{"a": 1}]') == [{"a": 1}]
    with pytest.raises(InvalidEdit, match=r"p\.yml"):
        read_parameters("p.yml", "{")


def test_a_row_with_a_comma_too_many_is_refused() -> None:
    with pytest.raises(InvalidEdit, match="row 2 has more values than there are names"):
        read_parameters("p.csv", "name,year\nAda,1\nSmith, John,2\n")


@pytest.mark.parametrize(("path", "text"), [("p.json", "{"), ("p.json", "[1]"), ("p.toml", "=")])
def test_a_file_that_holds_none_is_refused(path: str, text: str) -> None:
    with pytest.raises(InvalidEdit, match=r"p\."):
        read_parameters(path, text)


@pytest.mark.parametrize(
    ("status", "name", "value", "message"),
    [
        ("error", "ValueError", "no such year\nmore of it", "ValueError: no such year"),
        ("error", "AssertionError", "", "AssertionError"),
        # How the kernel was interrupted says nothing about why.
        ("timed_out", "KeyboardInterrupt", "", "timed out after 5.1 s"),
        ("cancelled", "KeyboardInterrupt", "", "stopped"),
    ],
)
def test_a_failure_is_said_in_one_line(status: str, name: str, value: str, message: str) -> None:
    job = plan_jobs(["a.ipynb"])[0]
    failed = Execution(status, "c1", 1, seconds=5.11, error=CellError(name, value, ["deep"]))
    result = describe_run(job, Executions([failed], run="r"))
    assert (result.status, result.cell, result.message) == (status, "c1", message)
