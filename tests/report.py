"""What a test run did: recorded while pytest runs, printed as a table when it is over.

`Recorder`, a pytest plugin, writes two files when `CELLWRIGHT_TEST_RESULTS` names the first:

    tests.json             {"complete": bool, "all": bool, "tests": {nodeid: {…}}}
    tests.left-out.json    [nodeid, …], the tests that only `--all` runs

and the command `python -m tests.report FOLDER` prints what those files say.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

LEFT_OUT = ".left-out.json"
FINISHED = (0, 1)  # pytest's exit codes for "all ran", as opposed to interrupted or misused


def runs_all() -> bool:
    """Say whether this is a run of `./dev test --all`."""
    return bool(os.environ.get("CELLWRIGHT_TEST_ALL"))


# --- Recording -----------------------------------------------------------------------------------


class Recorder:
    """A pytest plugin that gathers outcomes; under xdist, the controller's gathers all of them."""

    def __init__(self) -> None:
        results = os.environ.get("CELLWRIGHT_TEST_RESULTS")
        self._results = Path(results).absolute() if results else None
        self._all = runs_all()
        self._complete = bool(os.environ.get("CELLWRIGHT_TEST_COMPLETE"))
        self._tests: dict[str, dict[str, Any]] = {}
        self._left_out: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect what only `--all` runs."""
        if self._all:
            return
        left_out = [item for item in items if item.get_closest_marker("all")]
        if left_out:
            items[:] = [item for item in items if not item.get_closest_marker("all")]
            config.hook.pytest_deselected(items=left_out)
            self._left_out.update(item.nodeid for item in left_out)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Name the test's markers; attributes of a report travel from worker to controller."""
        report = yield
        vars(report)["markers"] = sorted({mark.name for mark in item.iter_markers()})
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear of one phase of a test."""
        self._add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a module that cannot be imported: it has no tests to fail in its place."""
        if not report.passed:
            self._add(report)
        self._complete &= not report.failed

    def _add(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        # A test has three phases, and the worst of them counts.
        new = {"outcome": "passed", "seconds": 0.0, "reason": None, "markers": []}
        test = self._tests.setdefault(report.nodeid, new)
        test["seconds"] = round(test["seconds"] + getattr(report, "duration", 0.0), 4)
        test["markers"] = getattr(report, "markers", test["markers"])
        if report.failed or (report.skipped and test["outcome"] == "passed"):
            test["outcome"] = report.outcome
            test["reason"] = _reason(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what the xdist worker alone could see, if it got that far."""
        self._left_out.update(getattr(node, "workeroutput", {}).get("left_out", ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Hand over to the controller, or write the files if this is it."""
        config = session.config
        if hasattr(config, "workeroutput"):
            config.workeroutput["left_out"] = sorted(self._left_out)
        elif self._results:
            self._results.parent.mkdir(parents=True, exist_ok=True)
            stopped = session.shouldstop or session.shouldfail or int(exitstatus) not in FINISHED
            complete = self._complete and not stopped
            content = {"complete": complete, "all": self._all, "tests": self._tests}
            _dump(content, self._results)
            _dump(sorted(self._left_out), self._results.with_suffix(LEFT_OUT))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}"
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash else report.longrepr).strip()
    return text.splitlines()[0] if text else None


def _dump(content: object, path: Path) -> None:
    # Whole or not at all: another process may be reading the results of an earlier run.
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    new.replace(path)


# --- Printing ------------------------------------------------------------------------------------


def table(folder: Path) -> str:
    """Say what ran, what only `--all` runs, and what was skipped and why."""
    complete = False
    tests: dict[str, dict[str, Any]] = {}
    left_out: list[str] = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if path.name.endswith(LEFT_OUT):
            left_out += content
        else:
            tests |= content["tests"]
            complete |= content["complete"]
    sections = [_ran(tests), _only_all(left_out), _skipped(tests)]
    if not complete:
        sections.append("Only a part of the suite ran.")
    count = Counter(test["outcome"] for test in tests.values())
    outcomes = ("passed", "failed", "skipped")
    sections.append(", ".join(f"{count[outcome]} {outcome}" for outcome in outcomes))
    return "\n\n".join(section for section in sections if section)


def _ran(tests: dict[str, dict[str, Any]]) -> str:
    by_folder: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for nodeid, test in tests.items():
        by_folder[_folder(nodeid)].append(test)
    width = max(map(len, [*by_folder, "what ran"]))
    lines = [f"{'what ran':{width}}  tests  passed  failed  skipped  seconds"]
    for name, group in sorted(by_folder.items()):
        count = Counter(test["outcome"] for test in group)
        seconds = sum(test["seconds"] for test in group)
        lines.append(
            f"{name:{width}}  {len(group):5}  {count['passed']:6}  {count['failed']:6}"
            f"  {count['skipped']:7}  {seconds:7.1f}"
        )
    return "\n".join(lines)


def _only_all(left_out: Iterable[str]) -> str:
    by_folder: dict[str, list[str]] = defaultdict(list)
    for nodeid in left_out:
        by_folder[_folder(nodeid)].append(nodeid)
    lines = [
        f"{name}: {len(nodeids)}, such as {nodeids[0].partition('::')[2]}"
        for name, nodeids in sorted(by_folder.items())
    ]
    return "\n".join(["only ./dev test --all runs", *lines]) if lines else ""


def _skipped(tests: dict[str, dict[str, Any]]) -> str:
    reasons = Counter(
        (_folder(nodeid), test["reason"])
        for nodeid, test in tests.items()
        if test["outcome"] == "skipped"
    )
    lines = [f"{name}: {count}, {reason}" for (name, reason), count in sorted(reasons.items())]
    return "\n".join(["skipped", *lines]) if lines else ""


def _folder(nodeid: str) -> str:
    parts = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(parts[:2]) or "."


if __name__ == "__main__":
    print()
    print(table(Path(sys.argv[1])))
