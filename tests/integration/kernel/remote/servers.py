"""Real Jupyter servers and gateways for the tests, each in a process and folders of its own."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PYTHON = ROOT / ".dev" / "servers" / "bin" / "python"
BASE = "/user/someone/"


@dataclass
class RealServer:
    """A running server: where it is, what it wants, and the process that it is."""

    kind: str
    port: int
    token: str
    root: Path
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        base = BASE.rstrip("/") if self.kind == "server" else ""
        return f"http://127.0.0.1:{self.port}{base}"


def require_servers() -> str:
    """Give the interpreter that has the servers; skip by name without, or fail when `CI` is set."""
    __tracebackhide__ = True
    if not PYTHON.exists():
        problem = "needs the environment .dev/servers with jupyter_server and kernel_gateway"
        if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    return str(PYTHON)


@contextmanager
def running(
    kind: str, folder: Path, *extra: str, token: str | None = None, port: int | None = None
) -> Iterator[RealServer]:
    """Start a `server` or a `gateway`, and end it with all its kernels."""
    python = require_servers()
    token = secrets.token_hex(20) if token is None else token
    for name in ("root", "home", "config", "data", "runtime", "ipython"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    port = free_port() if port is None else port
    command = {
        "server": [
            *("-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}"),
            *(f"--ServerApp.base_url={BASE}", "--ServerApp.port_retries=0", "--ip=127.0.0.1"),
            f"--ServerApp.root_dir={folder / 'root'}",
        ],
        "gateway": [
            *("-m", "kernel_gateway", "--KernelGatewayApp.ip=127.0.0.1"),
            *(f"--KernelGatewayApp.port={port}", "--KernelGatewayApp.port_retries=0"),
            *(
                "--JupyterWebsocketPersonality.list_kernels=True",
                "--KernelGatewayApp.allow_origin=",
            ),
        ],
    }[kind]
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python, "-Xfrozen_modules=off", *command, *extra],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder / "home"),
                "JUPYTER_CONFIG_DIR": str(folder / "config"),
                "JUPYTER_DATA_DIR": str(folder / "data"),
                "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
                "IPYTHONDIR": str(folder / "ipython"),
                "JUPYTER_TOKEN": token,
                "KG_AUTH_TOKEN": token,
                "KG_ENV_WHITELIST": "ALLOWED_THERE",
            },
            cwd=folder / "root",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = RealServer(kind, port, token, folder / "root", process, log)
    try:
        _wait_until_up(server, is_tls=any("certfile" in option for option in extra))
        yield server
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server, kindly at first, so that it takes its kernels along."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_up(server: RealServer, *, is_tls: bool) -> None:
    until = time.monotonic() + 40
    while time.monotonic() < until:
        if server.process.poll() is not None:
            break
        try:
            if is_tls:
                with socket.create_connection(("127.0.0.1", server.port), 1):
                    return
            urllib.request.urlopen(f"{server.url}/api", timeout=2).close()  # noqa: S310
        except urllib.error.HTTPError as error:
            error.close()
            return
        except OSError:
            time.sleep(0.05)  # another process: there is no event to wait for
        else:
            return
    pytest.fail(f"the {server.kind} did not come up:\n{server.log.read_text()[-3000:]}")
