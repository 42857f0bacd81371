"""Workspaces whose kernels have no process and do as their cells say; see `MemoryKernel`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.config.settings import Settings
from cellwright.errors import KernelMissing
from cellwright.kernel.transport import Launch
from cellwright.workspace.api.requests import RunRequest
from cellwright.workspace.hub import Hub
from cellwright.workspace.verbs import perform_on_loop
from tests.memory_kernel import MemoryKernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright import Book
    from cellwright.kernel.factory import KernelOrder
    from cellwright.kernel.session import Session, Start
    from cellwright.workspace.runs.execution import Executions


class MemoryKernels:
    """Starts kernels without a process; all it started are in `made`."""

    def __init__(self) -> None:
        self.made: list[MemoryKernel] = []

    def starter(self, order: KernelOrder) -> Start:
        async def start() -> MemoryKernel:
            self._check(order)
            kernel = MemoryKernel(Launch(order.cwd, order.env))
            self.made.append(kernel)
            await kernel.start()
            return kernel

        return start

    def would_start(self, order: KernelOrder, kernel: object) -> bool:  # noqa: ARG002
        self._check(order)
        return False

    def _check(self, order: KernelOrder) -> None:
        if order.kernel not in (None, "memory"):
            raise KernelMissing(f"No kernel `{order.kernel}`", hint="Use another")

    async def release_spare(self) -> None:
        """Do nothing: no kernel is kept ready."""


def make_hub(kernels: MemoryKernels, **options: Any) -> Hub:
    """Return a hub whose kernels have no process."""
    return Hub(Settings(interrupt_grace=0.2), kernels=kernels, **options)  # type: ignore[arg-type]


class Gate:
    """Answers a cell that asks for input when the test says so."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def ask(self, _: object) -> str:
        self.reached.set()
        await self.opened.wait()
        return ""


def make_notebook(folder: Path, *sources: str, name: str = "m.ipynb", **cells: Any) -> None:
    """Write a notebook of code cells `c0`, `c1`, …; `c1={...}` gives one of them more members."""
    found = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
            "source": source,
            **cells.get(f"c{number}", {}),
        }
        for number, source in enumerate(sources)
    ]
    metadata = {"language_info": {"name": "script"}}
    shape = {"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (folder / name).write_text(json.dumps(shape, indent=1) + "\n")


async def run(book: Book, *cells: str, **options: Any) -> Executions:
    """Run cells, all of them by default, and wait for the end; on the loop of the hub."""
    request = RunRequest(book.name, list(cells) or None, **options)
    return await perform_on_loop(book.workspace.caller, request)


def cancel_newest(book: Book) -> None:
    """Stop the run that began last."""
    runs = book.workspace.caller.hub.runs
    assert runs.get(runs.list()[0].run).cancel()


def session_of(book: Book) -> Session:
    """Return the session of a notebook."""
    found = book.workspace.caller.hub.find_session(book.real)
    assert found is not None
    return found


def cells_of(book: Book) -> list[dict[str, Any]]:
    """Return the cells as they are in the file."""
    cells: list[dict[str, Any]] = json.loads(Path(book.path).read_bytes())["cells"]
    return cells


def texts(book: Book, cell: int = 0) -> str:
    """Return what the file says that a cell printed."""
    outputs = cells_of(book)[cell]["outputs"]
    return "".join("".join(output.get("text", ())) for output in outputs)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens beside the test; a hang is a failure."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)
