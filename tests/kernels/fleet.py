"""Kernels of every kind, started for one test and ended after it."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.kernel.session import CellExecution, Outcome
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import DisplayEvent, StreamEvent
from tests.conftest import ROOT
from tests.kernels.dialects import PYTHON, SCRIPT, Dialect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.transport import Transport
    from tests.integration.kernel.remote.servers import RealServer


@dataclass(frozen=True)
class Kind:
    """A kind of kernel: what makes it, and the language of its cells."""

    name: str
    make: Callable[[Launch], Transport]
    dialect: Dialect
    only_all: bool = False
    python: str | None = None
    obeys: bool = True  # whether it can be interrupted at all
    segv: tuple[int | None, int | None] = (None, 11)
    lines: int = (
        20_000  # that it can be trusted to deliver; beyond, some kernels drop what they say
    )
    is_remote: bool = False  # then nobody knows how it ended, only that it did

    def __str__(self) -> str:
        return self.name


def _memory(launch: Launch) -> Transport:
    from tests.memory_kernel import MemoryKernel

    return MemoryKernel(launch)


def _runner(launch: Launch) -> Transport:
    from cellwright.kernel.runner import Runner

    return Runner(launch)


def _local(launch: Launch) -> Transport:
    from cellwright.kernel.local import LocalKernel

    return LocalKernel(launch)


server: list[RealServer] = []
"""The Jupyter server of this test, if it has one."""


def _remote(_: Launch) -> Transport:
    from cellwright.kernel.remote import RemoteKernel, RemoteServer

    there = RemoteServer(server[-1].url, server[-1].token)
    return RemoteKernel(there)


def _environment(name: str) -> str:
    return str(ROOT / ".dev" / name / "bin" / "python")


KINDS = (
    Kind("memory", _memory, SCRIPT),
    Kind("runner", _runner, PYTHON, python=str(ROOT / ".venv/bin/python")),
    Kind("ipykernel 7", _local, PYTHON, python=str(ROOT / ".venv/bin/python")),
    Kind("jupyter server", _remote, PYTHON, is_remote=True),
    Kind("ipykernel 6.29", _local, PYTHON, only_all=True, python=_environment("ipykernel6")),
    # Neither a signal nor a message reaches its cells, and it catches its own SIGSEGV.
    Kind(
        "xeus-python",
        _local,
        PYTHON,
        only_all=True,
        python=_environment("kernels"),
        obeys=False,
        segv=(1, None),
        lines=900,  # it keeps 1,000 messages for a slow reader, some of which say other things
    ),
)
every_kind = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=kind.name, marks=[pytest.mark.all] if kind.only_all else [])
        for kind in KINDS
    ],
)


def launch(kind: Kind, cwd: Path, **variables: str) -> Launch:
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CELLWRIGHT_", "PYTEST_", "COV_"))
    }
    env["IPYTHONDIR"] = str(cwd / ".ipython")  # no history or profile of whoever runs the tests
    name = "xpython" if kind.name == "xeus-python" else None
    if name is not None:
        env["JUPYTER_PATH"] = str(ROOT / ".dev/kernels/share/jupyter")
    return Launch(str(cwd), {**env, **variables}, python=kind.python, kernel_name=name)


@asynccontextmanager
async def running(kind: Kind, cwd: Path, **variables: str) -> AsyncIterator[Transport]:
    """A kernel that is ready."""
    launched = launch(kind, cwd, **variables)
    kernel = kind.make(launched)
    await kernel.start()
    if kind.is_remote:  # it starts where its server does
        move = Code("", cwd=launched.cwd, env=launched.env, silent=True, store_history=False)
        async for _ in kernel.execute(move):
            pass
    try:
        yield kernel
    finally:
        await kernel.shutdown()


async def start_again(kernel: Transport) -> None:
    """End a kernel and start another in its place, as sessions do to restart one."""
    await kernel.shutdown(now=True)
    await kernel.start()


@dataclass
class Seen:
    """What a cell did, as far as tests want to know."""

    outcome: Outcome
    events: list[KernelEvent]

    @property
    def status(self) -> str:
        return self.outcome.status

    def text(self, name: str = "stdout") -> str:
        return "".join(
            event.text
            for event in self.events
            if isinstance(event, StreamEvent) and event.name == name
        )

    @property
    def shown(self) -> list[DisplayEvent]:
        return [event for event in self.events if isinstance(event, DisplayEvent)]

    @property
    def value(self) -> Any:
        """The text of the last expression's value."""
        values = [event.data["text/plain"] for event in self.shown if event.is_result]
        return values[-1] if values else None


async def run(kernel: Transport, source: str, **options: Any) -> Seen:
    """Run one cell, and look at all it says."""
    events: list[KernelEvent] = []
    of_code = {
        name: options.pop(name)
        for name in ("env", "cwd", "silent", "store_history", "allow_stdin")
        if name in options
    }
    options = {"timeout": 60, "grace": 5, **options}
    code = Code(source, **{"allow_stdin": True, **of_code})
    outcome = await CellExecution(kernel, code, on_event=events.append, **options).wait()
    return Seen(outcome, events)
