"""Unit tests stay inside their own process: no other process, no socket, no sleep."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.workspace.caller import Caller

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

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
        "socket.getaddrinfo",
        "socket.sendto",
    }
)
_LONGEST_SLEEP = 0.05
_OURS = str(Path(__file__).parent)


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

    sleep_async = asyncio.sleep

    def short_sleep_async(seconds: float, result: Any = None) -> Coroutine[Any, Any, Any]:
        # What we are about may pause; a test waits for an event instead.
        if sys._getframe(1).f_code.co_filename.startswith(_OURS):
            return sleep_and_tell(seconds, result)
        return sleep_async(seconds, result)

    async def sleep_and_tell(seconds: float, result: Any) -> Any:
        await sleep_async(seconds)  # one that is cancelled stood for a wait without an end
        if seconds > _LONGEST_SLEEP:
            _guard.seen.append(f"asyncio.sleep({seconds})")
        return result

    monkeypatch.setattr(time, "sleep", short_sleep)
    monkeypatch.setattr(asyncio, "sleep", short_sleep_async)
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
