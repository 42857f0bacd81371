"""Kernels that do not come up: an error at once that says why, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelCannot, KernelMissing, KernelStartFailed, UnsafeDirectory
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.local.process import resolve_spec
from cellwright.kernel.processes import find_marked_processes, is_stopped
from cellwright.kernel.transport import Launch
from tests.integration.kernel.local.conftest import launch, leftovers, run, text

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., Launch]:
    """Make a kernelspec, and the launch of it."""

    def spec(*command: str, **more: object) -> Launch:
        folder = tmp_path / "share" / "kernels" / "odd"
        folder.mkdir(parents=True)
        content = {"argv": command, "display_name": "Odd", "language": "odd", **more}
        (folder / "kernel.json").write_text(json.dumps(content))
        env = {**os.environ, "JUPYTER_PATH": str(tmp_path / "share"), "CELLWRIGHT_TEST": "odd"}
        return Launch(cwd=str(tmp_path), env=env, kernel_name="odd")

    return spec


def _ours() -> set[int]:
    """The processes whose kernel belongs to this process."""
    return {pid for pid, mark in find_marked_processes().items() if f"-{os.getpid()}-" in mark}


async def _fail(launch: Launch, places: Path, within: float = 10.0) -> KernelStartFailed:
    kernel = LocalKernel(launch, start_timeout=within)
    with pytest.raises(KernelStartFailed) as caught:
        await kernel.start()
    assert not kernel.is_alive
    assert not _ours()
    assert not leftovers(places)
    return caught.value


async def test_a_program_that_is_missing(spec: Callable[..., Launch], places: Path) -> None:
    error = await _fail(spec("/nowhere/kernel", "{connection_file}"), places)

    assert isinstance(error.__cause__, FileNotFoundError)
    assert "/nowhere/kernel" in error.message


async def test_a_program_that_exits_at_once_has_its_last_words(
    spec: Callable[..., Launch], places: Path
) -> None:
    error = await _fail(spec("sh", "-c", "echo first; echo I have no idea >&2; exit 3"), places)

    assert "exited with code 3; it said: first / I have no idea" in error.message


async def test_a_program_that_says_much_is_quoted_from_the_end(
    spec: Callable[..., Launch], places: Path
) -> None:
    error = await _fail(spec("sh", "-c", "seq 100000; echo the end; exit 1"), places)

    assert error.message.endswith("/ the end")
    assert len(error.message) < 1000


async def test_a_program_that_never_answers(spec: Callable[..., Launch], places: Path) -> None:
    error = await _fail(spec("sh", "-c", "setsid sleep 1000 & sleep 1000"), places, within=0.3)

    assert "not ready within 0.3 s" in error.message


async def test_a_start_that_is_cancelled_leaves_nothing(
    spec: Callable[..., Launch], places: Path
) -> None:
    starting = asyncio.create_task(LocalKernel(spec("sleep", "1000")).start())
    while not _ours():
        await asyncio.sleep(0.005)

    starting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not _ours()
    assert not leftovers(places)


async def test_a_shutdown_during_the_start_ends_both(
    spec: Callable[..., Launch], places: Path
) -> None:
    kernel = LocalKernel(spec("sleep", "1000"))
    starting = asyncio.create_task(kernel.start())
    while not _ours():
        await asyncio.sleep(0.005)

    await kernel.shutdown()

    with pytest.raises(KernelStartFailed):
        await starting
    assert not _ours()
    assert not leftovers(places)


async def test_a_shutdown_before_the_process_runs_ends_both(
    spec: Callable[..., Launch], places: Path
) -> None:
    kernel = LocalKernel(spec("sleep", "1000"))
    starting = asyncio.create_task(kernel.start())
    await asyncio.sleep(0)

    await kernel.shutdown()

    with pytest.raises(KernelStartFailed):
        await starting
    assert not _ours()
    assert not leftovers(places)


async def test_a_folder_that_is_missing(places: Path) -> None:
    launch = Launch(cwd="/nowhere", env=dict(os.environ), kernel_name="python3")

    error = await _fail(launch, places)

    assert isinstance(error.__cause__, FileNotFoundError)


async def test_a_runtime_directory_too_long_for_sockets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, places: Path
) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(folder))

    error = await _fail(Launch("/", dict(os.environ), kernel_name="python3"), places)

    assert "too long" in error.message
    assert not list(folder.iterdir())


async def test_a_runtime_directory_that_others_may_enter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(folder))

    with pytest.raises(UnsafeDirectory):
        await LocalKernel(Launch("/", dict(os.environ), kernel_name="python3")).start()


async def test_a_kernel_that_died_can_be_started_again(places: Path) -> None:
    kernel = LocalKernel(Launch("/", dict(os.environ), kernel_name="python3"))
    await kernel.start()
    await run(kernel, "import os; os._exit(1)")

    await kernel.start()

    assert text(await run(kernel, "print(1)")) == "1\n"
    assert kernel.exit is None
    await kernel.shutdown(now=True)
    assert not _ours()
    assert not leftovers(places)


async def test_a_kernel_that_is_not_there_is_missing() -> None:
    with pytest.raises(KernelMissing):
        await LocalKernel(Launch("/", dict(os.environ), kernel_name="nonesuch")).start()


def test_a_kernel_of_the_same_name_in_another_python_is_not_meant(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").write_text("")
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    python = tmp_path / "bin" / "python"
    python.symlink_to(sys.executable)
    launch = Launch("/", dict(os.environ), kernel_name="python3", python=str(python))

    with pytest.raises(KernelMissing) as caught:
        resolve_spec(launch)
    assert str(python) in caught.value.message


def test_a_kernelspec_of_the_interpreters_own_environment_is_meant(tmp_path: Path) -> None:
    folder = tmp_path / "share" / "jupyter" / "kernels" / "odd"
    folder.mkdir(parents=True)
    command = [str(tmp_path / "bin" / "python3.11"), "-m", "odd"]
    (folder / "kernel.json").write_text(json.dumps({"argv": command, "language": "python"}))
    python = str(tmp_path / "bin" / "python")

    spec = resolve_spec(Launch("/", dict(os.environ), kernel_name="odd", python=python))

    assert list(spec.command) == command


async def test_a_kernel_for_another_provisioner_is_refused(spec: Callable[..., Launch]) -> None:
    launch = spec("true", metadata={"kernel_provisioner": {"provisioner_name": "cloud"}})

    with pytest.raises(KernelCannot):
        await LocalKernel(launch).start()


async def test_a_kernel_that_is_alive_is_not_started_twice() -> None:
    kernel = LocalKernel(Launch("/", dict(os.environ), python=sys.executable))
    await kernel.start()
    pid = kernel.info.pid

    await kernel.start()

    assert kernel.info.pid == pid
    await kernel.shutdown(now=True)


async def test_the_kernelspecs_own_variables_and_words_are_filled_in(
    spec: Callable[..., Launch], tmp_path: Path
) -> None:
    launch = spec(
        *(sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"),
        "--InteractiveShellApp.exec_lines=where = r'{resource_dir}'",
        language="python",
        env={"A": "<${CELLWRIGHT_TEST}>", "B": "${NO_SUCH}"},
        interrupt_mode="message",
    )
    kernel = LocalKernel(launch)
    await kernel.start()
    try:
        said = await run(kernel, "import os; print(os.environ['A'], os.environ['B'], where)")
        running = asyncio.create_task(run(kernel, "import time; time.sleep(100)"))
        await asyncio.sleep(0)
        await kernel.interrupt()
        async with asyncio.timeout(10):
            stopped = await running
    finally:
        await kernel.shutdown(now=True)

    folder = tmp_path / "share" / "kernels" / "odd"
    assert text(said) == f"<odd> ${{NO_SUCH}} {folder}\n"
    assert stopped[-1].status == "cancelled"  # type: ignore[union-attr]


async def test_ipython_keeps_its_history_in_memory_unless_the_kernelspec_says_where(
    spec: Callable[..., Launch], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    where = tmp_path / "history.sqlite"
    option = f"--HistoryManager.hist_file={where}"
    for kernel in (LocalKernel(launch()), LocalKernel(spec(*command, option))):
        await kernel.start()
        file = "print(get_ipython().history_manager.hist_file)"
        said = text(await run(kernel, file))
        assert said == (":memory:\n" if kernel.info.name == "python3" else f"{where}\n")
        # What the user sees of it is as ever.
        assert text(await run(kernel, "%history 1")) == f"{file}\n"
        await kernel.shutdown()
    assert where.exists()
    assert not [*(tmp_path / "ipython").rglob("history.sqlite")]


async def test_a_kernel_that_knows_no_private_sockets_is_reached_over_ports(
    spec: Callable[..., Launch], places: Path
) -> None:
    choosy = 'grep -q ipc "$0" && exit 1; exec "$1" -m ipykernel_launcher -f "$0"'
    kernel = LocalKernel(spec("sh", "-c", choosy, "{connection_file}", sys.executable))
    await kernel.start()
    try:
        said = await run(kernel, "print(1)")
    finally:
        await kernel.shutdown()

    assert text(said) == "1\n"
    assert not _ours()
    assert not leftovers(places)


def test_too_few_descriptors_are_an_error_and_leave_nothing(places: Path) -> None:
    """ZeroMQ alone would abort the whole process."""
    program = Path(__file__).with_name("few_descriptors.py")

    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        check=False,
        text=True,
        timeout=100,
    )

    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert len(results["failed"]) >= 10
    assert set(results["failed"]) == {"EMFILE"}
    assert results["leaked"] == 0
    assert results["processes"] == 0
    assert results["after"] == "ok"
    assert not leftovers(places)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_process_that_was_stopped_is_told_from_one_that_runs_and_one_that_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            assert not is_stopped(process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            assert is_stopped(process.pid)
        finally:
            process.kill()
    assert not is_stopped(process.pid)
