"""Reports: for CI, for people, and without a place for what a notebook says."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from cellwright.batch import BatchReport, Job, JobResult, write_report
from cellwright.batch.jobs import ChangedOutputs

EVIL = "<script>alert(1)</script>\"'&\x1b[31m\x00\ud800\ufffe"


@pytest.fixture
def report() -> BatchReport:
    changed = ChangedOutputs(
        "c", 1, f"-old\n+{EVIL}", [("image/png", "AAAA")], [("image/png", "BBBB")]
    )
    results = [
        JobResult(Job("a.ipynb", {"year": 1}), "ok", 1.5, cells=3, ran=3, changed=[changed]),
        JobResult(
            Job(f"b{EVIL}.ipynb", {"v": EVIL}),
            "error",
            cells=2,
            ran=1,
            cell=f"x{EVIL}",
            index=0,
            message=EVIL,
            traceback=[EVIL, "line"],
            notes=[EVIL],
        ),
        JobResult(Job("c.ipynb"), "skipped", notes=["It was done by an earlier batch"]),
        JobResult(Job("d.ipynb"), "cancelled", message="It was not started"),
    ]
    return BatchReport(results, began=0, seconds=2.25)


def test_junit_counts_and_names_the_cell_that_failed(report: BatchReport) -> None:
    suite = ET.fromstring(write_report(report, "junit").encode("utf-8"))[0]  # noqa: S314  # our own
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "0",
        "skipped": "2",
    }
    cases = suite.findall("testcase")
    assert cases[0].get("name") == "a.ipynb year=1"
    failure = cases[1].find("failure")
    assert failure is not None
    assert "(index 0): <script>" in (failure.get("message") or "")
    assert (failure.text or "").endswith("line")


def test_html_is_one_page_that_runs_nothing(report: BatchReport) -> None:
    page = write_report(report, "html")
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page
    assert page.count("<img ") == 2
    assert "4 runs: 1 ok, 1 failed, 1 skipped, 1 not finished in 2.2 s" in page
    assert page.index("AAAA") < page.index("BBBB"), "before, and now"


def test_a_page_begins_with_what_failed_and_says_where_outputs_changed(report: BatchReport) -> None:
    page = write_report(report, "html")
    heads = re.findall(r'<span class="\w+">(\w+)</span><span class="name">(\w)', page)
    assert heads == [("error", "b"), ("cancelled", "d"), ("ok", "a"), ("skipped", "c")]
    assert "1 changed output, 3/3 cells, 1.5 s" in page


def test_a_page_does_not_say_twice_why_a_notebook_failed() -> None:
    result = JobResult(Job("a.ipynb"), "died", message="It died", notes=["It died", "Lost: x"])
    page = write_report(BatchReport([result], began=0, seconds=1), "html")
    assert (page.count("It died"), page.count("Lost: x")) == (1, 1)


def test_json_has_all_of_it(report: BatchReport) -> None:
    shape = json.loads(write_report(report, "json"))
    assert (shape["ok"], shape["seconds"], len(shape["runs"])) == (False, 2.25, 4)
    assert shape["runs"][0]["parameters"] == {"year": 1}
    assert [run["ok"] for run in shape["runs"]] == [True, False, True, False]


@pytest.mark.parametrize("kind", ["html", "junit"])
def test_nothing_invisible_or_reordering_is_in_a_report(kind: str) -> None:
    unsafe = "\u202e\u2066\U000e0041\u200b\x9b31m\x1b[2J"
    failed = JobResult(
        Job(f"{unsafe}.ipynb"),
        "error",
        cell=unsafe,
        index=0,
        message=unsafe,
        traceback=[unsafe],
        notes=[unsafe],
        changed=[ChangedOutputs(unsafe, 1, unsafe, [], [])],
    )
    text = write_report(BatchReport([failed], began=0, seconds=1), kind)
    assert not set(text) & set(unsafe.replace("31m", "").replace("[2J", ""))


def test_a_page_says_what_a_kernel_used() -> None:
    usage = {"cpu_seconds": 1.26, "peak_bytes": 81_900_000}
    report = BatchReport([JobResult(Job("a.ipynb"), "ok", usage=usage)], began=0, seconds=1)
    assert "kernel: 1.3 s of CPU, 82 MB at its peak" in write_report(report, "html")
    assert json.loads(write_report(report, "json"))["runs"][0]["usage"] == usage
