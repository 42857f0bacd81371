"""A real engine for a test, with places of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import location
from cellwright.engine.client import EngineConnection, connect
from cellwright.engine.launch import connect_or_start, try_connect
from cellwright.engine.wire import make_hello
from cellwright.errors import CellwrightError
from cellwright.workspace.caller import Caller
from tests.conftest import PLACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def greeting(**other: Any) -> dict[str, Any]:
    """Return what a client says first."""
    return {**make_hello(Caller(actor="test:ada")), **other}


class Engine:
    """The engine of this test's places."""

    @property
    def pid(self) -> int:
        return int(self.status()["pid"])

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = ask("status")
        return found

    def stop(self) -> None:
        """Tell it to leave, and see that it does."""
        with contextlib.suppress(ConnectionError):
            end(ask("stop")["pid"])


def ask(verb: str, path: str | None = None) -> Any:
    """Call the engine without a greeting."""
    connected = try_connect(path)
    if connected is None:
        raise ConnectionRefusedError
    client = EngineConnection(connected, None)
    try:
        return client.call(verb, {})
    finally:
        client.close()


def end(pid: int) -> None:
    """Wait for the end of a process that was told to end; not for ever."""
    try:
        wait_for(lambda: not is_alive(pid), f"the end of process {pid}", 20)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        raise


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it may go while its file is being read
        return False
    return state not in "ZX"


def wait_for(is_true: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Wait until something holds; what another process does can only be looked at."""
    deadline = time.monotonic() + seconds
    while not (found := is_true()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)
    return found


@contextlib.contextmanager
def engine_of_its_own(patch: pytest.MonkeyPatch, *, started: bool = True) -> Iterator[Engine]:
    """Commands go through an engine, which ends with the block."""
    patch.setenv("CELLWRIGHT_ENGINE", "always")
    patch.delenv("CI", raising=False)
    if started:
        connect_or_start().close()
    engine = Engine()
    try:
        yield engine
    finally:
        for path in location.draining_paths():
            with contextlib.suppress(ConnectionError):
                end(ask("stop", path)["pid"])
        engine.stop()


def move_to_places(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Use the home, runtime, state, config and cache folders in that one."""
    for variable, name in PLACES.items():
        (folder / name).mkdir(mode=0o700, exist_ok=True)
        patch.setenv(variable, str(folder / name))


@contextlib.contextmanager
def engine_to_share(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Use the engine of these places, and leave it without sessions, runs and clients."""
    _use_engine(patch, folder)
    engine = Engine()
    yield engine
    with pytest.MonkeyPatch.context() as again:  # the test may have moved elsewhere
        _use_engine(again, folder)
        again.chdir(folder)
        workspace = connect(actor="test:after")
        assert workspace is not None
        with workspace:
            for run in workspace.runs():
                if run.ended is None:  # a test that failed may leave one
                    workspace.cancel(run.run)
            for session in workspace.sessions():
                with contextlib.suppress(CellwrightError):
                    workspace.kernel("shutdown", session.session, session.cwd)
        wait_for(lambda: not engine.status()["clients"], "the clients to be gone")


def _use_engine(patch: pytest.MonkeyPatch, folder: Path) -> None:
    move_to_places(patch, folder)
    patch.setenv("CELLWRIGHT_ENGINE", "always")
    patch.delenv("CI", raising=False)
