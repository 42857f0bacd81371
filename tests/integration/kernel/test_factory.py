"""The factory hands out its spare kernel, a real one."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cellwright.config.settings import Settings
from cellwright.kernel.factory import KernelFactory, KernelOrder
from cellwright.kernel.transport import Code
from cellwright.outputs.events import DisplayEvent

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.kernel.transport import Transport


async def value(kernel: Transport, source: str) -> str:
    found = [
        event async for event in kernel.execute(Code(source)) if isinstance(event, DisplayEvent)
    ]
    return str(found[-1].data["text/plain"]).strip("'")


@pytest.mark.timeout(120)
async def test_the_second_kernel_is_the_spare_of_the_first(tmp_path: Path) -> None:
    factory = KernelFactory(Settings())
    folder = tmp_path / "other"
    folder.mkdir()
    request = KernelOrder(cwd=str(tmp_path), env=dict(os.environ), kernel=sys.executable)
    first = await factory.start(request)
    assert factory._spare._starting is not None
    spare = (await asyncio.shield(factory._spare._starting)).info.pid
    second = await factory.start(replace(request, cwd=str(folder)))
    try:
        pids = [await value(kernel, "__import__('os').getpid()") for kernel in (first, second)]
        assert pids[1] == str(spare) != pids[0]
        assert await value(second, "__import__('os').getcwd()") == str(folder)
    finally:
        for kernel in (first, second):
            await kernel.shutdown()
        await factory.release_spare()
