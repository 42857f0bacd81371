"""The factory hands out its spare kernel, a real one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.config.settings import Settings
from cellwright.kernel import factory as factory_module
from cellwright.kernel.factory import KernelFactory, KernelOrder
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.local.channels import Channels
from cellwright.kernel.processes import is_stopped
from cellwright.kernel.transport import Code
from cellwright.outputs.events import DisplayEvent, ErrorEvent
from tests.integration.kernel.processes import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.kernel.transport import Transport


async def value(kernel: Transport, source: str) -> str:
    found = [
        event async for event in kernel.execute(Code(source)) if isinstance(event, DisplayEvent)
    ]
    return str(found[-1].data["text/plain"]).strip("'")


@pytest.fixture
async def order(tmp_path: Path) -> KernelOrder:
    return KernelOrder(
        cwd=str(tmp_path),
        env=dict(os.environ),
        kernel=sys.executable,
        variables=lambda: {"CELLWRIGHT_SESSION_FILE": "f"},
    )


@pytest.fixture
async def factory(order: KernelOrder) -> AsyncIterator[KernelFactory]:
    """One that has started a kernel, and has a spare one."""
    factory = KernelFactory(Settings())
    first = await factory.start(order)
    assert factory._spare._starting is not None
    await asyncio.shield(factory._spare._starting)
    yield factory
    await first.shutdown()
    await factory.release_spare()


WHERE = "__import__('os').getcwd() + ' ' + __import__('os').environ['CELLWRIGHT_SESSION_FILE']"


@pytest.mark.timeout(120)
async def test_the_second_kernel_is_the_spare_of_the_first_and_moves_with_its_first_cell(
    factory: KernelFactory, order: KernelOrder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert factory._spare._starting is not None
    spare = factory._spare._starting.result()
    folder = tmp_path / "other"
    folder.mkdir()
    sent: list[str] = []
    send = Channels.send

    def note(channels: Channels, channel: str, kind: str, *args: Any, **more: Any) -> str:
        sent.append(kind)
        return send(channels, channel, kind, *args, **more)

    monkeypatch.setattr(Channels, "send", note)
    second = await factory.start(replace(order, cwd=str(folder)))
    try:
        assert second is spare
        assert await value(second, WHERE) == f"{folder} f"
        assert sent == ["execute_request"]
        left = "{'warm_up', 'execute', 'context'} & set(globals())"
        assert await value(second, left) == "set()"
        handler = "get_ipython().kernel.shell_handlers['execute_request'].__name__"
        assert await value(second, handler) == "execute_request"
    finally:
        await second.shutdown()


@pytest.mark.timeout(120)
async def test_a_spare_that_others_use_too_is_where_it_belongs_also_when_it_is_started_again(
    factory: KernelFactory, order: KernelOrder, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    second = await factory.start(replace(order, cwd=str(folder)))
    try:
        assert isinstance(second, LocalKernel)
        assert second.lend() is not None
        pid = second.info.pid
        async with asyncio.timeout(20):
            while Path(f"/proc/{pid}/cwd").resolve() != folder:  # noqa: ASYNC240
                await asyncio.sleep(0.01)
        assert await value(second, WHERE) == f"{folder} f"
        assert await second.restart()
        assert await value(second, WHERE) == f"{folder} f"
    finally:
        await second.shutdown()


@pytest.mark.timeout(120)
async def test_a_spare_runs_no_cell_elsewhere_when_its_folder_is_gone(
    factory: KernelFactory, order: KernelOrder, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    second = await factory.start(replace(order, cwd=str(folder)))
    folder.rmdir()
    try:
        for _ in range(2):
            events = [event async for event in second.execute(Code("ran = 1"))]
            [error] = [event for event in events if isinstance(event, ErrorEvent)]
            assert error.ename == "FileNotFoundError"
        folder.mkdir()
        assert await value(second, "'ran' in globals()") == "False"
        assert await value(second, WHERE) == f"{folder} f"
    finally:
        await second.shutdown()


@pytest.mark.timeout(120)
async def test_a_spare_that_was_stopped_is_not_handed_out(
    factory: KernelFactory, order: KernelOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory_module, "_SPARE_MOVES_WITHIN", 0.5)
    assert factory._spare._starting is not None
    spare = factory._spare._starting.result()
    pid = spare.info.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert await eventually(lambda: is_stopped(pid))
    second = await factory.start(order)
    try:
        assert second is not spare
        assert await value(second, "1") == "1"
    finally:
        await second.shutdown()
