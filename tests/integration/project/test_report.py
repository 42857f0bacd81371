"""The record of a test run says what happened, with and without xdist."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.report import table

if TYPE_CHECKING:
    from pathlib import Path

CONFTEST = """
from tests.report import Recorder

def pytest_configure(config):
    config.addinivalue_line("markers", "all: long")
    config.pluginmanager.register(Recorder(), "cellwright-report")
"""

SUITE = """
import pytest

def test_passes(): pass

def test_fails(): assert 1 == 2, "one is not two"

def test_skips(): pytest.skip("needs a moon")

@pytest.mark.xfail(reason="not yet")
def test_is_expected_to_fail(): assert False

@pytest.fixture
def breaks_later():
    yield
    raise OSError("too late")

def test_fails_in_teardown(breaks_later): pass

@pytest.mark.all
def test_takes_long(): pass
"""


@pytest.fixture(params=[[], ["-p", "xdist", "-n2"]], ids=["one process", "xdist"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """Run a small suite and give the folder of its results."""
    folder = tmp_path / "tests" / "part"
    folder.mkdir(parents=True)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*arguments: str, **variables: str) -> Path:
        results = tmp_path / "report"
        variables["CELLWRIGHT_TEST_RESULTS"] = str(results / "tests.json")
        # Loading the plugins that are not asked about here takes longer than the suite.
        variables |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
        subprocess.run(
            [sys.executable, "-m", "pytest", *request.param, *arguments],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            check=False,
        )
        return results

    return run


def load(folder: Path) -> Any:
    return json.loads((folder / "tests.json").read_text(encoding="utf-8"))


def outcomes(content: Any) -> dict[str, tuple[str, str | None]]:
    return {
        nodeid.partition("::")[2]: (test["outcome"], test["reason"])
        for nodeid, test in content["tests"].items()
    }


def test_every_outcome_is_recorded_with_its_reason(run: Any) -> None:
    content = load(run(CELLWRIGHT_TEST_COMPLETE="1"))
    assert content.keys() == {"complete", "all", "tests"}
    assert (content["complete"], content["all"]) == (True, False)
    assert outcomes(content) == {
        "test_passes": ("passed", None),
        "test_fails": ("failed", "AssertionError: one is not two"),
        "test_skips": ("skipped", "needs a moon"),
        "test_is_expected_to_fail": ("skipped", "expected to fail: not yet"),
        "test_fails_in_teardown": ("failed", "OSError: too late"),
    }


def test_long_tests_run_with_all_and_are_listed_without(run: Any) -> None:
    folder = run()
    long = "tests/part/test_it.py::test_takes_long"
    assert json.loads((folder / "tests.left-out.json").read_text()) == [long]

    folder = run(CELLWRIGHT_TEST_ALL="1")
    content = load(folder)
    assert content["all"] is True
    assert content["tests"][long]["outcome"] == "passed"
    assert content["tests"][long]["markers"] == ["all"]
    assert json.loads((folder / "tests.left-out.json").read_text()) == []


def test_a_run_that_stops_early_is_not_complete(run: Any) -> None:
    assert load(run("-x", CELLWRIGHT_TEST_COMPLETE="1"))["complete"] is False


def test_a_module_that_cannot_be_imported_is_a_failure(run: Any, tmp_path: Path) -> None:
    (tmp_path / "tests" / "part" / "test_broken.py").write_text("import no_such_module\n")
    content = load(run(CELLWRIGHT_TEST_COMPLETE="1"))
    assert content["complete"] is False
    assert content["tests"]["tests/part/test_broken.py"]["outcome"] == "failed"


def test_table_says_what_ran_what_did_not_and_why(tmp_path: Path) -> None:
    def test(outcome: str, reason: str | None = None) -> dict[str, Any]:
        return {"outcome": outcome, "seconds": 1.25, "reason": reason, "markers": []}

    tests = {
        "tests/unit/document/test_a.py::test_one": test("passed"),
        "tests/unit/test_b.py::test_two": test("failed", "boom"),
        "tests/faults/test_c.py::test_three": test("skipped", "needs strace"),
    }
    manifest = {"tests/behaviour/test_manifest.py::test_all": test("passed")}
    for name, content in {
        "tests.json": {"complete": True, "all": False, "tests": tests},
        "tests.left-out.json": ["tests/unit/test_b.py::test_long[1]"],
        "manifest.json": {"complete": False, "all": False, "tests": manifest},
        "manifest.left-out.json": [],
    }.items():
        (tmp_path / name).write_text(json.dumps(content))

    assert table(tmp_path).splitlines() == [
        "what ran         tests  passed  failed  skipped  seconds",
        "tests/behaviour      1       1       0        0      1.2",
        "tests/faults         1       0       0        1      1.2",
        "tests/unit           2       1       1        0      2.5",
        "",
        "only ./dev test --all runs",
        "tests/unit: 1, such as test_long[1]",
        "",
        "skipped",
        "tests/faults: 1, needs strace",
        "",
        "2 passed, 1 failed, 1 skipped",
    ]
