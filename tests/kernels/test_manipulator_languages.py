"""Kernels that are not ipykernel edit and run their own notebook: xeus-python, and Kotlin."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

import cellwright
from tests.conftest import ROOT, require_tool
from tests.engines import wait_for
from tests.kernels.manipulating import Frontend, add_spec, frontend, notebook

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.all, pytest.mark.timeout(500)]

PEERS = ROOT / ".dev" / "kernels"
FILE = "{connection_file}"
IMPORT = "from cellwright_kernel import notebook\n"


async def run(front: Frontend, *cells: str) -> None:
    """Run cells that are to end well."""
    for cell in cells:
        ran = await front.cell(cell, timeout=200)
        assert ran.status == "ok", front.said(cell)


async def test_xeus_python_waits_for_answers_on_the_control_channel(tmp_path: Path) -> None:
    add_spec(tmp_path, "xpython", [str(PEERS / "bin/python"), "-m", "xpython_launcher", "-f", FILE])
    book = notebook(
        IMPORT
        + "print(notebook.cell_count(), notebook.cells[1].source)\n"
        + "print(notebook.splice(2, 1, ['x = 1']), notebook.insert_markdown('# end'))\n"
        + "notebook.metadata['k'] = 1\n"
        + "print(notebook.metadata['k'])\n"
        + "try:\n    notebook.run(2)\nexcept RuntimeError as error:\n    print(error.code)\n"
        + "ran = notebook.futures.run(2)",
        "# text",
        "old",
        "print(x, ran.result(10))",
        "print([notebook.cell_count() for _ in range(200)] == [7] * 200)",
        "print(await notebook.aio.cell_count())",
    )
    async with frontend(tmp_path, book, kernel_name="xpython") as front:
        await run(front, "c0")
        async with asyncio.timeout(60):
            await front.bridge.settle()
        await run(front, "c3", "c4", "c5")
        assert front.said("c0").splitlines() == ["6 # text", "range(2, 3) 6", "1", "CANNOT_WAIT"]
        assert front.said("c3") == "1 None\n"
        assert front.said("c4") == "True\n"
        assert front.said("c5") == "7\n"
        assert front.notebook.validate() is None
        assert front.messages[0].data["features"] == ["control_replies"]


KOTLIN = """
import kotlinx.serialization.json.*
import java.util.concurrent.*
val waiting = ConcurrentHashMap<String, CompletableFuture<JsonObject>>()
val numbers = java.util.concurrent.atomic.AtomicLong()
val comm = notebook.commManager.openComm(
    "TARGET", buildJsonObject {}, buildJsonObject {}, emptyList())
comm.onMessage { data, _, _ ->
    waiting.remove(data["request_id"]!!.jsonPrimitive.content)?.complete(data)
}
fun ask(method: String, params: JsonObject? = null): JsonObject {
    Thread.sleep(300)  // the kernel itself says `idle` now, and two at once may both be lost
    val id = "req-" + numbers.incrementAndGet()
    val answer = CompletableFuture<JsonObject>()
    waiting[id] = answer
    comm.send(buildJsonObject {
        put("method", method)
        put("request_id", id)
        if (params != null) PARAMS
    })
    return answer.get(60, TimeUnit.SECONDS)
}
val log = ConcurrentLinkedQueue<String>()
val worker = kotlin.concurrent.thread {
    log += ask("get_cell_count").toString()
    log += ask("splice_cell_range", buildJsonObject {
        put("start", 1)
        put("delete_count", 0)
        putJsonArray("cells") {
            addJsonObject {
                put("cell_type", "code")
                putJsonArray("source") { add("val b = a + 22\\n"); add("println(b)") }
                putJsonObject("metadata") { put("tags", JsonNull) }
            }
        }
    }).toString()
    log += ask("set_notebook_metadata", buildJsonObject {
        putJsonObject("metadata") { put("by", "kotlin") }
    }).toString()
    log += ask("execute_cell_range", buildJsonObject { put("start", 0); put("end", 2) }).toString()
    log += ask("get_cell_range", buildJsonObject { put("start", "1"); put("end", 2) }).toString()
    log += ask("nope").toString()
}
Thread.sleep(1000)
"started"
"""
DIALECTS = {
    "jupyter.notebook.manipulator.v1": 'put("params", params)',
    "jupyter.notekit.v1": "params.forEach { (key, value) -> put(key, value) }",
}


@pytest.mark.parametrize("target", DIALECTS)
async def test_kotlin_is_answered_while_its_cell_runs_and_after(
    tmp_path: Path, target: str
) -> None:
    require_tool("java")
    command = [str(PEERS / "bin/python"), "-m", "run_kotlin_kernel", FILE]
    add_spec(tmp_path, "kotlin", command, interrupt_mode="message")
    source = KOTLIN.replace("TARGET", target).replace("PARAMS", DIALECTS[target])
    book = notebook("val a = 20", source, 'log.joinToString("|")')
    async with frontend(tmp_path, book, kernel_name="kotlin") as front:
        await run(front, "c1")
        async with asyncio.timeout(240):
            while not any(message.data.get("method") == "nope" for message in front.messages):
                await asyncio.sleep(0.05)
            await front.bridge.settle()
        await run(front, "c2")
        count, splice, metadata, execute, cells, unknown = [
            json.loads(line) for line in front.said("c2").strip().split("|")
        ]
        assert count["result"] == {"count": 3}
        assert splice["result"] == {"affected_range": {"start": 1, "end": 2}}
        assert metadata["result"] == {}
        assert execute == {"request_id": "req-4", "status": "ok", "result": {}}
        (cell,) = cells["result"]["cells"]
        assert cell["source"] == "val b = a + 22\nprintln(b)"
        assert "".join(cell["outputs"][0]["text"]) == "42\n"
        assert unknown["error"]["code"] == "UNKNOWN_METHOD"
        assert front.notebook.metadata["by"] == "kotlin"
        assert front.notebook.validate() is None
        first = next(m for m in front.messages if m.kind == "msg")
        assert first.data["method"] == "get_cell_count"


def test_what_kotlin_does_to_its_notebook_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tool("java")
    command = [str(PEERS / "bin/python"), "-m", "run_kotlin_kernel", FILE]
    add_spec(tmp_path, "kotlin", command, interrupt_mode="message")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.chdir(tmp_path)
    target = "jupyter.notekit.v1"
    source = KOTLIN.replace("TARGET", target).replace("PARAMS", DIALECTS[target])
    cellwright.write(notebook("val a = 20", source, 'log.joinToString("|")'), "nb.ipynb")
    with cellwright.Workspace(str(tmp_path), cwd=str(tmp_path)) as workspace:
        book = workspace.open("nb.ipynb")
        (ran,) = book.run(["c1"], kernel="kotlin", timeout=120)
        assert ran.status == "ok"

        def is_done() -> bool:
            (ran,) = book.run(["c2"], kernel="kotlin", timeout=60)
            assert ran.status == "ok"
            return "UNKNOWN_METHOD" in str(cellwright.read("nb.ipynb").cell("c2").to_dict())

        wait_for(is_done, "the thread of the kernel", 240)
    found = cellwright.read("nb.ipynb")
    assert [cell.id for cell in found.cells][::3] == ["c0", "c2"]
    new = found.cells[1]
    assert new.source == "val b = a + 22\nprintln(b)"
    assert "".join(new.to_dict()["outputs"][0]["text"]) == "42\n"
    assert found.metadata["by"] == "kotlin"
    assert found.validate() is None
