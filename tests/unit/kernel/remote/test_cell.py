"""When a cell is over, and how: learned from messages in any order."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.events import Missed, Started
from cellwright.kernel.remote.cell import DEATHS, RemoteCell
from cellwright.kernel.remote.websocket import RemoteMessage
from cellwright.outputs.events import ErrorEvent, StreamEvent

if TYPE_CHECKING:
    from typing import Any

OURS = "our-session"


def said(kind: str, parent: str = "cell", channel: str = "iopub", **content: Any) -> RemoteMessage:
    return RemoteMessage(
        channel,
        {"msg_type": kind, "session": "kernel-1"},
        {"msg_id": parent, "session": OURS},
        content=content,
    )


def state(name: str, parent: str = "cell") -> RemoteMessage:
    return said("status", parent, execution_state=name)


def reply(status: str = "ok", parent: str = "cell", **content: Any) -> RemoteMessage:
    return said("execute_reply", parent, "shell", status=status, **content)


def fed(*messages: RemoteMessage, is_interrupted: bool = False) -> tuple[RemoteCell, list[Any]]:
    run = RemoteCell("cell", OURS, "kernel-1")
    run.is_interrupted = is_interrupted
    return run, [event for message in messages for event in run.take(message)]


def is_over(run: RemoteCell) -> bool:
    return run.is_over  # asked anew each time, which mypy would not believe of a property


@pytest.mark.parametrize(
    "order", list(itertools.permutations([state("idle"), reply("ok", execution_count=3)]))
)
def test_a_cell_is_over_with_its_reply_and_its_idle(
    order: tuple[RemoteMessage, RemoteMessage],
) -> None:
    run, _ = fed(state("busy"), order[0])
    assert not is_over(run)

    assert list(run.take(order[1])) == []
    assert is_over(run)
    assert (run.status, run.count) == ("ok", 3)


def test_others_cells_are_nobodys_business() -> None:
    run, events = fed(
        state("idle", "other"),
        reply("ok", "other"),
        said("stream", "other", name="stdout", text="theirs"),
        said("error", "other", ename="E"),
    )

    assert events == []
    assert not is_over(run)
    assert not run.was_seen


@pytest.mark.parametrize(
    ("content", "is_interrupted", "expected"),
    [
        ({"status": "ok"}, True, "ok"),
        ({"status": "error", "ename": "KeyboardInterrupt"}, True, "cancelled"),
        ({"status": "error", "ename": "KeyboardInterrupt"}, False, "error"),
        ({"status": "error", "ename": "ValueError"}, True, "error"),
        ({"status": "aborted"}, True, "cancelled"),
        ({"status": "abort"}, True, "cancelled"),
        ({"status": "aborted"}, False, "error"),
        ({"status": 17}, False, "error"),
        ({}, False, "error"),
    ],
)
def test_the_verdict_is_the_replys(
    content: dict[str, Any], expected: str, *, is_interrupted: bool
) -> None:
    run, _ = fed(said("execute_reply", channel="shell", **content), is_interrupted=is_interrupted)

    assert run.status == expected


def test_an_error_that_only_the_reply_has_is_told_at_the_end() -> None:
    run, events = fed(reply("error", ename="E", evalue="v", traceback=["t"]), state("idle"))

    assert events == []
    assert list(run.take_reply_error()) == [ErrorEvent("E", "v", ("t",))]
    assert list(run.take_reply_error()) == []


@pytest.mark.parametrize("name", sorted(DEATHS))
def test_a_kernel_that_its_server_calls_dead_has_died(name: str) -> None:
    run, _ = fed(state("busy"), state(name, ""))

    assert run.has_died
    assert is_over(run)


def start(process: str) -> RemoteMessage:
    header = {"msg_type": "status", "session": process}
    return RemoteMessage("iopub", header, {}, content={"execution_state": "starting"})


def test_what_the_process_of_a_cell_said_when_it_began_may_come_late() -> None:
    """It answers on another socket, and has the cell then: no other process took its place."""
    run, _ = fed(start("kernel-1"), state("busy"), reply(), state("idle"))

    assert not run.has_died
    assert run.status == "ok"


def test_a_kernel_that_starts_anew_or_says_goodbye_has_died() -> None:
    assert fed(start("kernel-2"))[0].has_died
    assert fed(said("shutdown_reply", "", restart=True))[0].has_died
    assert not fed(state("busy", ""), state("idle", ""))[0].has_died


def test_the_fence_ends_a_cell_whose_own_end_was_lost() -> None:
    run, _ = fed(said("stream", name="stdout", text="x"))
    run.fences = {"f1", "f2"}
    assert list(run.take(said("kernel_info_reply", "f2", "shell"))) == []
    assert not is_over(run)

    assert list(run.take(state("idle", "f2"))) == []

    assert is_over(run)
    assert run.status is None
    assert run.was_seen


def test_an_answer_from_another_process_is_a_death() -> None:
    run, _ = fed()
    run.fences = {"f"}
    answer = said("kernel_info_reply", "f", "shell")
    answer.header = {"msg_type": "kernel_info_reply", "session": "kernel-2"}

    assert list(run.take(answer)) == []

    assert run.has_died


def test_what_the_server_writes_in_the_cells_name_is_missed_output() -> None:
    notice = said("stream", name="stderr", text="IOPub data rate exceeded.\nThe server …")
    assert [type(event) for event in fed(notice)[1]] == [StreamEvent]  # a cell may print that too

    notice.header = {"msg_type": "stream", "session": OURS}
    (event,) = fed(notice)[1]
    assert isinstance(event, Missed)
    assert "IOPub data rate exceeded" in event.reason


def test_only_what_has_to_do_with_the_cell_is_wanted() -> None:
    run, _ = fed()
    run.fences = {"fence"}

    assert run.wants(said("stream"))
    assert run.wants(reply())
    assert run.wants(state("dead", "other"))
    assert run.wants(said("kernel_info_reply", "fence", "shell"))
    assert not run.wants(said("stream", "other"))
    assert not run.wants(said("comm_msg", "an earlier cell"))


def test_messages_of_any_shape_do_no_harm() -> None:
    kinds = ["stream", "display_data", "execute_result", "error", "status", "execute_input"]
    kinds += ["comm_open", "comm_msg", "clear_output", "update_display_data", "unheard_of", ""]
    shapes: list[Any] = [None, 1, "x", [], {}, [1], {"a": 1}]
    names = ["name", "text", "data", "metadata", "transient", "traceback", "execution_count"]
    for kind, shape in itertools.product(kinds, shapes):
        content = dict.fromkeys([*names, "ename", "evalue", "comm_id", "execution_state"], shape)
        run, _ = fed(said(kind, **content))
        assert not is_over(run)
    for shape in shapes:
        run, _ = fed(reply("error", payload=shape, ename=shape, traceback=shape), state("idle"))
        assert [type(event) for event in run.take_reply_error()] == [ErrorEvent]
    (started,) = fed(said("execute_input", execution_count=True))[1]
    assert started == Started(None)
