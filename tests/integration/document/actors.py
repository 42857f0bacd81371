"""Other processes for a test to meet: another user, one with fewer means, one that holds a lock."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOBODY = 65534

# All that a save needs is imported while we may still read it: another user may not be allowed to,
# and a process without free descriptors cannot.
_PRELUDE = """
import os, sys
import cellwright
from cellwright.document.files import edit, read, write

_notebook = cellwright.Notebook()
_notebook.apply([{"op": "insert", "source": "x"}])
_notebook.revision

def attempt(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except cellwright.CellwrightError as error:
        return error.code
    except Exception as error:
        return type(error).__name__
    return "ok"

def replace(path, source="changed = 1", **options):
    return attempt(edit, path, {"op": "replace", "cell": 0, "source": source}, **options)

if os.environ.get("AS_NOBODY"):
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
path = sys.argv[1]
"""


def run(code: str, path: Path, *, nobody: bool = False, env: dict[str, str] | None = None) -> str:
    """Run a few lines in a process of their own, and give what they print.

    They have `path`, `edit`, `read`, `write`, and `attempt` and `replace`, which give `ok`, the code
    of the error, or its type if it has no code.
    """
    return subprocess.run(
        _command(code, path),
        env=_environment(env, nobody=nobody),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout.strip()


@contextmanager
def waiting(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a few lines in a process that then waits; it is killed at the end, if not before."""
    program = f"{code}\nprint('ready', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        _command(program, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def _command(code: str, path: Path) -> list[str | Path]:
    return [sys.executable, "-c", _PRELUDE + code, path]


def _environment(more: dict[str, str] | None, *, nobody: bool) -> dict[str, str]:
    return {**os.environ, **(more or {}), **({"AS_NOBODY": "1"} if nobody else {})}
