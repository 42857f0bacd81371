"""Any frontend under test, from a notebook that is open in it.

    from cellwright.protocol.conformance.inside import start
    start("results.json")

In a notebook of its own: its cells are replaced many times. The kernel has to be one of Python,
with Cellwright installed. The rows are tried by a thread once the cell is over, and the file is
written when they are done.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from pathlib import Path

from cellwright.protocol.conformance.frontend import FRONTEND, FrontendClient
from cellwright.protocol.conformance.rows import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def start(path: str, *, after: float = 1.0, only: Sequence[str] = ()) -> threading.Thread:
    """Try every row, or only those named, from a thread that begins so many seconds later."""
    # In some kernels a thread does not know by itself which request it is part of.
    context = contextvars.copy_context()

    def work() -> None:
        threading.Event().wait(after)
        results = asyncio.run(_run(context, only))
        rows = {"rows": [result.to_json() for result in results], "text": render(results)}
        new = Path(f"{path}.new")
        new.write_text(json.dumps(rows), encoding="utf-8")
        new.replace(path)

    thread = threading.Thread(target=work, name="conformance", daemon=True)
    thread.start()
    return thread


async def _run(context: contextvars.Context, only: Sequence[str]) -> Sequence[Any]:
    return await FRONTEND.run(InsideFrontend(context), only=only)


class InsideFrontend:
    """A `FrontendUnderTest` over comms of this kernel; it knows the notebook by these alone."""

    ok_source = "pass"
    slow_source = "import time; time.sleep(0.5)"
    bad_source = "1 / 0"
    bad_name = "ZeroDivisionError"

    def __init__(self, context: contextvars.Context) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._comms: dict[str, Any] = {}
        self._inboxes: dict[str, asyncio.Queue[Mapping[str, Any]]] = {}
        self._closed: set[str] = set()

    async def reset(self, cells: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
        """Replace all cells and all metadata, as any client would."""
        client = await FrontendClient.open(self)
        count = (await client.expect_result("get_cell_count"))["count"]
        params = {"start": 0, "delete_count": count, "cells": [dict(cell) for cell in cells]}
        await client.expect_result("splice_cell_range", params)
        known = await client.metadata()
        kept = {key: known[key] for key in ("kernelspec", "language_info") if key in known}
        params = {"metadata": {**kept, **metadata}, "merge": False}
        await client.expect_result("set_notebook_metadata", params)

    async def become(self, state: str) -> bool:
        """Only the usual state is possible from here."""
        return state == "usual"

    async def open(self, target: str, data: Mapping[str, Any] | None) -> str:
        """Open a comm."""
        import comm as comms

        make: Callable[..., Any] = comms.create_comm
        opened = self._do(make, target_name=target, data=dict(data or {}))
        name = str(opened.comm_id)
        inbox: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._comms[name], self._inboxes[name] = opened, inbox

        def receive(message: Mapping[str, Any]) -> None:
            answer = message["content"].get("data", {})
            self._loop.call_soon_threadsafe(inbox.put_nowait, answer)

        opened.on_msg(receive)
        opened.on_close(lambda _: self._closed.add(name))
        return name

    async def send(self, comm_id: str, data: Mapping[str, Any]) -> None:
        """Send a message on a comm."""
        self._do(self._comms[comm_id].send, dict(data))

    async def receive(self, comm_id: str, within: float) -> Mapping[str, Any] | None:
        """The next message on a comm."""
        try:
            async with asyncio.timeout(within):
                return await self._inboxes[comm_id].get()
        except TimeoutError:
            return None

    def is_open(self, comm_id: str) -> bool:
        """Whether the frontend has not closed a comm."""
        return comm_id not in self._closed

    def _do(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self._context.copy().run(lambda: function(*args, **options))
