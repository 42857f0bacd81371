"""What goes wrong between a client and a kernel far away: told as it is, and never a hang."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelCannot, KernelDied, KernelUnreachable
from cellwright.kernel.events import Finished, KernelExit
from cellwright.kernel.remote import RemoteKernel, RemoteServer, Timeouts, cell, websocket
from cellwright.kernel.transport import Code
from cellwright.outputs.events import DisplayEvent, ErrorEvent, RawPiece, StreamEvent
from tests.integration.kernel.processes import start_again
from tests.integration.kernel.remote.proxy import Proxy
from tests.integration.kernel.remote.servers import end, running
from tests.integration.kernel.remote.talking import missed, result, run, status, text, until

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.kernel.events import KernelEvent
    from tests.integration.kernel.remote.servers import RealServer

DIED = Finished("died", 1, KernelExit())


class Gate:
    """A cell that prints, waits for our sign, and goes on; with what happens at the wait."""

    def __init__(self, folder: Path, then: str = "print('after')") -> None:
        self._sign = folder / "sign"
        self._done = folder / "done"
        self.source = (
            "import os, time\nprint('before', os.getpid())\n"
            f"while not os.path.exists({str(self._sign)!r}): time.sleep(0.01)\n"
            f"open({str(self._done)!r}, 'w').close()\n{then}"
        )

    def open(self) -> None:
        self._sign.touch()

    async def passed(self) -> None:
        await until(self._done.exists)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


# --- Deaths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", ["os.kill(os.getpid(), 9)", pytest.param("os._exit(0)", marks=pytest.mark.all)]
)
async def test_a_kernel_that_dies_ends_the_cell_as_died(
    mortal: RemoteKernel, how: str, tmp_path: Path
) -> None:
    gate = Gate(tmp_path, then=how)

    async def go_on(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent):
            gate.open()

    events = await run(mortal, gate.source, go_on)

    assert "before" in text(events)
    assert events[-1] == DIED
    assert not mortal.is_alive
    assert mortal.exit == KernelExit()
    assert not await mortal.ping(5)
    assert (await run(mortal, "1"))[-1] == Finished("died", exit=KernelExit())

    await start_again(mortal)

    assert await mortal.ping(5)
    assert result(await run(mortal, "1 + 1")) == "2"


@pytest.mark.all
async def test_a_gateway_tells_of_a_death_too(gateway: RealServer) -> None:
    kernel = RemoteKernel(RemoteServer(gateway.url, gateway.token))
    await kernel.start()
    try:
        # Not at once: what a kernel has said in the moment before it is killed may go with it.
        code = "import os, time\ntime.sleep(0.3)\nos.kill(os.getpid(), 9)"
        assert (await run(kernel, code))[-1] == DIED
    finally:
        await kernel.shutdown()


async def test_a_death_between_cells_is_noticed(mortal: RemoteKernel) -> None:
    pid = int(result(await run(mortal, "import os; os.getpid()")))

    os.kill(pid, signal.SIGKILL)
    await until(lambda: not mortal.is_alive)

    assert status(await run(mortal, "1")) == "died"


async def test_a_kernel_that_somebody_ends_has_died(
    mortal: RemoteKernel, server: RemoteServer
) -> None:
    async def delete(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent):
            assert mortal.kernel_id is not None
            await server.delete(mortal.kernel_id)

    events = await run(mortal, "print('go', flush=True)\nimport time\ntime.sleep(60)", delete)

    assert events[-1] == DIED
    await start_again(mortal)
    assert result(await run(mortal, "1 + 1")) == "2"


@pytest.mark.all
async def test_a_kernel_that_somebody_restarts_has_died(
    mortal: RemoteKernel, server: RemoteServer
) -> None:
    async def restart(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent):
            assert mortal.kernel_id is not None
            await server.restart(mortal.kernel_id)

    events = await run(mortal, "print('go', flush=True)\nimport time\ntime.sleep(60)", restart)

    assert events[-1] == DIED


async def test_an_attached_kernel_that_is_gone_cannot_be_restarted(
    mortal: RemoteKernel, server: RemoteServer
) -> None:
    attached = RemoteKernel(server, kernel_id=mortal.kernel_id)
    await attached.start()
    assert mortal.kernel_id is not None
    await server.delete(mortal.kernel_id)

    assert not await attached.ping(5)
    assert not attached.is_alive
    with pytest.raises(KernelDied):
        await attached.restart()
    await attached.shutdown()


async def test_a_server_that_is_killed_ends_the_cell(tmp_path: Path) -> None:
    with running("server", tmp_path) as real:
        quick = Timeouts(connect=2, request=2, reconnect=1)
        kernel = RemoteKernel(RemoteServer(real.url, real.token, timeouts=quick))
        await kernel.start()

        async def kill(event: KernelEvent) -> None:
            if isinstance(event, StreamEvent):
                real.process.kill()
                await asyncio.to_thread(real.process.wait)

        events = await run(kernel, "print('go', flush=True)\nimport time\ntime.sleep(60)", kill)

        assert "go" in text(events)
        assert len(missed(events)) == 1
        assert events[-1] == DIED
        assert not await kernel.ping(1)
        with pytest.raises(KernelUnreachable):
            await kernel.start()
        await kernel.shutdown()  # it is known to be dead: nothing to complain of
        end(real.process)


# --- Lost connections ----------------------------------------------------------------------------


async def test_a_cell_goes_on_over_a_lost_connection(
    kernel: RemoteKernel, proxy: Proxy, gate: Gate
) -> None:
    async def drop(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and "before" in event.text:
            before = proxy.websockets
            assert proxy.drop() > 0
            await until(lambda: proxy.websockets > before)
            gate.open()

    events = await run(kernel, gate.source, drop)

    assert "before" in text(events)
    assert "after" in text(events)
    (reason,) = missed(events)
    assert "lost" in reason
    assert status(events) == "ok"
    assert result(await run(kernel, "1 + 1")) == "2"


async def test_output_of_the_gap_is_replayed_when_the_server_kept_it(
    kernel: RemoteKernel, proxy: Proxy, gate: Gate
) -> None:
    async def drop(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and "before" in event.text:
            proxy.refuses = True
            proxy.drop()
            gate.open()
            await gate.passed()
            proxy.refuses = False

    events = await run(kernel, gate.source, drop)

    assert "after" in text(events)
    assert missed(events)
    assert status(events) == "ok"


@pytest.mark.parametrize(
    ("then", "expected", "ename"), [("6 * 7", "ok", None), ("1/0", "error", "ZeroDivisionError")]
)
async def test_an_end_that_nobody_saw_is_found_out(
    kernel: RemoteKernel,
    proxy: Proxy,
    jupyter_server: RealServer,
    tmp_path: Path,
    *,
    then: str,
    expected: str,
    ename: str | None,
) -> None:
    # With somebody else connected the server keeps nothing for us.
    direct = RemoteServer(jupyter_server.url, jupyter_server.token)
    other = RemoteKernel(direct, kernel_id=kernel.kernel_id)
    await other.start()
    gate = Gate(tmp_path, then)

    async def drop(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and "before" in event.text:
            proxy.refuses = True
            proxy.drop()
            gate.open()
            await gate.passed()
            assert kernel.kernel_id is not None
            while True:
                seen = await direct.kernel(kernel.kernel_id)
                assert seen is not None
                if seen.state == "idle":
                    break
                await asyncio.sleep(0.02)
            proxy.refuses = False

    events = await run(kernel, gate.source, drop)

    assert missed(events)
    assert status(events) == expected
    assert [event.ename for event in events if isinstance(event, ErrorEvent)] == (
        [ename] if ename else []
    )
    await other.shutdown()


async def test_a_cell_that_never_arrived_did_not_run(kernel: RemoteKernel, proxy: Proxy) -> None:
    assert status(await run(kernel, "arrived = globals().get('arrived', 0) + 1")) == "ok"
    proxy.is_deaf = True
    # The very source that ran before: what the kernel remembers of that is not taken for this.
    running_cell = asyncio.create_task(run(kernel, "arrived = globals().get('arrived', 0) + 1"))
    await until(lambda: proxy.swallowed > 0)
    proxy.drop()
    proxy.is_deaf = False

    events = await running_cell

    assert len(missed(events)) == 2
    assert status(events) == "cancelled"
    assert result(await run(kernel, "arrived")) == "1"


async def test_a_death_during_the_gap_is_a_death(
    mortal: RemoteKernel, proxy: Proxy, jupyter_server: RealServer, gate: Gate
) -> None:
    async def kill(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and "before" in event.text:
            restarts = jupyter_server.log.read_text().count("restarting kernel")
            proxy.refuses = True
            proxy.drop()
            os.kill(int(event.text.split()[1]), signal.SIGKILL)
            await until(
                lambda: jupyter_server.log.read_text().count("restarting kernel") > restarts
            )
            proxy.refuses = False

    events = await run(mortal, gate.source, kill)

    assert missed(events)
    assert events[-1] == DIED


async def test_a_connection_that_falls_silent_is_replaced(
    jupyter_server: RealServer, proxy: Proxy, gate: Gate
) -> None:
    server = RemoteServer(
        proxy.url(jupyter_server.url), jupyter_server.token, timeouts=Timeouts(quiet=0.3)
    )
    kernel = RemoteKernel(server)
    await kernel.start()

    async def freeze(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and "before" in event.text:
            before = proxy.websockets
            proxy.is_mute = proxy.is_deaf = True
            await until(lambda: proxy.websockets > before)
            proxy.is_mute = proxy.is_deaf = False
            between = proxy.websockets
            proxy.drop()
            await until(lambda: proxy.websockets > between)
            gate.open()

    events = await run(kernel, gate.source, freeze)

    assert missed(events)
    assert "after" in text(events)
    assert status(events) == "ok"
    await kernel.shutdown()


@pytest.mark.all
async def test_a_quiet_cell_on_a_good_connection_is_left_alone(jupyter_server: RealServer) -> None:
    async with Proxy(jupyter_server.port) as way:
        url = way.url(jupyter_server.url)
        server = RemoteServer(url, jupyter_server.token, timeouts=Timeouts(quiet=2))
        kernel = RemoteKernel(server)
        await kernel.start()

        events = await run(kernel, "import time\ntime.sleep(5)\n'slept'")

        assert result(events) == "'slept'"
        assert missed(events) == []
        assert way.websockets == 1
        await kernel.shutdown()


async def test_a_frame_cut_in_the_middle_is_missed_and_no_more(
    kernel: RemoteKernel, proxy: Proxy
) -> None:
    before = proxy.websockets
    proxy.cut_after = 300_000
    events = await run(
        kernel,
        "from IPython.display import display\n"
        "for n in range(10): display({'text/plain': f'{n}' * 60_000}, raw=True)",
    )

    shown = [event.data["text/plain"] for event in events if isinstance(event, DisplayEvent)]
    assert all(len(set(text)) == 1 and len(text) == 60_000 for text in shown)
    assert len(missed(events)) == 1
    assert status(events) == "ok"
    assert proxy.websockets > before


async def test_a_gap_between_cells_costs_nothing(
    kernel: RemoteKernel, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "TRUSTED_FOR", 0)
    await run(kernel, "kept = 3")
    proxy.drop()

    events = await run(kernel, "kept")

    assert result(events) == "3"
    assert status(events) == "ok"
    assert missed(events) == []


@pytest.mark.all
async def test_another_process_after_a_gap_between_cells_is_a_death(
    mortal: RemoteKernel, proxy: Proxy, server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "TRUSTED_FOR", 0)
    await run(mortal, "kept = 3")
    proxy.refuses = True
    proxy.drop()
    assert mortal.kernel_id is not None
    proxy.should_fail = lambda asked: asked.is_websocket
    proxy.answers = [b""] * 3
    proxy.refuses = False
    await server.restart(mortal.kernel_id)
    proxy.answers = []

    events = await run(mortal, "kept")

    assert status(events) == "died"
    assert not mortal.is_alive


# --- Too much ------------------------------------------------------------------------------------


@pytest.mark.all
async def test_a_message_over_the_limit_is_missed_and_no_more(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "LARGEST_MESSAGE", 10**6)
    kernel = RemoteKernel(server)
    await kernel.start()

    events = await run(
        kernel,
        "from IPython.display import display\n"
        "display({'text/plain': 'x' * 2_000_000}, raw=True)\nprint('after')",
    )

    assert not any(isinstance(event, DisplayEvent) for event in events)
    assert len(missed(events)) == 1
    assert status(events) == "ok"
    await kernel.shutdown()


async def test_a_reader_who_rests_makes_the_flood_wait(kernel: RemoteKernel) -> None:
    talk = kernel._talk
    assert talk is not None
    held: list[int] = []

    async def rest(event: KernelEvent) -> None:
        if isinstance(event, DisplayEvent) and len(held) < 3:
            await asyncio.sleep(0.3)
            held.append(talk._inbox._bytes)

    source = (
        "from IPython.display import display\n"
        "for n in range(40): display({'text/plain': f'{n:02}' * 500_000}, raw=True)"
    )
    events = await run(kernel, source, rest)

    shown = [event.data["text/plain"][:2] for event in events if isinstance(event, DisplayEvent)]
    assert shown == [f"{n:02}" for n in range(40)]
    assert max(held) <= cell.BYTES_HELD + 1_100_000
    assert status(events) == "ok"


async def test_what_the_server_holds_back_is_missed(kernel: RemoteKernel) -> None:
    events = await run(kernel, "for n in range(300): print('x' * 40_000, flush=True)")

    assert any("held output back" in reason for reason in missed(events))
    assert "IOPub" not in text(events)
    assert status(events) == "ok"


@pytest.mark.all
async def test_ninety_megabytes_come_in_one_message(kernel: RemoteKernel) -> None:
    events = await run(
        kernel,
        "from IPython.display import display\ndisplay({'text/plain': 'x' * 90_000_000}, raw=True)",
    )

    (shown,) = [event for event in events if isinstance(event, DisplayEvent)]
    assert len(shown.data["text/plain"]) < 50_000
    pieces = [event.data for event in events if isinstance(event, RawPiece)]
    assert len(b"".join(pieces)) > 90_000_000


# --- Interrupts ----------------------------------------------------------------------------------


async def test_without_rest_an_interrupt_goes_by_message(
    kernel: RemoteKernel, server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise KernelUnreachable("there", "told to fail")

    monkeypatch.setattr(server, "interrupt", fail)

    async def stop(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent):
            await kernel.interrupt()

    source = "print('go', flush=True)\nimport time\nfor _ in range(600): time.sleep(0.1)"
    assert status(await run(kernel, source, stop)) == "cancelled"


@pytest.mark.all
async def test_an_interrupt_that_rest_only_claims_goes_by_message_too(
    kernel: RemoteKernel, server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def claim(*_: object, **__: object) -> None:
        pass

    monkeypatch.setattr(server, "interrupt", claim)

    async def stop(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent):
            await kernel.interrupt()

    source = "print('go', flush=True)\nimport time\nfor _ in range(600): time.sleep(0.1)"
    assert status(await run(kernel, source, stop)) == "cancelled"


async def test_the_cells_own_answer_to_an_interrupt_is_not_interrupted(
    kernel: RemoteKernel,
) -> None:
    async def stop(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and "go" in event.text:
            await kernel.interrupt()

    events = await run(
        kernel,
        "import time\ntry:\n    print('go', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.5)\n    print('tidied up')",
        stop,
    )

    assert "tidied up" in text(events)
    assert status(events) == "ok"


async def test_other_languages_refuse_a_folder_for_one_cell(
    kernel: RemoteKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = kernel._talk
    assert talk is not None
    monkeypatch.setattr(talk, "language", "r")

    with pytest.raises(KernelCannot):
        await run(kernel, Code("1 + 1", cwd="/"))
    with pytest.raises(KernelCannot):
        await run(kernel, Code("1 + 1", env={"CW_A": "1"}))
    assert result(await run(kernel, Code("1 + 1", env={"CW_A": None}))) == "2"
