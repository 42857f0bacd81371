"""A save that is killed or fails at any step leaves the old bytes or the new, and tells the truth.

The slice for every run; `./dev faults` does all of it and prints a report.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.faults import harness, run, surroundings, worker
from tests.faults.harness import Fault, Outcome, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.faults.surroundings import Surrounding

pytestmark = [pytest.mark.strace, pytest.mark.timeout(300)]
SMALLEST = harness.SMALLEST
# Where a fault does most: the calls that change something on the disk, and what surrounds them.
TELLING = ("flock", "writev", "fsync", "rename", "renameat", "renameat2", "fchmod", "fsetxattr")


def outcomes(scenario: Scenario, faults: Iterable[Fault]) -> list[Outcome]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(scenario.run, faults))


def problems(found: list[Outcome]) -> list[str]:
    return [f"{one.fault}: {kind}: {text}" for one in found for kind, text in one.problems]


@pytest.mark.parametrize("operation", ["replace", "create"])
def test_a_save_that_is_killed_leaves_the_old_bytes_or_the_new(operation: str) -> None:
    scenario = Scenario(operation, SMALLEST)
    kills, _ = scenario.faults()
    found = outcomes(scenario, kills[::5])  # `--all` kills it at every step
    assert problems(found) == []
    assert {one.holds for one in found} == {"old", "new"}
    assert sum(one.hit for one in found) >= len(found) - 2 >= 8


@pytest.mark.parametrize("operation", ["insert", "delete", "metadata"])
def test_a_save_that_is_killed_in_the_decisive_moments_is_done_or_not(operation: str) -> None:
    scenario = Scenario(operation, SMALLEST)
    kills, _ = scenario.faults()
    found = outcomes(scenario, [kill for kill in kills if kill.call in TELLING])
    assert problems(found) == []
    assert {one.holds for one in found} == {"old", "new"}


def test_a_save_whose_system_calls_fail_tells_the_truth() -> None:
    scenario = Scenario("replace", SMALLEST)
    _, errors = scenario.faults()
    telling = [error for error in errors if error.call in TELLING or "EMFILE" in error.action]
    rest = [error for error in errors if error not in telling]
    found = outcomes(scenario, telling[::2] + rest[::20])
    assert problems(found) == []
    codes = {one.code for one in found}
    assert {"ok", "NOT_SAVED", "DURABILITY_UNCONFIRMED"} <= codes
    assert sum(one.hit for one in found) >= 25


@pytest.mark.parametrize("operation", worker.OPERATIONS)
@pytest.mark.parametrize("size", worker.SIZES)
def test_a_save_is_durable_before_it_is_visible_and_before_it_is_reported(
    operation: str, size: str
) -> None:
    """fsync of the temp file, rename, fsync of the folder: without it a power cut leaves nothing."""
    lines = [line for _, _, line in Scenario(operation, size).trace()]
    assert harness.is_durable(lines)
    steps = [
        next(i for i, line in enumerate(lines) if part in line)
        for part in ("O_CREAT|O_EXCL", "writev(", "fsync(", "rename")
    ]
    assert steps == sorted(steps)
    written = [line for line in lines if "write" in line.partition("(")[0]]
    assert all(".cellwright-" in line for line in written), "something else was written to"


def test_the_order_of_a_save_is_looked_at_closely() -> None:
    def log(*steps: str) -> list[str]:
        return [f"1 {step}" for step in steps]

    sync = "fsync(4</a/.cellwright-0.tmp>) = 0"
    rename = 'rename("/a/.cellwright-0.tmp", "/a/b.ipynb") = 0'
    folder = "fsync(5</a>) = 0"
    assert harness.is_durable(log(sync, rename, folder))
    assert not harness.is_durable(log(rename, sync, folder))
    assert not harness.is_durable(log(sync, folder, rename))
    assert not harness.is_durable(log(sync, rename))
    assert not harness.is_durable(log(sync, rename, "fsync(5</other>) = 0"))
    failed = "fsync(5</a>) = -1 EIO (Input/output error) (INJECTED)"
    assert not harness.is_durable(log(sync, rename, failed))


@pytest.mark.all
def test_the_harness_notices_a_save_that_is_not_atomic() -> None:
    scenario = Scenario(worker.IN_PLACE, SMALLEST)
    kills, _ = scenario.faults()
    found = outcomes(scenario, kills[-8:])
    kinds = {kind for one in found for kind, _ in one.problems}
    assert harness.TORN in kinds
    _, errors = scenario.faults()
    found = outcomes(scenario, [error for error in errors if error.call == "write"])
    kinds = {kind for one in found for kind, _ in one.problems}
    assert harness.UNTRUE in kinds


@pytest.mark.parametrize(
    ("fault", "every"),
    [
        (surroundings.fail_journal, 20),
        (surroundings.fail_after_rename, 20),
        (surroundings.save_in_place, 2),
        (surroundings.fail_outputs, 5),
        pytest.param(surroundings.fail_landing, 12, marks=pytest.mark.root),
        pytest.param(surroundings.fail_landing_in_page, 8, marks=pytest.mark.root),
        pytest.param(surroundings.lose_engine, 1, marks=pytest.mark.all),
        pytest.param(surroundings.stop_processes, 1, marks=pytest.mark.all),
    ],
)
def test_a_fault_around_a_save_costs_no_history_and_no_true_word(
    fault: Callable[[int], Surrounding], every: int
) -> None:
    found = fault(every)
    assert found.points >= 2
    assert not found.problems, str(found)


def test_the_report_counts_what_must_never_happen_over_all_runs() -> None:
    fault = Fault("fsync", 1, "error=EIO")
    bad = [harness.Problem(harness.FALSE_SUCCESS, "…"), harness.Problem(harness.STRAY, "…")]
    torn = [harness.Problem(harness.TORN, "…")]
    found = [Outcome(fault, True, "ok", "old", each) for each in (bad, bad, torn, [])]
    problems = Counter({"processes left (fsync)": 2, "false successes": 1, "something else": 7})
    around = [
        surroundings.Surrounding("x", 9, problems),
        surroundings.Surrounding("y", 1, +Counter()),
    ]
    assert run.summarize(found, around) == (
        "3 false successes, 1 lost acknowledged edits, 0 histories put aside, 2 processes left, "
        "0 without an answer"
    )


@pytest.mark.root
def test_a_full_disk_is_survived() -> None:
    found = surroundings.fill_disks()
    if found.skipped:
        pytest.skip(found.skipped)
    assert not found.problems, str(found)


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("operation", "size"),
    [
        *((operation, size) for operation in worker.OPERATIONS for size in worker.SIZES),
        *worker.WAYS.items(),
    ],
)
def test_a_save_survives_a_fault_at_every_step(operation: str, size: str) -> None:
    found = run.run_scenario(Scenario(operation, size))
    assert problems(found) == []
    assert len(found) > 100
    assert sum(not one.hit for one in found) <= len(found) // 50
