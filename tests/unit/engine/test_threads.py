"""The threads of the engine: results, errors, cancelled calls, the end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from cellwright.engine.service import FileThreads


class Broken(Exception):
    """What goes wrong here."""


async def test_a_call_returns_and_raises_what_the_work_does() -> None:
    threads = FileThreads(2)

    def fail() -> None:
        raise Broken

    assert await threads.submit(divmod, 7, 2) == (3, 1)
    assert await threads.submit(threading.get_ident) != threading.get_ident()
    with pytest.raises(Broken):
        await threads.submit(fail)
    assert await threads.submit(str) == ""
    await threads.end()


async def test_a_call_that_is_cancelled_before_its_turn_is_not_made() -> None:
    threads = FileThreads(1)
    may_go, made = threading.Event(), []
    first = threads.submit(may_go.wait, 20)
    second = threads.submit(made.append, 2)
    third = threads.submit(made.append, 3)
    second.cancel()
    may_go.set()
    await asyncio.gather(first, third)
    assert made == [3]
    await threads.end()


async def test_the_end_waits_for_what_was_asked_and_takes_no_more() -> None:
    threads = FileThreads(3)
    may_go, made = threading.Event(), []
    calls = [threads.submit(may_go.wait, 20) for _ in range(3)]
    calls.append(threads.submit(made.append, 1))
    ending = asyncio.ensure_future(threads.end())
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        threads.submit(str)
    assert not ending.done()
    may_go.set()
    await ending
    assert made == [1]
    assert all(call.done() for call in calls)
