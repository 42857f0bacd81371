"""Marks: which leftovers are ours, and whose owner is gone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.environment import MARK_VARIABLE
from cellwright.kernel.processes import Sweep, is_stale, make_mark, sweep_stale
from tests.integration.kernel.processes import is_running, wait_until, with_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def sleep() -> Iterator[Callable[[str | None], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def sleep(mark: str | None) -> subprocess.Popen[bytes]:
        env = {} if mark is None else {MARK_VARIABLE: mark}
        started.append(subprocess.Popen(["/bin/sleep", "1000"], env=env))
        return started[-1]

    yield sleep
    for process in started:
        process.kill()
        process.wait()


def _mark_of_one_that_is_gone() -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from cellwright.kernel.processes import make_mark; print(make_mark())",
        ],
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.strip()


def test_marks_differ() -> None:
    assert make_mark() != make_mark()


def test_our_own_mark_is_not_stale() -> None:
    assert not is_stale(make_mark())


def test_the_mark_of_one_that_is_gone_is_stale() -> None:
    assert is_stale(_mark_of_one_that_is_gone())


def test_a_process_id_that_was_used_again_is_another_owner() -> None:
    namespace, pid, start, token = make_mark().split("-")

    assert is_stale(f"{namespace}-{pid}-{int(start) + 1}-{token}")


@pytest.mark.parametrize("mark", ["", "x", "1-2-3", "a-b-c-d", "1-2-3-4-5"])
def test_what_is_no_mark_of_ours_is_left_alone(mark: str) -> None:
    assert not is_stale(mark)


def test_a_mark_of_another_namespace_is_not_ours_to_judge() -> None:
    namespace, *rest = _mark_of_one_that_is_gone().split("-")

    assert not is_stale("-".join([str(int(namespace) + 1), *rest]))


def test_a_sweep_takes_the_marked_and_nothing_else(
    sleep: Callable[[str | None], subprocess.Popen[bytes]],
) -> None:
    mark, other = make_mark(), make_mark()
    ours, theirs, plain = sleep(mark), sleep(other), sleep(None)
    assert wait_until(lambda: with_mark(mark) and with_mark(other))
    sweep = Sweep(mark.__eq__)

    assert wait_until(lambda: not sweep.kill_round())

    assert not is_running(ours.pid)
    assert is_running(theirs.pid)
    assert is_running(plain.pid)
    assert sweep.kill_count == 1


def test_the_next_start_sweeps_what_a_dead_owner_left(
    sleep: Callable[[str | None], subprocess.Popen[bytes]],
) -> None:
    stale, fresh = _mark_of_one_that_is_gone(), make_mark()
    left, kept = sleep(stale), sleep(fresh)
    assert wait_until(lambda: with_mark(stale) and with_mark(fresh))

    sweep_stale()

    assert not is_running(left.pid)
    assert is_running(kept.pid)


def test_orphans_fall_to_us_once_we_adopt_them() -> None:
    source = """
import os, subprocess, sys
from cellwright.kernel.processes import adopt_orphans
adopt_orphans()
adopt_orphans()
shell = subprocess.run(["sh", "-c", "sleep 1000 >/dev/null & echo $!"], stdout=subprocess.PIPE)
orphan = int(shell.stdout)
fields = open(f"/proc/{orphan}/stat").read().rpartition(")")[2].split()
os.kill(orphan, 9)
print(int(fields[1]) == os.getpid(), os.waitpid(orphan, 0)[0] == orphan)
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, check=True, text=True, timeout=20
    )

    assert done.stdout.split() == ["True", "True"]
