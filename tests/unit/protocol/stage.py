"""A bridge, a notebook in memory, and a kernel that is only a list of what it was sent."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

from cellwright.document.notebook import Notebook
from cellwright.kernel.events import CommMessage
from cellwright.protocol.bridge import CommBridge
from cellwright.protocol.conformance.reference import MemoryAccess
from cellwright.protocol.messages import MANIPULATOR, NOTEKIT, Reply
from cellwright.protocol.methods import CellResult

KERNELSPEC = {"name": "kotlin", "display_name": "Kotlin"}


def notebook(*cells: dict[str, Any], minor: int = 5, **metadata: Any) -> Notebook:
    shape = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    return Notebook(json.dumps(shape, indent=1).encode())


def four_cells() -> Notebook:
    """Code, text, code, code; every test that has no reason for another begins with these."""
    code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    return notebook(
        {**code, "id": "a", "source": ["val x = 1\n", "x"], "execution_count": 7},
        {"cell_type": "markdown", "id": "b", "metadata": {"tags": ["t"]}, "source": "# Text"},
        {**code, "id": "c", "source": "y"},
        {**code, "id": "d", "source": "raise"},
        kernelspec=KERNELSPEC,
    )


async def raise_where_told(cell: Any, nested: str | None) -> CellResult:
    """Run a cell: one whose source begins with `raise` fails."""
    del nested
    await asyncio.sleep(0)
    failed = cell.source.startswith("raise")
    return CellResult(cell.handle, "error" if failed else "ok", "SyntaxError" if failed else "")


@dataclass
class Stage:
    """One kernel with one notebook."""

    host: MemoryAccess | None = field(
        default_factory=lambda: MemoryAccess(four_cells(), raise_where_told)
    )
    target: str = MANIPULATOR
    answers: list[Reply] = field(default_factory=list)
    features: tuple[str, ...] = ()
    waits: bool = True

    def __post_init__(self) -> None:
        self.bridge = CommBridge(lambda: self.host, self._send, waits=self.waits)
        self._ids = itertools.count(1)
        self.feed("open", target=self.target, data={"features": list(self.features)})

    async def _send(self, answer: Reply) -> None:
        await asyncio.sleep(0)
        self.answers.append(answer)

    @property
    def cells(self) -> list[str]:
        """The sources of all cells."""
        assert self.host is not None
        return [cell.source for cell in self.host.notebook.cells]

    def feed(self, kind: Any, data: Any = None, comm: str = "comm", **more: Any) -> bool:
        caller = more.pop("caller", None)
        message = CommMessage(kind, comm, data={} if data is None else data, **more)
        return self.bridge.feed(message, caller=caller)

    def send(self, method: Any, params: Any = None, **more: Any) -> str:
        """Send a request in the dialect of the comm; returns its id."""
        caller = more.pop("caller", None)
        request_id = more.pop("request_id", f"req-{next(self._ids)}")
        data = {"method": method, "request_id": request_id, **more}
        if self.target == NOTEKIT:
            data |= params or {}
        elif params is not None:
            data["params"] = params
        self.feed("msg", data, caller=caller)
        return str(request_id)

    def answer_to(self, request_id: str) -> dict[str, Any]:
        """The one answer to a request."""
        (found,) = [dict(a.data) for a in self.answers if a.data["request_id"] == request_id]
        return found

    async def ask(self, method: Any, params: Any = None, **more: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        request_id = self.send(method, params, **more)
        async with asyncio.timeout(10):
            await self.bridge.settle()
        return self.answer_to(request_id)

    async def refused(self, method: Any, params: Any = None, **more: Any) -> tuple[str, str]:
        """Code and message of the error that a request gets."""
        answer = await self.ask(method, params, **more)
        assert answer.keys() == {"request_id", "status", "error"}, answer
        assert answer["status"] == "error"
        return answer["error"]["code"], answer["error"]["message"]

    async def done(self, method: Any, params: Any = None, **more: Any) -> dict[str, Any]:
        """The result that a request gets."""
        answer = await self.ask(method, params, **more)
        assert answer.keys() == {"request_id", "status", "result"}, answer
        assert answer["status"] == "ok"
        result: dict[str, Any] = answer["result"]
        return result
