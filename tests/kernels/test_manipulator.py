"""A Python kernel that reads, edits and runs its own notebook, while a cell of it runs."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.kernel.events import CommMessage
from cellwright.kernel.runner import Runner
from cellwright.kernel.transport import Launch
from tests.conftest import ROOT
from tests.kernels.fleet import run as run_in
from tests.kernels.manipulating import KERNEL_PATH, Frontend, frontend, notebook

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cellwright.document.notebook import Notebook

VERSIONS = {
    "ipykernel 7": ".venv",
    "ipykernel 6.29": ".dev/ipykernel6",
    "ipykernel 6.31": ".dev/ipykernel631",
    "ipykernel 7.0": ".dev/ipykernel70",
    "ipykernel 7.3": ".dev/ipykernel73",
}
IMPORT = "from cellwright_kernel import notebook\n"


@pytest.fixture(
    params=[
        pytest.param(folder, id=name, marks=[] if folder == ".venv" else [pytest.mark.all])
        for name, folder in VERSIONS.items()
    ]
)
def python(request: pytest.FixtureRequest) -> str:
    path = ROOT / request.param / "bin" / "python"
    if not path.exists():
        pytest.fail(f"needs {request.param}, which `./dev test --all` makes")
    return str(path)


@pytest.fixture
async def book(python: str, tmp_path: Path) -> AsyncIterator[Any]:
    """Starts a frontend with the given cells; they are run one by one with `cell`."""
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:

        async def start(*sources: str) -> Frontend:
            made: Notebook = notebook(*sources)
            return await stack.enter_async_context(frontend(tmp_path, made, python=python))

        yield start


async def run(front: Frontend, *cells: str) -> None:
    """Run cells that are to end well."""
    for cell in cells:
        ran = await front.cell(cell)
        assert ran.status == "ok", front.said(cell)


async def test_all_six_methods_answer_while_the_cell_that_asks_runs(book: Any) -> None:
    front = await book(
        IMPORT
        + "print(notebook.cell_count(), len(notebook.cells))\n"
        + "print([cell.source for cell in notebook.cells[1:3]], notebook.cells[-1].type)\n"
        + "print(notebook.splice(3, 1, ['x = 1', {'cell_type': 'raw', 'source': 'r'}]))\n"
        + "print(notebook.insert_markdown('# Report'), notebook.cell_count())\n"
        + "notebook.metadata['title'] = 'T'\n"
        + "notebook.metadata['nested'] = {'a': 1, 'b': 2}\n"
        + "notebook.metadata['nested'] = {'b': 3}\n"
        + "print(sorted(notebook.metadata.items()), 'title' in notebook.metadata)\n"
        + "notebook.run(3)\n"
        + "print(x)",
        "1",
        "# two",
        "old",
    )
    await run(front, "c0")
    assert front.said("c0").splitlines() == [
        "4 4",
        "['1', '# two'] code",
        "range(3, 5)",
        "5 6",
        "[('nested', {'b': 3}), ('title', 'T')] True",
        "1",
    ]
    assert [cell.source for cell in front.notebook.cells][1:] == [
        "1",
        "# two",
        "x = 1",
        "r",
        "# Report",
    ]
    assert front.notebook.validate() is None


async def test_errors_raise_and_the_next_call_and_the_next_cell_work(book: Any) -> None:
    front = await book(
        IMPORT
        + "import cellwright_kernel as kit\n"
        + "for ask in (lambda: notebook.cell_range(5, 2), lambda: notebook.cells[99],\n"
        + "            lambda: notebook.splice(99), lambda: notebook.splice(0, 0, [{'source': 1}]),\n"
        + "            lambda: notebook.set_metadata(None), lambda: notebook.run(0),\n"
        + "            lambda: notebook.run(2)):\n"
        + "    try:\n"
        + "        ask()\n"
        + "    except kit.NotebookError as error:\n"
        + "        print(type(error).__name__, error.code)\n"
        + "print(notebook.cell_count())",
        "'next'",
        "1 / 0",
    )
    await run(front, "c0", "c1")
    assert front.said("c0").splitlines() == [
        "OutOfRange INVALID_RANGE",
        "OutOfRange OUT_OF_BOUNDS",
        "OutOfRange INVALID_SPLICE_PARAMS",
        "NotebookError INVALID_CELL_DATA",
        "NotebookError INVALID_METADATA",
        "CellFailed EXECUTION_FAILED",
        "CellFailed EXECUTION_FAILED",
        "3",
    ]
    comms = {message.comm_id for message in front.messages}
    assert len(comms) == 1, "the comm stays open after errors"
    assert [m.kind for m in front.messages].count("open") == 1


async def test_nested_cells_have_their_own_outputs_and_numbers(book: Any) -> None:
    front = await book(
        IMPORT + "X = 41; print('before'); notebook.run(1, 5); print('after', Y); 'own'",
        "Y = X + 1; print('nested', Y)",
        "# text is skipped",
        "import asyncio\nawait asyncio.sleep(0.01)\nprint('awaited', notebook.cell_count())",
        "import threading; print(threading.current_thread() is threading.main_thread()); Y",
        "'next'",
    )
    await run(front, "c0", "c5")
    assert front.said("c0") == "before\nafter 42\n'own'"
    assert front.said("c1") == "nested 42\n"
    assert front.said("c3") == "awaited 6\n"
    assert front.said("c4") == "True\n42"
    assert front.counts() == {"c0": 1, "c1": 2, "c3": 3, "c4": 4, "c5": 5}


async def test_a_nested_cell_may_run_others_but_not_the_one_that_waits(book: Any) -> None:
    front = await book(
        IMPORT + "notebook.run(1); print('outer', deep)",
        "notebook.run(2)\n"
        "try:\n    notebook.run(0, 1)\nexcept Exception as error:\n    print(error.code)",
        "deep = 1; print('deepest')",
        "_ih[-1] == 'deep = 1; print(\\'deepest\\')', Out.get(9)",
    )
    await run(front, "c0")
    assert [front.said(f"c{n}") for n in range(3)] == [
        "outer 1\n",
        "EXECUTION_FAILED\n",
        "deepest\n",
    ]
    assert front.counts() == {"c0": 1, "c1": 2, "c2": 3}


async def test_cells_that_await_may_be_nested_in_each_other(book: Any) -> None:
    front = await book(
        IMPORT + "import asyncio\nnotebook.run(1); print('outer', deepest)",
        "await asyncio.sleep(0.01); notebook.run(2); print('between')",
        "await asyncio.sleep(0.01); await notebook.aio.run(3); print('inner')",
        "await asyncio.sleep(0.01); deepest = await notebook.aio.cell_count()",
    )
    await run(front, "c0")
    assert [front.said(f"c{n}") for n in range(3)] == ["outer 4\n", "between\n", "inner\n"]
    assert front.counts() == {"c0": 1, "c1": 2, "c2": 3, "c3": 4}


async def test_a_handler_that_fails_still_replies_to_the_frontend(book: Any) -> None:
    front = await book(
        IMPORT + "import cellwright_kernel.client as c\n"
        "def fail(*_): raise OSError('no handler')\n"
        "nesting = c.get_client().nesting\n"
        "handler, nesting._execute = nesting._execute, fail\n"
        "try:\n    notebook.run(1)\nexcept Exception as error:\n    print(error.code)\n"
        "nesting._execute = handler\n"
        "notebook.run(1)",
        "print('works')",
    )
    await run(front, "c0")
    assert (front.said("c0"), front.said("c1")) == ("EXECUTION_FAILED\n", "works\n")


async def test_a_failing_nested_cell_ends_the_run_and_is_named(book: Any) -> None:
    front = await book(
        IMPORT + "try:\n    notebook.run(1, 4)\nexcept Exception as error:\n    print(error)",
        "first = 1",
        "1 / 0",
        "third = 3",
        "'third' in dir(), first",
    )
    await run(front, "c0", "c4")
    assert front.said("c0") == "Cell execution failed at index 2: ZeroDivisionError\n"
    assert front.said("c2").startswith("ZeroDivisionError")
    assert front.said("c4") == "(False, 1)"


async def test_an_interrupt_during_a_wait_ends_the_wait_and_the_next_cell_runs(book: Any) -> None:
    front = await book(IMPORT + "print('waiting', flush=True)\nnotebook.cell_count()", "6 * 7")
    front.bridge.feed = lambda *_, **__: False  # nobody answers
    task = asyncio.create_task(front.cell("c0"))
    await asyncio.wait_for(front.spoke.wait(), 30)
    while "waiting" not in front.text.get("c0", "") or not front.messages[1:]:
        await asyncio.sleep(0.01)
    await front.kernel.interrupt()
    ran = await asyncio.wait_for(task, 20)
    assert ran.reason == "KeyboardInterrupt"
    assert (await front.cell("c1")).status == "ok"
    assert front.said("c1") == "42"


@pytest.mark.parametrize("nested", ["import time; time.sleep(60)", "await asyncio.sleep(60)"])
async def test_an_interrupt_of_a_nested_cell_ends_the_cell_around_it_too(
    book: Any, nested: str
) -> None:
    front = await book(
        "import asyncio\n" + IMPORT + "notebook.run(1); print('not reached')",
        f"print('in', flush=True)\n{nested}",
        "notebook.cell_count()",
    )
    task = asyncio.create_task(front.cell("c0"))
    while "in" not in front.text.get("c1", ""):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # what is interrupted is the sleep, not what leads there
    await front.kernel.interrupt()
    ran = await asyncio.wait_for(task, 20)
    assert (ran.status, ran.reason) in {
        ("cancelled", "KeyboardInterrupt"),
        ("error", "KeyboardInterrupt"),
    }
    assert "not reached" not in front.said("c0")
    await run(front, "c2")
    assert front.said("c2") == "3"


async def test_a_cell_may_await_and_be_run_in_turn(book: Any) -> None:
    front = await book(
        IMPORT
        + "import asyncio\n"
        + "print(await asyncio.gather(*(notebook.aio.cell_count() for _ in range(5))))\n"
        + "print(await notebook.aio.insert_markdown('# end'))\n"
        + "await notebook.aio.run(1, 3)\n"
        + "print('after', Y)",
        "Y = 1; print('one')",
        "await asyncio.sleep(0.01); print('two')",
        "'next'",
    )
    await run(front, "c0", "c3")
    assert front.said("c0").splitlines() == ["[4, 4, 4, 4, 4]", "4", "after 1"]
    assert (front.said("c1"), front.said("c2")) == ("one\n", "two\n")
    assert front.counts() == {"c0": 1, "c1": 2, "c2": 3, "c3": 4}


async def test_futures_are_done_after_the_cell_and_can_be_waited_for_in_the_next(
    book: Any,
) -> None:
    front = await book(
        IMPORT + "count, ran = notebook.futures.cell_count(), notebook.futures.run(1)\n"
        "bad = notebook.futures.run(99)",
        "print('queued')",
        "print(count.result(10), ran.result(10), type(bad.exception(10)).__name__)\n"
        "print(notebook.futures.cell_count().result(10))",
    )
    await run(front, "c0")
    async with asyncio.timeout(30):
        await front.bridge.settle()  # the cell that it asked for has its turn before the next
    await run(front, "c2")
    assert front.said("c2") == "3 None OutOfRange\n3\n"
    assert front.said("c1") == "queued\n"
    assert front.counts() == {"c0": 1, "c1": 2, "c2": 3}


async def test_a_thread_may_ask_between_cells(book: Any) -> None:
    front = await book(
        IMPORT + "import threading\nfound = []\n"
        "def work():\n    go.wait(20)\n    found.append(notebook.cell_count())\n"
        "    notebook.insert_markdown('# from a thread')\n    notebook.run(2)\n    done.set()\n"
        "go, done = threading.Event(), threading.Event()\n"
        "threading.Thread(target=work, daemon=True).start()",
        "go.set()",
        "by_thread = True",
        "print(done.is_set(), found, by_thread)",
    )
    await run(front, "c0", "c1")
    async with asyncio.timeout(30):
        while "c2" not in front.counts():
            await asyncio.sleep(0.01)
        while len(front.notebook.cells) < 5:
            await asyncio.sleep(0.01)
    await front.bridge.settle()
    async with asyncio.timeout(30):
        while not front.text.get("c3", "").startswith("True"):
            await run(front, "c3")
    assert front.said("c3") == "True [4] True\n"


async def test_threads_and_the_cell_may_ask_at_the_same_time(book: Any) -> None:
    front = await book(
        IMPORT + "import threading\nfound = []\n"
        "def work():\n    found.extend(notebook.cell_count() for _ in range(50))\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "mine = 0\n"
        "while any(thread.is_alive() for thread in threads):\n"
        "    assert notebook.cell_count() == 2\n    mine += 1\n"
        "print(found == [2] * 200, mine > 0)",
        "'next'",
    )
    await run(front, "c0", "c1")
    assert front.said("c0") == "True True\n"
    asked = [m.data["request_id"] for m in front.messages if m.kind == "msg"]
    assert len(asked) == len(set(asked)) > 200


async def test_nobody_answering_raises_after_the_timeout_and_says_so(book: Any) -> None:
    front = await book(
        IMPORT + "notebook.timeout = 0.3\n"
        "for ask in (notebook.cell_count, lambda: notebook.run(1)):\n"
        "    try:\n        ask()\n"
        "    except TimeoutError as error:\n        print(error.code, error)",
        "1",
        "notebook.timeout = 30; notebook.cell_count()",
    )
    feed, front.bridge.feed = front.bridge.feed, lambda *_, **__: False
    await run(front, "c0")
    first, second = front.said("c0").splitlines()
    assert first.startswith("TIMEOUT No answer to `get_cell_count` within 0.3 s")
    assert second.startswith("TIMEOUT No answer to `execute_cell_range` within 0.3 s")
    front.bridge.feed = feed
    await run(front, "c2")
    assert front.said("c2") == "3"


async def test_a_frontend_that_closes_the_comm_is_noticed_at_once(book: Any) -> None:
    front = await book(
        IMPORT + "try:\n    notebook.cell_count()\n"
        "except ConnectionError as error:\n    print(error.code)",
        "notebook.cell_count()",
    )
    feed = front.bridge.feed

    closing = []

    def refuse(message: CommMessage, **_: Any) -> bool:
        if message.kind == "msg":
            close = front.kernel.send_comm(CommMessage("close", message.comm_id))
            closing.append(asyncio.ensure_future(close))
        return True

    front.bridge.feed = refuse
    await asyncio.wait_for(run(front, "c0"), 15)
    assert front.said("c0") == "NO_FRONTEND\n"
    front.bridge.feed = feed
    await run(front, "c1")
    assert front.said("c1") == "2"


async def test_a_message_that_is_not_signed_with_the_kernels_key_is_not_taken(book: Any) -> None:
    front = await book(
        IMPORT + "import cellwright_kernel.client as c\n"
        "call = c.get_client().submit('get_cell_count', {})\n"
        "session, tap = get_ipython().kernel.session, c.get_client().tap\n"
        "from jupyter_client.session import Session\n"
        "import zmq\n"
        "def offered(key):\n"
        "    other = Session(key=key, session=session.session)\n"
        "    content = {'comm_id': 'x', 'data': {'request_id': call.id, 'status': 'ok',"
        " 'result': {'count': 9}}}\n"
        "    parts = other.serialize(other.msg('comm_msg', content))\n"
        "    return tap._take([zmq.Frame(part) for part in parts])\n"
        "print(offered(b'wrong'), call.future.done())\n"
        "print(offered(session.key), call.future.result()['count'])",
    )
    front.bridge.feed = lambda *_, **__: False
    await run(front, "c0")
    assert front.said("c0").splitlines() == ["False False", "True 9"]


async def test_other_messages_keep_their_order_behind_a_cell_that_waits(book: Any) -> None:
    front = await book(
        IMPORT + "print('asked', flush=True)\nfor _ in range(50): notebook.cell_count()",
        *(f"print({number})" for number in range(1, 5)),
    )
    task = asyncio.create_task(front.cell("c0"))
    await asyncio.wait_for(front.spoke.wait(), 30)
    # Sent while the first waits; the kernel gets them all in the course of its calls.
    others = [front.notebook.cell(f"c{number}") for number in range(1, 5)]
    await asyncio.gather(task, *(front._events(cell, None) for cell in others))
    assert front.counts() == {f"c{number}": number + 1 for number in range(5)}
    assert [front.said(f"c{number}") for number in range(1, 5)] == ["1\n", "2\n", "3\n", "4\n"]


async def test_the_magics_insert_below_list_show_and_run(book: Any) -> None:
    front = await book(
        "%load_ext cellwright",
        "%%cell_below markdown\n## Findings\n",
        "x = 5",
        "%notebook\n%notebook show 2\n%notebook run 3\nprint(x)",
        "%notebook count",
        "%unload_ext cellwright",
        "'cell_below' in get_ipython().magics_manager.magics['cell'], 'notebook' in globals()",
    )
    await run(front, "c0", "c1", "c3", "c4", "c5", "c6")
    assert [cell.source for cell in front.notebook.cells][:4] == [
        "%load_ext cellwright",
        "%%cell_below markdown\n## Findings\n",
        "## Findings",
        "x = 5",
    ]
    listed = front.said("c3").splitlines()
    assert listed[0].split() == ["0", "code", "[1]", "%load_ext", "cellwright"]
    assert listed[2].split() == ["2", "markdown", "##", "Findings"]
    assert listed[-4:] == ["# 2 markdown", "## Findings", "", "5"]
    assert front.said("c4") == "8"
    assert front.said("c6") == "(False, False)"


async def test_two_hundred_calls_in_one_cell(book: Any) -> None:
    front = await book(
        IMPORT + "[notebook.cell_count() for _ in range(200)] == [2] * 200", "'next'"
    )
    await run(front, "c0", "c1")
    assert front.said("c0") == "True"


async def test_the_runner_which_has_no_comms_says_so_at_once(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": KERNEL_PATH}
    runner = Runner(Launch(str(tmp_path), env, python=str(ROOT / ".venv/bin/python")))
    await runner.start()
    try:
        seen = await run_in(
            runner,
            IMPORT + "try:\n    notebook.cell_count()\nexcept ConnectionError as error:\n"
            "    print(error.code, error)",
        )
    finally:
        await runner.shutdown()
    assert seen.text().startswith("NO_FRONTEND There is no Jupyter kernel here")
