"""The tool bridge: code in a kernel calls the tools of its session, and nobody else does."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from cellwright import AsyncWorkspace
from cellwright.kernel.environment import build_session_variables
from cellwright.tools.bridge import MOST_BODY, Bridge
from tests.unit.tools.support import book, outside, picture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.memory_kernel import MemoryKernel


@pytest.fixture
async def bridge(folder: Path, workspace: AsyncWorkspace) -> AsyncIterator[Bridge]:
    """A bridge whose sessions share the kernels of `workspace`."""

    def make(session: str, mode: Any, root: str | None, cwd: str | None) -> AsyncWorkspace:
        return AsyncWorkspace(
            root or folder,
            cwd=cwd or str(folder),
            mode=mode,
            actor=f"kernel:{session}",
            hub=workspace.caller.hub,
        )

    bridge = Bridge(make)
    await bridge.start()
    yield bridge
    await bridge.close()


async def send(bridge: Bridge, data: bytes) -> tuple[int, dict[str, Any]]:
    """What is answered to these bytes: the status, and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(bridge.url.rpartition(":")[2]))
    try:
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(30):
            answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def request(
    token: str | None,
    method: str = "POST",
    target: str = "/tools/notebook_list",
    body: Any = None,
    **headers: str,
) -> bytes:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Host": "127.0.0.1:80", "Content-Length": str(len(data))}
    if token is not None:
        lines["Authorization"] = f"Bearer {token}"
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + data


async def test_a_tool_is_called_with_the_token_of_the_session(bridge: Bridge) -> None:
    token = bridge.token("s")
    status, answer = await send(
        bridge, request(token, target="/tools/notebook_read", body={"path": "nb.ipynb"})
    )
    assert status == 200
    assert answer["ok"]
    assert outside(answer["text"])[0].startswith("nb.ipynb · revision ")
    assert answer["data"]["total_cells"] == 7


async def test_an_error_of_a_tool_is_an_answer(bridge: Bridge) -> None:
    words = {"path": "nob.ipynb"}
    status, answer = await send(
        bridge, request(bridge.token("s"), target="/tools/notebook_read", body=words)
    )
    assert (status, answer["ok"], answer["data"]["code"]) == (200, False, "NOTEBOOK_NOT_FOUND")


async def test_pictures_come_beside_the_text(bridge: Bridge, folder: Path) -> None:
    from tests.unit.cli import samples

    (folder / "nb.ipynb").write_bytes(samples.write(samples.code("p", "plot()", picture())))
    words = {"path": "nb.ipynb"}
    _, answer = await send(
        bridge, request(bridge.token("s"), target="/tools/notebook_outputs", body=words)
    )
    assert answer["images"][0]["mime"] == "image/png"
    assert answer["images"][0]["base64"].startswith("iVBORw0KGgo")
    assert "iVBORw0KGgo" not in answer["text"]


async def test_the_tools_are_listed_as_the_mode_allows(bridge: Bridge) -> None:
    status, answer = await send(bridge, request(bridge.token("s", mode="ask"), "GET", "/tools"))
    assert status == 200
    names = [tool["name"] for tool in answer["tools"]]
    assert "notebook_read" in names
    assert "notebook_edit" not in names


@pytest.mark.parametrize("mode", ["ask", "edit"])
async def test_the_mode_of_the_session_holds(mode: str, bridge: Bridge, folder: Path) -> None:
    before = (folder / "nb.ipynb").read_bytes()
    token = bridge.token("s", mode=mode)
    for name, words in (
        ("notebook_edit", {"path": "nb.ipynb", "edits": [{"op": "delete", "cell": 0}]}),
        ("eval", {"cells": [{"code": "print 1"}]}),
    ):
        _, answer = await send(bridge, request(token, target=f"/tools/{name}", body=words))
        assert answer["data"]["code"] == "MODE_FORBIDS"
    assert (folder / "nb.ipynb").read_bytes() == before


async def test_the_root_of_the_session_holds(bridge: Bridge, folder: Path) -> None:
    (folder / "sub").mkdir()
    token = bridge.token("s", root=str(folder / "sub"))
    words = {"path": str(folder / "nb.ipynb")}
    _, answer = await send(bridge, request(token, target="/tools/notebook_read", body=words))
    assert answer["data"]["code"] == "OUTSIDE_ROOT"


async def test_a_session_has_one_token_and_every_session_another(bridge: Bridge) -> None:
    assert bridge.token("a") == bridge.token("a")
    tokens = {bridge.token("a"), bridge.token("b"), bridge.token("a", mode="ask")}
    assert len(tokens) == 3
    assert all(len(token) >= 40 for token in tokens)


async def test_a_session_that_is_over_can_call_nothing(bridge: Bridge) -> None:
    token = bridge.token("s")
    other = bridge.token("t")
    bridge.forget("s")
    assert (await send(bridge, request(token)))[0] == 401
    assert (await send(bridge, request(other)))[0] == 200


def refusals(token: str) -> dict[str, tuple[bytes, int]]:
    """Requests that must be refused, and the status of each."""
    good = request(token)
    return {
        "no token": (request(None), 401),
        "wrong token": (request("x" * 43), 401),
        "empty token": (request(""), 401),
        "part of the token": (request(token[:-1]), 401),
        "token and more": (request(token + "x"), 401),
        "token in another way": (request(None, Authorization=f"Basic {token}"), 401),
        "token in the address": (request(None, target=f"/tools/notebook_list?token={token}"), 401),
        "token that is no ascii": (request(None, Authorization="Bearer \xe9"), 401),
        "another host": (request(token, Host="evil.example:80"), 421),
        "another host that ends well": (request(token, Host="127.0.0.1.evil.example:80"), 421),
        "no host": (request(token, Host=""), 421),
        "a host without a port": (request(token, Host="127.0.0.1"), 421),
        "all addresses": (request(token, Host="0.0.0.0:80"), 421),
        "an origin": (request(token, Origin="http://evil.example"), 403),
        "an origin of ours": (request(token, Origin="http://127.0.0.1:80"), 403),
        "an origin of null": (request(token, Origin="null"), 403),
        "a browser": (request(token, Sec_Fetch_Site="cross-site"), 403),
        "a preflight": (request(None, "OPTIONS", Origin="http://evil.example"), 403),
        "not by get": (request(token, "GET"), 405),
        "not by delete": (request(token, "DELETE"), 405),
        "another path": (request(token, target="/"), 404),
        "a path that climbs": (request(token, target="/tools/../etc/passwd"), 404),
        "a path that climbs in code": (request(token, target="/tools/%2e%2e/secret"), 404),
        "no json": (request(token, body=b"{"), 400),
        "json that is no object": (request(token, body=[1]), 400),
        "json that is deep": (request(token, body=b"[" * 100_000), 400),
        "no utf-8": (request(token, body=b"\xff\xfe"), 400),
        "a body without a length": (request(token, Transfer_Encoding="chunked"), 411),
        "a length that is no number": (request(token, Content_Length="abc"), 400),
        "a length below zero": (request(token, Content_Length="-5"), 400),
        "a body that is too long": (request(token, Content_Length=str(MOST_BODY + 1)), 413),
        "a length beyond all bounds": (request(token, Content_Length="9" * 400), 413),
        "headers that are too long": (request(token, X_Long="x" * 20_000), 431),
        "headers without end": (
            request(token)[:-4] + b"\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
            431,
        ),
        "a header twice": (good.replace(b"\r\n\r\n", b"\r\nHost: evil\r\n\r\n"), 400),
        "a header in two lines": (good.replace(b"\r\n\r\n", b"\r\n folded: x\r\n\r\n"), 400),
        "a header without a colon": (good.replace(b"\r\n\r\n", b"\r\nnonsense\r\n\r\n"), 400),
        "no http": (b"hello\r\n\r\n", 400),
        "http 2": (b"PRI * HTTP/2.0\r\n\r\n", 400),
    }


@pytest.mark.parametrize("name", refusals("x" * 43))
async def test_whatever_is_not_from_a_kernel_of_ours_is_refused(name: str, bridge: Bridge) -> None:
    data, expected = refusals(bridge.token("s"))[name]
    status, answer = await send(bridge, data)
    assert status == expected
    assert answer["ok"] is False
    assert (await send(bridge, request(bridge.token("s"))))[0] == 200  # and it serves on


async def test_whoever_says_nothing_keeps_no_kernel_out(bridge: Bridge) -> None:
    port = int(bridge.url.rpartition(":")[2])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
    for _, writer in silent[::2]:
        writer.write(b"POST /tools/x HTTP/1.1\r\nHost: ")
    try:
        status, answer = await send(bridge, request(bridge.token("s")))
        async with asyncio.timeout(20):
            assert await silent[0][0].read() == b""  # the oldest made room
    finally:
        for _, writer in silent:
            writer.transport.abort()
    assert (status, answer["ok"]) == (200, True)


async def test_a_tool_that_is_not_there_is_an_answer(bridge: Bridge) -> None:
    status, answer = await send(bridge, request(bridge.token("s"), target="/tools/nothing"))
    assert (status, answer["data"]["code"]) == (200, "UNKNOWN_TOOL")


async def test_it_listens_on_the_loopback_interface_only(bridge: Bridge) -> None:
    assert bridge._server is not None
    assert [sock.getsockname()[0] for sock in bridge._server.sockets] == ["127.0.0.1"]


async def test_a_bug_of_a_tool_is_an_answer_without_its_words(
    bridge: Bridge, workspace: AsyncWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(type(workspace), "list", broken)
    status, answer = await send(bridge, request(bridge.token("s")))
    assert status == 500
    assert "secret" not in json.dumps(answer)


async def test_whoever_hangs_up_stops_what_it_asked_for(
    bridge: Bridge, workspace: AsyncWorkspace, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book("sleep 600"))
    data = request(bridge.token("s"), target="/tools/notebook_run", body={"path": "nb.ipynb"})
    _, writer = await asyncio.open_connection("127.0.0.1", int(bridge.url.rpartition(":")[2]))
    writer.write(data)
    await writer.drain()
    async with asyncio.timeout(30):
        while not await workspace.runs():
            await asyncio.sleep(0.02)
        writer.close()
        await writer.wait_closed()
        while (await workspace.runs())[0].ended is None:
            await asyncio.sleep(0.02)


async def test_closing_ends_the_calls_that_go_on(bridge: Bridge, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("sleep 600"))
    data = request(bridge.token("s"), target="/tools/notebook_run", body={"path": "nb.ipynb"})
    reader, writer = await asyncio.open_connection("127.0.0.1", int(bridge.url.rpartition(":")[2]))
    writer.write(data)
    await writer.drain()
    await asyncio.sleep(0.3)
    async with asyncio.timeout(30):
        await bridge.close()
        assert await reader.read() == b""
    writer.close()


CODE = """
import json, os, sys, urllib.request
def call(name, **words):
    asked = urllib.request.Request(
        os.environ[PREFIX + "_TOOL_BRIDGE_URL"] + "/tools/" + name,
        json.dumps(words).encode(),
        {"Authorization": "Bearer " + os.environ[PREFIX + "_TOOL_BRIDGE_TOKEN"]},
    )
    return json.load(urllib.request.urlopen(asked, timeout=30))
print(call("notebook_read", path="nb.ipynb")["data"]["total_cells"])
print(call("notebook_edit", path="nb.ipynb", edits=[{"op": "delete", "cell": 0}])["ok"])
print(os.environ[PREFIX + "_TOOL_BRIDGE_SESSION"])
"""


@pytest.mark.parametrize("prefix", ["CELLWRIGHT", "PI"])
async def test_another_process_finds_the_bridge_in_its_environment(
    prefix: str, bridge: Bridge, workspace: AsyncWorkspace, kernels: list[MemoryKernel]
) -> None:
    given = build_session_variables(**bridge.variables("my session"))
    env = {**os.environ, **{name: value for name, value in given.items() if value is not None}}
    code = f"PREFIX = {prefix!r}\n{CODE}"
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=100
    )  # fmt: skip
    assert ran.stdout.split("\n")[:3] == ["7", "True", "my session"], ran.stderr
    (entry,) = await workspace.open("nb.ipynb").log()
    assert entry.actor == "kernel:my session"
    assert kernels == []


async def test_tools_of_every_profile_are_called_by_name(bridge: Bridge) -> None:
    token = bridge.token("s")
    status, answer = await send(bridge, request(token, "GET", "/tools?profile=text"))
    assert (status, [tool["name"] for tool in answer["tools"]]) == (
        200,
        ["read", "edit", "write", "eval"],
    )
    target, body = "/tools/read", {"path": "nb.ipynb:outline"}
    status, answer = await send(bridge, request(token, target=target, body=body))
    assert (status, answer["ok"]) == (200, True)
    status, answer = await send(
        bridge, request(token, target="/tools/eval?profile=text", body={"session": "x"})
    )
    assert not answer["ok"]  # the profile's own has no such parameter
    status, _ = await send(bridge, request(token, "GET", "/tools?profile=nope"))
    assert status == 404


HELPERS = """
import os, pathlib
from cellwright_kernel import session
print(sorted(session.info()), session.info()["session"], session.info()["root"] == os.getcwd())
saved = session.save_artifact("a.txt", "x")
print(saved == pathlib.Path(os.environ["ARTIFACTS"], "a.txt"), saved.read_text())
print(session.call_tool("notebook_list")["ok"], len(session.list_tools("text")))
"""


async def test_code_in_a_kernel_has_helpers_for_its_session(folder: Path) -> None:
    async with AsyncWorkspace(folder, cwd=str(folder)) as workspace:
        done = await workspace.eval(["import os; print(os.path.isdir(os.environ['ARTIFACTS']))"])
        assert done.cells[0].text == "True\n", done
        done = await workspace.eval([HELPERS], session="mine")
    assert done.cells[0].text.splitlines() == [
        "['mode', 'notebook', 'root', 'session'] mine True",
        "True x",
        "True 4",
    ], done


CALL = """
import json, os, urllib.request
def tool(name, **words):
    asked = urllib.request.Request(
        os.environ["CELLWRIGHT_TOOL_BRIDGE_URL"] + "/tools/" + name,
        json.dumps(words).encode(),
        {"Authorization": "Bearer " + os.environ["CELLWRIGHT_TOOL_BRIDGE_TOKEN"]},
    )
    return json.load(urllib.request.urlopen(asked, timeout=30))
"""


async def test_code_in_kernels_calls_the_tools_of_its_session(folder: Path) -> None:
    """In a session of eval and in a notebook's kernel, both of them real."""
    (folder / "nb.ipynb").write_bytes(
        book(CALL, "print(tool('notebook_read', path='other.ipynb')['data']['total_cells'])")
    )
    (folder / "other.ipynb").write_bytes(book("a", "b", "c"))
    async with AsyncWorkspace(folder, cwd=str(folder)) as workspace:
        edits = "[{'op': 'insert', 'source': 'd'}]"
        code = f"{CALL}\nprint(tool('notebook_edit', path='other.ipynb', edits={edits})['ok'])"
        done = await workspace.eval(
            [code, "print(tool('eval', cells=[{'code': '6*7'}], session='inner')['text'])"]
        )
        assert done.cells[0].text == "True\n"
        assert "42" in done.cells[1].text
        (entry,) = await workspace.open("other.ipynb").log()
        assert entry.actor == "kernel:default"
        ran = await workspace.open("nb.ipynb").run()
        assert [execution.status for execution in ran] == ["ok", "ok"]
        assert ran[1].outputs[0]["text"] == "4\n"
        assert len(await workspace.sessions()) == 3
        await workspace.kernel("shutdown", "default")
        bridge = workspace.caller.hub.sessions.bridge
        assert isinstance(bridge, Bridge)
        assert "default" not in [name for name, *_ in bridge._sessions]


def test_code_in_kernels_of_a_workspace_that_blocks_calls_tools(folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book(CALL, "print(tool('notebook_list')['data']['total'])"))
    with cellwright.Workspace(folder, cwd=str(folder)) as workspace:
        done = workspace.eval([f"{CALL}\nprint(tool('notebook_list')['ok'])"])
        ran = workspace.open("nb.ipynb").run()

    assert done.cells[0].text == "True\n"
    assert ran[1].outputs[0]["text"] == "1\n"


async def test_a_cell_that_runs_its_own_notebook_is_answered_and_ends(folder: Path) -> None:
    source = "print(tool('notebook_run', path='nb.ipynb', cells=[2], wait=0.5)['data']['done'])"
    (folder / "nb.ipynb").write_bytes(book(CALL, source, "print('later')"))
    async with AsyncWorkspace(folder, cwd=str(folder)) as workspace, asyncio.timeout(50):
        ran = await workspace.open("nb.ipynb").run(["c0", "c1"])

    assert [execution.status for execution in ran] == ["ok", "ok"]
    assert ran[1].outputs[0]["text"] == "False\n"
