"""What a frontend has to do, statement by statement."""

from __future__ import annotations

import asyncio
import itertools
from typing import Protocol

from cellwright.protocol.conformance.rows import (
    Broken,
    ConformanceTable,
    Skipped,
    require,
    require_equal,
)
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


FRONTEND: ConformanceTable[FrontendUnderTest] = ConformanceTable()
row = FRONTEND.row
_SPEC = {"name": "kotlin", "display_name": "Kotlin"}


async def _open_three_cells(peer: FrontendUnderTest, **metadata: Any) -> FrontendClient:
    return await open_with_cells(peer, text("a"), code("b"), text("c"), **metadata)


async def _expect_refusal(
    client: FrontendClient, method: str, params: Mapping[str, Any], expected: str, message: str = ""
) -> None:
    """Expect a refusal with that code and, if given, that message; the notebook must not change."""
    before = await client.sources()
    seen = await client.expect_error(method, params)
    require_equal(seen[0], expected, "the code")
    if message:
        require_equal(seen[1], message, "the message")
    require_equal(await client.sources(), before, "the notebook after it")


# --- Messages ------------------------------------------------------------------------------------


@row("F-01", "A comm with the target jupyter.notebook.manipulator.v1 is accepted and served")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    await client.expect_result("get_cell_count")
    require(peer.is_open(client.comm_id), "the comm was closed")


@row("F-02", "An opening message without data is accepted", "ours")
async def _(peer: FrontendUnderTest) -> None:
    await peer.reset([text("a")], {})
    client = FrontendClient(peer, await peer.open("jupyter.notebook.manipulator.v1", None), "")
    require_equal(await client.expect_result("get_cell_count"), {"count": 1}, "the result")


@row("F-03", "An ok answer has request_id, status and result, and nothing of an error")
async def _(peer: FrontendUnderTest) -> None:
    found = await (await _open_three_cells(peer)).ask("get_cell_count")
    require("result" in found, "there is no result")
    require("error" not in found, "there is an error in it")
    require_equal(found.get("status"), "ok", "the status")


@row("F-04", "An error answer has request_id, status and error, and no result")
async def _(peer: FrontendUnderTest) -> None:
    found = await (await _open_three_cells(peer)).ask("get_cell_range", {"start": 2, "end": 1})
    require("result" not in found, "there is a result in it")
    require_equal(found.get("status"), "error", "the status")


@row("F-05", "An error has a message and a code, both strings")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    for method, params in (
        ("get_cell_range", {"start": 2, "end": 1}),
        ("splice_cell_range", {"start": 99, "delete_count": 0, "cells": []}),
        ("set_notebook_metadata", {"metadata": 3}),
        ("no_such_method", {}),
    ):
        await client.expect_error(method, params)


@row("F-06", "A result is there even if it is empty")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    params = {"metadata": {"k": 1}, "merge": True}
    require_equal(await client.expect_result("set_notebook_metadata", params), {}, "the result")


@row("F-07", "Every answer carries the id of its request, and comes once")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    sent = [await client.request("get_cell_count") for _ in range(20)]
    seen = [(await client.answer()).get("request_id") for _ in sent]
    require_equal(sorted(map(str, seen)), sorted(sent), "the list of answered ids")
    await client.expect_silence()


@row("F-08", "The comm stays open after errors")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    await client.expect_error("no_such_method")
    await client.expect_error("get_cell_range", {"start": 5, "end": 1})
    require(peer.is_open(client.comm_id), "the comm was closed")
    require_equal(await client.expect_result("get_cell_count"), {"count": 3}, "the next result")


@row("F-09", "An unknown method is UNKNOWN_METHOD")
async def _(peer: FrontendUnderTest) -> None:
    seen = await (await _open_three_cells(peer)).expect_error("no_such_method")
    require_equal(seen[0], "UNKNOWN_METHOD", "the code")


@row("F-10", "A request without its parameters is refused, not left without an answer")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    for method in ("get_cell_range", "splice_cell_range", "execute_cell_range"):
        await client.expect_error(method)
    await client.expect_error("set_notebook_metadata")


@row("F-11", "A message that is not a request has no effect", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    await peer.send(client.comm_id, {"hello": 1})
    require_equal(await client.expect_result("get_cell_count"), {"count": 3}, "the next result")


@row("F-12", "A request that comes again gets the first answer, and is not done twice", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    params = {"start": 0, "delete_count": 0, "cells": [text("n")]}
    first = await client.ask("splice_cell_range", params, request_id="twice")
    again = await client.ask("splice_cell_range", params, request_id="twice")
    require_equal(again, first, "the second answer")
    require_equal(await client.sources(), ["n", "a", "b", "c"], "the notebook")


@row("F-13", "Requests that come at once are carried out one by one, in their order")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer)
    for number in range(20):
        params = {"start": number, "delete_count": 0, "cells": [text(str(number))]}
        await client.request("splice_cell_range", params)
    for _ in range(20):
        require_equal((await client.answer()).get("status"), "ok", "a status")
    require_equal(await client.sources(), [str(number) for number in range(20)], "the notebook")


# --- Reading -------------------------------------------------------------------------------------


@row("F-20", "get_cell_count gives the number of all cells")
async def _(peer: FrontendUnderTest) -> None:
    require_equal(
        await (await _open_three_cells(peer)).expect_result("get_cell_count"),
        {"count": 3},
        "the result",
    )


@row("F-21", "get_notebook_metadata gives the metadata, custom fields included")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer, kernelspec=_SPEC, custom={"a": [1, None]})
    seen = await client.metadata()
    require(isinstance(seen, dict), f"the metadata are {seen!r}")
    require_equal(seen.get("custom"), {"a": [1, None]}, "the custom field")


@row("F-22", "get_cell_range has its start and not its end")
async def _(peer: FrontendUnderTest) -> None:
    found = await (await _open_three_cells(peer)).expect_result(
        "get_cell_range", {"start": 1, "end": 3}
    )
    sources = [join_source(cell.get("source")) for cell in found.get("cells", ())]
    require_equal(sources, ["b", "c"], "the sources")


@row("F-23", "A cell has a type, a source and metadata; only code has outputs and a count")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer, code("a", metadata={"k": 1}), text("b"))
    first, second = (await client.expect_result("get_cell_range", {"start": 0, "end": 2}))["cells"]
    require_equal(first.get("cell_type"), "code", "the type")
    require_equal(first.get("metadata", {}).get("k"), 1, "the cell's metadata")
    require("execution_count" in first, "a code cell has no execution_count")
    require_equal(first.get("outputs"), [], "the outputs")
    require_equal(second.get("cell_type"), "markdown", "the type")
    require(not {"outputs", "execution_count"} & second.keys(), "a text cell has outputs")


@row("F-24", "A start after the end is INVALID_RANGE, in the words of the protocol")
async def _(peer: FrontendUnderTest) -> None:
    await _expect_refusal(
        await _open_three_cells(peer),
        "get_cell_range",
        {"start": 10, "end": 5},
        "INVALID_RANGE",
        "Invalid cell range: start=10, end=5",
    )


@row("F-25", "An end past the cells is OUT_OF_BOUNDS, in the words of the protocol")
async def _(peer: FrontendUnderTest) -> None:
    await _expect_refusal(
        await _open_three_cells(peer),
        "get_cell_range",
        {"start": 0, "end": 100},
        "OUT_OF_BOUNDS",
        "Cell range out of bounds: end=100 exceeds cell count of 3",
    )


@row("F-26", "An empty range gives no cells, also at the end of the notebook", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    for place in (0, 3):
        found = await client.expect_result("get_cell_range", {"start": place, "end": place})
        require_equal(found, {"cells": []}, "the result")


@row("F-27", "Negative numbers, and values that are not numbers, are INVALID_RANGE", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    for start in (-1, "x", None, 0.5, True):
        await _expect_refusal(client, "get_cell_range", {"start": start, "end": 2}, "INVALID_RANGE")


@row("F-28", "Numbers may be written as strings", "ours")
async def _(peer: FrontendUnderTest) -> None:
    found = await (await _open_three_cells(peer)).expect_result(
        "get_cell_range", {"start": "1", "end": "2"}
    )
    require_equal(len(found.get("cells", ())), 1, "the number of cells")


# --- Splicing ------------------------------------------------------------------------------------


async def _splice(peer: FrontendUnderTest, params: dict[str, Any], expected: list[str]) -> None:
    client = await _open_three_cells(peer)
    found = await client.expect_result("splice_cell_range", params)
    require_equal(await client.sources(), expected, "the notebook")
    end = params["start"] + len(params["cells"])
    affected = {"start": params["start"], "end": end}
    require_equal(found.get("affected_range"), affected, "affected_range")


@row("F-30", "A splice without cells deletes")
async def _(peer: FrontendUnderTest) -> None:
    await _splice(peer, {"start": 1, "delete_count": 2, "cells": []}, ["a"])


@row("F-31", "A splice that deletes nothing inserts")
async def _(peer: FrontendUnderTest) -> None:
    cells = [code("n"), text("m")]
    await _splice(peer, {"start": 0, "delete_count": 0, "cells": cells}, ["n", "m", "a", "b", "c"])


@row("F-32", "A splice that does both replaces, and affected_range ends after what is new")
async def _(peer: FrontendUnderTest) -> None:
    cells = [code("n"), text("m")]
    await _splice(peer, {"start": 1, "delete_count": 1, "cells": cells}, ["a", "n", "m", "c"])


@row("F-33", "A splice at the count appends")
async def _(peer: FrontendUnderTest) -> None:
    await _splice(peer, {"start": 3, "delete_count": 0, "cells": [text("n")]}, ["a", "b", "c", "n"])


@row("F-34", "A source may be a string or a list of strings, and outputs and a count come along")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer)
    output = {"output_type": "stream", "name": "stdout", "text": "1\n"}
    cells = [
        {"cell_type": "code", "source": ["x = 1\n", "x"], "metadata": {}},
        code("y", execution_count=4, outputs=[output]),
    ]
    await client.expect_result("splice_cell_range", {"start": 0, "delete_count": 0, "cells": cells})
    require_equal(await client.sources(), ["x = 1\nx", "y"], "the sources")
    found = await client.expect_result("get_cell_range", {"start": 1, "end": 2})
    require_equal(found["cells"][0].get("execution_count"), 4, "the count")
    require_equal(len(found["cells"][0].get("outputs", ())), 1, "the number of outputs")


@row("F-35", "A start past the cells is INVALID_SPLICE_PARAMS, in the words of the protocol")
async def _(peer: FrontendUnderTest) -> None:
    await _expect_refusal(
        await _open_three_cells(peer),
        "splice_cell_range",
        {"start": 10, "delete_count": 0, "cells": [text("n")]},
        "INVALID_SPLICE_PARAMS",
        "Invalid splice parameters: start=10 is out of bounds",
    )


@row("F-36", "A delete_count past the cells, or a negative one, is refused whole", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    for count in (3, -1):
        params = {"start": 1, "delete_count": count, "cells": [text("n")]}
        await _expect_refusal(client, "splice_cell_range", params, "INVALID_SPLICE_PARAMS")


@row("F-37", "Malformed cells are INVALID_CELL_DATA, and none of the others is inserted")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer)
    for bad in (
        3,
        {},
        {"cell_type": "heading", "source": "", "metadata": {}},
        text("x") | {"source": 3},
    ):
        params = {"start": 1, "delete_count": 1, "cells": [text("n"), bad]}
        await _expect_refusal(client, "splice_cell_range", params, "INVALID_CELL_DATA")


@row("F-38", "Explicit nulls in cells stand for what is not there", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer)
    nulls = {"name": None, "tags": None, "collapsed": None, "jupyter": None}
    cells = [code("x", metadata=nulls), text("y", attachments=None, metadata={"tags": None})]
    await client.expect_result("splice_cell_range", {"start": 0, "delete_count": 0, "cells": cells})
    found = await client.expect_result("get_cell_range", {"start": 0, "end": 2})
    for cell in found["cells"]:
        require(None not in cell.get("metadata", {}).values(), "a null is in the metadata")
        require(cell.get("attachments", {}) is not None, "a null is in the attachments")


@row("F-39", "An id is kept, unless another cell has it", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer)
    cells = [text("a", id="kept-1"), text("b", id="kept-2"), text("c", id="kept-1")]
    await client.expect_result("splice_cell_range", {"start": 0, "delete_count": 0, "cells": cells})
    found = await client.expect_result("get_cell_range", {"start": 0, "end": 3})
    ids = [cell.get("id") for cell in found["cells"]]
    require_equal(ids[:2], ["kept-1", "kept-2"], "the ids")
    require(ids[2] not in ids[:2], "two cells have one id")


# --- Metadata ------------------------------------------------------------------------------------


async def _set(peer: FrontendUnderTest, params: dict[str, Any], expected: dict[str, Any]) -> None:
    client = await _open_three_cells(peer, a=1, b={"c": 1, "d": 2})
    require_equal(await client.expect_result("set_notebook_metadata", params), {}, "the result")
    seen = await client.metadata()
    keys = {"a", "b", "n"}
    require_equal({key: seen[key] for key in keys & seen.keys()}, expected, "the metadata")


@row("F-40", "merge true merges with what is there")
async def _(peer: FrontendUnderTest) -> None:
    params = {"metadata": {"n": 1}, "merge": True}
    await _set(peer, params, {"a": 1, "b": {"c": 1, "d": 2}, "n": 1})


@row("F-41", "merge false replaces all of it")
async def _(peer: FrontendUnderTest) -> None:
    await _set(peer, {"metadata": {"n": 1}, "merge": False}, {"n": 1})


@row("F-42", "A missing merge is true", "ours")
async def _(peer: FrontendUnderTest) -> None:
    await _set(peer, {"metadata": {"n": 1}}, {"a": 1, "b": {"c": 1, "d": 2}, "n": 1})


@row("F-43", "A merge goes into objects, and a null removes (RFC 7396)", "ours")
async def _(peer: FrontendUnderTest) -> None:
    params = {"metadata": {"a": None, "b": {"d": 3}}, "merge": True}
    await _set(peer, params, {"b": {"c": 1, "d": 3}})


@row("F-44", "Bad metadata are INVALID_METADATA, in the words of the protocol")
async def _(peer: FrontendUnderTest) -> None:
    client = await _open_three_cells(peer, kernelspec=_SPEC)
    for bad in (3, "x", [1], {"kernelspec": "kotlin"}):
        params = {"metadata": bad, "merge": True}
        seen = await client.expect_error("set_notebook_metadata", params)
        require_equal(seen[0], "INVALID_METADATA", "the code")
        start = "Failed to update notebook metadata: "
        require(seen[1].startswith(start), f"the message is {seen[1]!r}")
    require_equal((await client.metadata()).get("kernelspec"), _SPEC, "the kernelspec")


# --- Running -------------------------------------------------------------------------------------


@row("F-50", "execute_cell_range answers, with an empty result, when the cells have been run")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer, code(peer.ok_source), text("t"), code(peer.ok_source))
    require_equal(
        await client.expect_result("execute_cell_range", {"start": 0, "end": 3}), {}, "the result"
    )
    found = (await client.expect_result("get_cell_range", {"start": 0, "end": 3}))["cells"]
    for cell in (found[0], found[2]):
        count = cell.get("execution_count")
        require(isinstance(count, int), f"the count of a cell that was run is {count!r}")


@row("F-51", "It refuses ranges as get_cell_range does, in the same words")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer, code(peer.ok_source))
    for start, end in ((10, 5), (0, 100)):
        params = {"start": start, "end": end}
        seen = await client.expect_error("execute_cell_range", params)
        require_equal(seen, await client.expect_error("get_cell_range", params), "the refusal")


@row("F-52", "A failing cell ends the run: EXECUTION_FAILED with its index and its error")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(
        peer, text("t"), code(peer.ok_source), code(peer.bad_source), code(peer.ok_source)
    )
    seen = await client.expect_error("execute_cell_range", {"start": 0, "end": 4})
    message = f"Cell execution failed at index 2: {peer.bad_name}"
    require_equal(seen, ("EXECUTION_FAILED", message), "the refusal")
    found = (await client.expect_result("get_cell_range", {"start": 3, "end": 4}))["cells"]
    require_equal(found[0].get("execution_count"), None, "the count of the cell after it")


@row("F-53", "An empty range runs nothing, and ends well", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer, code(peer.bad_source))
    require_equal(
        await client.expect_result("execute_cell_range", {"start": 1, "end": 1}), {}, "the result"
    )


@row("F-54", "Other requests are answered while cells run", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer, code(peer.slow_source))
    run = await client.request("execute_cell_range", {"start": 0, "end": 1})
    count = await client.request("get_cell_count")
    seen = [(await client.answer()).get("request_id") for _ in range(2)]
    require_equal(seen, [count, run], "the order of the answers")


# --- Trouble -------------------------------------------------------------------------------------


@row("F-60", "Without a notebook every method is NO_ACTIVE_NOTEBOOK")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_in_state(peer, "absent")
    try:
        for method in ("get_cell_count", "get_notebook_metadata"):
            require_equal((await client.expect_error(method))[0], "NO_ACTIVE_NOTEBOOK", "the code")
    finally:
        await peer.become("usual")


@row("F-61", "Trouble of the frontend's own is INTERNAL_ERROR")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_in_state(peer, "broken")
    try:
        require_equal(
            (await client.expect_error("get_cell_count"))[0], "INTERNAL_ERROR", "the code"
        )
    finally:
        await peer.become("usual")


@row("F-62", "A mode that forbids an edit or a run answers MODE_FORBIDS", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_in_state(peer, "forbidden")
    try:
        params = {"start": 0, "delete_count": 1, "cells": []}
        require_equal(
            (await client.expect_error("splice_cell_range", params))[0], "MODE_FORBIDS", "it"
        )
        require_equal(await client.expect_result("get_cell_count"), {"count": 1}, "the count")
    finally:
        await peer.become("usual")


# --- The second dialect --------------------------------------------------------------------------


@row("F-70", "The target jupyter.notekit.v1 is served, with parameters beside the method", "ours")
async def _(peer: FrontendUnderTest) -> None:
    client = await open_with_cells(peer, text("a"), target=NOTEKIT)
    params = {"start": 1, "delete_count": 0, "cells": [text("b")]}
    await client.expect_result("splice_cell_range", params)
    require_equal(await client.sources(), ["a", "b"], "the notebook")


@row("F-71", "There get_nbformat_version gives the version of the format", "ours")
async def _(peer: FrontendUnderTest) -> None:
    found = await (await open_with_cells(peer, target=NOTEKIT)).expect_result(
        "get_nbformat_version"
    )
    require_equal(found.get("nbformat"), 4, "nbformat")
    require(isinstance(found.get("nbformat_minor"), int), "nbformat_minor is not a number")
