"""The rival: jupyter-mcp-server in an environment of its own, with the Jupyter server it needs."""

# Whoever starts a rival waits for it; no loop is kept from anything.
# ruff: noqa: ASYNC220, ASYNC230, ASYNC240
from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PYTHON = os.environ.get("CELLWRIGHT_BENCH_MCP", "")
_START_WITHIN = 180.0


@contextlib.asynccontextmanager
async def rival(folder: str) -> AsyncIterator[Any]:
    """A client that is connected to it; None where its environment is missing."""
    if not PYTHON or not Path(PYTHON).exists():
        yield None
        return
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    programs = Path(PYTHON).parent
    token = secrets.token_hex(16)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("VIRTUAL_ENV", None)
    words = ("--no-browser", "--allow-root", f"--port={port}", f"--ServerApp.root_dir={folder}")
    lab = subprocess.Popen(
        [PYTHON, "-m", "jupyterlab", *words, f"--IdentityProvider.token={token}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}/api/status?token={token}")
        server = StdioServerParameters(
            command=str(programs / "jupyter-mcp-server"),
            args=["start", "--jupyter-url", address, "--jupyter-token", token],
            env=environment,
        )
        # What it logs is not part of the table.
        with Path(os.devnull).open("w") as nowhere:
            transport = stdio_client(server, errlog=nowhere)
            async with Client(transport, mode="legacy", read_timeout_seconds=120) as client:
                yield client
    finally:
        lab.terminate()
        try:
            lab.wait(15)
        except subprocess.TimeoutExpired:
            lab.kill()
            lab.wait()


def _wait(url: str) -> None:
    deadline = time.monotonic() + _START_WITHIN
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  # our own, on this machine
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
