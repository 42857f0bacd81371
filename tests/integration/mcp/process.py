"""A server as its clients start it: a process with pipes or a port. Every byte of its stdout is looked at."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp import StdioServerParameters

from tests.unit.mcp.serving import notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOOPBACK = "127.0.0.1"
SECRET = "TOP SECRET"  # noqa: S105  # of a notebook outside the root
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "cellwright-test", "version": "1"},
}


def words(root: Path, *options: str) -> list[str]:
    """The command line of a server."""
    return [sys.executable, "-m", "cellwright", "mcp", "--root", str(root), *options]


def parameters(root: Path, *options: str, **variables: str) -> StdioServerParameters:
    """The same, for the official client."""
    command, *rest = words(root, *options)
    return StdioServerParameters(command=command, args=rest, env={**os.environ, **variables})


class RawServer:
    """A server that is spoken to line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.strays: list[bytes] = []
        self.said = bytearray()
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._numbers = 0
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._overhear, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, frame: bytes | dict[str, Any]) -> None:
        """Send a line."""
        line = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; returns its number."""
        self._numbers += 1
        number = 1_000_000 + self._numbers
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return number

    def call(
        self, method: str, params: dict[str, Any] | None = None, seconds: float = 30
    ) -> dict[str, Any]:
        """Send a request and wait for its answer; others are dropped."""
        return self.answer(self.request(method, params), seconds)

    def answer(self, number: int, seconds: float = 30) -> dict[str, Any]:
        """Wait for the answer to a request."""
        while True:
            message = self.next(seconds)
            assert message is not None, "the server left before it answered"
            if message.get("id") == number and "method" not in message:
                return message

    def next(self, seconds: float = 30) -> dict[str, Any] | None:
        """The next message; None at the end."""
        return self._messages.get(timeout=seconds)

    def greet(self) -> dict[str, Any]:
        """Shake hands as a client of 2025."""
        found = self.call("initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return found

    def end(self, seconds: float = 20) -> int:
        """Close its stdin; returns its exit code."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        code = self.process.wait(seconds)
        for thread in self._threads:
            thread.join(seconds)
        return code

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                message = json.loads(line)
                assert message["jsonrpc"] == "2.0"
            except (ValueError, KeyError, TypeError, AssertionError):
                self.strays.append(line)
            else:
                self._messages.put(message)
        self._messages.put(None)

    def _overhear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line


@contextlib.contextmanager
def raw_server(root: Path, *options: str, ends: int = 0, **variables: str) -> Iterator[RawServer]:
    """A server that ends with the block, with nothing but messages on its stdout."""
    process = subprocess.Popen(
        words(root, *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **variables},
    )
    server = RawServer(process)
    try:
        yield server
        assert server.end() == ends, server.said.decode()
        assert server.strays == []
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def make_root(folder: Path) -> Path:
    """A root with a notebook in it, and one beside it that is none of a client's business."""
    root = folder / "root"
    root.mkdir()
    notebook(root / "a.ipynb", ("one", "x = 1"))
    notebook(folder / "secret.ipynb", ("s", SECRET))
    return root


@dataclass
class Served:
    """A server that listens."""

    root: Path
    port: int
    token: str
    said: Callable[[], str]
    scheme: str = "http"

    @property
    def host(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}/mcp"

    def headers(self, **changes: str | None) -> dict[str, str]:
        """The headers of a right request, with some of them changed or left out."""
        right = {
            "Host": self.host,
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Connection": "close",
        }
        renamed = {name.replace("_", "-"): value for name, value in changes.items()}
        return {name: value for name, value in {**right, **renamed}.items() if value is not None}


@contextlib.contextmanager
def served(root: Path, address: str, *options: str, scheme: str = "http") -> Iterator[Served]:
    """A server that listens until the block ends, with nothing on its stdout."""
    process = subprocess.Popen(
        words(root, "--http", address, *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    said: list[str] = []

    def listen() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            lines.put(line)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        first = lines.get(timeout=100)
        found = re.search(r":(\d+)/mcp", first)
        assert found is not None, first
        token = (lines.get(timeout=20)).rpartition(" ")[2].strip()
        yield Served(root, int(found[1]), token, lambda: "".join(said), scheme)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        thread.join(10)
        assert process.stdout is not None
        printed = process.stdout.read()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    assert printed == "", "stdout is for data, and there is none"
