"""The conversation: order, duplicates, comms that come and go, floods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cellwright.kernel.events import CommMessage
from cellwright.protocol import bridge
from cellwright.protocol.bridge import CommBridge
from cellwright.protocol.conformance.reference import MemoryAccess
from cellwright.protocol.messages import MANIPULATOR, Reply
from cellwright.protocol.methods import CellResult
from tests.unit.protocol.stage import Stage, four_cells

INSERT = {
    "start": 0,
    "delete_count": 0,
    "cells": [{"cell_type": "code", "source": "new", "metadata": {}}],
}


async def settle(stage: Stage) -> None:
    async with asyncio.timeout(30):
        await stage.bridge.settle()


async def test_a_request_that_comes_again_gets_the_first_answer_and_is_not_done_again() -> None:
    stage = Stage()
    first = await stage.ask("splice_cell_range", INSERT, request_id="one")
    stage.send("splice_cell_range", INSERT, request_id="one")
    await settle(stage)
    assert [answer.data for answer in stage.answers] == [first, first]
    assert len(stage.cells) == 5


async def test_a_request_that_comes_twice_at_once_is_answered_once() -> None:
    stage = Stage()
    for _ in range(3):
        stage.send("splice_cell_range", INSERT, request_id="one")
    await settle(stage)
    assert len(stage.answers) == 1
    assert len(stage.cells) == 5


async def test_another_comm_may_use_the_same_ids() -> None:
    stage = Stage()
    await stage.ask("splice_cell_range", INSERT, request_id="one")
    stage.feed("open", target=MANIPULATOR, comm="other")
    data = {"method": "splice_cell_range", "request_id": "one", "params": INSERT}
    stage.feed("msg", data, comm="other")
    await settle(stage)
    assert [answer.comm_id for answer in stage.answers] == ["comm", "other"]
    assert len(stage.cells) == 6


async def test_what_was_answered_is_remembered_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge, "MOST_REMEMBERED", 10)
    monkeypatch.setattr(bridge, "MOST_READ", 2)
    stage = Stage()
    for number in range(20):
        await stage.ask("get_cell_count", request_id=f"count-{number}")
        await stage.ask("get_cell_range", {"start": 0, "end": 4}, request_id=f"range-{number}")
    assert len(stage.bridge._desk._answers) == 10
    assert len(stage.bridge._desk._reads) == 2
    # A read that is forgotten is simply done again.
    stage.send("get_cell_range", {"start": 0, "end": 4}, request_id="range-0")
    await settle(stage)
    again = [a.data for a in stage.answers if a.data["request_id"] == "range-0"]
    assert len(again) == 2
    assert again[0] == again[1]


@pytest.mark.parametrize("request_id", [7, 0, 1.5, True, "", "ü"])
async def test_any_plain_id_is_given_back_as_it_came(request_id: Any) -> None:
    stage = Stage()
    stage.send("get_cell_count", request_id=request_id)
    await settle(stage)
    (answer,) = stage.answers
    assert answer.data == {"request_id": request_id, "status": "ok", "result": {"count": 4}}
    assert type(answer.data["request_id"]) is type(request_id)


async def test_ids_that_are_equal_only_to_python_are_different() -> None:
    stage = Stage()
    for request_id in (1, True, "1", 1.0):
        stage.send("splice_cell_range", INSERT, request_id=request_id)
    await settle(stage)
    assert len(stage.answers) == 4
    assert len(stage.cells) == 8


@pytest.mark.parametrize("request_id", [None, {}, [1], {"deep": [[[]]]}])
async def test_a_request_without_an_id_to_be_known_by_is_refused(request_id: Any) -> None:
    stage = Stage()
    stage.send("splice_cell_range", INSERT, request_id=request_id)
    await settle(stage)
    (answer,) = stage.answers
    assert answer.data["request_id"] == request_id
    assert answer.data["error"]["code"] == "INTERNAL_ERROR"
    assert len(stage.cells) == 4


async def test_a_request_that_has_only_a_method_is_refused_too() -> None:
    stage = Stage()
    stage.feed("msg", {"method": "get_cell_count"})
    await settle(stage)
    assert [a.data["status"] for a in stage.answers] == ["error"]


async def test_the_comm_stays_open_after_errors() -> None:
    stage = Stage()
    for method in ("nope", "get_cell_range", "splice_cell_range"):
        await stage.refused(method)
    assert await stage.done("get_cell_count") == {"count": 4}


async def test_what_is_no_request_is_ignored() -> None:
    stage = Stage()
    for data in ({}, {"hello": 1}, {"request_id": "x", "status": "ok", "result": {}}):
        assert stage.feed("msg", data)
    await settle(stage)
    assert stage.answers == []


async def test_messages_of_other_comms_are_left_to_others() -> None:
    stage = Stage()
    assert not stage.feed("open", target="jupyter.widget", comm="widget")
    assert not stage.feed("msg", {"method": "update", "state": {}}, comm="widget")
    assert not stage.feed("msg", {"method": "custom", "request_id": "1"}, comm="widget")
    assert not stage.feed("close", comm="widget")
    await settle(stage)
    assert stage.answers == []


async def test_a_comm_that_was_opened_before_anybody_listened_is_served() -> None:
    stage = Stage()
    data = {"method": "get_cell_range", "request_id": "1", "params": {"start": 0, "end": 1}}
    assert stage.feed("msg", data, comm="older")
    assert stage.feed("msg", {"method": "nope", "request_id": "2"}, comm="older")
    await settle(stage)
    assert [(a.comm_id, a.data["status"]) for a in stage.answers] == [
        ("older", "ok"),
        ("older", "error"),
    ]


async def test_nothing_is_sent_on_a_comm_that_was_closed() -> None:
    stage = Stage()
    stage.send("splice_cell_range", INSERT)
    stage.feed("close")
    await settle(stage)
    assert stage.answers == []
    assert len(stage.cells) == 5


async def test_answers_go_to_the_channel_that_the_kernel_wants_them_on() -> None:
    for features, channel in (((), "shell"), (("control_replies",), "control")):
        stage = Stage(features=features)
        await stage.ask("get_cell_count")
        await stage.refused("nope")
        assert {answer.channel for answer in stage.answers} == {channel}


async def test_a_kernel_that_is_gone_does_not_hold_up_anything() -> None:
    async def send(_: Reply) -> None:
        raise ConnectionError

    host = MemoryAccess(four_cells())
    bridge = CommBridge(lambda: host, send)
    bridge.feed(CommMessage("open", "c", MANIPULATOR))
    for number in range(3):
        data = {"method": "splice_cell_range", "request_id": str(number), "params": INSERT}
        bridge.feed(CommMessage("msg", "c", data=data))
    await bridge.settle()
    assert len(host.notebook.cells) == 7


async def test_a_restarted_kernel_begins_anew() -> None:
    stage = Stage()
    await stage.ask("splice_cell_range", INSERT, request_id="one")
    stage.bridge.forget()
    stage.feed("open", target=MANIPULATOR)
    stage.send("splice_cell_range", INSERT, request_id="one")
    await settle(stage)
    assert len(stage.cells) == 6


# --- Order ---------------------------------------------------------------------------------------


class Slow(MemoryAccess):
    """A host that takes its time, and notices if it is asked two things at once."""

    def __init__(self) -> None:
        super().__init__(four_cells())
        self.busy = 0
        self.most = 0

    async def apply(self, edits: Any, *, base: Any = None) -> Any:
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(0.001)
        result = await super().apply(edits, base=base)
        self.busy -= 1
        return result


async def test_requests_are_carried_out_one_by_one_in_the_order_they_came() -> None:
    host = Slow()
    stage = Stage(host)
    for number in range(20):
        cell = {"cell_type": "code", "source": str(number), "metadata": {}}
        params = {"start": 0, "delete_count": number > 0, "cells": [cell]}
        params["delete_count"] = 0
        stage.send("splice_cell_range", params)
    await settle(stage)
    assert host.most == 1
    assert stage.cells[:20] == [str(number) for number in reversed(range(20))]
    assert [a.data["request_id"] for a in stage.answers] == [f"req-{n}" for n in range(1, 21)]


class Held(MemoryAccess):
    """A host whose cells run until they are let go."""

    def __init__(self) -> None:
        super().__init__(four_cells(), self._run)
        self.go = asyncio.Event()
        self.begun = asyncio.Event()

    async def _run(self, cell: Any, nested: str | None) -> CellResult:
        del nested
        self.begun.set()
        await self.go.wait()
        return CellResult(cell.handle, "ok")


async def test_a_cell_that_is_run_may_ask_something_itself() -> None:
    host = Held()
    stage = Stage(host, features=("nested_execute",))
    run = stage.send("execute_cell_range", {"start": 0, "end": 1}, caller="c")
    await host.begun.wait()
    count = stage.send("get_cell_count", caller="a")
    while not stage.answers:
        await asyncio.sleep(0)
    assert stage.answer_to(count)["result"] == {"count": 4}
    host.go.set()
    await settle(stage)
    assert stage.answer_to(run)["status"] == "ok"


async def test_a_nested_cell_cannot_run_the_one_that_waits_for_it() -> None:
    host = Held()
    stage = Stage(host, features=("nested_execute",))
    stage.send("execute_cell_range", {"start": 0, "end": 1}, caller="c")
    await host.begun.wait()
    own = stage.send("execute_cell_range", {"start": 2, "end": 3}, caller="a")
    while not stage.answers:
        await asyncio.sleep(0)
    assert stage.answer_to(own)["error"]["code"] == "EXECUTION_FAILED"
    host.go.set()
    await settle(stage)
    assert await stage.done("execute_cell_range", {"start": 2, "end": 3}, caller="a") == {}


async def test_a_frontend_that_cannot_wait_refuses_cells_that_would_not_be_nested() -> None:
    for features, nested, is_refused in (
        ((), True, True),
        (("nested_execute",), False, True),
        (("nested_execute",), True, False),
    ):
        stage = Stage(features=features, waits=False)
        asked = stage.send("execute_cell_range", {"start": 0, "end": 1}, caller="c", nested=nested)
        await settle(stage)
        answer = stage.answer_to(asked)
        assert (answer["status"] == "error") is is_refused, answer
        if is_refused:
            assert answer["error"]["code"] == "EXECUTION_FAILED"
    # Between cells there is nothing to wait for.
    between = stage.send("execute_cell_range", {"start": 0, "end": 1}, nested=False)
    await settle(stage)
    assert stage.answer_to(between)["status"] == "ok"


async def test_what_waits_is_dropped_when_the_bridge_closes() -> None:
    host = Held()
    stage = Stage(host)
    stage.send("execute_cell_range", {"start": 0, "end": 1})
    await host.begun.wait()
    async with asyncio.timeout(5):
        await stage.bridge.close()
    assert stage.answers == []


async def test_a_flood_beyond_bounds_is_refused_and_what_waits_is_still_done() -> None:
    stage = Stage()
    total = bridge.MOST_WAITING + 100
    for _ in range(total):
        stage.send("get_cell_count")
    await settle(stage)
    assert len(stage.answers) == total
    refused = [a for a in stage.answers if a.data["status"] == "error"]
    assert len(refused) == 100
    assert await stage.done("get_cell_count") == {"count": 4}


async def test_a_flood_lets_others_on_the_loop_have_their_turn() -> None:
    stage = Stage()
    seen = set()

    async def watch() -> None:
        while True:
            seen.add(len(stage.answers))
            await asyncio.sleep(0)

    watcher = asyncio.create_task(watch())
    for _ in range(2000):
        stage.send("get_cell_range", {"start": 0, "end": 4})
    await settle(stage)
    watcher.cancel()
    assert len(stage.answers) == 2000
    assert len(seen) > 1000  # between the answers, it had its turn again and again


async def test_what_a_kernel_says_in_answer_to_another_client_is_left_to_that_one() -> None:
    stage = Stage()
    data = {"method": "splice_cell_range", "request_id": "1", "params": INSERT}
    assert stage.feed("msg", data, is_ours=False)
    await settle(stage)
    assert stage.answers == []
    assert len(stage.cells) == 4
    # The same comm may be used by a cell of ours; its requests are then ours.
    assert stage.feed("msg", data)
    await settle(stage)
    assert len(stage.cells) == 5


async def test_a_comm_of_another_target_is_never_served_whatever_it_says() -> None:
    stage = Stage()
    stage.feed("open", comm="theirs", target="jupyter.widget")
    looks_ours = {"method": "splice_cell_range", "request_id": "1", "start": 0, "delete_count": 2}
    assert not stage.feed("msg", looks_ours, comm="theirs")
    await settle(stage)
    assert (stage.answers, len(stage.cells)) == ([], 4)


async def test_a_refusal_keeps_its_place_among_the_answers() -> None:
    stage = Stage()
    first = stage.send("get_cell_count")
    refused = stage.send("nope")
    last = stage.send("get_cell_count")
    await settle(stage)
    assert [answer.data["request_id"] for answer in stage.answers] == [first, refused, last]
