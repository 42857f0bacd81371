"""A real kernel with a notebook in memory behind it, as a frontend would have both."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import cellwright_kernel
from cellwright.document.edits import SetOutputs
from cellwright.document.notebook import Notebook
from cellwright.kernel.events import CommMessage, Finished
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import DisplayEvent, ErrorEvent, StreamEvent
from cellwright.protocol.bridge import CommBridge
from cellwright.protocol.conformance.reference import MemoryAccess
from cellwright.protocol.messages import NESTED_MARK
from cellwright.protocol.methods import CellResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.document.cells import Cell
    from cellwright.protocol.messages import Reply

KERNEL_PATH = str(Path(cellwright_kernel.__file__).parent / "path")


def notebook(*sources: str) -> Notebook:
    """Code cells with the ids c0, c1 and so on; a source that begins with `#` and a space is text."""
    made = Notebook()
    made.apply(
        [
            {
                "op": "insert",
                "source": source,
                "id": f"c{number}",
                "type": "markdown" if source.startswith("# ") else "code",
            }
            for number, source in enumerate(sources)
        ]
    )
    return made


class Frontend(MemoryAccess):
    """A kernel, a notebook in memory, and the bridge between them.

    Cells are run one at a time, but for those that a running cell wants run inside it.
    """

    def __init__(self, kernel: LocalKernel, book: Notebook) -> None:
        super().__init__(book, self._execute)
        self.kernel = kernel
        self.bridge = CommBridge(lambda: self, self._send)
        self.messages: list[CommMessage] = []
        self.text: dict[str, str] = {}
        self.spoke = asyncio.Event()
        self._turn = asyncio.Lock()

    async def cell(self, ref: str | int, timeout: float = 60) -> CellResult:  # noqa: ASYNC109
        """Run one cell, as its user would."""
        async with asyncio.timeout(timeout):
            return await self._execute(self.notebook.cell(ref), None)

    def counts(self) -> dict[str, int | None]:
        """The number of each code cell that has run."""
        cells = [cell for cell in self.notebook.cells if cell.type == "code"]
        return {c.handle: c.execution_count for c in cells if c.execution_count is not None}

    def said(self, ref: str | int) -> str:
        """What a cell printed or showed when it was last run."""
        return self.text[self.notebook.cell(ref).handle]

    async def listen(self) -> None:
        """Take what the kernel says between cells."""
        async for aside in self.kernel.idle_events():
            if isinstance(aside.event, CommMessage):
                self._hear(aside.event, None)

    def _hear(self, message: CommMessage, caller: str | None) -> None:
        self.messages.append(message)
        self.bridge.feed(message, caller=caller)

    async def _execute(self, cell: Cell, nested: str | None) -> CellResult:
        if nested is not None:
            return await self._events(cell, nested)
        async with self._turn:
            return await self._events(cell, None)

    async def _events(self, cell: Cell, nested: str | None) -> CellResult:
        handle, texts, outputs, reason = cell.handle, [], [], ""
        finished: Finished | None = None
        mark = {} if nested is None else {NESTED_MARK: nested}
        code = Code(cell.source, cell_id=handle, metadata=mark)
        async for event in self.kernel.execute(code):
            if isinstance(event, CommMessage):
                self._hear(event, handle)
            elif isinstance(event, StreamEvent):
                texts.append(event.text)
                outputs.append({"output_type": "stream", "name": event.name, "text": event.text})
            elif isinstance(event, DisplayEvent):
                texts.append(str(event.data.get("text/plain")))
            elif isinstance(event, ErrorEvent):
                reason = event.ename
                texts.append(f"{event.ename}: {event.evalue}")
            elif isinstance(event, Finished):
                finished = event
            self.text[handle] = "".join(texts)
            self.spoke.set()
        assert finished is not None
        if any(cell.handle == handle for cell in self.notebook.cells):
            self.notebook.apply([SetOutputs(handle, outputs, finished.execution_count)])
        return CellResult(handle, finished.status, reason, finished.execution_count)

    async def _send(self, answer: Reply) -> None:
        message = CommMessage("msg", answer.comm_id, data=answer.data, channel=answer.channel)
        await self.kernel.send_comm(message)


@asynccontextmanager
async def frontend(
    folder: Path, book: Notebook, *, python: str | None = None, kernel_name: str | None = None
) -> AsyncIterator[Frontend]:
    """A frontend whose kernel runs, and is ended afterwards."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CELLWRIGHT_", "PYTEST_", "COV_"))
    }
    env |= {"IPYTHONDIR": str(folder / ".ipython"), "PYTHONPATH": KERNEL_PATH}
    if kernel_name is not None:
        env["JUPYTER_PATH"] = str(folder / "jupyter")
    launch = Launch(str(folder), env, python=python, kernel_name=kernel_name)
    kernel = LocalKernel(launch, start_timeout=120)
    await kernel.start()
    made = Frontend(kernel, book)
    listening = asyncio.create_task(made.listen())
    try:
        yield made
    finally:
        listening.cancel()
        await made.bridge.close()
        await kernel.shutdown()


def add_spec(folder: Path, name: str, command: list[str], **more: str) -> None:
    """Make a kernelspec that only this test finds."""
    place = folder / "jupyter" / "kernels" / name
    place.mkdir(parents=True)
    spec = {"argv": command, "display_name": name, "language": name, **more}
    (place / "kernel.json").write_text(json.dumps(spec))
