"""Our own frontend under test: the bridge over a notebook in memory, and no kernel at all."""

from __future__ import annotations

import asyncio
import json
from copy import copy
from dataclasses import dataclass, field

from cellwright.document.edits import SetOutputs
from cellwright.document.notebook import Notebook
from cellwright.errors import ModeForbids
from cellwright.protocol.bridge import CommBridge
from cellwright.protocol.methods import CellResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import Snapshot
    from cellwright.protocol.messages import Reply

    Execute = Callable[[Cell, "str | None"], Awaitable[CellResult]]


@dataclass(frozen=True, slots=True)
class ReferenceMessage:
    """A message on a comm."""

    kind: str
    comm_id: str
    target: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    is_ours: bool = True


async def _run_nothing(cell: Cell, nested: str | None) -> CellResult:  # noqa: ARG001
    return CellResult(cell.handle, "ok")


class MemoryAccess:
    """A `NotebookAccess` without a file; `execute` runs one cell and gets the request it is nested in."""

    def __init__(self, notebook: Notebook | None = None, execute: Execute = _run_nothing) -> None:
        self.notebook = Notebook() if notebook is None else notebook
        self.execute = execute

    async def snapshot(self) -> Notebook:
        """Return a copy of the notebook as it is now."""
        return copy(self.notebook)

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Apply edits, all or nothing."""
        self.notebook.apply(list(edits), base=base)
        return copy(self.notebook)

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[CellResult]:
        """Run cells one by one, until one fails."""
        del base  # there are no other writers
        wanted = [self.notebook.cell(ref) for ref in cells]
        ran: list[CellResult] = []
        for cell in wanted:
            ran.append(await self.execute(cell, nested))
            if ran[-1].status != "ok":
                break
        return ran


class _Forbidden(MemoryAccess):
    async def apply(self, *_: Any, **__: Any) -> Any:
        raise ModeForbids("edit", "ask", "agent")

    async def run(self, *_: Any, **__: Any) -> Any:
        raise ModeForbids("run", "ask", "agent")


class _Broken(MemoryAccess):
    async def snapshot(self) -> Any:
        raise OSError("the disk is gone")


class ReferenceFrontend:
    """A `FrontendUnderTest`; subclasses break it, to see the kit notice."""

    ok_source = "pass"
    slow_source = "sleep 0.5"
    bad_source = "raise SyntaxError"
    bad_name = "SyntaxError"

    def __init__(self) -> None:
        self.host: MemoryAccess | None = MemoryAccess(Notebook(), self._execute)
        self.bridge = CommBridge(lambda: self.host, self._deliver)
        self._notebook = Notebook()
        self._inboxes: dict[str, asyncio.Queue[Mapping[str, Any]]] = {}
        self._runs = 0

    async def reset(self, cells: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
        """Replace the notebook's cells and metadata."""
        shape: dict[str, Any] = {"cells": [], "metadata": dict(metadata)}
        shape |= {"nbformat": 4, "nbformat_minor": 5}
        self._notebook = Notebook(json.dumps(shape).encode())
        self._notebook.apply([{"op": "splice", "start": 0, "cells": [dict(c) for c in cells]}])
        self.host = MemoryAccess(self._notebook, self._execute)

    async def become(self, state: str) -> bool:
        """Have no notebook, one that fails, or one whose mode forbids edits."""
        kinds = {"broken": _Broken, "forbidden": _Forbidden, "usual": MemoryAccess}
        kind = kinds.get(state)
        self.host = None if kind is None else kind(self._notebook, self._execute)
        return True

    async def open(self, target: str, data: Mapping[str, Any] | None) -> str:
        """Open a comm."""
        comm_id = f"comm-{len(self._inboxes)}"
        self._inboxes[comm_id] = asyncio.Queue()
        self.bridge.feed(ReferenceMessage("open", comm_id, target, data or {}))
        return comm_id

    async def send(self, comm_id: str, data: Mapping[str, Any]) -> None:
        """Send a message to the bridge."""
        self.bridge.feed(ReferenceMessage("msg", comm_id, data=data))

    async def receive(self, comm_id: str, within: float) -> Mapping[str, Any] | None:
        """Wait for the next message of the bridge."""
        try:
            async with asyncio.timeout(within):
                return await self._inboxes[comm_id].get()
        except TimeoutError:
            return None

    def is_open(self, comm_id: str) -> bool:
        """Whether the comm is open; the bridge has no way to close one."""
        return comm_id in self._inboxes

    async def close(self) -> None:
        """Let go of everything."""
        await self.bridge.close()

    async def _deliver(self, answer: Reply) -> None:
        self.put(answer.comm_id, dict(answer.data))

    def put(self, comm_id: str, data: Mapping[str, Any]) -> None:
        """Deliver a message to the kernel's end of a comm."""
        self._inboxes[comm_id].put_nowait(data)

    async def _execute(self, cell: Cell, nested: str | None) -> CellResult:
        del nested
        word, _, rest = cell.source.partition(" ")
        await asyncio.sleep(float(rest) if word == "sleep" else 0)
        self._runs += 1
        self._notebook.apply([SetOutputs(cell.handle, (), self._runs)])
        failed = word == "raise"
        return CellResult(
            cell.handle, "error" if failed else "ok", rest if failed else "", self._runs
        )
