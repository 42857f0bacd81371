"""One client's connection: what it may say, and what it gets when it does not listen."""

from __future__ import annotations

import asyncio
import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import connection as module
from cellwright.engine import wire
from tests.unit.engine.lines import serving

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.engine.connection import Connection

BAD: list[bytes] = [
    b"\n",
    b"not JSON\n",
    b"[1, 2]\n",
    b"7\n",
    b"{}\n",
    b'{"id": 1}\n',
    b'{"id": 1, "result": 2}\n',
    b'{"method": "read"}\n',
    b'{"id": null, "method": "read"}\n',
    b'{"id": true, "method": "read"}\n',
    b'{"id": [1], "method": "read"}\n',
    b'{"id": 1.5, "method": "read"}\n',
    b'{"id": 1, "method": 5}\n',
    b'{"id": 1, "method": null}\n',
    b'{"id": 1, "method": "read", "params": []}\n',
    b'{"id": 1, "method": "read", "params": "x"}\n',
    b'{"id": 1, "method": "read", "params": 0}\n',
    b'{"method": "stop"}\n',
    b'{"method": "stop", "params": []}\n',
    b'{"method": "stop", "params": {"call": [1]}}\n',
    b"\xff\xfe\x00\n",
    b"[" * 50_000 + b"\n",
    b"x" * 5000 + b"\n",
]


async def echo(_: Connection, number: int | str, method: str, params: dict[str, Any]) -> Any:
    return [number, method, params]


@pytest.mark.parametrize("line", BAD, ids=range(len(BAD)))
async def test_a_malformed_frame_is_an_invalid_call_and_no_more(line: bytes, places: Path) -> None:
    async with serving(places, echo, most=4000) as (_, connect):
        client = await connect()
        await client.send(line)
        answer = await client.receive()
        assert answer["error"]["data"]["code"] == "INVALID_CALL"
        assert answer["jsonrpc"] == "2.0"
        assert (await client.call("ping", a=1))["result"] == [1, "ping", {"a": 1}]


async def test_a_client_that_dies_in_the_middle_of_a_word_called_nothing(places: Path) -> None:
    called: list[str] = []

    async def handle(_: Connection, number: int | str, method: str, params: Any) -> None:
        del number, params
        called.append(method)

    async with serving(places, handle) as (_, connect):
        client = await connect()
        await client.send(b'{"id": 1, "method": "ping"}\n{"id": 2, "method": "pong"}')
        await client.receive()
        client.writer.write_eof()
        assert await client.reader.read() == b""
    assert called == ["ping"]


async def test_calls_are_answered_in_any_order_and_a_number_is_one_call(places: Path) -> None:
    gates = {number: asyncio.Event() for number in (1, 2)}

    async def handle(_: Connection, number: int | str, method: str, params: Any) -> str:
        del params
        await gates[int(number)].wait()
        return method

    async with serving(places, handle) as (_, connect):
        client = await connect()
        await client.send(wire.make_call(1, "a", {}), wire.make_call(2, "b", {}))
        await client.send(wire.make_call(1, "again", {}))
        refused = await client.receive()
        assert refused["error"]["data"]["code"] == "INVALID_CALL"
        gates[2].set()
        assert (await client.receive())["result"] == "b"
        gates[1].set()
        assert (await client.receive())["result"] == "a"


async def test_a_bug_of_ours_is_an_answer(places: Path) -> None:
    async def handle(*_: Any) -> None:
        raise ZeroDivisionError("oh")

    async with serving(places, handle) as (_, connect):
        client = await connect()
        answer = await client.call("any")
        assert answer["error"]["message"] == "ZeroDivisionError: oh"


async def test_who_does_not_read_loses_events_and_hears_how_many_and_gets_the_answer(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 100_000)
    held = 0

    async def handle(client: Connection, number: int | str, method: str, params: Any) -> str:
        del method, params
        nonlocal held
        for place in range(2000):
            client.tell(number, {"place": place, "text": "x" * 1000})
            held = max(held, client._waiting_bytes)
        return "done"

    async with serving(places, handle) as (_, connect):
        client = await connect()
        await client.send(wire.make_call(1, "flood", {}))
        told, missed = [], 0
        while True:
            message = await client.receive()
            if message.get("id") == 1:
                break
            told.append(message["params"].get("place"))
            missed += message["params"].get("missed", 0)
        assert message["result"] == "done"
        assert told[0] == 0
        assert len([place for place in told if place is not None]) + missed == 2000
        assert missed > 1000
        assert held < 110_000


@pytest.mark.parametrize("disk", ["works", "is full"])
async def test_who_wants_all_events_gets_them_in_order_however_late_it_reads(
    disk: str, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 100_000)
    held: list[tuple[int, bool]] = []
    if disk == "is full":

        def refuse(*_: object) -> int:
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(module.os, "pwrite", refuse)

    async def handle(client: Connection, number: int | str, method: str, params: Any) -> str:
        del method, params
        for place in range(2000):
            client.tell(number, {"place": place, "text": "x" * 1000}, whole=True)
        held.append((client._waiting_bytes, bool(client._spill)))
        return "done"

    async with serving(places, handle) as (_, connect):
        client = await connect()
        await client.send(wire.make_call(1, "flood", {}))
        told, missed = [], 0
        while (message := await client.receive()).get("id") != 1:
            if "place" in message["params"]:
                told.append(message["params"]["place"])
            missed += message["params"].get("missed", 0)
        assert message["result"] == "done"
        assert (await client.call("flood"))["result"] == "done"  # and it continues
    assert held[0][0] < 110_000
    assert held[0][1]
    if disk == "works":
        assert told == list(range(2000))
    else:
        assert told == sorted(told)
        assert len(told) + missed == 2000
        assert missed


async def test_who_does_not_fetch_answers_is_not_read_from(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 10_000)
    handled: list[int | str] = []

    async def handle(_: Connection, number: int | str, method: str, params: Any) -> str:
        del method, params
        handled.append(number)
        return "y" * 10_000

    async with serving(places, handle) as (_, connect):
        client = await connect()
        client.reader._limit = 1  # it stops reading as soon as there is anything
        calls = [wire.encode(wire.make_call(number, "get", {})) for number in range(3000)]
        client.writer.write(b"".join(calls))
        seen, still = -1, 0
        while still < 5:  # until nothing moves any more
            still = still + 1 if seen == len(handled) else 0
            seen = len(handled)
            await asyncio.sleep(0.02)
        assert seen < 1000
        client.reader._limit = 2**26
        got = set()
        while len(got) < 3000:
            got.add((await client.receive())["id"])
        assert got == set(range(3000))


async def test_a_stopped_call_stops_what_it_started_before_or_after(places: Path) -> None:
    stopped: list[str] = []
    go_on = asyncio.Event()

    async def handle(client: Connection, number: int | str, method: str, params: Any) -> bool:
        del params, method
        client.on_stop(number, lambda: stopped.append("early"))
        await go_on.wait()
        client.on_stop(number, lambda: stopped.append("late"))
        return client.is_stopped(number)

    async with serving(places, handle) as (_, connect):
        client = await connect()
        stop = wire.make_notification("stop", {"call": 5})
        await client.send(wire.make_call(5, "wait", {}), stop, stop, wire.make_call(6, "wait", {}))
        while not stopped:
            await asyncio.sleep(0)
        go_on.set()
        answers = {m["id"]: m["result"] for m in [await client.receive(), await client.receive()]}
        assert (answers, stopped) == ({5: True, 6: False}, ["early", "late"])
        await client.send(stop)  # of a call that is over: nothing to say about it
        assert (await client.call("wait"))["result"] is False


async def test_the_engine_can_call_its_client(places: Path) -> None:
    async def handle(client: Connection, number: int | str, method: str, params: Any) -> Any:
        del method, params
        return [await client.call("ask", {"call": number, "prompt": p}) for p in "ab"]

    async with serving(places, handle) as (_, connect):
        client = await connect()
        await client.send(wire.make_call(1, "go", {}))
        question = await client.receive()
        assert (question["method"], question["params"]) == ("ask", {"call": 1, "prompt": "a"})
        await client.send(wire.make_answer(question["id"], "yes"))
        question = await client.receive()
        await client.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": 1}})
        assert (await client.receive())["result"] == ["yes", None]


async def test_who_hangs_up_is_not_waited_for(places: Path) -> None:
    heard: list[Any] = []

    async def handle(client: Connection, number: int | str, method: str, params: Any) -> None:
        del method, params, number
        heard.append(await client.call("ask", {}))
        heard.append(await client.call("ask", {}))

    async with serving(places, handle) as (_, connect):
        client = await connect()
        await client.send(wire.make_call(1, "go", {}))
        await client.receive()
        client.writer.close()
        while len(heard) < 2:
            await asyncio.sleep(0)
    assert heard == [None, None]


def test_a_message_is_one_line_of_json() -> None:
    line = wire.encode(wire.make_call(1, "read", {"path": "a\nb"}))
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "read",
        "params": {"path": "a\nb"},
    }
    assert line.index(b"\n") == len(line) - 1
