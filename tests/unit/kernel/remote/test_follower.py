"""A listener hears what a kernel says about the cells of others, and how each of them ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.events import Finished, KernelExit, Missed, Started
from cellwright.kernel.remote.cell import DEATHS
from cellwright.kernel.remote.follower import KernelFollower
from cellwright.kernel.remote.websocket import RemoteMessage
from cellwright.outputs.events import StreamEvent

if TYPE_CHECKING:
    from typing import Any


class Listener:
    """A follower whose connection is the test, and what it reported."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.asked: list[asyncio.Future[None]] = []
        self.follower = KernelFollower(
            "http://127.0.0.1:9", None, "k", lambda *each: self.heard.append(each)
        )
        self.follower._link = self  # type: ignore[assignment]

    async def say(
        self, kind: str, request: str = "r", *, user: str = "ada", life: str = "one", **content: Any
    ) -> None:
        parent = {"msg_id": request, "msg_type": "execute_request", "username": user}
        header = {"msg_type": kind, "session": life}
        await self.follower._take(RemoteMessage("iopub", header, parent, content=content))

    async def begin(self, request: str = "r", count: int = 1, **more: Any) -> None:
        await self.say("execute_input", request, code="x", execution_count=count, **more)

    async def idle(self, request: str = "r", **more: Any) -> None:
        await self.say("status", request, execution_state="idle", **more)

    # -- the connection, as the follower knows it -------------------------------------------

    def make_message(self, channel: str, kind: str, content: dict[str, Any]) -> Any:
        return RemoteMessage(channel, {"msg_type": kind}, content=content)

    async def ask(self, message: Any, within: float) -> None:
        del message, within
        self.asked.append(asyncio.get_running_loop().create_future())
        await self.asked[-1]

    async def close(self) -> None:
        pass


async def test_a_cell_of_another_client_is_heard_from_its_beginning_to_its_end() -> None:
    told = Listener()
    await told.say("status", execution_state="busy")
    await told.begin(count=7)
    await told.say("stream", name="stdout", text="hello\n")
    await told.idle()
    assert told.heard == [
        ("r", Started(7)),
        ("r", StreamEvent("stdout", "hello\n")),
        ("r", Finished("ok", 7)),
    ]
    assert told.follower.process == "one"


@pytest.mark.parametrize(
    ("name", "status"), [("ValueError", "error"), ("KeyboardInterrupt", "cancelled")]
)
async def test_a_cell_that_raised_ends_as_an_error_or_as_cancelled(name: str, status: str) -> None:
    told = Listener()
    await told.begin(count=2)
    await told.say("error", ename=name, evalue="", traceback=[])
    await told.idle()
    assert told.heard[-1] == ("r", Finished(status, 2))  # type: ignore[arg-type]


async def test_a_request_that_the_kernel_refused_ends_without_a_beginning() -> None:
    told = Listener()
    await told.say("status", execution_state="busy")
    await told.idle()
    assert told.heard == [("r", Finished("ok"))]


async def test_our_own_cells_and_what_is_not_about_a_cell_are_left_out() -> None:
    told = Listener()
    await told.begin(user="cellwright")
    await told.idle(user="cellwright")
    header, parent = {"msg_type": "stream"}, {"msg_id": "i", "msg_type": "kernel_info_request"}
    await told.follower._take(RemoteMessage("iopub", header, parent, content={"text": "x"}))
    await told.follower._take(RemoteMessage("shell", {"msg_type": "execute_reply"}, parent))
    assert told.heard == []


@pytest.mark.parametrize("state", [*sorted(DEATHS), "starting"])
async def test_a_kernel_that_dies_or_starts_again_ends_all_that_ran(state: str) -> None:
    told = Listener()
    await told.begin("first", 1)
    await told.begin("second", 2)
    await told.say("status", "other", execution_state=state)
    assert told.heard[2:] == [
        ("first", Finished("died", 1, KernelExit())),
        ("second", Finished("died", 2, KernelExit())),
    ]
    await told.begin("third", 1, life="two")
    assert told.follower.process == "two"


async def test_a_cell_that_ended_while_there_was_no_connection_ends_when_the_kernel_answers() -> (
    None
):
    told = Listener()
    await told.begin("gone", 1)
    told.follower._note_gap("the network")
    await asyncio.sleep(0)
    assert told.heard[-1] == ("gone", Missed("the network"))
    await told.begin("new", 2)  # it is not over, whatever the kernel answers
    told.asked[0].set_result(None)
    fence = told.follower._fence
    assert fence is not None
    await fence
    assert told.heard[-1] == ("gone", Finished("ok", 1))
    await told.idle("new")
    assert told.heard[-1] == ("new", Finished("ok", 2))
    await told.follower.close()
