"""Runs of a notebook in a kernel without a process, which does as its cells say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.config.settings import Settings
from cellwright.kernel.memory import MemoryKernel
from cellwright.kernel.pool import SessionPool
from cellwright.kernel.session import Key
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.collector import Collector
from cellwright.workspace.runs.choice import choose_code
from cellwright.workspace.runs.notebook_run import NotebookRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright import Book
    from cellwright.document.cells import Cell
    from cellwright.kernel.session import Session
    from cellwright.kernel.transport import KernelInfo
    from cellwright.workspace.runs.execution import Execution


class MemoryEvaluator:
    """Has the sessions of notebooks, as `Evaluator` does."""

    def __init__(self) -> None:
        self.pool = SessionPool(Settings(interrupt_grace=0.2))
        self.kernels: list[MemoryKernel] = []

    async def notebook_session(self, path: str, **_: Any) -> tuple[Session, tuple[str, ...]]:
        folder = str(Path(path).parent)

        async def start() -> MemoryKernel:
            kernel = MemoryKernel(Launch(folder, {}))
            self.kernels.append(kernel)
            await kernel.start()
            return kernel

        return await self.pool.get(Key(path, folder), start, kind="notebook"), ()

    def notebook_code(self, _: Session, __: str, cell: Cell) -> Callable[[KernelInfo], Code]:
        return lambda _: Code(cell.source, cell_id=cell.id, allow_stdin=True)

    def collector(self) -> Collector:
        return Collector()


class Gate:
    """Somebody who is asked for input, and lets a cell go on when the test says so."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def ask(self, _: object) -> str:
        self.reached.set()
        await self.opened.wait()
        return ""


def make_notebook(folder: Path, *sources: str, name: str = "m.ipynb", **cells: Any) -> None:
    """A notebook of code cells `c0`, `c1`, …; `c1={...}` gives one of them more members."""
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


async def run(
    book: Book, evaluator: MemoryEvaluator, *cells: str, **options: Any
) -> list[Execution]:
    """Run cells, all of them by default, and wait for the end."""
    notebook = book.load()
    chosen = choose_code(notebook, list(cells) or None)
    return await NotebookRun(book, evaluator, **options).run(notebook, chosen)  # type: ignore[arg-type]


def cells_of(book: Book) -> list[dict[str, Any]]:
    """The cells as they are in the file."""
    cells: list[dict[str, Any]] = json.loads(Path(book.path).read_bytes())["cells"]
    return cells


def texts(book: Book, cell: int = 0) -> str:
    """What the file says that a cell printed."""
    outputs = cells_of(book)[cell]["outputs"]
    return "".join("".join(output.get("text", ())) for output in outputs)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens beside the test; a hang is a failure."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)
