"""Streams: order, floods, broken bytes, children, and output that belongs to no cell."""

from __future__ import annotations

import asyncio
import resource
import textwrap
from typing import TYPE_CHECKING

import pytest

from cellwright.kernel.events import Missed
from cellwright.kernel.transport import Code
from cellwright.outputs.events import RawPiece, StreamEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.integration.kernel.runner.conftest import Driver


async def test_streams_and_displays_keep_their_order(cells: Driver) -> None:
    source = """
        import sys
        print("a")
        print("b", file=sys.stderr)
        display("c")
        print("d", end="")
        print("e", file=sys.stderr, end="")
        display("f")
        "g"
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert ran.order == [
        *("stdout:a\n", "stderr:b\n", "shown:'c'", "stdout:d", "stderr:e"),
        *("shown:'f'", "shown:'g'"),
    ]


async def test_what_children_write_stands_between_what_was_printed_around_them(
    cells: Driver,
) -> None:
    source = """
        import os, subprocess
        for n in range(20):
            print("before", n)
            subprocess.run(["echo", "child", str(n)])
            print("after", n)
            os.system("echo shell %d" % n)
            os.write(1, b"raw\\n")
    """
    ran = await cells.ok(textwrap.dedent(source))
    expected = "".join(f"before {n}\nchild {n}\nafter {n}\nshell {n}\nraw\n" for n in range(20))
    assert ran.stdout == expected


ORDERED = {
    "what others wrote, then a line": (
        """os.write(1, b"raw %d\\n" % n); print("line", n)""",
        "raw {n}\nline {n}\n",
    ),
    "what others wrote after a fork, then a line": (
        """os.fork() or os._exit(0); os.wait(); os.write(1, b"raw %d\\n" % n); print("line", n)""",
        "raw {n}\nline {n}\n",
    ),
    "others in the middle of a line": (
        """print("a", end=""); os.write(1, b"b"); print("c", n)""",
        "abc {n}\n",
    ),
    "bytes": (
        """os.write(1, b"raw "); sys.stdout.buffer.write(b"bytes %d " % n); os.write(1, b"raw\\n")""",
        "raw bytes {n} raw\n",
    ),
    "both streams": (
        """print("e", end="", file=sys.stderr); print("o", end=""); os.write(2, b"\\n")""",
        "eo\n",
    ),
}


@pytest.mark.parametrize("pause", [0, 0.0005], ids=["flooded", "slow"])
@pytest.mark.parametrize("name", ORDERED)
async def test_what_a_cell_puts_in_order_stays_in_order(
    cells: Driver, name: str, pause: float
) -> None:
    step, expected = ORDERED[name]
    source = f"""
        import os, sys, time
        def step(n):
            {step}
        for n in range(300):
            step(n)
            for _ in range(0 if {pause} else 10): print("flood")
            time.sleep({pause})
    """
    await cells.ok(
        "import time\nend = time.monotonic() + 0.1\nwhile time.monotonic() < end: print()"
    )
    ran = await cells.ok(textwrap.dedent(source))
    lines = "".join(event.text for event in ran.events if isinstance(event, StreamEvent))
    assert lines.replace("flood\n", "") == "".join(expected.format(n=n) for n in range(300))


async def test_in_a_flood_children_come_after_what_was_printed_before(cells: Driver) -> None:
    source = """
        import os, time
        end = time.monotonic() + 0.3
        while time.monotonic() < end: print("flood")
        print("last")
        os.system("echo child")
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert ran.stdout.endswith("last\nchild\n")


async def test_a_line_is_there_at_once_and_a_piece_of_one_soon(cells: Driver) -> None:
    source = "import time\nprint('line')\nprint('piece', end='')\ntime.sleep(30)"
    seen = ""
    async for event in cells.runner.execute(Code(source)):
        if isinstance(event, StreamEvent):
            seen += event.text
        if seen == "line\npiece":
            await cells.runner.interrupt()
    assert seen.startswith("line\npiece")


async def test_broken_bytes_are_seen_and_kill_nothing(cells: Driver) -> None:
    source = """
        import os, sys
        print("\\ud800 lone")
        print("\\udcff", file=sys.stderr)
        os.write(1, b"bad \\xff byte\\n")
        sys.stdout.buffer.write(b"cut \\xc3")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\\xa9 whole\\n")
        sys.stdout.flush()
        os.write(2, "half €".encode()[:-1])
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert ran.stdout == "\\ud800 lone\nbad \ufffd byte\ncut é whole\n"
    assert ran.stderr == "\\udcff\nhalf \ufffd"


async def test_a_child_that_holds_the_pipe_does_not_hold_up_the_cell(cells: Driver) -> None:
    ran = await cells.ok("import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nprint(1)")
    assert ran.stdout == "1\n"
    await cells.ok("child.kill(); child.wait();")


async def test_what_comes_between_cells_is_kept_aside(cells: Driver) -> None:
    source = """
        import threading
        go = threading.Event()
        def late():
            go.wait()
            print("late")
        threading.Timer(0, late).start()
        threading.Timer(0.05, go.set).start()
    """
    first = await cells.ok(textwrap.dedent(source))
    async with asyncio.timeout(20):
        async for aside in cells.runner.idle_events():
            assert aside.event == StreamEvent("stdout", "late\n")
            break
    assert first.stdout == (await cells.ok("print('mine')")).stdout.replace("mine\n", "")


async def test_a_forked_child_prints_for_the_cell_and_never_runs_on(cells: Driver) -> None:
    source = """
        import os
        print("both?")
        child = os.fork()
        if child == 0:
            print("from the child")
        else:
            print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert ran.stdout == "both?\nfrom the child\nended with 0\n"
    failing = await cells.ok(
        "child = os.fork()\nif child == 0: raise ValueError\n"
        "os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])"
    )
    assert failing.result == "1"
    assert failing.finished.execution_count == 2


async def test_threads_of_a_forked_child_print_too(cells: Driver) -> None:
    source = """
        import os, threading
        write = sys.stdout.write
        child = os.fork()
        if child == 0:
            threads = [threading.Thread(target=write, args=(f"{n}\\n",)) for n in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        else:
            os.waitpid(child, 0)
            print("parent")
    """
    ran = await cells.ok("import sys\n" + textwrap.dedent(source))
    assert sorted(ran.stdout.splitlines()) == ["0", "1", "2", "3", "parent"]


@pytest.mark.parametrize(
    "source",
    [
        "sys.stdout.close(); sys.stderr.close()",
        "sys.stdout.detach(); sys.stderr.detach()",
        "sys.stdout = sys.stderr = None",
        "os.close(1); os.close(2)",
        "del sys.stdout",
        "sys.stdout.reconfigure(encoding='latin-1', errors='strict')",
    ],
)
async def test_a_cell_that_breaks_its_streams_still_ends(cells: Driver, source: str) -> None:
    await cells.ok(f"import os, sys\n{source}")
    after = await cells.ok("sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__\nprint('x')")
    assert after.stdout == "x\n"
    assert (await cells.ok("2")).result == "2"


async def test_many_threads_lose_no_line(cells: Driver) -> None:
    source = """
        import threading, time
        def work(n):
            time.sleep(0.05)
            for i in range(5000):
                print(f"{n}:{i}\\n", end="")
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
    """
    ran = await cells.ok(textwrap.dedent(source))
    lines = ran.stdout.split()
    assert sorted(lines) == sorted(f"{n}:{i}" for n in range(4) for i in range(5000))


async def test_lines_that_threads_print_stay_whole(cells: Driver) -> None:
    """Python's own `print` writes the end of a line apart."""
    source = """
        import sys, threading
        sys.setswitchinterval(1e-6)
        def work(n):
            for i in range(3000): print(f"{n}:{i}")
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        sys.setswitchinterval(0.005)
    """
    ran = await cells.ok(textwrap.dedent(source))
    lines = ran.stdout.splitlines()
    assert sorted(lines) == sorted(f"{n}:{i}" for n in range(4) for i in range(3000))


async def test_print_is_the_print_that_everybody_knows(cells: Driver) -> None:
    source = """
        import builtins, contextlib, inspect, io, pickle, sys
        class Loud(str):
            def __str__(self): return self.upper()
        print(); print("a", 1, sep="-", end="!\\n", flush=True); print(Loud("b")); print("c" * 20_000)
        with contextlib.redirect_stdout(io.StringIO()) as caught: print("d")
        there = io.StringIO(); print("e", file=there)
        mistakes = []
        for wrong in ({"end": 1}, {"sep": 1}, {"ende": ""}):
            try: print("f", **wrong)
            except TypeError as error: mistakes.append(error)
        known = list(inspect.signature(print).parameters) if sys.version_info >= (3, 11) else (
            ["args", "sep", "end", "file", "flush"])
        (caught.getvalue(), there.getvalue(), len(mistakes), pickle.loads(pickle.dumps(print)) is print,
         print.__name__, known)
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert ran.stdout == "\na-1!\nB\n" + "c" * 20_000 + "\n"
    names = ["args", "sep", "end", "file", "flush"]
    assert ran.result == repr(("d\n", "e\n", 3, True, "print", names))


async def test_a_handler_that_raises_in_the_middle_of_printing_tears_nothing(
    cells: Driver,
) -> None:
    source = """
        import signal
        class Late(Exception): pass
        def late(*_): raise Late
        signal.signal(signal.SIGALRM, late)
        caught = 0
        for n in range(40):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.003)
                while True: print("x" * 3000)
            except Late:
                caught += 1
        caught
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert ran.result == "40"
    assert set(ran.stdout) == {"x", "\n"}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def count(cells: Driver, source: str) -> tuple[int, int]:
    """Give how many characters and pieces of text a cell printed, keeping none of them."""
    characters = pieces = 0
    async for event in cells.runner.execute(Code(source)):
        assert not isinstance(event, Missed)
        if isinstance(event, StreamEvent):
            characters += len(event.text)
            pieces += 1
            assert len(event.text) <= 1 << 16
    return characters, pieces


@pytest.mark.all
async def test_a_million_lines_arrive_whole_and_in_few_pieces(cells: Driver) -> None:
    before = peak()
    characters, pieces = await count(cells, "for i in range(10**6): print(i)")
    assert characters == 6_888_890
    assert pieces < 100_000
    assert peak() - before < 30_000  # KiB
    status = "[l for l in open('/proc/self/status') if 'VmHWM' in l][0].split()[1]"
    assert int(str((await cells.ok(status)).result).strip("'")) < 100_000


@pytest.mark.all
@pytest.mark.parametrize(
    "source",
    [
        "import sys; sys.stdout.write('y' * 10**9);",
        "for i in range(1000): print('z' * (10**6 - 1))",
        "import os\nfor i in range(10**5): os.write(1, b'w' * 10**4)",
    ],
)
async def test_a_gigabyte_passes_through(cells: Driver, source: str) -> None:
    before = peak()
    characters, _ = await count(cells, source)
    assert characters == 10**9
    assert peak() - before < 60_000


async def test_a_big_display_is_one_frame(cells: Driver) -> None:
    ran = await cells.ok("display({'text/plain': 'b' * 10_000_000}, raw=True)")
    assert len(ran.shown[0].data["text/plain"]) == 10_000_000


async def test_of_a_display_that_is_too_large_the_beginning_is_read_and_all_is_passed_on(
    cells: Driver,
) -> None:
    ran = await cells.ok("display({'text/plain': 'b' * 50_000_000}, raw=True)\n1 + 1")
    text = ran.shown[0].data["text/plain"]
    assert text.startswith("bbb")
    assert len(text) < 50_000
    pieces = [event.data for event in ran.events if isinstance(event, RawPiece)]
    assert b"".join(pieces).count(b"b" * 50_000_000) == 1
    assert ran.result == "2"


async def test_a_slow_reader_slows_the_cell_and_fills_no_memory(cells: Driver) -> None:
    await cells.ok("import time")
    before = peak()
    events = cells.runner.execute(Code("for i in range(100): print('s' * (10**6 - 1))"))
    pieces = 0
    async for event in events:
        if isinstance(event, StreamEvent):
            pieces += len(event.text)
            if pieces < 1_000_000:
                await asyncio.sleep(0.01)
    assert pieces == 100_000_000
    assert peak() - before < 30_000


async def test_leaving_a_cell_early_lets_it_run_on(
    start: Callable[..., Awaitable[Driver]],
) -> None:
    cells = await start()
    events = cells.runner.execute(Code("for i in range(3 * 10**5): print(i)\nran = 1"))
    async for event in events:
        if isinstance(event, StreamEvent):
            break
    await events.aclose()  # type: ignore[attr-defined]
    ran = await cells.ok("print(ran)")
    assert ran.stdout == "1\n"
