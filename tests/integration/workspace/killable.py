"""Editors that a test kills; see `test_killed_edits`.

    python killable.py PATH

Reads lines from stdin, each a number to draw from. For every line it starts an editor, a process
that makes up to `EDITS` edits of the notebook at PATH through a workspace, and tells the id of that
process. Before each edit the editor tells what the file holds and what it will hold. When it has
ended, that is told too, and after another line how it ended. All is told in lines of JSON on stdout.

The editors are forked from a process that has imported everything already, so that a kill hits an
edit and not the start of Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

EDITS = 6
ACTOR = "test:editor"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def edits_for(rng: random.Random, count: int, name: str) -> list[dict[str, Any]]:
    """Edits of a notebook with so many cells; `name` occurs nowhere else."""
    cell = rng.randrange(count)
    kinds: list[dict[str, Any]] = [
        {"op": "insert", "source": f"# {name}", "id": name, "at": rng.randint(0, count)},
        {"op": "replace", "cell": cell, "source": f"{name}\n" * rng.randint(1, 400)},
        {"op": "replace", "cell": cell, "source": name, "outputs": "clear"},
        {"op": "set_metadata", "cell": cell, "metadata": {"name": name}},
    ]
    if count > 3:
        kinds += [
            {"op": "delete", "cell": cell},
            {"op": "move", "cell": cell, "at": (cell + 2) % count},
        ]
    return [rng.choice(kinds)]


def after(data: bytes, edits: list[dict[str, Any]]) -> bytes:
    """What edits make of a file."""
    from cellwright import Notebook

    notebook = Notebook(data)
    notebook.apply(edits)
    return notebook.to_bytes()


def tell(**facts: Any) -> None:
    # In one write, so that lines of two processes never mix.
    os.write(1, json.dumps(facts).encode() + b"\n")


def work(path: str, seed: int) -> None:
    """Edit the notebook a few times."""
    from cellwright import Notebook, Workspace

    rng = random.Random(seed)
    with Workspace(actor=ACTOR) as workspace:
        book = workspace.open(path)
        for number in range(EDITS):
            data = Path(path).read_bytes()
            edits = edits_for(rng, len(Notebook(data).cells), f"n{seed}-{number}")
            tell(old=digest(data), new=digest(after(data, edits)))
            book.edit(edits, label=f"{seed}.{number}")


def serve(path: str) -> None:
    """Start an editor for every line, and wait for its end."""
    # All that an edit imports, before there is an editor.
    import cellwright.journal.journal  # noqa: F401

    after(Path(path).read_bytes(), [{"op": "insert", "source": "x"}])
    for line in sys.stdin:
        child = os.fork()
        if not child:
            status = 1
            try:
                work(path, int(line))
                status = 0
            finally:
                os._exit(status)
        tell(pid=child)
        # Until the test has heard of its end, its id must not become that of another process.
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        tell(ended=True)
        sys.stdin.readline()
        _, status = os.waitpid(child, 0)
        tell(status=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve(sys.argv[1])
