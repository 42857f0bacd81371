from __future__ import annotations

import asyncio
import json
from typing import cast

import anyio
import mcp_types as types
import pytest

from cellwright.mcp import stdio
from cellwright.mcp.stdio import StdioWire, encode_message, refuse_line
from cellwright.mcp.stdio_streams import ToClient


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b"1", -32600, None),
        (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": "a", "method": 1}', -32600, "a"),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600, None),
        (b"{}", -32600, None),
        (None, -32700, None),
    ],
)
def test_a_line_that_is_no_message_gets_an_error(
    line: bytes | None, code: int, number: object
) -> None:
    answer = refuse_line(line)

    assert answer is not None
    assert answer.count(b"\n") == 1
    told = json.loads(answer)
    assert (told["error"]["code"], told["id"]) == (code, number)


@pytest.mark.parametrize(
    "line", [b'{"jsonrpc": "2.0", "id": 1, "result": 3}', b'{"id": 1, "error": "x"}']
)
def test_an_answer_is_never_answered(line: bytes) -> None:
    assert refuse_line(line) is None


def test_every_message_is_one_line_of_utf8() -> None:
    message = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"a": "é\n\u2028", "b": "\ud800"})

    line = encode_message(message)

    assert line.count(b"\n") == 1
    assert json.loads(line)["result"] == {"a": "é\n\u2028", "b": "\ud800"}


async def test_lines_are_put_together_and_cut_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE", 10)
    chunks = iter([b"ab", b"c\nd\n", b"x" * 8, b"x" * 8, b"x\nafter\n", b"y" * 12 + b"\n", b"end"])

    async def read(_: StdioWire) -> bytes:
        return next(chunks, b"")

    monkeypatch.setattr(StdioWire, "_read", read)

    found = [line async for line in StdioWire.lines(object.__new__(StdioWire))]

    assert found == [b"abc", b"d", None, b"after", None, b"end"]


class _SlowWire:
    """A wire whose client reads when it is told to."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.may_end = asyncio.Event()
        self.is_broken = False

    def write_at_once(self, _: bytes) -> bool:
        return False

    async def write(self, data: bytes) -> None:
        self.written.append(data[:1])
        await self.may_end.wait()
        if self.is_broken:
            raise BrokenPipeError
        self.written.append(data[1:])


async def test_a_line_whose_call_is_cancelled_is_written_to_its_end_before_the_next() -> None:
    wire = _SlowWire()
    to_client = ToClient(cast("StdioWire", wire))
    first = asyncio.ensure_future(to_client.write(b"ab"))
    while not wire.written:
        await asyncio.sleep(0)
    second = asyncio.ensure_future(to_client.write(b"cd"))
    first.cancel()
    await asyncio.wait({first})
    wire.may_end.set()
    await second
    await to_client.finish()

    assert wire.written == [b"a", b"b", b"c", b"d"]


async def test_a_client_that_takes_no_lines_is_gone() -> None:
    wire = _SlowWire()
    wire.is_broken = True
    wire.may_end.set()
    to_client = ToClient(cast("StdioWire", wire))

    with pytest.raises(anyio.BrokenResourceError):
        await to_client.write(b"ab")
    assert to_client.is_gone.is_set()
