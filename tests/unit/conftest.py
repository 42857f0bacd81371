"""Unit tests stay inside their own process: no other process, no socket, no sleep."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.workspace.caller import Caller

if TYPE_CHECKING:
    from collections.abc import Iterator

# Events of `sys.addaudithook` that a unit test must not cause. Event loops make socket pairs,
# which neither bind nor connect.
_FORBIDDEN = frozenset(
    {
        "subprocess.Popen",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.system",
        "pty.spawn",
        "socket.bind",
        "socket.connect",
    }
)
_LONGEST_SLEEP = 0.05


class _Guard:
    """Remembers what the running test did that a unit test must not do."""

    def __init__(self) -> None:
        self.is_watching = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_watching and event in _FORBIDDEN:
            self.seen.append(f"{event}{arguments[:2]!r:.120}")


_guard = _Guard()
sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def _stays_in_its_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    sleep = time.sleep

    def short_sleep(seconds: float) -> None:
        if seconds > _LONGEST_SLEEP:
            _guard.seen.append(f"time.sleep({seconds})")
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", short_sleep)
    monkeypatch.setattr(Caller, "extend_hub", None)  # the tool bridge listens on a socket
    _guard.seen.clear()
    _guard.is_watching = True
    try:
        yield
    finally:
        _guard.is_watching = False
    if _guard.seen:
        pytest.fail(
            f"a unit test must stay in its process, and this one did: {_guard.seen[0]}; "
            "move it to tests/integration or tests/kernels",
            pytrace=False,
        )
