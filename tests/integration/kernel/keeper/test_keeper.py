"""The keeper and its owner: nothing below a kept process is ever left."""

from __future__ import annotations

import ast
import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.environment import MARK_VARIABLE
from cellwright.kernel.events import KernelExit
from cellwright.kernel.processes import KeptProcess, start_kept_process
from cellwright.kernel.runner.inside import keeper as script
from tests.integration.kernel.processes import (
    FAMILY,
    STUCK,
    eventually,
    is_running,
    python,
    told_of,
    wait_until,
    with_mark,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Start = Callable[[list[str]], Awaitable[KeptProcess]]

ENV = dict(os.environ)


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    started: list[KeptProcess] = []

    async def start(command: list[str]) -> KeptProcess:
        process = await start_kept_process(command, cwd="/", env=ENV)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        assert await process.wait_gone(5)
        process.close()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("raise SystemExit(0)", KernelExit(code=0)),
        ("raise SystemExit(7)", KernelExit(code=7)),
        ("import os; os.kill(os.getpid(), 9)", KernelExit(signal=9)),
        ("import os; os.kill(os.getpid(), 11)", KernelExit(signal=11)),
        ("import os; os.kill(os.getpid(), 15)", KernelExit(signal=15)),
        # What it sends to its own process group does not hit the keeper.
        ("import os; os.killpg(0, 9)", KernelExit(signal=9)),
    ],
)
async def test_the_owner_learns_how_the_command_ended(
    start: Start, source: str, expected: KernelExit
) -> None:
    process = await start(python(source))

    assert await process.wait_gone(5)
    assert process.exit == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [("raise SystemExit(5)", 5), ("import os; os.kill(os.getpid(), 6)", -6)],
)
def test_the_keeper_itself_ends_as_the_command_did(source: str, expected: int) -> None:
    assert _run_script(source) == expected


def _run_script(source: str) -> int:
    reader, writer = os.pipe()
    keeper = subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", script.__file__, str(reader), str(os.getpid())),
            *("--", *python(source)),
        ],
        pass_fds=(reader,),
    )
    os.close(reader)
    try:
        return keeper.wait(10)
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    ("command", "cwd"), [(["/nowhere/program"], "/"), (["sleep", "1"], "/nowhere")]
)
async def test_a_command_that_cannot_start_is_an_error(command: list[str], cwd: str) -> None:
    with pytest.raises(FileNotFoundError):
        await start_kept_process(command, cwd=cwd, env=ENV)


async def test_a_signal_reaches_the_command_and_what_it_runs_in_the_foreground(
    start: Start, tmp_path: Path
) -> None:
    ready, heard = tmp_path / "ready", tmp_path / "heard"
    child = f"trap 'echo >{heard}-child; exit' INT; echo >{ready}; while :; do sleep 0.01; done"
    process = await start(
        ["sh", "-c", f"trap 'echo >{heard}-parent' INT; sh -c \"$0\"; exit 3", child]
    )
    assert await eventually(ready.exists)

    process.send_signal(signal.SIGINT)

    assert await process.wait_gone(5)
    assert process.exit == KernelExit(code=3)
    assert _names(tmp_path) == {"heard-child", "heard-parent", "ready"}


async def test_kill_ends_a_family_that_hides(start: Start) -> None:
    process = await start(python(FAMILY + STUCK))
    assert await eventually(lambda: len(with_mark(process.mark)) >= 3)

    process.kill()

    assert await process.wait_gone(5)
    assert not with_mark(process.mark)
    assert process.exit == KernelExit(signal=9)


async def test_what_the_command_leaves_behind_goes_with_it(start: Start) -> None:
    process = await start(python(FAMILY + "os._exit(4)"))

    assert await process.wait_gone(5)
    assert process.exit == KernelExit(code=4)
    assert not with_mark(process.mark)


async def test_a_stopped_command_is_killed(start: Start) -> None:
    process = await start(["sleep", "1000"])
    process.send_signal(signal.SIGSTOP)

    process.kill()

    assert await process.wait_gone(5)
    assert process.exit == KernelExit(signal=9)


async def test_a_stopped_keeper_is_killed_with_all_it_keeps(start: Start) -> None:
    process = await start(python(FAMILY + STUCK))
    assert await eventually(lambda: len(with_mark(process.mark)) >= 3)
    os.kill(process.keeper_pid, signal.SIGSTOP)

    process.kill()

    assert await process.wait_gone(8)
    assert not with_mark(process.mark)


async def test_a_stopped_keeper_that_is_let_go_is_killed_with_all_it_keeps() -> None:
    process = await start_kept_process(["sleep", "1000"], cwd="/", env=ENV)
    os.kill(process.keeper_pid, signal.SIGSTOP)

    process.close()

    assert not with_mark(process.mark)
    assert not _list_left([process.keeper_pid])


async def test_nothing_that_a_killed_keeper_leaves_stays_a_zombie(start: Start) -> None:
    code = "import subprocess, time; p = subprocess.Popen(['true']); time.sleep(0.3); print(1)\n"
    process = await start(python(code + "time.sleep(100)"))
    assert process.pid is not None
    pid = process.pid
    assert await eventually(lambda: bool(_list_children(pid)))
    pids = [pid, *_list_children(pid), process.keeper_pid]

    os.kill(process.keeper_pid, signal.SIGKILL)

    assert await process.wait_gone(5)
    assert not _list_left(pids)


def _list_left(pids: list[int]) -> list[int]:
    """Those that are still in the table of processes, zombies too."""
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def _list_children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_a_fork_storm_is_killed(start: Start) -> None:
    process = await start(["sh", "-c", "while :; do setsid sleep 100 & sleep 0.002; done"])
    assert await eventually(lambda: len(with_mark(process.mark)) > 20)

    process.kill()

    assert await process.wait_gone(5)
    assert not with_mark(process.mark)


async def test_what_a_killed_keeper_leaves_is_swept(start: Start) -> None:
    process = await start(python(FAMILY + STUCK))
    assert await eventually(lambda: len(with_mark(process.mark)) >= 3)

    os.kill(process.keeper_pid, signal.SIGKILL)

    assert await process.wait_gone(5)
    assert not with_mark(process.mark)
    assert process.exit == KernelExit(signal=9)


async def test_signals_for_the_command_do_not_end_the_keeper(start: Start) -> None:
    process = await start(["sleep", "1000"])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(process.keeper_pid, number)
    process.send_signal(signal.SIGTERM)

    assert await process.wait_gone(5)
    assert process.exit == KernelExit(signal=15)


async def test_a_keeper_that_is_asked_to_leave_takes_all_along(start: Start) -> None:
    process = await start(python(FAMILY + STUCK))
    assert await eventually(lambda: len(with_mark(process.mark)) >= 3)

    os.kill(process.keeper_pid, signal.SIGTERM)

    assert await process.wait_gone(5)
    assert not with_mark(process.mark)


async def test_the_mark_is_the_commands_and_not_the_keepers(start: Start) -> None:
    process = await start(["sleep", "1000"])
    assert process.pid is not None

    assert with_mark(process.mark) == [process.pid]
    assert MARK_VARIABLE.encode() not in _environment(process.keeper_pid)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def test_an_exit_that_is_long_past_is_still_told(start: Start) -> None:
    process = await start(["true"])
    assert await process.wait_gone(5)
    called = asyncio.Event()

    process.on_exit(called.set)

    async with asyncio.timeout(30):
        await called.wait()


async def test_whoever_drops_the_process_lets_it_go() -> None:
    process = await start_kept_process(python(FAMILY + STUCK), cwd="/", env=ENV)
    mark = process.mark
    assert await eventually(lambda: len(with_mark(mark)) >= 3)

    process.close()

    assert await eventually(lambda: not with_mark(mark))


def test_an_event_loop_that_closes_takes_its_processes_along() -> None:
    async def forget() -> tuple[str, int]:
        process = await start_kept_process(python(FAMILY + STUCK), cwd="/", env=ENV)
        assert await eventually(lambda: len(with_mark(process.mark)) >= 3)
        return process.mark, process.keeper_pid

    mark, keeper = asyncio.run(forget())
    gc.collect()

    assert wait_until(lambda: not with_mark(mark) and not is_running(keeper))


def test_a_fork_of_the_owner_does_not_keep_its_processes() -> None:
    source = textwrap.dedent("""
        import asyncio, os, sys, time
        from cellwright.kernel.processes import start_kept_process

        async def main():
            process = await start_kept_process(["sleep", "1000"], cwd="/", env=dict(os.environ))
            if os.fork() == 0:
                time.sleep(1000)  # and holds a copy of every descriptor
            print(process.mark, flush=True)
            time.sleep(1000)

        asyncio.run(main())
    """)
    owner = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, start_new_session=True
    )
    assert owner.stdout is not None
    try:
        mark = owner.stdout.readline().decode().strip()
        assert with_mark(mark)

        owner.kill()

        assert wait_until(lambda: not with_mark(mark))
    finally:
        os.killpg(owner.pid, signal.SIGKILL)
        owner.wait()
        owner.stdout.close()


def test_an_owner_that_ends_before_its_keeper_looks_is_missed_all_the_same() -> None:
    source = textwrap.dedent("""
        import asyncio, os, signal, time
        from cellwright.kernel import processes

        async def main():
            print(mark, flush=True)
            starting = asyncio.create_task(
                processes.start_kept_process(["sleep", "1000"], cwd="/", env=dict(os.environ))
            )
            await asyncio.sleep(0)  # the keeper runs, but its interpreter has only begun to boot
            if os.fork() == 0:
                time.sleep(1000)
            os.kill(os.getpid(), signal.SIGKILL)

        mark = processes.make_mark()
        processes.make_mark = lambda: mark
        asyncio.run(main())
    """)
    owner = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, start_new_session=True
    )
    assert owner.stdout is not None
    try:
        mark = owner.stdout.readline().decode().strip()

        assert owner.wait(10) == -signal.SIGKILL
        assert wait_until(lambda: not with_mark(mark) and not told_of(mark))
    finally:
        os.killpg(owner.pid, signal.SIGKILL)
        owner.stdout.close()


def test_the_script_is_good_for_python_3_9() -> None:
    source = Path(script.__file__).read_text("utf-8")

    tree = ast.parse(source, feature_version=(3, 9))

    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= set(sys.stdlib_module_names)
