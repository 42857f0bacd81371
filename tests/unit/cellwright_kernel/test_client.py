"""The kernel's side of the conversation, without a kernel."""

from __future__ import annotations

import asyncio
import pickle
import threading
import types
from typing import TYPE_CHECKING, Any

import pytest

from cellwright_kernel import client, errors, verbs, views
from cellwright_kernel.client import PendingCall, PendingCalls
from cellwright_kernel.nesting import run_in_own_loop, run_without_waiting
from cellwright_kernel.tap import find_missing_for_tap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class FakeComm:
    """A comm whose frontend answers by a function, at once."""

    comm_id = "fake"

    def __init__(self, respond: Callable[[dict[str, Any]], Mapping[str, Any] | None]) -> None:
        self.respond = respond
        self.sent: list[dict[str, Any]] = []
        self.deliver: Callable[[Any], None] | None = None

    def send(self, data: dict[str, Any]) -> None:
        self.sent.append(data)
        answer = self.respond(data)
        if answer is not None and self.deliver is not None:
            self.deliver({"content": {"data": {"request_id": data["request_id"], **answer}}})


def ok(result: Mapping[str, Any]) -> dict[str, Any]:
    return {"status": "ok", "result": result}


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeComm]]:
    """Make the client of this process talk to a function."""

    def begin(respond: Callable[[dict[str, Any]], Any], kernel: Any = None) -> FakeComm:
        comm = FakeComm(respond)
        made = client.Client(kernel)
        made._comm = comm
        comm.deliver = made._on_message
        monkeypatch.setattr(client, "_clients", [made])
        return comm

    yield begin
    monkeypatch.undo()


class QueuedKernel:
    """A kernel made as ipykernel is, of a version that nobody has seen yet."""

    shell_handlers = types.MappingProxyType({})


def of_ten(data: dict[str, Any]) -> dict[str, Any]:
    """A frontend with ten cells."""
    if data["method"] == "get_cell_count":
        return ok({"count": 10})
    if data["method"] == "get_cell_range":
        span = range(data["params"]["start"], data["params"]["end"])
        return ok({"cells": [{"cell_type": "code", "source": [f"{n}\n", "x"]} for n in span]})
    if data["method"] == "splice_cell_range":
        start = data["params"]["start"]
        return ok({"affected_range": {"start": start, "end": start + len(data["params"]["cells"])}})
    return ok({})


# --- Requests ------------------------------------------------------------------------------------


def test_requests_are_method_id_and_params_and_ids_are_all_different(
    talk: Callable[..., FakeComm],
) -> None:
    comm = talk(of_ten)
    for _ in range(50):
        verbs.notebook.cell_count()
    verbs.notebook.cell_range(2, 4)
    assert comm.sent[0].keys() == {"method", "request_id"}
    assert comm.sent[-1]["params"] == {"start": 2, "end": 4}
    assert len({data["request_id"] for data in comm.sent}) == 51


CELLS = [
    (slice(2, 5), [2, 3, 4]),
    (slice(None), list(range(10))),
    (slice(-2, None), [8, 9]),
    (slice(8, 1, -3), [8, 5, 2]),
    (slice(5, 2), []),
    (slice(7, 99), [7, 8, 9]),
]


@pytest.mark.parametrize(("place", "expected"), CELLS)
def test_cells_are_sliced_as_a_list_is(
    talk: Callable[..., FakeComm], place: slice, expected: list[int]
) -> None:
    talk(of_ten)
    found = verbs.notebook.cells[place]
    assert [cell.index for cell in found] == expected
    assert [cell.source for cell in found] == [f"{n}\nx" for n in expected]


def test_negative_indices_count_from_the_end(talk: Callable[..., FakeComm]) -> None:
    comm = talk(of_ten)
    assert verbs.notebook.cells[-1].index == 9
    assert verbs.notebook.insert_markdown("# t") == 10
    assert verbs.notebook.insert_code("x", at=-1) == 9
    verbs.notebook.delete(-3, 2)
    assert comm.sent[-1]["params"] == {"start": 7, "delete_count": 2, "cells": []}
    assert [cell.index for cell in verbs.notebook.cells] == list(range(10))
    assert len(verbs.notebook.cells) == 10


@pytest.mark.parametrize(
    ("cells", "kinds"),
    [
        ("x = 1", ["code"]),
        (
            ["x", views.markdown("y"), {"cell_type": "raw", "source": "z"}],
            ["code", "markdown", "raw"],
        ),
        (views.raw("z", tags=["a"]), ["raw"]),
        ((), []),
    ],
)
def test_cells_to_insert_may_be_texts_cells_and_dictionaries(
    talk: Callable[..., FakeComm], cells: Any, kinds: list[str]
) -> None:
    comm = talk(of_ten)
    assert verbs.notebook.splice(3, 0, cells) == range(3, 3 + len(kinds))
    assert [cell["cell_type"] for cell in comm.sent[-1]["params"]["cells"]] == kinds


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        (None, {"a": 1}, {"a": 1}),
        ({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 3}}, {"a": None, "b": {"c": None, "d": 3}}),
        ({"a": 1}, 5, 5),
        (3, {"a": 1}, {"a": 1}),
    ],
)
def test_setting_a_field_of_the_metadata_replaces_its_value(
    talk: Callable[..., FakeComm], old: Any, new: Any, patch: Any
) -> None:
    held = {} if old is None else {"k": old}
    comm = talk(lambda data: ok({"metadata": held} if data["method"].startswith("get") else {}))
    verbs.notebook.metadata["k"] = new
    assert comm.sent[-1]["params"] == {"metadata": {"k": patch}, "merge": True}


def test_metadata_are_a_mapping(talk: Callable[..., FakeComm]) -> None:
    comm = talk(lambda data: ok({"metadata": {"a": 1}} if data["method"].startswith("get") else {}))
    metadata = verbs.notebook.metadata
    assert (dict(metadata), len(metadata), "b" in metadata, repr(metadata)) == (
        {"a": 1},
        1,
        False,
        "{'a': 1}",
    )
    del metadata["a"]
    assert comm.sent[-1]["params"] == {"metadata": {"a": None}, "merge": True}
    with pytest.raises(KeyError):
        del metadata["b"]
    verbs.notebook.metadata = {"c": 1}  # type: ignore[assignment]
    assert comm.sent[-1]["params"] == {"metadata": {"c": 1}, "merge": False}


# --- Answers -------------------------------------------------------------------------------------

ANSWERS = [
    ({"status": "error", "error": {"message": "m", "code": "INVALID_RANGE"}}, errors.OutOfRange),
    ({"status": "error", "error": {"message": "m", "code": "EXECUTION_FAILED"}}, errors.CellFailed),
    ({"status": "error", "error": {"message": "m", "code": "NEW_CODE"}}, errors.NotebookError),
    ({"status": "error", "error": "m"}, errors.NotebookError),
    ({"status": "error"}, errors.NotebookError),
    ({"status": "ok"}, errors.NotebookError),
    ({}, errors.NotebookError),
]


@pytest.mark.parametrize(("answer", "kind"), ANSWERS)
def test_an_answer_with_an_error_raises_it(
    talk: Callable[..., FakeComm], answer: dict[str, Any], kind: type[Exception]
) -> None:
    talk(lambda _: answer)
    with pytest.raises(kind) as caught:
        verbs.notebook.cell_count()
    assert type(caught.value) is kind


def test_no_answer_raises_after_the_timeout_and_a_late_one_is_dropped(
    talk: Callable[..., FakeComm], monkeypatch: pytest.MonkeyPatch
) -> None:
    comm = talk(lambda _: None)
    monkeypatch.setattr(verbs.notebook, "timeout", 0.05)
    with pytest.raises(TimeoutError) as caught:
        verbs.notebook.cell_count()
    assert isinstance(caught.value, errors.NotebookTimeout)
    assert comm.deliver is not None
    late = {"request_id": comm.sent[0]["request_id"], **ok({"count": 1})}
    comm.deliver({"content": {"data": late}})
    comm.deliver({"content": {"data": {"request_id": "unknown"}}})
    comm.deliver({"content": {}})


def test_the_usual_timeout_is_thirty_seconds_and_that_of_a_run_its_own() -> None:
    usual = verbs.notebook.timeout
    run, count = (
        verbs.NotebookRequest("execute_cell_range"),
        verbs.NotebookRequest("get_cell_count"),
    )
    assert usual == 30
    assert verbs._limit(count, None, usual, nests=False) == 30
    assert verbs._limit(run, None, usual, nests=False) is None
    assert verbs._limit(run, 5, usual, nests=False) == 5
    # While cells run here, only the frontend is waited for.
    assert verbs._limit(run, None, usual, nests=True) == 30
    assert verbs._limit(run, 5, usual, nests=True) == 5


def test_what_could_only_end_in_a_timeout_is_refused_with_the_way_out(
    talk: Callable[..., FakeComm],
) -> None:
    comm = talk(of_ten, QueuedKernel())
    for ask in (verbs.notebook.cell_count, lambda: verbs.notebook.run(0)):
        with pytest.raises(errors.CannotWait) as caught:
            ask()
        assert "notebook.futures" in caught.value.message
    assert comm.sent == []
    assert verbs.notebook.futures.cell_count().result(5) == 10
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(verbs.notebook.cell_count()))
    thread.start()
    thread.join(10)
    assert found == [10]


async def test_the_verbs_can_be_awaited(talk: Callable[..., FakeComm]) -> None:
    talk(of_ten)
    aio = verbs.notebook.aio
    assert await asyncio.gather(aio.cell_count(), aio.insert_markdown("x")) == [10, 10]
    with pytest.raises(errors.CannotWait):
        await aio.run(0)


async def test_an_answer_from_another_thread_wakes_who_awaits(
    talk: Callable[..., FakeComm],
) -> None:
    def later(data: dict[str, Any]) -> None:
        answer = {"content": {"data": {"request_id": data["request_id"], **ok({"count": 3})}}}
        assert comm.deliver is not None
        threading.Timer(0.05, comm.deliver, [answer]).start()

    comm = talk(later)
    async with asyncio.timeout(10):
        assert await verbs.notebook.aio.cell_count() == 3


def test_futures_take_several_steps_by_themselves(talk: Callable[..., FakeComm]) -> None:
    comm = talk(of_ten)
    future = verbs.notebook.futures.insert_markdown("# end")
    assert future.result(0) == 10
    assert [data["method"] for data in comm.sent] == ["get_cell_count", "splice_cell_range"]
    run = verbs.notebook.futures.run(0)
    assert run.result(0) is None
    assert comm.sent[-1]["nested"] is False


def test_a_future_holds_the_error(talk: Callable[..., FakeComm]) -> None:
    talk(lambda _: {"status": "error", "error": {"message": "m", "code": "OUT_OF_BOUNDS"}})
    future = verbs.notebook.futures.cell_range(-1)
    assert isinstance(future.exception(1), errors.OutOfRange)
    with pytest.raises(IndexError):
        future.result(1)


def test_closing_the_comm_ends_every_wait(talk: Callable[..., FakeComm]) -> None:
    talk(lambda _: None)
    future = verbs.notebook.futures.cell_count()
    client.get_client()._on_close("another")
    assert not future.done()
    client.get_client()._on_close("fake")
    assert isinstance(future.exception(1), errors.NoFrontend)


# --- Parts ---------------------------------------------------------------------------------------


def test_only_the_first_answer_counts() -> None:
    calls, call = PendingCalls(), PendingCall("get_cell_count")
    calls.add(call)
    assert calls.deliver({"request_id": call.id, **ok({"count": 1})})
    assert not calls.deliver({"request_id": call.id, **ok({"count": 2})})
    call.answer(ok({"count": 3}))
    assert call.future.result() == {"count": 1}


def test_a_cell_that_comes_after_its_caller_left_is_not_taken() -> None:
    call = PendingCall("execute_cell_range", nests=True)
    assert call.add_job("one")
    assert call.add_job("two")
    assert call.next_job() == "one"
    assert call.leave() == ["two"]
    assert not call.add_job("three")


@pytest.mark.parametrize("kind", [errors.OutOfRange, errors.NotebookTimeout, errors.CannotWait])
def test_errors_survive_pickling(kind: type[errors.NotebookError]) -> None:
    error = pickle.loads(pickle.dumps(kind("text", "CODE")))  # noqa: S301
    assert (type(error), error.message, error.code, str(error)) == (kind, "text", "CODE", "text")


def test_a_kernel_that_lacks_something_is_found_out_before_anything_is_changed() -> None:
    assert find_missing_for_tap(QueuedKernel()) == "session"


async def test_a_coroutine_runs_in_a_loop_of_its_own_inside_another() -> None:
    loops: list[Any] = []
    here = asyncio.get_running_loop()
    task = asyncio.current_task()

    async def work() -> None:
        await asyncio.sleep(0.01)
        loops.append(asyncio.get_running_loop())

    run_in_own_loop(work())
    run_in_own_loop(work())
    assert loops[0] is loops[1] is not here
    assert asyncio.get_running_loop() is here
    assert asyncio.current_task() is task
    await asyncio.sleep(0)


async def test_a_coroutine_that_waits_for_nothing_runs_where_it_is() -> None:
    seen: list[Any] = []

    async def work() -> None:
        seen.append(asyncio.get_running_loop())

    run_without_waiting(work())
    assert seen == [asyncio.get_running_loop()]
    with pytest.raises(RuntimeError):
        run_without_waiting(asyncio.sleep(1))
