"""Frames and errors on the engine's socket."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from cellwright import errors
from cellwright.engine import wire
from cellwright.errors import CellConflict, CellwrightError, Conflict, InvalidCall
from cellwright.workspace.api.answers import (
    CellStaleness,
    CellView,
    LastRun,
    OtherActor,
    ReadAnswer,
    SelectAnswer,
    StaleAnswer,
    StaleReason,
    TextLine,
)
from cellwright.workspace.api.requests import VERBS
from cellwright.workspace.caller import Caller
from tests.cases import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.workspace.api.values import Value


def test_a_line_that_is_too_long_is_dropped_while_it_comes_and_the_next_is_not() -> None:
    frames = wire.Frames(100)
    for _ in range(1000):
        frames.feed(b"x" * 99)
        assert sum(map(len, frames._parts)) <= 100
    frames.feed(b'\n{"id":1}\n')
    with pytest.raises(InvalidCall, match="too long"):
        wire.decode(frames.next() or b"")
    assert wire.decode(frames.next() or b"") == {"id": 1}
    frames.feed(b"x" * 100 + b"\n")
    assert frames.next() == b"x" * 100


@pytest.mark.parametrize(
    "line", [b"", b"x", b"[]", b"1", b"null", b"[" * 100_000, b"\xff\xfe", b'{"a":', b"9" * 5000]
)
def test_what_is_no_object_is_an_invalid_call(line: bytes) -> None:
    with pytest.raises(InvalidCall):
        wire.decode(line)


def _leaves(kind: type[CellwrightError]) -> list[type[CellwrightError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in _leaves(child))]


KINDS = [kind for kind in _leaves(CellwrightError) if kind.__module__ == errors.__name__]


@for_each("kind", KINDS)
def test_every_error_is_of_the_same_class_on_the_other_side(kind: type[CellwrightError]) -> None:
    state = {"message": "went wrong", "hint": "do better", "path": "a\udc80.ipynb", "cells": ()}
    error = kind.restore(state)
    found = wire.decode_error(wire.decode(wire.encode(wire.make_failure(1, error)))["error"])
    assert type(found) is kind
    assert (found.code, found.message, found.hint) == (kind.code, "went wrong", "do better")
    assert (found.retryable, str(found)) == (kind.retryable, "went wrong")
    assert vars(found)["path"] == "a\udc80.ipynb"


def test_a_conflict_keeps_its_cells() -> None:
    cell = CellConflict("c1", 0, "changed", base="was", current="now", other=None)
    error = Conflict("It changed", cells=[cell])
    found = wire.decode_error(wire.decode(wire.encode(wire.encode_error(error))))
    assert isinstance(found, Conflict)
    (same,) = found.cells
    for name in CellConflict.__slots__:
        assert getattr(same, name) == getattr(cell, name)


def test_an_error_that_only_the_engine_knows_is_still_one_of_ours() -> None:
    found = wire.decode_error({"message": "new", "data": {"code": "FROM_THE_FUTURE"}})
    assert type(found) is CellwrightError
    assert found.message == "new"


@pytest.mark.parametrize(
    "value",
    [
        "x" * 3_000_000,
        "é\ud800\U0001f600" * 700_000,
        {"a": ["y" * 300_000, None, 1.5, True], "b\n": {"c": ["z"] * 3000}, "d": []},
        list(range(5000)),
        [*range(100), "x" * 300_000, {"cells": [{"a": [1, "é", None]}] * 2000}, *"ab"],
        ([{"a": float("inf")}] * 64, [[]] * 3000),
    ],
)
def test_a_large_message_made_in_pieces_is_the_same(value: object) -> None:
    message = wire.make_answer(1, value)
    assert wire.is_large(message)
    line = wire.encode_in_pieces(message)
    assert line.count(b"\n") == 1
    assert wire.decode(line) == wire.decode(wire.encode(message))


RUN = LastRun("ok", 1.5, None, 3, True)
CODE = CellView(0, "a", "a", "code", "x\n", "h", 3, "ok", True, RUN)
TEXT = CellView(1, None, "cell-1", "markdown", "é\U0001f600\0", "h", problem="none")
STALE = CellStaleness(0, "a", "stale", "s", [StaleReason("edited", "s", ["x"])], ["w"])


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        ("read", ReadAnswer("n", "r", "4.5", [CODE, TEXT] * 2000, [OtherActor("x", "y", 0.25)])),
        ("read", ReadAnswer("n", "r", "4.5", [CODE], [], text="é\U0001f600\n" * 400_000)),
        ("read", ReadAnswer("n", "r", "4.5", [CODE.replace(source="é" * 1_500_000), TEXT], [])),
        ("read", ReadAnswer("n", "r", "4.5", [CODE] * 5000, [], text="half \ud800")),
        ("read", ReadAnswer("n", "r", "4.5", [CODE.replace(execution_count=10**40)] * 5000, [])),
        ("read", ReadAnswer("n", "r", "4.5", [CODE.replace(stale=True)] * 5000, [])),
        ("stale", StaleAnswer("n", [STALE] * 5000)),
        ("select", SelectAnswer("n", None, ":1-", 1, None, [TextLine(1, "x")] * 5000, [], "x")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_large_answer_crosses_the_wire_as_its_json(verb: str, answer: Value) -> None:
    call = VERBS[verb].__new__(VERBS[verb])
    message = wire.make_answer(7, call.encode_answer(answer))
    assert wire.is_large(message)
    line = wire.encode_in_pieces(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert wire.decode(line) == {"jsonrpc": "2.0", "id": 7, "result": answer.to_json()}
    assert wire.decode(wire.encode(message)) == wire.decode(line)
    assert call.decode_answer(wire.decode(line)["result"]) == answer


@pytest.mark.parametrize(("source", "steps"), [("short", False), ("long" * 2**19, True)])
def test_long_texts_of_an_answer_are_encoded_in_steps(source: str, steps: bool) -> None:
    cells = [CODE.replace(source=source), TEXT] * 30
    with patch.object(wire, "_encode", wraps=wire._encode) as in_steps:
        wire.encode_in_pieces(wire.make_answer(1, ReadAnswer("n", "r", "4.5", cells, [])))
    assert in_steps.called == steps


def test_a_small_message_is_not_called_large() -> None:
    assert not wire.is_large(wire.make_answer(1, {"cells": [{"source": "x" * 100}] * 100}))


def test_the_address_of_a_server_reaches_the_engine_and_no_kernel(tmp_path: Path) -> None:
    address = "http://localhost:8888/?token=of-a-server"
    client = Caller(cwd=str(tmp_path), environ={"CELLWRIGHT_SERVER": address, "PLAIN": "yes"})
    hello = wire.make_hello(client)
    assert hello["server_token"] is None

    served = Caller(
        cwd=hello["cwd"], environ=hello["environ"], withheld=hello["withheld"], actor="test:ada"
    )
    assert served.settings.server == address
    variables, _ = served.build_environment()
    assert variables["PLAIN"] == "yes"
    assert not [value for value in variables.values() if "of-a-server" in value]


def test_no_verb_has_a_parameter_that_the_wire_has_itself() -> None:
    """The engine takes these out of every call, so that the verb would never see its own."""
    fields = {field for kind in VERBS.values() for field in kind.FIELDS}
    assert fields.isdisjoint({"can_ask", "silent", "whole"})
