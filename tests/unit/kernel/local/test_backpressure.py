"""How far a kernel may run ahead: held first, stopped when that lasts, never left so."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any, cast

from cellwright.kernel.local import channels
from cellwright.kernel.local.channels import BACKLOG_HIGH, BACKLOG_LOW, Backpressure

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

STOP, GO = signal.SIGSTOP, signal.SIGCONT


class Kernel:
    """The sockets and the process of one, both at once."""

    def __init__(self) -> None:
        self.waited = 0.0
        self._is_held = False
        self.limit = 0
        self.signals: list[int] = []
        self.end: Callable[[], None] = lambda: None

    def is_held(self) -> bool:
        return self._is_held

    def hold(self) -> None:
        self._is_held = True

    def release(self) -> None:
        self._is_held = False

    def limit_waiting(self, messages: int) -> None:
        self.limit = messages

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def on_exit(self, call: Callable[[], None]) -> None:
        self.end = call


def paced(*, keeps: bool = True) -> tuple[Kernel, Backpressure]:
    kernel = Kernel()
    made = Backpressure(cast("Any", kernel), cast("Any", kernel))
    if keeps:
        made.note_kernel_keeps_messages()
    return kernel, made


async def test_a_burst_is_left_in_the_kernel_which_goes_on() -> None:
    kernel, made = paced()
    assert kernel.limit > 0

    made.note_arrival(BACKLOG_HIGH)
    assert not kernel.is_held()
    made.note_arrival(BACKLOG_HIGH + 1)
    assert kernel.is_held()
    made.note_removal(BACKLOG_LOW)
    assert kernel.is_held()
    made.note_removal(BACKLOG_LOW - 1)
    assert not kernel.is_held()

    assert kernel.signals == []


async def test_a_kernel_that_is_ahead_for_long_is_stopped_until_that_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "LEAD_SECONDS", 0.01)
    kernel, made = paced()

    made.note_arrival(BACKLOG_HIGH + 1)
    async with asyncio.timeout(5):
        while not kernel.signals:
            await asyncio.sleep(0)
    made.note_removal(0)

    assert kernel.signals == [STOP, GO]
    assert not kernel.is_held()


async def test_leads_add_up_and_waiting_for_the_kernel_makes_up_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel, made = paced()
    now = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)

    def lead(seconds: float) -> None:
        nonlocal now
        made.note_arrival(BACKLOG_HIGH + 1)
        now += seconds
        made.note_removal(0)

    lead(0.2)
    kernel.waited = 10.0  # more than it was ahead, which is no credit for later
    lead(0.2)
    lead(0.2)
    assert kernel.signals == []
    lead(0.2)
    assert kernel.signals == [STOP, GO]
    kernel.waited += 0.5
    lead(0.2)
    assert kernel.signals == [STOP, GO]


async def test_a_kernel_that_drops_what_is_not_read_is_stopped_at_once() -> None:
    kernel, made = paced(keeps=False)

    made.note_arrival(BACKLOG_HIGH + 1)
    made.note_arrival(BACKLOG_HIGH + 2)

    assert (kernel.signals, kernel.is_held()) == ([STOP], False)
    made.resume()
    assert kernel.signals == [STOP, GO]


async def test_what_a_dead_kernel_has_said_is_not_held() -> None:
    kernel, made = paced()
    made.note_arrival(BACKLOG_HIGH + 1)

    kernel.end()
    assert not kernel.is_held()
    made.note_arrival(BACKLOG_HIGH + 1)

    assert not kernel.is_held()
    assert kernel.signals == []
