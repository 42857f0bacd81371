"""Calls of the command line for tests: in this process, which is fast, or as a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from cellwright.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """How a call ended and what it printed."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        """The one object on stdout, with nothing before or after it."""
        assert self.out.count(b"\n") == 1
        assert self.out.endswith(b"\n")
        return json.loads(self.out.decode())

    @property
    def data(self) -> Any:
        """What a call with `--json` answered; it must have worked."""
        answer = self.json
        assert (self.code, answer["ok"], answer["error"]) == (0, True, None), answer
        return answer["data"]

    @property
    def error(self) -> Any:
        """What a call with `--json` complained about."""
        answer = self.json
        assert (answer["ok"], answer["data"]) == (False, None), answer
        assert self.code
        return answer["error"]


def call(*words: str | Path, stdin: bytes | str = b"") -> Answer:
    """Run a command in this process, with streams of its own."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    err.reconfigure(errors="backslashreplace")  # as Python's own
    source = io.TextIOWrapper(io.BytesIO(given), "utf-8")
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", source):
        code = main([os.fspath(word) for word in words])
    out.flush()
    err.flush()
    return Answer(code, _bytes(out), _bytes(err).decode())


def _bytes(stream: io.TextIOWrapper) -> bytes:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


def succeed(*words: str | Path, stdin: bytes | str = b"") -> Answer:
    """A call that must work."""
    answer = call(*words, stdin=stdin)
    assert answer.code == 0, answer
    return answer


def command(*words: str | Path) -> list[str]:
    """The words that start the command as a process."""
    return [sys.executable, "-m", "cellwright", *(os.fspath(word) for word in words)]


def process(*words: str | Path, stdin: bytes | str = b"", **env: str) -> Answer:
    """Run a command as a process of its own, in the folder we are in."""
    done = subprocess.run(
        command(*words),
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        env={**os.environ, **env},
        capture_output=True,
        timeout=100,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr.decode(errors="replace"))
