"""`LocalKernel` with a real ipykernel: what it tells of cells, and what it lets one do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelCannot
from cellwright.kernel.events import (
    CommMessage,
    Finished,
    InputRequested,
    KernelExit,
    Missed,
    Started,
)
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.local import process as process_module
from cellwright.kernel.transport import Code, KernelInfo
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent
from tests.integration.kernel.local.conftest import (
    assert_nothing_is_left,
    launch,
    mark_of,
    run,
    text,
    verdict,
)
from tests.integration.kernel.processes import eventually, start_again, with_mark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from cellwright.kernel.transport import Transport


async def test_it_is_a_transport(shared: LocalKernel) -> None:
    transport: Transport = shared

    assert transport.is_alive
    assert transport.exit is None
    info = transport.info
    assert (info.name, info.transport, info.language) == ("python3", "local", "python")
    assert info.implementation == "ipython"
    assert info.pid is not None


async def test_a_cell_is_one_request_and_tells_its_start_its_value_and_its_end(
    shared: LocalKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = shared._conversation
    assert conversation is not None
    sent: list[str] = []
    monkeypatch.setattr(conversation, "send", _spy(conversation.send, sent))

    events = await run(shared, "6 * 7")

    assert sent == ["execute_request"]
    started, shown, finished = events
    assert isinstance(started, Started)
    count = started.execution_count
    assert shown == DisplayEvent({"text/plain": "42"}, is_result=True, execution_count=count)
    assert finished == Finished("ok", count)


def _spy(send: Callable[..., str], sent: list[str]) -> Callable[..., str]:
    def spy(channel: str, kind: str, *args: Any, **more: Any) -> str:
        sent.append(kind)
        return send(channel, kind, *args, **more)

    return spy


async def test_the_parent_of_what_is_printed_is_the_request_as_always(shared: LocalKernel) -> None:
    """It is ipykernel's own, only that its items are found once."""
    source = """
import copy, json, sys
parent = sys.stdout.parent_header
plain = dict(parent)
(
    json.loads(json.dumps(parent, default=str))["msg_id"] == plain["msg_id"],
    copy.deepcopy(parent) == dict(parent.items()) == {**parent} == plain,
    plain["msg_id"] == get_ipython().kernel.get_parent()["header"]["msg_id"],
    parent.items() is parent.items(),
)
"""
    shown = [event for event in await run(shared, source) if isinstance(event, DisplayEvent)]
    assert shown[0].data["text/plain"] == "(True, True, True, True)"


async def test_streams_keep_their_names_and_order(shared: LocalKernel) -> None:
    source = "import sys\nprint('a'); sys.stdout.flush(); print('b', file=sys.stderr)"
    events = await run(shared, source)

    pieces = [event for event in events if isinstance(event, StreamEvent)]
    assert pieces == [StreamEvent("stdout", "a\n"), StreamEvent("stderr", "b\n")]


@pytest.fixture
async def watching() -> AsyncIterator[LocalKernel]:
    """A kernel that reads its descriptors 1 and 2; below pytest it would leave them alone."""
    env = {name: value for name, value in launch().env.items() if name != "PYTEST_CURRENT_TEST"}
    kernel = LocalKernel(replace(launch(), env=env))
    await kernel.start()
    yield kernel
    await kernel.shutdown(now=True)


async def test_what_child_processes_and_c_code_print_is_in_their_cell(
    watching: LocalKernel,
) -> None:
    child = "import subprocess\n_ = subprocess.run(['printf', '%s', 'x' + 'é' * 50_000])"
    for _ in range(5):
        assert text(await run(watching, child)) == "x" + "é" * 50_000
    for number, name in enumerate(("stdout", "stderr"), start=1):
        code = f"import os\nfor _ in range(3): n = os.write({number}, b'no line')"
        assert text(await run(watching, code), name) == "no line" * 3


async def test_what_flushes_while_a_pipe_is_read_does_not_wait_for_itself(
    watching: LocalKernel,
) -> None:
    """As the handler of a signal may, which comes in at any moment."""
    source = """
import os, sys
write = sys.stdout.write
def flush_and_write(text):
    sys.stdout.write = write
    sys.stdout.flush()
    return write(text)
sys.stdout.write = flush_and_write
written = os.write(1, b"x")
sys.stdout.flush()
"""
    async with asyncio.timeout(30):
        assert text(await run(watching, source)) == "x"


async def test_a_flush_waits_for_nothing_if_nothing_was_written(shared: LocalKernel) -> None:
    source = """
import sys
thread, asked = sys.stdout.pub_thread, []
schedule = thread.schedule
while thread._events:  # what the start of this cell has to say
    pass
thread.schedule = lambda work: (asked.append(work), schedule(work))
sys.stdout.flush(); sys.stderr.flush()
needless = len(asked)
sys.stderr.write("said\\n"); sys.stderr.flush()
needed = len(asked)
del thread.schedule
print(needless, needed > 0, file=sys.stdout)
"""
    events = await run(shared, source)
    assert text(events) == "0 True\n"
    assert text(events, "stderr") == "said\n"


async def test_a_flush_waits_for_what_is_being_sent_by_the_clock(shared: LocalKernel) -> None:
    source = """
import sys, threading
out, sent = sys.stdout, []
is_sending, may_send = threading.Event(), threading.Event()
send = out.session.send

def send_late(stream, message, **options):
    if message["msg_type"] == "stream":
        is_sending.set()
        may_send.wait(20)
        sent.append(message)
    return send(stream, message, **options)

out.flush_interval, out.session.send = 0, send_late
n = out.write("late\\n")
is_sending.wait(20)
threading.Timer(0.1, may_send.set).start()
out.flush()
was_sent = bool(sent)
del out.flush_interval, out.session.send
print(was_sent)
"""
    assert text(await run(shared, source)) == "late\nTrue\n"


async def test_a_cell_makes_no_record_for_the_log_and_looks_nothing_up_again(
    shared: LocalKernel,
) -> None:
    source = """
from ipykernel import ipkernel, kernelbase
log, method = get_ipython().kernel.log, get_ipython().run_cell_async
names = ["cell_id", "cell_meta"]
found = ipkernel._accepts_parameters(method, names)
print(
    log.isEnabledFor(10), log.isEnabledFor(30),
    found == kernelbase._accepts_parameters(method, names),
    found is ipkernel._accepts_parameters(method, names),
    ipkernel._accepts_parameters(lambda cell_id: 1, names),
)
"""
    assert text(await run(shared, source)) == (
        "False True True True {'cell_id': True, 'cell_meta': False}\n"
    )


async def test_a_cell_ends_without_sleep_until_the_kernel_has_forked(
    watching: LocalKernel,
) -> None:
    sleep = "print(get_ipython().kernel._execute_sleep)"
    assert text(await run(watching, sleep)) == "0.0\n"
    await run(watching, "import os\nif not os.fork():\n    os._exit(0)\n_ = os.wait()")
    assert float(text(await run(watching, sleep))) > 0


async def test_an_exception_is_an_event_and_not_an_error(shared: LocalKernel) -> None:
    events = await run(shared, "1 / 0")

    [raised] = [event for event in events if isinstance(event, ErrorEvent)]
    assert (raised.ename, raised.evalue) == ("ZeroDivisionError", "division by zero")
    assert raised.traceback
    assert verdict(events).status == "error"


async def test_displays_updates_and_clearing(shared: LocalKernel) -> None:
    events = await run(
        shared,
        "from IPython.display import clear_output, display\n"
        "handle = display({'application/json': {'a': 1}}, raw=True, display_id='d')\n"
        "handle.update({'text/plain': 'new'}, raw=True)\n"
        "clear_output(wait=True)",
    )

    assert events[1:-1] == [
        DisplayEvent({"application/json": {"a": 1}}, display_id="d"),
        DisplayEvent({"text/plain": "new"}, display_id="d", is_update=True),
        ClearEvent(wait=True),
    ]


async def test_help_is_shown(shared: LocalKernel) -> None:
    events = await run(shared, "len?")

    [shown] = [event for event in events if isinstance(event, DisplayEvent)]
    assert "number of items" in shown.data["text/plain"]


async def test_a_silent_cell_leaves_no_count(shared: LocalKernel) -> None:
    before = verdict(await run(shared, "pass")).execution_count
    events = await run(shared, "'nothing of this is shown'", silent=True)
    after = verdict(await run(shared, "pass")).execution_count

    assert [type(event) for event in events] == [Started, Finished]
    assert before is not None
    assert after == before + 1


async def test_comms_go_both_ways_with_their_buffers(shared: LocalKernel) -> None:
    events = await run(
        shared,
        "from comm import create_comm\n"
        "heard = []\n"
        "talk = create_comm(target_name='t', data={'a': 1}, buffers=[b'raw'])\n"
        "talk.on_msg(lambda m: heard.append((m['content']['data'], bytes(m['buffers'][0]))))\n",
    )
    [opened] = [event for event in events if isinstance(event, CommMessage)]
    assert (opened.kind, opened.target, opened.data) == ("open", "t", {"a": 1})
    assert opened.buffers == (b"raw",)

    answer = CommMessage("msg", opened.comm_id, data={"b": 2}, buffers=(b"bytes",))
    await shared.send_comm(answer)
    assert text(await run(shared, "print(heard)")) == "[({'b': 2}, b'bytes')]\n"

    closing = await run(shared, "talk.close()")
    assert [(e.kind, e.comm_id) for e in closing if isinstance(e, CommMessage)] == [
        ("close", opened.comm_id)
    ]


async def test_input_is_asked_for_and_answered(shared: LocalKernel) -> None:
    said = []
    async for event in shared.execute(
        Code("import getpass\nprint(input('who? '), getpass.getpass('word? '))", allow_stdin=True)
    ):
        said.append(event)
        if isinstance(event, InputRequested):
            await shared.answer_input(f"answer to {event.prompt}")

    asked = [event for event in said if isinstance(event, InputRequested)]
    assert asked == [InputRequested("who? "), InputRequested("word? ", password=True)]
    assert text(said) == "answer to who?  answer to word? \n"


async def test_input_that_nobody_can_answer_is_an_exception(shared: LocalKernel) -> None:
    events = await run(shared, "input()")

    [raised] = [event for event in events if isinstance(event, ErrorEvent)]
    assert raised.ename == "StdinNotImplementedError"


async def test_an_answer_that_nobody_asked_for_goes_nowhere(shared: LocalKernel) -> None:
    await shared.answer_input("what?")

    assert verdict(await run(shared, "pass")).status == "ok"


@pytest.mark.parametrize(
    "source",
    [
        "import time\nprint('on', flush=True)\ntime.sleep(100)",
        "print('on', flush=True)\nwhile True: pass",
        # The command itself says so: IPython fails if it is interrupted before it has a child.
        "!echo on; sleep 100",
    ],
)
async def test_an_interrupted_cell_is_cancelled_and_the_kernel_lives(
    shared: LocalKernel, source: str
) -> None:
    events = []
    async with asyncio.timeout(20):
        async for event in shared.execute(Code(source)):
            events.append(event)
            if isinstance(event, StreamEvent) and "on" in event.text:
                await shared.interrupt()

    # IPython itself takes the interrupt of a shell command, and calls that a success.
    expected = {"ok", "cancelled"} if "!" in source else {"cancelled"}
    assert verdict(events).status in expected
    assert text(await run(shared, "print('alive')")) == "alive\n"


async def test_an_interrupt_before_the_cell_began_still_reaches_it(shared: LocalKernel) -> None:
    async with asyncio.timeout(20):
        for _ in range(10):
            running = asyncio.create_task(run(shared, "import time; time.sleep(100)"))
            await asyncio.sleep(0)
            await shared.interrupt()
            assert verdict(await running).status == "cancelled"


async def test_an_interrupt_without_a_cell_does_nothing(shared: LocalKernel) -> None:
    await shared.interrupt()

    assert text(await run(shared, "import time; time.sleep(0.05); print('done')")) == "done\n"


async def test_a_keyboard_interrupt_of_the_cells_own_is_an_error(shared: LocalKernel) -> None:
    assert verdict(await run(shared, "raise KeyboardInterrupt")).status == "error"


async def test_a_cell_that_raises_something_else_when_interrupted_failed(
    shared: LocalKernel,
) -> None:
    source = (
        "import time\ntry:\n  print('on', flush=True); time.sleep(100)\n"
        "except KeyboardInterrupt: raise ValueError"
    )
    events = []
    async for event in shared.execute(Code(source)):
        events.append(event)
        if isinstance(event, StreamEvent):
            await shared.interrupt()

    assert verdict(events).status == "error"


async def test_folder_and_variables_are_set_before_the_cell_and_stay(
    kernel: LocalKernel, tmp_path: Path
) -> None:
    (tmp_path / "beside_the_cell.py").write_text("value = 5")
    look = "import os; print(os.getcwd(), os.environ.get('A'), os.environ.get('HOME'))"

    await run(kernel, "A = os = 'mine'", cwd=str(tmp_path), env={"A": "1", "HOME": None})
    first = await run(kernel, "print(A, os); " + look + "; import beside_the_cell")
    second = await run(kernel, look, env={"A": None})
    counts = [verdict(events).execution_count for events in (first, second)]

    assert text(first) == f"mine mine\n{tmp_path} 1 None\n"
    assert verdict(first).status == "ok"
    assert text(second) == f"{tmp_path} None None\n"
    assert counts == [2, 3]


async def test_what_is_set_already_costs_no_request(
    shared: LocalKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(shared._conversation, "run_silently", asked.append)

    events = await run(shared, "pass", cwd="/", env={"PATH": shared.launch.env["PATH"], "NO": None})

    assert verdict(events).status == "ok"
    assert asked == []


async def test_a_folder_that_is_not_there_fails_the_cell_before_it_runs(
    shared: LocalKernel,
) -> None:
    events = await run(shared, "print('ran')", cwd="/nowhere")

    [raised] = [event for event in events if isinstance(event, ErrorEvent)]
    assert raised.ename == "FileNotFoundError"
    assert verdict(events).status == "error"
    assert text(events) == ""


async def test_another_language_refuses_folder_and_variables(
    shared: LocalKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_info", KernelInfo(name="ir", transport="local", language="R"))

    with pytest.raises(KernelCannot):
        await run(shared, "1", env={"A": "1"})


async def test_an_idle_kernel_answers_a_ping_and_a_busy_one_is_not_asked(
    shared: LocalKernel, tmp_path: Path
) -> None:
    assert await shared.ping(5)
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    running = asyncio.create_task(run(shared, wait))
    await asyncio.sleep(0)

    assert await shared.ping(5)
    assert not running.done()
    go.touch()
    await running


async def test_a_kernel_of_another_kind_answers_by_its_heartbeat(
    shared: LocalKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared._conversation, "kernel_info", {"implementation": "other"})

    assert await shared.ping(5)
    assert await shared.ping(5)


@pytest.mark.parametrize("implementation", ["ipython", "other"])
async def test_a_stopped_kernel_does_not_answer_a_ping(
    kernel: LocalKernel, implementation: str
) -> None:
    assert kernel._process is not None
    assert kernel._process.kept is not None
    await run(kernel, "pass")
    assert kernel._conversation is not None
    kernel._conversation.kernel_info = {"implementation": implementation}
    kernel._process.kept.send_signal(signal.SIGSTOP)
    assert await eventually(lambda: _state(Path(f"/proc/{kernel.info.pid}/stat")) == "T")

    assert not await kernel.ping(0.3)


async def test_what_a_thread_says_later_goes_aside_under_the_name_of_its_cell(
    kernel: LocalKernel, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    events = await run(
        kernel,
        "import os, threading, time\n"
        f"def late():\n  while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "  print('late', flush=True)\n"
        "threading.Thread(target=late).start()",
        cell_id="first",
    )

    assert text(events) == ""
    go.touch()
    async with asyncio.timeout(30):
        async for aside in kernel.idle_events():
            if aside.event == StreamEvent("stdout", "late\n"):
                assert aside.cell_id == "first"
                break


async def test_a_cell_that_was_left_goes_on_and_its_words_go_aside(shared: LocalKernel) -> None:
    iterator = shared.execute(Code("print('one', flush=True); x = 'kept'", cell_id="left"))
    async with contextlib.aclosing(iterator):  # type: ignore[type-var]
        async for event in iterator:
            if isinstance(event, Started):
                break

    assert text(await run(shared, "print(x)")) == "kept\n"
    async with asyncio.timeout(30):
        async for aside in shared.idle_events():
            if aside.event == StreamEvent("stdout", "one\n"):
                assert aside.cell_id == "left"
                break


async def test_words_aside_are_bounded_and_the_loss_is_told(shared: LocalKernel) -> None:
    from cellwright.kernel.events import EVENTS_KEPT

    iterator = shared.execute(
        Code(
            "from IPython.display import display\n"
            f"for i in range({EVENTS_KEPT + 50}): display({{'text/plain': str(i)}}, raw=True)"
        )
    )
    async with contextlib.aclosing(iterator):  # type: ignore[type-var]
        async for _ in iterator:
            break
    await run(shared, "pass")

    asides = shared.idle_events()
    first, second = await anext(asides), await anext(asides)
    assert isinstance(first.event, Missed)
    assert isinstance(second.event, DisplayEvent)
    assert second.event.data["text/plain"] != "0"


async def test_a_lost_idle_ends_the_cell_and_is_told(
    shared: LocalKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cellwright.kernel.local.conversation import CellMessages

    put = CellMessages.put

    def lossy(self: CellMessages, message: object) -> None:
        if message.type != "status":  # type: ignore[attr-defined]
            put(self, message)  # type: ignore[arg-type]

    monkeypatch.setattr(CellMessages, "put", lossy)
    async with asyncio.timeout(20):
        events = await run(shared, "print('said')")

    assert text(events) == "said\n"
    assert verdict(events).status == "ok"
    assert isinstance(events[-2], Missed)


async def test_a_slow_reader_stops_the_kernel_and_loses_nothing(
    kernel: LocalKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cellwright.kernel.local import channels

    monkeypatch.setattr(channels, "BACKLOG_HIGH", 20_000)
    monkeypatch.setattr(channels, "BACKLOG_LOW", 5_000)
    source = "for i in range(2000): print(i, '.' * 100, flush=True)"
    state = Path(f"/proc/{kernel.info.pid}/stat")
    said, was_stopped = [], False
    async with asyncio.timeout(50):
        async for event in kernel.execute(Code(source)):
            said.append(event)
            if isinstance(event, StreamEvent) and not was_stopped:
                was_stopped = await eventually(lambda: _state(state) == "T")

    assert was_stopped
    assert text(said) == "".join(f"{i} {'.' * 100}\n" for i in range(2000))
    assert verdict(said).status == "ok"


def _state(file: Path) -> str:
    return file.read_text().rpartition(")")[2].split()[0]


async def test_many_displays_all_arrive(shared: LocalKernel) -> None:
    events = await run(
        shared,
        "from IPython.display import display\n"
        "for i in range(5000): display({'text/plain': str(i)}, raw=True)",
    )

    shown = [event.data["text/plain"] for event in events if isinstance(event, DisplayEvent)]
    assert shown == [str(i) for i in range(5000)]


@pytest.mark.all
async def test_a_reader_without_a_turn_loses_nothing() -> None:
    """By default a kernel keeps 1,000 messages for a reader and drops the rest."""
    program = Path(__file__).with_name("reader_without_a_turn.py")
    reader = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdout=asyncio.subprocess.PIPE
    )
    assert reader.stdout is not None
    async with asyncio.timeout(50):
        pid = int(await reader.stdout.readline())
        assert await eventually(lambda: _state(Path(f"/proc/{reader.pid}/stat")) == "T", 20)
        quiet = _Quiet(pid)
        assert await eventually(quiet.has_come, 20)  # the kernel has said all
        reader.send_signal(signal.SIGCONT)
        count = int(await reader.stdout.readline())
        await reader.wait()

    assert count == 10_000


class _Quiet:
    """Notices that a process has used no processor time for a while."""

    def __init__(self, pid: int) -> None:
        self._file = Path(f"/proc/{pid}/stat")
        self._ticks, self._since = -1, 0.0

    def has_come(self) -> bool:
        fields = self._file.read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        if ticks != self._ticks:
            self._ticks, self._since = ticks, time.monotonic()
        return time.monotonic() - self._since > 0.5


async def test_a_flood_of_lines_arrives_whole(shared: LocalKernel) -> None:
    events = await run(shared, "for i in range(100_000): print(i)")

    assert text(events) == "".join(f"{i}\n" for i in range(100_000))


async def test_a_restart_forgets_state_and_keeps_the_launch(
    kernel: LocalKernel, places: Path
) -> None:
    await run(kernel, "x = 1")
    before, pid = mark_of(kernel), kernel.info.pid

    await start_again(kernel)

    assert verdict(await run(kernel, "x")).status == "error"
    assert kernel.info.pid != pid
    assert not with_mark(before)
    assert kernel.exit is None
    await kernel.shutdown()
    await assert_nothing_is_left(mark_of(kernel), places)


@pytest.mark.parametrize("now", [False, True])
async def test_a_shutdown_leaves_nothing(
    kernel: LocalKernel, places: Path, monkeypatch: pytest.MonkeyPatch, now: bool
) -> None:
    monkeypatch.setattr(process_module, "_SHUTDOWN_PATIENCE", 30)  # it is asked, and may be slow
    mark = mark_of(kernel)
    assert verdict(await run(kernel, "1")).status == "ok"

    await kernel.shutdown(now=now)
    await kernel.shutdown(now=now)

    assert kernel.exit == (KernelExit(signal=9) if now else KernelExit(code=0))
    assert not kernel.is_alive
    assert not await kernel.ping(1)
    await assert_nothing_is_left(mark, places)
    assert await run(kernel, "1") == [Finished("died", exit=kernel.exit)]


async def test_a_kernel_that_is_slow_to_say_its_last_words_still_ends_by_itself(
    kernel: LocalKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its main thread would take down what the thread that speaks needs; then it has to be killed."""
    monkeypatch.setattr(process_module, "_SHUTDOWN_PATIENCE", 30)
    await run(
        kernel,
        """
import atexit, threading
thread = get_ipython().kernel.iopub_thread
schedule, has_stopped = thread.schedule, threading.Event()
def stop():
    thread.stop()
    has_stopped.set()
def schedule_late(work):  # what comes while the thread ends is never done
    if threading.current_thread().name != "Control" or not has_stopped.wait(0.1):
        schedule(work)
thread.schedule = schedule_late
_ = atexit.register(stop)
""",
    )

    await kernel.shutdown()

    assert kernel.exit == KernelExit(code=0)


async def test_a_shutdown_of_a_kernel_that_does_not_listen_is_a_kill(
    kernel: LocalKernel, places: Path
) -> None:
    running = asyncio.create_task(
        run(kernel, "print(1, flush=True)\nimport re; re.match(r'(a+)+$', 'a' * 40 + 'b')")
    )
    await eventually(lambda: kernel._conversation and kernel._conversation._busy_with)

    async with asyncio.timeout(10):
        await kernel.shutdown()

    assert verdict(await running) == Finished("died", exit=KernelExit(signal=9))
    await assert_nothing_is_left(mark_of(kernel), places)


@pytest.mark.usefixtures("kernel")
async def test_the_connection_file_is_private(places: Path) -> None:
    [folder] = (places / "run" / "cellwright").glob("k-*")
    file = folder / "connection.json"

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert json.loads(file.read_bytes())["transport"] == "ipc"


async def test_jupyters_own_client_can_attach(kernel: LocalKernel, places: Path) -> None:
    from jupyter_client.asynchronous.client import AsyncKernelClient

    [file] = (places / "run" / "cellwright").glob("k-*/connection.json")
    client = AsyncKernelClient(connection_file=str(file))
    client.load_connection_file()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=20)
        reply = await client.execute("y = 3", reply=True, timeout=20)
    finally:
        client.stop_channels()

    assert reply["content"]["status"] == "ok"
    assert text(await run(kernel, "print(y)")) == "3\n"


async def test_the_kernel_runs_in_the_folder_and_with_the_variables_of_its_launch(
    tmp_path: Path,
) -> None:
    (tmp_path / "neighbour.py").write_text("value = 8")
    kernel = LocalKernel(launch(tmp_path, CELLWRIGHT_TEST="given"))
    await kernel.start()
    try:
        said = await run(
            kernel,
            "import os, neighbour\n"
            "print(os.getcwd(), os.environ['CELLWRIGHT_TEST'], neighbour.value)",
        )
    finally:
        await kernel.shutdown(now=True)

    assert text(said) == f"{tmp_path} given 8\n"
