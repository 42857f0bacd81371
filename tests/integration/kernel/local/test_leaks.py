"""Starts and ends, again and again: no descriptor, thread, task, process or file is left."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.local import LocalKernel
from tests.integration.kernel.local.conftest import launch, leftovers, mark_of, run
from tests.integration.kernel.processes import eventually, start_again, with_mark

if TYPE_CHECKING:
    from pathlib import Path


def _held() -> tuple[int, int, int]:
    """Descriptors, threads and tasks of this process."""
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    return descriptors, threading.active_count() + _native_threads(), len(asyncio.all_tasks())


def _native_threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


async def _once(*, graceful: bool) -> None:
    kernel = LocalKernel(launch())
    await kernel.start()
    await run(kernel, "import subprocess; subprocess.Popen(['sleep', '1000'])")
    mark = mark_of(kernel)
    await kernel.shutdown(now=not graceful)
    assert not with_mark(mark)


@pytest.mark.parametrize(
    "count", [2, pytest.param(30, marks=[pytest.mark.all, pytest.mark.timeout(300)])]
)
async def test_starts_leak_nothing(count: int, places: Path) -> None:
    await _once(graceful=True)
    before = _held()

    for number in range(count):
        await _once(graceful=number % 3 == 0)

    assert await eventually(lambda: _held() == before)
    assert not leftovers(places)


@pytest.mark.all
async def test_restarts_leak_nothing(places: Path) -> None:
    kernel = LocalKernel(launch())
    await kernel.start()
    await start_again(kernel)
    before = _held()

    for _ in range(4):
        await start_again(kernel)

    assert await eventually(lambda: _held() == before)
    assert len(leftovers(places)) == 1
    await kernel.shutdown(now=True)


async def test_a_kernel_that_is_dropped_ends_without_a_warning(places: Path) -> None:
    kernel = LocalKernel(launch())
    await kernel.start()
    mark = mark_of(kernel)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del kernel
        gc.collect()

    assert await eventually(lambda: not with_mark(mark))
    assert not leftovers(places)


def test_a_kernel_whose_event_loop_was_closed_ends_without_a_warning(places: Path) -> None:
    async def forget() -> str:
        kernel = LocalKernel(launch())
        await kernel.start()
        return mark_of(kernel)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mark = asyncio.run(forget())
        gc.collect()

    assert not with_mark(mark)
    assert not leftovers(places)
