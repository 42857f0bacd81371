"""One kernel, the same over a server and a gateway, in both framings that they speak."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from cellwright.config.settings import Settings
from cellwright.errors import KernelMissing
from cellwright.kernel.events import (
    CommMessage,
    Finished,
    InputRequested,
    Started,
)
from cellwright.kernel.remote import RemoteKernel, RemoteServer
from cellwright.kernel.remote.link import KernelLink
from cellwright.kernel.remote.websocket import V1
from cellwright.kernel.session import Key, Session
from cellwright.kernel.transport import Code
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent
from tests.integration.kernel.remote.proxy import Proxy
from tests.integration.kernel.remote.talking import missed, result, run, status, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cellwright.kernel.events import KernelEvent
    from tests.integration.kernel.remote.servers import RealServer

WAYS = [
    "server-v1",
    "gateway-default",
    pytest.param("server-default", marks=pytest.mark.all),
    pytest.param("gateway-v1", marks=pytest.mark.all),
]


@pytest.fixture(scope="module", params=WAYS)
async def there(
    request: pytest.FixtureRequest, jupyter_server: RealServer, gateway: RealServer
) -> AsyncIterator[RemoteServer]:
    kind, framing = request.param.split("-")
    real = jupyter_server if kind == "server" else gateway
    async with Proxy(real.port, hides_protocols=framing == "default") as proxy:
        yield RemoteServer(proxy.url(real.url), real.token)


@pytest.fixture(scope="module")
async def kernel(there: RemoteServer) -> AsyncIterator[RemoteKernel]:
    kernel = RemoteKernel(there, name="python3")
    await kernel.start()
    yield kernel
    await kernel.shutdown()
    assert not kernel.is_alive


async def test_it_says_what_it_is(
    kernel: RemoteKernel, there: RemoteServer, request: pytest.FixtureRequest
) -> None:
    assert kernel.info.name == "python3"
    assert kernel.info.transport == "remote"
    assert kernel.info.language == "python"
    assert kernel.info.implementation == "ipython"
    assert kernel.info.details["server"] == there.address.url
    is_default = "default" in request.node.callspec.id
    assert kernel.info.details["framing"] == ("default" if is_default else V1)
    assert kernel.is_alive
    assert kernel.exit is None
    assert await kernel.ping(5)


async def test_a_cell_gives_its_output_its_value_and_one_end(kernel: RemoteKernel) -> None:
    events = await run(kernel, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")

    count = events[-1].execution_count  # type: ignore[union-attr]
    assert isinstance(count, int)
    assert events[0] == Started(count)
    assert StreamEvent("stdout", "out\n") in events
    assert StreamEvent("stderr", "err\n") in events
    assert DisplayEvent({"text/plain": "42"}, is_result=True, execution_count=count) in events
    assert events[-1] == Finished("ok", count)


async def test_displays_updates_and_clears_come_as_they_are(kernel: RemoteKernel) -> None:
    events = await run(
        kernel,
        "from IPython.display import display, HTML, clear_output\n"
        "handle = display(HTML('<b>1</b>'), display_id='d1', metadata={'a': 1})\n"
        "handle.update(HTML('<b>2</b>'))\n"
        "clear_output(wait=True)",
    )

    first, update, cleared = [
        event for event in events if isinstance(event, DisplayEvent | ClearEvent)
    ]
    assert isinstance(first, DisplayEvent)
    assert isinstance(update, DisplayEvent)
    assert (first.data["text/html"], first.display_id, first.is_update) == (
        "<b>1</b>",
        "d1",
        False,
    )
    assert first.metadata == {"a": 1}
    assert (update.data["text/html"], update.display_id, update.is_update) == (
        "<b>2</b>",
        "d1",
        True,
    )
    assert cleared == ClearEvent(wait=True)


async def test_an_exception_is_told_once_and_the_kernel_goes_on(kernel: RemoteKernel) -> None:
    events = await run(kernel, "1/0")

    (error,) = [event for event in events if isinstance(event, ErrorEvent)]
    assert (error.ename, error.evalue) == ("ZeroDivisionError", "division by zero")
    assert any("ZeroDivisionError" in line for line in error.traceback)
    assert status(events) == "error"
    assert result(await run(kernel, "1 + 1")) == "2"


async def test_a_syntax_error_is_an_error(kernel: RemoteKernel) -> None:
    events = await run(kernel, "def (")

    assert status(events) == "error"
    assert [event.ename for event in events if isinstance(event, ErrorEvent)] == ["SyntaxError"]


async def test_help_pages_are_shown(kernel: RemoteKernel) -> None:
    events = await run(kernel, "len?")

    (page,) = [event for event in events if isinstance(event, DisplayEvent)]
    assert "Return the number of items" in page.data["text/plain"]


async def test_output_streams_while_the_cell_waits_for_input(kernel: RemoteKernel) -> None:
    seen: list[KernelEvent] = []
    answered = 0

    async def answer(event: KernelEvent) -> None:
        nonlocal answered
        seen.append(event)
        asked = sum(isinstance(event, InputRequested) for event in seen)
        # The two come on channels of their own, in any order; the cell waits for the answer.
        if "before" in text(seen) and asked > answered:
            answered += 1
            await kernel.answer_input("ä 🐍")

    source = (
        "import getpass\nprint('before')\nname = input('Name? ')\n"
        "secret = getpass.getpass('Key? ')\nprint('after', name, secret)"
    )
    events = await run(kernel, Code(source, allow_stdin=True), answer)

    assert [event for event in events if isinstance(event, InputRequested)] == [
        InputRequested("Name? "),
        InputRequested("Key? ", password=True),
    ]
    assert "after ä 🐍 ä 🐍" in text(events)
    assert status(events) == "ok"


async def test_nobody_to_ask_is_an_error_in_the_cell(kernel: RemoteKernel) -> None:
    events = await run(kernel, "input()")

    assert status(events) == "error"
    assert [event.ename for event in events if isinstance(event, ErrorEvent)] == [
        "StdinNotImplementedError"
    ]


async def test_an_interrupt_cancels_the_cell_and_keeps_the_kernel(kernel: RemoteKernel) -> None:
    await run(kernel, "kept = 7")

    async def stop(event: KernelEvent) -> None:
        # A line may come in two pieces, and a second interrupt is a second exception.
        if isinstance(event, StreamEvent) and "go" in event.text:
            await kernel.interrupt()

    events = await run(kernel, "import time\nprint('go')\ntime.sleep(60)", stop)

    assert status(events) == "cancelled"
    assert [event.ename for event in events if isinstance(event, ErrorEvent)] == [
        "KeyboardInterrupt"
    ]
    assert result(await run(kernel, "kept")) == "7"
    await kernel.interrupt()  # nothing runs: nothing happens
    assert result(await run(kernel, "kept")) == "7"


async def test_an_interrupt_that_nobody_asked_us_for_is_an_error(kernel: RemoteKernel) -> None:
    assert status(await run(kernel, "raise KeyboardInterrupt")) == "error"


async def test_comms_go_both_ways_with_their_buffers(kernel: RemoteKernel) -> None:
    events = await run(
        kernel,
        "from comm import create_comm\n"
        "comm = create_comm(target_name='t', data={'n': 1}, metadata={'m': 2}, buffers=[b'\\0a'])\n"
        "got = []\ncomm.on_msg(got.append)\n"
        "comm.send({'n': 2}, buffers=[b'x' * 70000, b''])",
    )
    opened, sent = [event for event in events if isinstance(event, CommMessage)]
    assert (opened.kind, opened.target, opened.data) == ("open", "t", {"n": 1})
    assert opened.metadata["m"] == 2
    assert opened.buffers == (b"\0a",)
    assert (sent.kind, sent.comm_id, sent.data) == ("msg", opened.comm_id, {"n": 2})
    assert sent.buffers == (b"x" * 70000, b"")

    await kernel.send_comm(
        CommMessage("msg", opened.comm_id, data={"back": "ü"}, buffers=(b"\xff" * 5, b"z"))
    )
    events = await run(
        kernel,
        "import asyncio\n"
        "while not got: await asyncio.sleep(0.01)\n"
        "(got[0]['content']['data'], [bytes(b) for b in got[0]['buffers']])",
    )
    assert result(events) == r"({'back': 'ü'}, [b'\xff\xff\xff\xff\xff', b'z'])"


async def test_we_open_and_close_comms_too(kernel: RemoteKernel) -> None:
    await run(
        kernel,
        "from comm import get_comm_manager\nseen = []\n"
        "def opened(comm, message):\n"
        "    seen.append(message['content']['data'])\n"
        "    comm.on_close(lambda message: seen.append('closed'))\n"
        "get_comm_manager().register_target('ours', opened)",
    )
    await kernel.send_comm(CommMessage("open", "our-id", "ours", {"a": 1}))
    await kernel.send_comm(CommMessage("close", "our-id"))

    source = "import asyncio\nwhile len(seen) < 2: await asyncio.sleep(0.01)\nseen"
    assert result(await run(kernel, source)) == "[{'a': 1}, 'closed']"


async def test_what_is_said_between_cells_is_of_no_cell(kernel: RemoteKernel) -> None:
    beside = kernel.idle_events()
    source = (
        "import threading\n"
        "timer = threading.Timer(0.3, print, ('late',), {'flush': True})\ntimer.start()"
    )
    first = await run(kernel, Code(source, cell_id="first"))
    assert text(first) == ""

    async with asyncio.timeout(10):
        async for aside in beside:
            if isinstance(aside.event, StreamEvent) and "late" in aside.event.text:
                assert aside.cell_id == "first"
                break
    assert text(await run(kernel, "1")) == ""


async def test_large_and_odd_text_arrives_whole(kernel: RemoteKernel) -> None:
    odd = "".join(chr(code) for code in (0, 7, 27, 0x85, 0x2028, 0x1F40D, 0xE000)) + "ä"
    source = f"value = {odd!r} * 100_000\nfrom IPython.display import display\n"
    events = await run(kernel, f"{source}display({{'text/plain': value}}, raw=True)")

    (shown,) = [event for event in events if isinstance(event, DisplayEvent)]
    assert shown.data["text/plain"] == odd * 100_000


async def test_a_large_source_runs(kernel: RemoteKernel) -> None:
    source = f"len({'x' * 400_000!r})"

    assert result(await run(kernel, Code(source, store_history=False))) == "400000"


async def test_silence_and_no_history_are_kept(kernel: RemoteKernel) -> None:
    before = (await run(kernel, "1"))[-1].execution_count  # type: ignore[union-attr]
    assert isinstance(before, int)

    silent = await run(kernel, Code("quiet = 1", silent=True, store_history=False))

    assert [type(event) for event in silent] == [Finished]
    after = await run(kernel, "quiet")
    assert after[-1] == Finished("ok", before + 1)


async def test_who_leaves_early_does_not_stop_the_cell_nor_the_next(kernel: RemoteKernel) -> None:
    stream = kernel.execute(Code("for n in range(1000): print(n)\nleft = 'done'"))
    async with contextlib.aclosing(stream) as events:  # type: ignore[type-var]
        async for event in events:
            if isinstance(event, StreamEvent):
                break

    assert result(await run(kernel, "left")) == "'done'"


async def test_who_forgets_the_stream_does_not_block_the_next(kernel: RemoteKernel) -> None:
    stream = kernel.execute(Code("for n in range(1000): print(n)\nleft = 'again'"))
    await anext(stream)

    assert result(await run(kernel, "left")) == "'again'"
    rest = [event async for event in stream]
    assert missed(rest)
    assert status(rest) == "error"
    assert kernel.is_alive


async def test_folder_and_variables_are_set_for_a_cell_and_only_when_new(
    kernel: RemoteKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    original = KernelLink.run_silently

    async def listen(self: KernelLink, source: str, within: float) -> object:
        told.append(source)
        return await original(self, source, within)

    monkeypatch.setattr(KernelLink, "run_silently", listen)
    (tmp_path / "nearby_module.py").write_text("value = 5")
    look = (
        "import os, nearby_module\n"
        "print((os.getcwd(), os.environ.get('CW_A'), os.environ.get('CW_B')))"
    )
    code = Code(look, cwd=str(tmp_path), env={"CW_A": "'1\n'", "CW_B": "2"})

    assert text(await run(kernel, code)).strip() == str((str(tmp_path), "'1\n'", "2"))
    assert text(await run(kernel, code)).strip() == str((str(tmp_path), "'1\n'", "2"))
    assert len(told) == 1

    await run(kernel, "os.chdir('/')")  # what a cell does itself holds for the next
    other = Code(look, cwd=str(tmp_path), env={"CW_A": None, "CW_B": "2"})
    assert text(await run(kernel, other)).strip() == str(("/", None, "2"))
    assert len(told) == 2
    assert "'CW_B'" not in told[1]
    assert result(await run(kernel, "len([name for name in dir() if name == 'cwd'])")) == "0"


async def test_a_folder_that_is_not_there_fails_the_cell_before_it_runs(
    kernel: RemoteKernel,
) -> None:
    events = await run(kernel, Code("ran_anyway = 1", cwd="/nowhere/at/all"))

    (error,) = [event for event in events if isinstance(event, ErrorEvent)]
    assert error.ename == "FileNotFoundError"
    assert status(events) == "error"
    assert status(await run(kernel, "ran_anyway")) == "error"


async def test_attaching_shares_the_state_and_leaves_the_kernel(
    kernel: RemoteKernel, there: RemoteServer
) -> None:
    await run(kernel, "shared = 'both'")
    second = RemoteKernel(there, kernel_id=kernel.kernel_id)
    await second.start()
    assert second.info.details["is_attached"] is True

    mine, its = await asyncio.gather(run(kernel, "print('one')"), run(second, "shared"))
    assert text(mine) == "one\n"
    assert result(its) == "'both'"
    assert text(its) == ""

    await second.shutdown()
    await second.shutdown()
    assert not second.is_alive
    assert kernel.kernel_id in {running.id for running in await there.kernels()}
    assert result(await run(kernel, "shared")) == "'both'"


async def test_attaching_to_a_busy_kernel_does_not_wait_for_it(
    kernel: RemoteKernel, there: RemoteServer
) -> None:
    second = RemoteKernel(there, kernel_id=kernel.kernel_id)

    async def attach(event: KernelEvent) -> None:
        if isinstance(event, InputRequested):
            await second.start()
            await kernel.answer_input("go on")

    assert status(await run(kernel, Code("input()", allow_stdin=True), attach)) == "ok"
    assert result(await run(second, "2 + 2")) == "4"
    await second.shutdown()


@pytest.fixture
async def attached(there: RemoteServer) -> AsyncIterator[RemoteKernel]:
    """A kernel that was running before us."""
    running = await there.start_kernel("python3")
    attached = RemoteKernel(there, kernel_id=running.id)
    await attached.start()
    yield attached
    await attached.shutdown()
    assert await there.kernel(running.id) is not None
    await there.delete(running.id)


async def test_restarting_an_attached_kernel_loses_its_state_and_keeps_its_id(
    attached: RemoteKernel,
) -> None:
    kernel_id = attached.kernel_id
    await run(attached, "lost = 1")

    assert await attached.restart()

    assert attached.is_alive
    assert attached.exit is None
    assert attached.kernel_id == kernel_id
    events = await run(attached, "lost")
    assert [event.ename for event in events if isinstance(event, ErrorEvent)] == ["NameError"]
    assert events[-1] == Finished("error", 1)


async def test_a_kernel_of_our_own_is_not_restarted_in_its_place(kernel: RemoteKernel) -> None:
    await run(kernel, "kept = 1")

    assert not await kernel.restart()

    assert result(await run(kernel, "kept")) == "1"


async def test_a_restart_ends_the_cell_that_runs(attached: RemoteKernel) -> None:
    restarting: list[asyncio.Task[bool]] = []

    async def restart(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent):
            restarting.append(asyncio.create_task(attached.restart()))

    events = await run(attached, "print('go')\nimport time\ntime.sleep(60)", restart)
    await restarting[0]

    assert status(events) == "died"
    assert missed(events)
    assert result(await run(attached, "1 + 2")) == "3"


@pytest.mark.parametrize("by", ["restart", "reset"])
async def test_a_session_restarts_the_kernel_that_it_is_attached_to(
    there: RemoteServer, attached: RemoteKernel, by: str
) -> None:
    await run(attached, "elsewhere = 1")

    async def attach() -> RemoteKernel:
        second = RemoteKernel(there, kernel_id=attached.kernel_id)
        await second.start()
        return second

    session = Session(Key("attached", "/"), attach, Settings())
    try:
        assert (await session.run(Code("ours = elsewhere + 1"))).outcome.status == "ok"
        life = session.life
        if by == "restart":
            await session.restart()
        ended = await session.run(Code("ours"), reset=by == "reset")
        assert ended.outcome.error is not None
        assert ended.outcome.error.ename == "NameError"
        assert session.life not in {"", life}
    finally:
        await session.close()


async def test_a_kernel_that_is_not_there_cannot_be_attached_to(
    there: RemoteServer, kernel: RemoteKernel
) -> None:
    with pytest.raises(KernelMissing) as caught:
        await RemoteKernel(there, kernel_id="00000000-0000-4000-8000-000000000000").start()

    assert kernel.kernel_id is not None
    assert kernel.kernel_id in (caught.value.hint or "")


async def test_an_unknown_name_names_those_there_are(there: RemoteServer) -> None:
    with pytest.raises(KernelMissing) as caught:
        await RemoteKernel(there, name="fortran77").start()

    assert "fortran77" in str(caught.value)
    assert "python3" in (caught.value.hint or "")


async def test_a_kernel_that_was_shut_down_answers_no_more(there: RemoteServer) -> None:
    kernel = RemoteKernel(there)
    await kernel.start()

    await kernel.shutdown()
    await kernel.shutdown()

    assert status(await run(kernel, "1")) == "died"
