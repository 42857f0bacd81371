"""The protocol's own conformance suite and inspector, against our server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.tools.native import NATIVE
from tests.integration.mcp.node import PACKAGE, node_environment, require_node_tools
from tests.integration.mcp.process import LOOPBACK, served, words
from tests.unit.mcp.serving import notebook

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.all, pytest.mark.timeout(600)]

APPLY = {
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "dns-rebinding-protection",
}
CALLS: dict[str, list[str]] = {
    "notebook_list": [],
    "notebook_read": ["path=a.ipynb", "outputs=true"],
    "notebook_edit": ["path=a.ipynb", 'edits=[{"op":"insert","source":"y = 2"}]', "run=changed"],
    "notebook_run": ["path=a.ipynb"],
    "notebook_outputs": ["path=a.ipynb"],
    "notebook_history": ["path=a.ipynb", "action=log"],
    "kernel": ["action=status"],
    "eval": ['cells=[{"code":"6 * 7"}]'],
}


def test_every_scenario_that_applies_passes(tmp_path: Path) -> None:
    programs = require_node_tools()
    notebook(tmp_path / "a.ipynb", ("one", "x = 1"))
    server = subprocess.Popen(
        [sys.executable, PACKAGE / "server.py", tmp_path], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        baseline = str(PACKAGE / "expected-failures.yaml")
        done = subprocess.run(
            [
                *(programs / "conformance", "server", "--url", address, "--suite", "all"),
                *("--expected-failures", baseline, "-o", tmp_path / "out"),
            ],
            env=node_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()
    said = done.stdout + done.stderr

    assert done.returncode == 0, said[-3000:]
    passed = set(re.findall(r"✓ ([a-z0-9-]+): \d+ passed, 0 failed", said))
    assert passed >= APPLY, APPLY - passed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    notebook(folder / "a.ipynb", ("one", "x = 1\nprint('é')"))
    return folder


def _inspect(config: dict[str, Any], place: Path, *options: str) -> Any:
    programs = require_node_tools()
    path = place / "inspector.json"
    path.write_text(json.dumps({"mcpServers": {"cellwright": config}}))
    done = subprocess.run(
        [programs / "mcp-inspector", "--cli", "--config", path, "--server", "cellwright", *options],
        env=node_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (options, done.stdout, done.stderr)
    return json.loads(done.stdout)


def _every_tool(config: dict[str, Any], place: Path) -> None:
    assert [tool.name for tool in NATIVE] == list(CALLS)
    for era in ("legacy", "modern"):
        more = ("--protocol-era", era)
        listed = _inspect(config, place, "--method", "tools/list", "--strict", *more)
        assert [tool["name"] for tool in listed["tools"]] == list(CALLS)
    for name, arguments in CALLS.items():
        pairs = [word for pair in arguments for word in ("--tool-arg", pair)]
        found = _inspect(config, place, "--method", "tools/call", "--tool-name", name, *pairs)
        assert not found.get("isError"), (name, found)
        assert found["content"][0]["text"], name
    resources = _inspect(config, place, "--method", "resources/list")["resources"]
    assert [one["uri"] for one in resources] == ["notebook://a.ipynb"]
    read = _inspect(config, place, "--method", "resources/read", "--uri", "notebook://a.ipynb")
    assert "x = 1" in read["contents"][0]["text"]
    prompts = _inspect(config, place, "--method", "prompts/list")["prompts"]
    assert len(prompts) == 4


def test_the_inspector_calls_every_tool_over_stdio(root: Path, tmp_path: Path) -> None:
    command, *rest = words(root)
    _every_tool({"command": command, "args": rest, "env": dict(os.environ)}, tmp_path)


def test_the_inspector_calls_every_tool_over_http(root: Path, tmp_path: Path) -> None:
    with served(root, f"{LOOPBACK}:0") as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        _every_tool({"type": "streamable-http", "url": server.url, "headers": headers}, tmp_path)
