"""An agent's task, end to end, over real pipes, and what a connection promises beside it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp import Client

import cellwright
from tests.conftest import ROOT
from tests.engines import engine_of_its_own, is_alive, wait_for
from tests.integration.mcp.process import parameters, raw_server
from tests.unit.mcp.serving import ERAS, notebook, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cellwright.workspace.api.answers import AttachAnswer
    from tests.engines import Engine

EXAMPLES = ROOT / "examples"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine that the test may stop."""
    with engine_of_its_own(monkeypatch) as engine:
        yield engine


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_mends_a_notebook_in_four_calls(tmp_path: Path, era: str) -> None:
    path = tmp_path / "harvest.ipynb"
    shutil.copyfile(EXAMPLES / path.name, path)
    before = cellwright.read(path)

    async with Client(parameters(tmp_path), mode=era) as client:
        found = await client.call_tool(
            "notebook_read", {"path": path.name, "only": "errors", "outputs": True}
        )
        facts = found.meta["cellwright/facts"]
        (broken,) = facts["cells"]
        assert "could not convert string to float: 'n/a'" in text_of(found)

        old, new = "for row in rows}", 'for row in rows if row["tonnes"] != "n/a"}'
        edit = {"op": "replace_text", "cell": broken["id"], "old": old, "new": new}
        mended = await client.call_tool(
            "notebook_edit",
            {"path": path.name, "base": facts["revision"], "edits": [edit], "run": "stale"},
        )
        assert not mended.is_error, text_of(mended)
        ran = mended.meta["cellwright/facts"]["executions"]
        assert [(row["cell"], row["status"]) for row in ran] == [
            ("readings", "ok"),
            ("clean", "ok"),
            ("chart", "ok"),
            ("total", "ok"),
        ]
        assert "179.7 t from 5 orchards" in text_of(mended)

        seen = await client.call_tool("notebook_outputs", {"path": path.name, "cells": ["chart"]})
        assert "image" in [part.type for part in seen.content]

        undone = await client.call_tool("notebook_history", {"path": path.name, "action": "undo"})
        assert not undone.is_error, text_of(undone)

    after = cellwright.read(path)
    assert after.revision == before.revision
    assert after.cells[3].outputs == before.cells[3].outputs, "the old error came back"
    assert after.cells[5].outputs, "what a run said is a record, and stays"


@pytest.mark.all
def test_the_demo_shows_each_call(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "agent.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("→ notebook_") == 4
    assert "[a picture, image/png" in done.stdout
    assert "4 calls" in done.stdout


def test_a_stray_print_never_reaches_stdout(tmp_path: Path) -> None:
    # The first thing that Python imports prints, by every way there is, and goes on printing.
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray" / "sitecustomize.py").write_text(
        "import atexit, os, subprocess, sys, threading, time\n"
        "def stray():\n"
        "    for _ in range(300):\n"
        "        time.sleep(0.01)\n"
        "        if 'cellwright.mcp.server' in sys.modules:\n"
        "            print('stray print')\n"
        "            sys.stdout.flush()\n"
        "            os.write(1, b'stray write\\n')\n"
        "            subprocess.run(['echo', 'stray child'])\n"
        "if 'mcp' in sys.argv or any('mcp' in word for word in sys.orig_argv):\n"
        "    threading.Thread(target=stray, daemon=True).start()\n"
        "    atexit.register(print, 'stray end')\n"
    )
    notebook(tmp_path / "a.ipynb", ("one", "1"))
    variables = {"PYTHONDEVMODE": "1", "PYTHONPATH": str(tmp_path / "stray")}
    with raw_server(tmp_path, **variables) as server:
        server.greet()
        for tool in server.call("tools/list")["result"]["tools"]:
            answer = server.call("tools/call", {"name": tool["name"], "arguments": {}})
            assert "content" in answer["result"], answer
        code = {"cells": [{"code": "import os; print('said'); os.write(1, b'raw')"}]}
        answer = server.call("tools/call", {"name": "eval", "arguments": code})
        assert "said" in answer["result"]["content"][0]["text"]
        wait_for(lambda: b"stray child" in server.said, "a stray line on stderr")

    assert b"stray print" in server.said, "the test printed nothing"
    assert b"stray write" in server.said


@pytest.mark.usefixtures("shared_engine")
def test_a_client_that_cancels_stops_the_kernel(tmp_path: Path) -> None:
    notebook(tmp_path / "a.ipynb", ("slow", "import time\nfor _ in range(600): time.sleep(0.1)"))
    with raw_server(tmp_path) as server:
        server.greet()
        arguments = {"path": "a.ipynb", "wait": 60}
        number = server.request(
            "tools/call",
            {
                "name": "notebook_run",
                "arguments": arguments,
                "_meta": {"progressToken": "t"},
            },
        )
        while "running" not in str(server.next()):
            pass
        server.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": number, "reason": "enough"},
            }
        )
        (run,) = wait_for(lambda: _over(tmp_path), "the end of the run")
        assert run.answer is not None
        assert run.answer[0].status == "cancelled", run


@pytest.mark.usefixtures("shared_engine")
def test_a_client_that_goes_away_leaves_its_run_alone(tmp_path: Path) -> None:
    go = tmp_path / "go"
    source = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('through')"
    notebook(tmp_path / "a.ipynb", ("slow", source))
    with raw_server(tmp_path) as server:
        server.greet()
        server.request(
            "tools/call",
            {
                "name": "notebook_run",
                "arguments": {"path": "a.ipynb", "wait": 60},
                "_meta": {"progressToken": 1},
            },
        )
        while "running" not in str(server.next()):
            pass
    go.touch()

    def said() -> bool:
        return "through" in str(cellwright.read(tmp_path / "a.ipynb").cells[0].outputs)

    wait_for(said, "the outputs of a run whose client has gone")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_server_that_is_told_to_end_takes_its_kernels_along(
    tmp_path: Path, number: int, code: int
) -> None:
    notebook(tmp_path / "a.ipynb", ("one", "import os; print('pid', os.getpid())"))
    with raw_server(tmp_path, ends=code) as server:
        server.greet()
        call = {"name": "notebook_run", "arguments": {"path": "a.ipynb"}}
        text = server.call("tools/call", call)["result"]["content"][0]["text"]
        kernel = int(text.partition("pid ")[2].split()[0])
        assert is_alive(kernel)
        server.process.send_signal(number)
        server.process.wait(30)
        wait_for(lambda: not is_alive(kernel), "the end of the kernel")


def test_a_long_run_answers_by_its_deadline_and_is_followed_by_its_id(tmp_path: Path) -> None:
    code = (
        "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint('at last')"
    )
    notebook(tmp_path / "a.ipynb", ("slow", code))
    with raw_server(tmp_path) as server:
        server.greet()
        call = {"name": "notebook_run", "arguments": {"path": "a.ipynb", "wait": 0.2}}
        first = server.call("tools/call", call)["result"]
        facts = first["_meta"]["cellwright/facts"]
        assert facts["done"] is False
        (tmp_path / "go").touch()
        call = {"name": "notebook_run", "arguments": {"run": facts["run"]}}
        second = server.call("tools/call", call)["result"]

    assert "at last" in second["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.usefixtures("shared_engine")
async def test_input_is_asked_of_the_person_at_the_client(tmp_path: Path, era: str) -> None:
    async def person(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "Ada"})

    notebook(tmp_path / "a.ipynb", ("ask", "print('Hello', input('Name? '))"))
    async with Client(parameters(tmp_path), mode=era, elicitation_callback=person) as client:
        result = await client.call_tool("notebook_run", {"path": "a.ipynb"})

    assert "Hello Ada" in text_of(result)


@pytest.mark.usefixtures("shared_engine")
async def test_clients_that_share_a_root_share_its_kernels(tmp_path: Path) -> None:
    notebook(tmp_path / "a.ipynb", ("one", "x = 41"), ("two", "print(x + 1)"))
    async with (
        Client(parameters(tmp_path), client_info=_named("first")) as first,
        Client(parameters(tmp_path), client_info=_named("second"), mode="legacy") as second,
    ):
        await first.call_tool("notebook_run", {"path": "a.ipynb", "cells": ["one"]})
        ran = await second.call_tool("notebook_run", {"path": "a.ipynb", "cells": ["two"]})
        assert "42" in text_of(ran), "both speak to one kernel"

        edits = [{"op": "replace", "cell": "one", "source": "x = 1"}]
        await second.call_tool("notebook_edit", {"path": "a.ipynb", "edits": edits})
        read = await first.call_tool("notebook_read", {"path": "a.ipynb"})
        assert "mcp:second" in text_of(read), "each is told of the other"
        mine = [{"op": "replace", "cell": "two", "source": "print(x + 2)"}]
        await first.call_tool("notebook_edit", {"path": "a.ipynb", "edits": mine})

        await second.call_tool("notebook_history", {"path": "a.ipynb", "action": "undo"})
        cells = [cell.source for cell in cellwright.read(tmp_path / "a.ipynb").cells]
        assert cells == ["x = 41", "print(x + 2)"], "everybody undoes his own"

    # And the terminal sees the same kernel.
    words = (sys.executable, "-m", "cellwright", "run", "a.ipynb", "two", "--json")
    typed = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, stdout=subprocess.PIPE)
    said, _ = await typed.communicate()
    assert b"43" in said


@pytest.mark.usefixtures("shared_engine")
async def test_edits_of_many_clients_at_once_are_all_there(tmp_path: Path) -> None:
    path = notebook(tmp_path / "a.ipynb", ("one", "1"))

    async def client(number: int) -> None:
        async with Client(parameters(tmp_path), client_info=_named(f"c{number}")) as mine:
            for place in range(5):
                edits = [{"op": "insert", "source": f"# {number}.{place}"}]
                done = await mine.call_tool("notebook_edit", {"path": "a.ipynb", "edits": edits})
                assert not done.is_error, text_of(done)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(client(number))

    sources = {cell.source for cell in cellwright.read(path).cells}
    assert sources == {"1", *(f"# {n}.{p}" for n in range(3) for p in range(5))}


async def test_a_subscriber_hears_of_others_even_when_the_engine_was_lost(
    tmp_path: Path, engine: Engine
) -> None:
    notebook(tmp_path / "a.ipynb", ("one", "1"))
    uri = "notebook://a.ipynb"
    async with (
        Client(parameters(tmp_path), client_info=_named("hears")) as hears,
        Client(parameters(tmp_path), client_info=_named("edits")) as edits,
        hears.listen(resource_subscriptions=[uri]) as stream,
    ):

        async def heard(number: int) -> None:
            edit = {"op": "replace", "cell": "one", "source": str(number)}
            await edits.call_tool("notebook_edit", {"path": "a.ipynb", "edits": [edit]})
            async with asyncio.timeout(30):
                event = await anext(aiter(stream))
            assert event.uri == uri

        await heard(2)
        engine.stop()
        await edits.call_tool("notebook_list", {})  # may say that it was lost
        await heard(3)


async def test_a_server_outlives_its_engine(tmp_path: Path, engine: Engine) -> None:
    async with Client(parameters(tmp_path)) as client:
        one = await client.call_tool("eval", {"cells": [{"code": "x = 1"}]})
        assert not one.is_error
        engine.stop()
        await client.call_tool("eval", {"cells": [{"code": "1"}]})  # may say that it was lost
        again = await client.call_tool("eval", {"cells": [{"code": "print('back')"}]})

    assert "back" in text_of(again)


async def test_cells_of_a_killed_engine_have_died_at_once(tmp_path: Path, engine: Engine) -> None:
    slow = "import time; print('be' + 'gun', flush=True); time.sleep(600)"
    path = tmp_path / "a.ipynb"
    notebook(path, ("one", "x = 1"), ("two", slow), ("three", "print(x)"))
    async with Client(parameters(tmp_path)) as client:
        answer = await client.call_tool("notebook_run", {"path": "a.ipynb", "wait": 0})
        run = answer.meta["cellwright/facts"]["run"]
        wait_for(lambda: "begun" in path.read_text(), "the second cell is on record", 60)
        pid = engine.pid
        os.kill(pid, signal.SIGSTOP)  # so that the read is under way when it dies
        reading = asyncio.ensure_future(client.call_tool("notebook_read", {"path": "a.ipynb"}))
        await asyncio.wait([reading], timeout=0.5)
        assert not reading.done()
        os.kill(pid, signal.SIGKILL)
        read = await reading
        assert not read.is_error, text_of(read)
        assert "cell 1 · id two · code · died" in text_of(read)
        gone = await client.call_tool("notebook_run", {"run": run})
        assert "RUN_NOT_FOUND" in text_of(gone)
        assert "read the notebook to see how its cells ended: notebook_read" in text_of(gone)
        after = await client.call_tool("notebook_run", {"path": "a.ipynb", "cells": ["three"]})
        assert "Variables lost: those of one" in text_of(after)


def _over(folder: Path) -> list[AttachAnswer] | None:
    """The runs of the notebooks of a folder, when all have ended."""
    from cellwright.engine import connect

    workspace = connect(actor="test:looks")
    assert workspace is not None
    with workspace:
        found = [
            run
            for run in workspace.runs()
            if run.kind == "run" and run.subject.startswith(str(folder))
        ]
        if not found or any(run.ended is None for run in found):
            return None
        return [workspace.attach(run.run) for run in found]


def _named(name: str) -> types.Implementation:
    return types.Implementation(name=name, version="1")
