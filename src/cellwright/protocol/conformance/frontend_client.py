"""The kit as the client of a frontend: requests over one comm, as a kernel would send them."""

from __future__ import annotations

import asyncio
import itertools
from typing import Protocol

from cellwright.protocol.conformance.rows import Broken, Skipped, require, require_equal
from cellwright.protocol.messages import MANIPULATOR, NOTEKIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

ANSWER_WITHIN = 10.0
QUIET = 0.1
"""Seconds without a message after which nothing more is expected."""

_numbers = itertools.count(1)


class FrontendUnderTest(Protocol):
    """A frontend with a notebook, and the kernel's end of its comms.

    `ok_source` is a cell that ends well, `slow_source` one that takes half a second for it, and
    `bad_source` one that fails with `bad_name`.
    """

    ok_source: str
    slow_source: str
    bad_source: str
    bad_name: str

    async def reset(self, cells: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
        """Replace the notebook's cells and metadata, by any means."""
        ...

    async def become(self, state: Literal["absent", "broken", "forbidden", "usual"]) -> bool:
        """Have no notebook, one that fails, or one whose mode forbids edits; false if it cannot."""
        ...

    async def open(self, target: str, data: Mapping[str, Any] | None) -> str:
        """Open a comm, and return its id; None leaves `data` out of the message."""
        ...

    async def send(self, comm_id: str, data: Mapping[str, Any]) -> None:
        """Send a message on a comm."""
        ...

    async def receive(self, comm_id: str, within: float) -> Mapping[str, Any] | None:
        """Wait for the next message of the frontend on a comm; None if none comes in time."""
        ...

    def is_open(self, comm_id: str) -> bool:
        """Whether the frontend has not closed a comm."""
        ...


def code(source: str, **more: Any) -> dict[str, Any]:
    """A code cell."""
    cell = {"cell_type": "code", "source": source, "metadata": {}}
    return {**cell, "execution_count": None, "outputs": [], **more}


def text(source: str, **more: Any) -> dict[str, Any]:
    """A Markdown cell."""
    return {"cell_type": "markdown", "source": source, "metadata": {}, **more}


class FrontendClient:
    """One comm to a frontend."""

    def __init__(self, peer: FrontendUnderTest, comm_id: str, target: str) -> None:
        self.peer = peer
        self.comm_id = comm_id
        self._target = target

    @classmethod
    async def open(cls, peer: FrontendUnderTest, target: str = MANIPULATOR) -> FrontendClient:
        """Open a comm."""
        return cls(peer, await peer.open(target, {}), target)

    async def request(self, method: Any, params: Any = None, **more: Any) -> str:
        """Send a request, and return its id."""
        request_id = str(more.pop("request_id", f"kit-{next(_numbers)}"))
        data = {"method": method, "request_id": request_id, **more}
        if self._target == NOTEKIT:
            data |= params or {}
        elif params is not None:
            data["params"] = params
        await self.peer.send(self.comm_id, data)
        return request_id

    async def answer(self) -> dict[str, Any]:
        """Wait for the next answer."""
        found = await self.peer.receive(self.comm_id, ANSWER_WITHIN)
        if found is None:
            raise Broken(f"there was no answer within {ANSWER_WITHIN:g} s")
        return dict(found)

    async def ask(self, method: Any, params: Any = None, **more: Any) -> dict[str, Any]:
        """Send a request, and wait for its answer."""
        request_id = await self.request(method, params, **more)
        found = await self.answer()
        require_equal(found.get("request_id"), request_id, "the request_id of the answer")
        return found

    async def expect_result(self, method: Any, params: Any = None, **more: Any) -> dict[str, Any]:
        """Send a request that must succeed, and return its result."""
        found = await self.ask(method, params, **more)
        require_equal(found.get("status"), "ok", f"the status ({found.get('error')})")
        result = found.get("result")
        if not isinstance(result, dict):
            raise Broken(f"the result is {result!r}, not an object")
        return result

    async def expect_error(self, method: Any, params: Any = None, **more: Any) -> tuple[str, str]:
        """Send a request that must be refused, and return the code and the message."""
        found = await self.ask(method, params, **more)
        require_equal(found.get("status"), "error", "the status")
        error = found.get("error")
        require(isinstance(error, dict), f"the error is {error!r}, not an object")
        assert isinstance(error, dict)  # noqa: S101  # for the type checker
        message, name = error.get("message"), error.get("code")
        require(isinstance(message, str) and message, f"the error's message is {message!r}")
        require(isinstance(name, str) and name, f"the error's code is {name!r}")
        return str(name), str(message)

    async def sources(self) -> list[str]:
        """Get the sources of all cells from the frontend."""
        count = (await self.expect_result("get_cell_count")).get("count")
        found = await self.expect_result("get_cell_range", {"start": 0, "end": count})
        return [join_source(cell.get("source")) for cell in found.get("cells", ())]

    async def metadata(self) -> Any:
        """Get the notebook's metadata from the frontend."""
        return (await self.expect_result("get_notebook_metadata")).get("metadata")

    async def expect_silence(self) -> None:
        """Check that no more messages come."""
        more = await self.peer.receive(self.comm_id, QUIET)
        require(more is None, f"there was one message too many: {more!r}")


def join_source(source: Any) -> str:
    """Join a source to one text; a frontend may send it as a list of lines."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    if not isinstance(source, str):
        raise Broken(f"a source is {source!r}, neither a string nor a list of strings")
    return source


async def open_with_cells(
    peer: FrontendUnderTest, *cells: Mapping[str, Any], target: str = MANIPULATOR, **metadata: Any
) -> FrontendClient:
    """Give the frontend a notebook with these cells, and open a comm to it."""
    await peer.reset(cells, metadata)
    return await FrontendClient.open(peer, target)


async def open_in_state(
    peer: FrontendUnderTest, state: Literal["absent", "broken", "forbidden"]
) -> FrontendClient:
    """Put the frontend into a state of trouble and open a comm to it, or skip the row."""
    await peer.reset([text("one")], {})
    if not await peer.become(state):
        await asyncio.sleep(0)
        raise Skipped("this frontend cannot be put into that state from here")
    return await FrontendClient.open(peer)
