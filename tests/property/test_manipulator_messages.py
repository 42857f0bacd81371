"""Messages that nobody would send: each is answered once, and the notebook stays valid."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from cellwright.protocol.conformance.reference import MemoryAccess
from cellwright.protocol.messages import MANIPULATOR, METHODS, NOTEKIT
from tests.unit.protocol.stage import Stage, four_cells, raise_where_told

MESSAGES = 5_000
CODES = {
    *("INVALID_RANGE", "OUT_OF_BOUNDS", "INVALID_SPLICE_PARAMS", "INVALID_METADATA"),
    *("INVALID_CELL_DATA", "EXECUTION_FAILED", "UNKNOWN_METHOD", "INTERNAL_ERROR"),
    "NO_ACTIVE_NOTEBOOK",
}


class Chaos:
    """Draws messages; most of them nearly right."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids = 0

    def message(self) -> dict[str, Any]:
        draw = self.random.random
        data: dict[str, Any] = {}
        if draw() < 0.98:
            data["method"] = self.method()
        if draw() < 0.98:
            data["request_id"] = self.request_id()
        params = self.params(str(data.get("method")))
        if draw() < 0.5:
            data["params"] = params
        else:
            data.update({key: value for key, value in params.items() if key not in data})
        if draw() < 0.05:
            data[self.text()] = self.junk()
        return data

    def method(self) -> Any:
        known = sorted(METHODS[NOTEKIT])
        return self.random.choice(known) if self.random.random() < 0.93 else self.junk()

    def request_id(self) -> Any:
        self.ids += 1
        if self.random.random() < 0.05:  # one that was used before
            return f"r{self.random.randrange(1, self.ids + 1)}"
        return f"r{self.ids}" if self.random.random() < 0.97 else self.junk()

    def params(self, method: str) -> dict[str, Any]:
        number = self.number
        if "splice" in method:
            cells: Any = [self.cell() for _ in range(self.random.randrange(4))]
            return self.thin(
                {"start": number(), "delete_count": number(), "cells": self.or_junk(cells)}
            )
        if "set" in method:
            metadata = {self.text(): self.junk() for _ in range(self.random.randrange(3))}
            return self.thin({"metadata": self.or_junk(metadata), "merge": self.junk()})
        return self.thin({"start": number(), "end": number()})

    def cell(self) -> Any:
        source: Any = self.random.choice(["x", ["a\n", "b"], "", "raise", "é\u2028", 1, None])
        kind = self.random.choice(["code", "markdown", "raw", "code", "heading"])
        metadata = self.random.choice([{}, {"tags": ["a"]}, {"tags": None}, {"tags": "a"}, None])
        cell = {"cell_type": kind, "source": source, "metadata": metadata}
        if self.random.random() < 0.3:
            cell["id"] = self.random.choice(["a", "x1", "not an id", None, 3])
        if self.random.random() < 0.3:
            cell[self.random.choice(["outputs", "execution_count", "attachments"])] = self.junk()
        return self.or_junk(self.thin(cell))

    def thin(self, value: dict[str, Any]) -> dict[str, Any]:
        """Leave something out now and then."""
        return {key: item for key, item in value.items() if self.random.random() < 0.97}

    def or_junk(self, value: Any) -> Any:
        return value if self.random.random() < 0.95 else self.junk()

    def number(self) -> Any:
        if self.random.random() < 0.85:
            return self.random.choice([0, 0, 1, 2, 3, 4, "1", "2", 5, 100, -1])
        return self.junk()

    def text(self) -> str:
        return self.random.choice(["k", "kernelspec", "language_info", "é", "title", "a b"])

    def junk(self) -> Any:
        deep: Any = []
        for _ in range(300):
            deep = [deep]
        values = [None, True, False, -1, 0, 1.5, 10**20, "", "text", "\ud800", "12", [], {}, [1]]
        return self.random.choice([*values, {"a": {"b": None}}, deep, "x" * 10_000, {"name": 3}])


@pytest.mark.parametrize("target", [MANIPULATOR, NOTEKIT])
async def test_every_fuzzed_message_is_answered_once_and_the_notebook_stays_valid(
    target: str,
) -> None:
    chaos = Chaos(7)
    host = MemoryAccess(four_cells(), raise_where_told)
    stage = Stage(host, target)
    oks = 0
    seen: dict[str, dict[str, Any]] = {}
    for number in range(MESSAGES // 2):
        message = chaos.message()
        before, answered = host.notebook.to_bytes(), len(stage.answers)
        stage.feed("msg", message)
        async with asyncio.timeout(10):
            await stage.bridge.settle()
        new = stage.answers[answered:]
        if "method" not in message and "request_id" not in message:
            assert new == []
            continue
        (answer,) = new
        data = dict(answer.data)
        assert data["request_id"] == message.get("request_id"), message
        if data["status"] == "ok":
            assert data.keys() == {"request_id", "status", "result"}
            oks += 1
        else:
            assert data["error"]["code"] in CODES, data
            assert data["error"]["message"].isprintable()
            assert len(data["error"]["message"]) < 500
        key = json.dumps(message.get("request_id"))
        if data["status"] == "ok" and data["result"].keys() & {"cells", "metadata"}:
            seen.pop(key, None)  # what was read is soon forgotten, and may be read again
            continue
        if key in seen and isinstance(message.get("request_id"), str):
            assert data == seen[key]
            assert host.notebook.to_bytes() == before, "a request was carried out twice"
            continue
        if data["status"] == "error":
            assert host.notebook.to_bytes() == before, message
        seen[key] = data
        if host.notebook.to_bytes() != before or number % 500 == 0:
            assert host.notebook.validate() is None, message
        if len(host.notebook.cells) > 30:
            host.notebook = four_cells()
    assert oks > MESSAGES / 10


async def test_fuzzed_messages_all_at_once_are_each_answered() -> None:
    chaos = Chaos(11)
    stage = Stage(MemoryAccess(four_cells(), raise_where_told), NOTEKIT)
    messages = [chaos.message() for _ in range(3000)]
    for message in messages:
        stage.feed("msg", message)
    async with asyncio.timeout(50):
        await stage.bridge.settle()
    ids = {m["request_id"] for m in messages if isinstance(m.get("request_id"), str)}
    counted: dict[str, list[Any]] = {}
    for answer in stage.answers:
        if isinstance(answer.data["request_id"], str):
            counted.setdefault(answer.data["request_id"], []).append(answer.data)
    assert counted.keys() == ids
    assert stage.host is not None
    assert stage.host.notebook.validate() is None
