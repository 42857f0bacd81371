from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import mcp_types as types
import pytest

from cellwright.mcp import stdio
from cellwright.mcp.stdio import StdioWire, encode_message, refuse_line

if TYPE_CHECKING:
    from pathlib import Path


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


_PROGRAM = """
import asyncio, os, sys
from cellwright.mcp.stdio import Wire
print("waiting in the buffer")
wire = Wire()
print("stray")
sys.stdout.flush()
os.system("echo child; cat")
async def main():
    await wire.write(b"protocol\\n")
    async for line in wire.lines():
        await wire.write(line * int(sys.argv[1]) + b"\\n")
asyncio.run(main())
"""


def test_the_wire_moves_away_before_anybody_can_write_to_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "1"],
        input=b"from the client\n",
        capture_output=True,
        check=True,
        env=dict(os.environ),
    )

    assert done.stdout == b"protocol\nfrom the client\n"
    assert done.stderr.split(b"\n")[:3] == [b"waiting in the buffer", b"stray", b"child"]


def test_a_file_can_be_the_client(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    asked.write_bytes(b"one\ntwo\nthree")
    with asked.open("rb") as source, (tmp_path / "told").open("wb") as told:
        subprocess.run([sys.executable, "-c", _PROGRAM, "1"], stdin=source, stdout=told, check=True)

    assert (tmp_path / "told").read_bytes() == b"protocol\none\ntwo\nthree\n"


def test_a_client_that_reads_late_misses_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked = [b"%04d" % number for number in range(1000)]
        process.stdin.write(b"\n".join(asked) + b"\n")
        process.stdin.close()
        told = process.stdout.read().split(b"\n")

    assert told == [b"protocol", *(line * 100 for line in asked), b""]
