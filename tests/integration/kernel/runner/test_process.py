"""A runner's start, death, restart and end; what is told of it, and what is left of it: nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelError
from cellwright.kernel.events import Finished, KernelExit, Started
from cellwright.kernel.runner import Runner
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import StreamEvent
from tests.integration.kernel.processes import start_again

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.integration.kernel.runner.conftest import Driver

DEATHS = {
    "sigkill": ("os.kill(os.getpid(), 9)", KernelExit(signal=9)),
    "sigterm": ("os.kill(os.getpid(), 15)", KernelExit(signal=15)),
    "segv": ("import ctypes; ctypes.string_at(0)", KernelExit(signal=11)),
    "abort": ("os.abort()", KernelExit(signal=6)),
    "os._exit": ("os._exit(7)", KernelExit(code=7)),
    "exit zero": ("os._exit(0)", KernelExit(code=0)),
    "group": ("os.killpg(0, 9)", KernelExit(signal=9)),
    "wire closed": ("os.closerange(3, 300)", KernelExit(code=70)),
}


@pytest.mark.parametrize("name", DEATHS)
async def test_a_death_is_told_at_once_and_output_before_it_is_kept(
    cells: Driver, name: str
) -> None:
    code, expected = DEATHS[name]
    source = f"import os\nos.write(1, b'raw\\n')\nos.system('echo child')\nprint('printed')\n{code}"
    ran = await cells.run(source)
    assert ran.finished == Finished("died", exit=expected)
    assert ran.stdout == "raw\nchild\nprinted\n"
    assert not cells.runner.is_alive
    assert cells.runner.exit == expected
    again = await cells.run("1")
    assert again.events == [Finished("died", exit=expected)]
    await start_again(cells.runner)
    assert (await cells.ok("1")).result == "1"


async def test_a_kill_in_the_middle_of_a_flood_leaves_whole_lines(cells: Driver) -> None:
    source = """
        import os, threading
        threading.Timer(0.2, os.kill, [os.getpid(), 9]).start()
        while True: print("0123456789" * 500)
    """
    ran = await cells.run(textwrap.dedent(source))
    assert ran.status == "died"
    lines = ran.stdout.split("\n")
    assert len(lines) > 10
    assert set(lines[:-1]) == {"0123456789" * 500}


async def test_a_crash_in_c_code_says_where(cells: Driver) -> None:
    ran = await cells.run("import ctypes\ndef crash():\n    ctypes.string_at(0)\ncrash()")
    assert "Segmentation fault" in ran.stderr
    assert 'File "<cell 1>", line 3 in crash' in ran.stderr


@pytest.mark.parametrize("whom", ["runner", "keeper"])
async def test_a_kill_from_outside_is_noticed_while_idle_and_while_busy(
    cells: Driver, whom: str
) -> None:
    for is_busy in (True, False):
        process = cells.runner._process
        assert process is not None
        victim = process.hello["pid"] if whom == "runner" else process.kept.keeper_pid
        if is_busy:
            ran = cells.begin("import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')")
            await asyncio.sleep(0.1)
        os.kill(victim, signal.SIGKILL)
        async with asyncio.timeout(30):
            while cells.runner.is_alive:
                await asyncio.sleep(0.005)
            if is_busy:
                assert (await ran).finished.status == "died"
        assert cells.runner.exit == KernelExit(signal=9)
        await cells.runner.start()
        assert (await cells.ok("2")).result == "2"


async def test_a_death_between_two_cells_is_the_next_ones_answer(
    cells: Driver, tmp_path: Path
) -> None:
    source = f"""
        import os, threading, time
        def leave():
            while not os.path.exists({str(tmp_path / "now")!r}):
                time.sleep(0.01)
            os._exit(3)
        threading.Thread(target=leave).start()
    """
    await cells.ok(textwrap.dedent(source))
    (tmp_path / "now").touch()
    async with asyncio.timeout(10):
        while cells.runner.is_alive:
            await asyncio.sleep(0.005)
    assert not await cells.runner.ping(1)
    assert (await cells.run("1")).events == [Finished("died", exit=KernelExit(code=3))]


async def test_restart_forgets_and_starts_again_also_when_busy(cells: Driver) -> None:
    await cells.ok("x = 1")
    first = cells.runner.info.pid
    await start_again(cells.runner)
    assert cells.runner.info.pid != first
    assert (await cells.run("x")).raised.ename == "NameError"
    busy = cells.begin("import re\nprint('here')\nre.match(r'(a+)+$', 'a' * 40 + 'b')")
    await asyncio.sleep(0.1)
    async with asyncio.timeout(30):
        await start_again(cells.runner)
        assert (await busy).status == "died"
    assert (await cells.ok("5")).result == "5"


async def test_ping(cells: Driver) -> None:
    assert await cells.runner.ping(10)
    busy = cells.begin("import time\ntime.sleep(0.2)")
    await asyncio.sleep(0)
    assert await cells.runner.ping(0)
    assert (await busy).status == "ok"
    process = cells.runner._process
    assert process is not None
    os.kill(process.hello["pid"], signal.SIGSTOP)
    assert not await cells.runner.ping(0.1)
    os.kill(process.hello["pid"], signal.SIGCONT)
    assert await cells.runner.ping(10)


async def test_what_it_is(cells: Driver) -> None:
    info = cells.runner.info
    assert (info.name, info.transport, info.implementation) == ("runner", "runner", "cpython")
    assert (await cells.ok("import os; os.getpid()")).result == str(info.pid)


async def test_a_polite_end_lets_exit_functions_print(
    start: Callable[..., Awaitable[Driver]], tmp_path: Path
) -> None:
    cells = await start(polite_seconds=30)
    await cells.ok("import atexit, pathlib\natexit.register(pathlib.Path('left').touch);")
    await cells.runner.shutdown()
    assert (tmp_path / "left").exists()
    assert cells.runner.exit == KernelExit(code=0)
    await cells.runner.shutdown()


async def test_an_end_is_bounded_when_the_cell_will_not(
    start: Callable[..., Awaitable[Driver]], tmp_path: Path
) -> None:
    cells = await start(polite_seconds=0.1, firm_seconds=0.1)
    ready = tmp_path / "ready"
    source = (
        "import pathlib, signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
        f"pathlib.Path({str(ready)!r}).touch()\nwhile True: time.sleep(1)"
    )
    ran = cells.begin(source)
    async with asyncio.timeout(30):
        while not ready.exists():
            await asyncio.sleep(0.01)
        await cells.runner.shutdown()
        assert (await ran).status == "died"
    assert cells.runner.exit == KernelExit(signal=9)


async def fails(launch: Launch, **options: float) -> KernelError:
    runner = Runner(launch, **options)
    with pytest.raises(KernelError) as caught:
        await runner.start()
    assert not runner.is_alive
    return caught.value


async def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    def script(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    env = dict(os.environ)
    here = str(tmp_path)
    missing = await fails(Launch(here, env, python=f"{here}/none"))
    assert missing.code == "KERNEL_MISSING"
    refused = await fails(Launch(here, env, python=here))
    assert refused.code == "KERNEL_START_FAILED"
    no_folder = await fails(Launch(f"{here}/gone", env))
    assert "no folder" in no_folder.message
    loud = await fails(Launch(here, env, python=script("loud", "echo broken libs >&2; exit 3")))
    assert "exited with code 3: broken libs" in loud.message
    quiet = script("quiet", "exec sleep 60")
    late = await fails(Launch(here, env, python=quiet), start_timeout=0.2)
    assert "not ready within 0.2 s" in late.message
    chatty = script("chatty", f'echo noise; exec {sys.executable} "$@"')
    runner = Runner(Launch(here, env, python=chatty))
    await runner.start()
    await runner.shutdown(now=True)


async def test_an_old_python_is_named(tmp_path: Path) -> None:
    # What an interpreter before 3.9 would do, played by this one.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.version_info = (3, 8, 1)\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    old = await fails(Launch(str(tmp_path), env))
    assert "needs Python 3.9 or newer" in old.message


async def test_it_starts_where_its_folder_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: Path
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    runner = Runner(Launch(str(tmp_path), dict(os.environ)))
    await runner.start()
    try:
        code = Code("import sys; print(sys.pycache_prefix)")
        events = [event async for event in runner.execute(code)]
        printed = [event.text for event in events if isinstance(event, StreamEvent)]
        assert "".join(printed) == "None\n"
    finally:
        await runner.shutdown(now=True)
    assert list((places / "cache" / "cellwright" / "bytecode").rglob("boot.*.pyc"))


def marked() -> set[int]:
    """The living processes that carry a mark of this very process."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            mark = b"CELLWRIGHT_KERNEL_MARK="
            if mark in environment and f"-{os.getpid()}-".encode() in environment and state != "Z":
                found.add(int(folder.name))
    return found


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


DAEMONS = """
import os, subprocess, sys
subprocess.Popen(["sleep", "1001"], start_new_session=True)
code = '''
import os, signal, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)
print(os.getpid(), flush=True)
os.closerange(0, 64); os.chdir("/")
while True: time.sleep(1)
'''
p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
int(p.stdout.readline())
"""


@pytest.mark.parametrize("way", ["shutdown", "now", "restart", "dies", "keeper killed"])
async def test_nothing_it_started_outlives_it(
    start: Callable[..., Awaitable[Driver]], way: str
) -> None:
    before = marked()
    cells = await start()
    await cells.ok(textwrap.dedent(DAEMONS))
    assert len(marked() - before) >= 4
    process = cells.runner._process
    assert process is not None
    if way == "dies":
        await cells.run("os._exit(1)")
    elif way == "keeper killed":
        os.kill(process.kept.keeper_pid, signal.SIGKILL)
    elif way == "restart":
        await start_again(cells.runner)
    await cells.runner.shutdown(now=way == "now")
    async with asyncio.timeout(30):
        while marked() - before:
            await asyncio.sleep(0.01)


OWNER = """
import asyncio, os, sys
from cellwright.kernel.runner import Runner
from cellwright.kernel.transport import Code, Launch
async def main():
    runner = Runner(Launch(os.getcwd(), dict(os.environ)))
    await runner.start()
    async for event in runner.execute(Code({daemons!r})): pass
    print(runner.info.pid, runner._process.kept.keeper_pid, flush=True)
    async for event in runner.execute(Code("import re; re.match(r'(a+)+$', 'a' * 40 + 'b')")):
        pass
asyncio.run(main())
"""


def left(folder: Path) -> list[str]:
    """Who has the folder's variable in its environment, and lives."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes()
            state = (place / "stat").read_text() if environment else ""
        except OSError:
            continue
        if f"CW_OWNER_TEST={folder}".encode() in environment.split(b"\0") and ") Z" not in state:
            found.append(place.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_outlives_its_owner_however_busy(tmp_path: Path, number: int) -> None:
    env = {**os.environ, "CW_OWNER_TEST": str(tmp_path)}
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER.format(daemons=textwrap.dedent(DAEMONS)),
        stdout=asyncio.subprocess.PIPE, env=env, cwd=tmp_path,
    )  # fmt: skip

    assert owner.stdout is not None
    async with asyncio.timeout(30):
        assert len((await owner.stdout.readline()).split()) == 2
        while len(left(tmp_path)) < 5:
            await asyncio.sleep(0.01)
    os.kill(owner.pid, number)
    await owner.wait()
    async with asyncio.timeout(30):
        while left(tmp_path):
            await asyncio.sleep(0.01)


BRIEF_OWNER = """
import asyncio, os, signal, time
from cellwright.kernel.runner import Runner
from cellwright.kernel.transport import Launch
async def main():
    env = {**os.environ, "CW_OWNER_TEST": os.getcwd()}
    starting = asyncio.create_task(Runner(Launch(os.getcwd(), env)).start())
    await asyncio.sleep(0)  # its interpreter has only begun to boot
    if os.fork() == 0:
        time.sleep(1000)  # and holds a copy of every descriptor
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_an_owner_that_ends_before_it_is_watched_is_missed_all_the_same(
    tmp_path: Path,
) -> None:
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BRIEF_OWNER), cwd=tmp_path, start_new_session=True
    )
    try:
        async with asyncio.timeout(30):
            assert await owner.wait() == -signal.SIGKILL
        async with asyncio.timeout(30):
            while left(tmp_path):
                await asyncio.sleep(0.01)
    finally:
        os.killpg(owner.pid, signal.SIGKILL)


async def use(cells: Driver, times: int) -> None:
    for n in range(times):
        ran = await cells.ok(f"print({n})")
        assert ran.stdout == f"{n}\n"
        assert isinstance(ran.events[0], Started)
        await start_again(cells.runner)


@pytest.mark.parametrize("times", [5, pytest.param(30, marks=pytest.mark.all)], ids=["few", "many"])
async def test_restarts_leave_no_descriptor_thread_or_process(
    start: Callable[..., Awaitable[Driver]], times: int
) -> None:
    cells = await start()
    await use(cells, 2)
    descriptors, threads = open_files(), threading.active_count()
    processes = marked()
    await use(cells, times)
    assert open_files() == descriptors
    assert threading.active_count() == threads
    assert len(marked()) == len(processes)
    await cells.runner.shutdown()
    assert not marked() & processes


async def test_a_runner_that_is_dropped_lets_go(tmp_path: Path) -> None:
    before = open_files()
    runner = Runner(Launch(str(tmp_path), dict(os.environ)))
    await runner.start()
    del runner
    gc.collect()
    async with asyncio.timeout(30):
        while open_files() > before or marked():
            await asyncio.sleep(0.01)
