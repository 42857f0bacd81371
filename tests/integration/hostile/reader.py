"""Look at a hostile repository in every way that only reads, in its folder; for `strace` to watch.

Usage: `python -P reader.py FOLDER [engine]`, with this repository in PYTHONPATH.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cellwright
from cellwright.app.workspaces import open_workspace
from cellwright.errors import CellwrightError
from cellwright.workspace.api.requests import VERBS
from tests.integration.hostile import doors

if TYPE_CHECKING:
    from cellwright import Workspace

# A value for each parameter that a reading verb must have.
VALUES: dict[str, Any] = {
    "selector": "outline",
    "run": "r0",
    "action": "status",
    "session": "default",
    "ref": "artifact://abcdef",
}
NOT_CALLED = ("watch",)  # it waits for events, and has no answer of its own
PATHS = [
    *("plain.ipynb", "cell type.ipynb", "kernelspec path.ipynb", "broken.ipynb"),
    *("vega.ipynb", "drawn svg.ipynb"),  # charts are drawn, and even that starts no program
]


def call_verbs(workspace: Workspace, path: str) -> list[str]:
    """Call every verb that only reads; returns their names."""
    called = []
    for verb, kind in VERBS.items():
        values = {**VALUES, "path": path}
        required = [name for name in kind.FIELDS if name not in kind._DEFAULTS]
        if verb in NOT_CALLED or any(name not in values for name in required):
            continue
        more = {"read_file": cellwright.read} if "read_file" in kind.FIELDS else {}
        request = kind(**{name: values[name] for name in required}, **more)
        if request.effect != "read":
            continue
        called.append(verb)
        with suppress(CellwrightError):  # a notebook is broken, or a run is not there
            workspace.api.call(request)
    return called


def main() -> None:
    folder = Path(sys.argv[1])
    os.chdir(folder)
    called: set[str] = set()
    with open_workspace(
        folder, mode="ask", actor="test:ada", start=len(sys.argv) > 2, warn=sys.exit
    ) as workspace:
        for path in PATHS:
            called.update(call_verbs(workspace, path))
    calls = [call for path in PATHS for call in doors.reading_calls(path)]
    asyncio.run(doors.call_tools(folder, [*doors.GENERAL_CALLS, *calls]))
    asyncio.run(doors.ask_pages(folder, PATHS))
    for path in PATHS:
        for words in doors.reading_commands(path):
            doors.type_command(*words)
    for words in doors.GENERAL_COMMANDS:
        doors.type_command(*words)
    if len(sys.argv) > 2:
        doors.type_command("engine", "stop")  # `strace` waits for it
    sys.stdout.write(" ".join(sorted(called)))


if __name__ == "__main__":
    main()
