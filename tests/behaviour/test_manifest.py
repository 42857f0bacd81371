"""The manifest is complete, and what it calls done was seen to work in this very run."""

from __future__ import annotations

import ast
import json
import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.manifest import PROMISES
from tests.behaviour.promise import TOPICS, Done, Measured, NotOurs, NotYet, Promise

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / ".dev" / "report" / "tests.json"

IS_ROOT = os.geteuid() == 0
COUNTS = {"S0": 111, "S1": 84, "S2": 57, "S3": 63, "S4": 58}


def done_rows() -> list[tuple[Promise, Done]]:
    return [(row, row.status) for row in PROMISES if isinstance(row.status, Done)]


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The test functions that a file defines, methods as `Class::name`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.update(
                f"{node.name}::{item.name}"
                for item in node.body
                if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
            )
        elif isinstance(node, ast.ImportFrom) and node.module and node.names[0].name == "*":
            # A suite that is run again on another stage.
            names |= functions_of(ROOT / f"{node.module.replace('.', '/')}.py")
    return frozenset(names)


def problem_with_test(test: str) -> str | None:
    """Say why `test` names no test of this repository."""
    file, _, name = test.partition("::")
    if not file.startswith("tests/") or not name or "[" in name:
        return "not of the form tests/…/test_x.py::test_name"
    if not (ROOT / file).is_file():
        return f"there is no {file}"
    if not name.rpartition("::")[2].startswith("test_") or name not in functions_of(ROOT / file):
        return f"{file} defines no test {name}"
    return None


def problem_with_run(status: Done, report: dict[str, Any]) -> str | None:
    """Say why the results do not show that the row is kept: all cases ran, and all passed."""
    if status.only_all and not report["all"]:
        return None
    return next((problem for test in status.tests if (problem := _problem(test, report))), None)


def _problem(test: str, report: dict[str, Any]) -> str | None:
    results = [
        result
        for nodeid, result in report["tests"].items()
        if nodeid == test or nodeid.startswith(f"{test}[")
    ]
    if not results:
        return "did not run"
    # An ordinary user cannot run what needs root, and is told so by name; as root it must run.
    outcomes = Counter(r["outcome"] for r in results if IS_ROOT or not _needs_root(r))
    if set(outcomes) - {"passed"}:
        return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    return None


def _needs_root(result: dict[str, Any]) -> bool:
    return result["outcome"] == "skipped" and "needs root" in (result.get("reason") or "")


def read_report(path: Path) -> dict[str, Any]:
    """The results of the whole run; without them the test that asks fails, and says what to do."""
    how = "run `./dev test` without arguments, which runs all tests and then this one"
    if not path.is_file():
        pytest.fail(f"no results of a test run at {path.name}: {how}", pytrace=False)
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not report["complete"]:
        pytest.fail(f"the last test run was not a complete one: {how}", pytrace=False)
    browser = path.with_name("browser.json")  # they run after the others
    if browser.is_file():
        report["tests"] |= json.loads(browser.read_text(encoding="utf-8"))["tests"]
    return report


def test_every_promise_of_the_documents_has_one_row() -> None:
    expected = [
        f"{source}-{number:03}"
        for source, count in COUNTS.items()
        for number in range(1, count + 1)
    ]

    assert len(expected) == 373
    assert [row.id for row in PROMISES if row.source != "D"] == expected


def test_the_rows_of_the_design_are_numbered_without_gaps() -> None:
    numbers = [row.id for row in PROMISES if row.source == "D"]

    assert numbers == [f"D-{number:03}" for number in range(1, len(numbers) + 1)]
    assert len(numbers) >= 80


def test_every_row_has_its_own_claim_place_and_status() -> None:
    for row in PROMISES:
        assert len(row.claim.split()) >= 3, f"{row.id}: no claim"
        assert row.lines, f"{row.id}: no place"
        if isinstance(row.status, NotYet):
            assert row.status.topic in TOPICS, f"{row.id}: unknown topic"
        if isinstance(row.status, Measured):
            assert (ROOT / row.status.benchmark).is_file(), f"{row.id}: no such benchmark"
        if isinstance(row.status, NotOurs):
            assert row.status.why, f"{row.id}: no reason"


def test_no_document_makes_the_same_claim_twice() -> None:
    claims = Counter((row.source, row.claim) for row in PROMISES)

    assert [claim for claim, count in claims.items() if count > 1] == []


def test_every_done_row_names_a_test_that_exists() -> None:
    problems = {
        (row.id, test): problem_with_test(test)
        for row, status in done_rows()
        for test in status.tests
    }

    assert {name: problem for name, problem in problems.items() if problem} == {}


def test_every_done_row_was_held_by_a_test_that_ran_and_passed() -> None:
    report = read_report(REPORT)

    problems = {
        f"{row.id} {status.test}": problem_with_run(status, report) for row, status in done_rows()
    }

    assert {name: problem for name, problem in problems.items() if problem} == {}


# The checks above are only as good as what they can see.


@pytest.mark.parametrize(
    "test",
    [
        "tests/behaviour/test_manifest.py",
        "tests/behaviour/test_missing.py::test_anything",
        "tests/behaviour/test_manifest.py::test_missing",
        "tests/behaviour/test_manifest.py::read_report",
        "tests/behaviour/test_manifest.py::test_a_wrong_name_is_seen[x]",
        "src/cellwright/errors.py::test_anything",
    ],
)
def test_a_wrong_name_is_seen(test: str) -> None:
    assert problem_with_test(test)


def test_a_right_name_is_seen() -> None:
    assert problem_with_test("tests/behaviour/test_manifest.py::test_a_right_name_is_seen") is None


@pytest.mark.parametrize(
    ("outcomes", "problem"),
    [
        ({"t": "passed"}, None),
        ({"t[1]": "passed", "t[2]": "passed"}, None),
        ({}, "did not run"),
        ({"other": "passed", "tt": "passed"}, "did not run"),
        ({"t": "failed"}, "1 failed"),
        ({"t": "skipped"}, "1 skipped"),
        ({"t[1]": "passed", "t[2]": "skipped"}, "1 passed, 1 skipped"),
        ({"t[1]": "passed", "t[2]": "failed", "t[3]": "passed"}, "1 failed, 2 passed"),
    ],
)
def test_only_a_test_that_passed_in_all_its_cases_counts(
    outcomes: dict[str, str], problem: str | None
) -> None:
    tests = {nodeid: {"outcome": outcome} for nodeid, outcome in outcomes.items()}

    assert problem_with_run(Done("t"), {"all": False, "tests": tests}) == problem


def test_a_row_that_takes_several_tests_is_held_only_by_all_of_them() -> None:
    tests = {"t": {"outcome": "passed"}, "u": {"outcome": "failed"}}

    assert problem_with_run(Done("t", also=("u",)), {"all": False, "tests": tests}) == "1 failed"
    assert problem_with_run(Done("t", also=("v",)), {"all": False, "tests": tests}) == "did not run"


@pytest.mark.parametrize(("root", "problem"), [(True, "1 skipped"), (False, None)])
def test_what_needs_root_may_be_skipped_by_nobody_else_than_a_user(
    root: bool, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(problem_with_run.__globals__, "IS_ROOT", root)
    tests = {"t": {"outcome": "skipped", "reason": "needs root"}}

    assert problem_with_run(Done("t"), {"all": False, "tests": tests}) == problem


def test_a_row_held_by_the_long_run_is_checked_only_there() -> None:
    row = Done("t", only_all=True)

    assert problem_with_run(row, {"all": False, "tests": {}}) is None
    assert problem_with_run(row, {"all": True, "tests": {}}) == "did not run"


@pytest.mark.parametrize("content", [None, '{"complete": false, "all": false, "tests": {}}'])
def test_without_the_results_of_a_whole_run_the_check_fails_and_says_what_to_do(
    content: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "tests.json"
    if content:
        path.write_text(content, encoding="utf-8")

    with pytest.raises(pytest.fail.Exception, match=r"\./dev test"):
        read_report(path)
