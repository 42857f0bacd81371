"""Frames that no client should send: no crash, no hang, no stray byte, and work goes on."""

from __future__ import annotations

import json
import random
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.mcp.process import HELLO, RawServer, raw_server, words
from tests.unit.mcp.serving import notebook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "io.modelcontextprotocol/protocolVersion"
ENVELOPE = {
    VERSION: "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "cellwright-fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
METHODS = (
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "notifications/cancelled",
    "notifications/initialized",
    "notifications/progress",
    "no/such/method",
    "",
    "__init__",
)
# Nothing that runs code or waits: the frames are about the protocol.
TOOLS = ("notebook_list", "notebook_read", "notebook_history", "kernel", "nothing", "")
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    1e308,
    "",
    "x" * 3000,
    "\x00",
    "\u2028\n\r",
    "é𝄞",
    [],
    [[]],
    {},
    {"a": {"b": {"c": []}}},
    "../../etc/passwd",
    "2026-07-28",
)
BROKEN_BYTES = (
    b"",
    b"\x00",
    b"\xff\xfe\xfd",
    b"{",
    b"}",
    b"null",
    b"NaN",
    b'"',
    b'"text"',
    b"[]",
    b"[1, 2]",
    b"{}",
    b"\xef\xbb\xbf{}",
    b"[" * 5000,
    b'{"a":' * 3000,
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping"',
    b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}',
    b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "\\ud800"}, "id": 3}',
    b"Content-Length: 20",
    b"GET / HTTP/1.1",
    b"\r",
    b"\t {} \t",
)


def frames(seed: int, number: int) -> Iterator[bytes]:
    """Frames that are wrong, each in its own way; a seed gives the same ones again."""
    chance = random.Random(seed)
    for _ in range(number):
        kind = chance.random()
        if kind < 0.15:
            yield chance.choice(BROKEN_BYTES)
            continue
        message = _message(chance)
        line = json.dumps(message, ensure_ascii=chance.random() < 0.5).encode("utf-8", "replace")
        if kind < 0.45:
            line = _torn(chance, line)
        yield line.replace(b"\n", b" ")


def _message(chance: random.Random) -> Any:
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": chance.choice((chance.randrange(10**6), f"s{chance.randrange(999)}")),
        "method": chance.choice(METHODS),
        "params": _params(chance),
    }
    for _ in range(chance.randrange(1, 4)):
        wrong = chance.choice(("jsonrpc", "id", "method", "params", "extra", "result", "error"))
        if chance.random() < 0.3:
            message.pop(wrong, None)
        else:
            message[wrong] = chance.choice(ODD)
    return [message, message] if chance.random() < 0.05 else message


def _params(chance: random.Random) -> Any:
    params: dict[str, Any] = {
        "name": chance.choice(TOOLS),
        "arguments": {"path": chance.choice(ODD), "action": "log", "x": chance.choice(ODD)},
        "uri": chance.choice(("notebook://a.ipynb", "artifact://x", "notebook://../x", "")),
        "requestId": chance.choice(ODD),
        "requestState": chance.choice(ODD),
        "_meta": chance.choice((ENVELOPE, {}, {VERSION: chance.choice(ODD)}, chance.choice(ODD))),
        **({k: v for k, v in HELLO.items() if chance.random() < 0.5}),
    }
    for name in list(params):
        if chance.random() < 0.3:
            params[name] = chance.choice(ODD)
        elif chance.random() < 0.3:
            del params[name]
    return params


def _torn(chance: random.Random, line: bytes) -> bytes:
    data = bytearray(line)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(data))
        what = chance.random()
        if what < 0.4:
            data[place] = chance.randrange(256)
        elif what < 0.7:
            del data[place : place + chance.randrange(1, 20)]
        else:
            data[place:place] = bytes(chance.randrange(256) for _ in range(3))
        if not data:
            break
    return bytes(data)


def _alive(server: RawServer, era: str) -> None:
    params = {} if era == "2025" else {"_meta": ENVELOPE}
    listed = server.call("tools/list", params)
    assert len(listed["result"]["tools"]) == 8


@pytest.mark.parametrize("era", ["2025", "2026"])
@pytest.mark.parametrize(
    "number", [300, pytest.param(5000, marks=[pytest.mark.all, pytest.mark.timeout(600)])]
)
def test_malformed_frames_cost_an_error_each_and_nothing_else(
    tmp_path: Path, era: str, number: int
) -> None:
    path = notebook(tmp_path / "a.ipynb", ("one", "x = 1"))
    before = path.read_bytes()
    with raw_server(tmp_path) as server:
        if era == "2025":
            server.greet()
        _alive(server, era)
        for count, frame in enumerate(frames(number, number)):
            server.send(frame)
            if count % 100 == 99:
                _alive(server, era)
        _alive(server, era)
        read = {"name": "notebook_read", "arguments": {"path": "a.ipynb"}}
        params = read if era == "2025" else {**read, "_meta": ENVELOPE}
        answer = server.call("tools/call", params)
        assert "x = 1" in answer["result"]["content"][0]["text"]
        assert b"Traceback" not in server.said, server.said.decode()

    assert path.read_bytes() == before


def test_a_line_without_end_is_refused_and_one_that_is_cut_off_ends_the_server(
    tmp_path: Path,
) -> None:
    with raw_server(tmp_path) as server:
        server.greet()
        stdin = server.process.stdin
        assert stdin is not None
        for _ in range(70):
            stdin.write(b"x" * 2**20)
        stdin.flush()
        answer = server.next()
        assert answer is not None
        assert answer["error"]["code"] == -32700
        stdin.write(b"the end of it\n")
        stdin.flush()
        _alive(server, "2025")
        stdin.write(b'{"jsonrpc": "2.0", "id": 1, "meth')
        stdin.flush()


def test_a_client_that_reads_no_more_ends_the_server(tmp_path: Path) -> None:
    process = subprocess.Popen(
        words(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.close()
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        assert process.wait(40) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdin.close()
