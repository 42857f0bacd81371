"""Ways into a hostile repository that only read: commands at a terminal, and tools of models."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from cellwright import AsyncWorkspace
from cellwright.app.chats import Conversations
from cellwright.cli.main import main
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from tests.integration.hostile.repository import FORGED
from tests.unit.server.pages import Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cellwright.tools.tool import ToolResult
    from cellwright.workspace.api.requests import Mode


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal, and keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", "surrogateescape")

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise io.UnsupportedOperation

    @property
    def sent(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode("utf-8", "surrogateescape")


def type_command(*words: str, typing: bool = False) -> tuple[int, str]:
    """Type a command at a terminal without colours; returns its exit code and what was shown.

    With `typing`, the person is there to answer `input()`.
    """
    out, err = Terminal(), Terminal()
    colors = {"NO_COLOR": "1", "TERM": "dumb"}
    with redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ, colors):
        with patch.object(sys, "stdin", Terminal() if typing else io.TextIOWrapper(io.BytesIO())):
            code = main(words)
        return code, out.sent + err.sent


def reading_commands(path: str) -> Iterator[list[str]]:
    """Every command that looks at a notebook; in mode `ask`, whatever would do more is refused."""
    for name in ("read", "show", "outputs", "log", "diff", "blame", "stale", "backup", "run"):
        yield [name, "--mode", "ask", "--", path]
    for name in ("lint", "check-clean", "strip"):
        yield [name, "--mode", "ask", "--", path]
    yield ["read", "--mode", "ask", "--json", "--", path]
    yield ["read", "--mode", "ask", "--", f"{path}:outline"]
    yield ["edit", "delete", "--mode", "ask", "--dry-run", "--", path, "0"]
    yield ["kernel", "status", "--mode", "ask", "--", path]
    yield ["git", "textconv", "--", path]
    yield ["git", "clean"]


def refused_commands(path: str) -> Iterator[list[str]]:
    """Every command that mode `ask` refuses, or that finds nothing; it may say the name."""
    for name in ("batch", "write", "new", "upgrade", "undo", "redo", "forget", "eval"):
        yield [name, "--mode", "ask", "--", path]
    yield ["sync", "--mode", "ask", "--", path, f"{path}.py"]
    yield ["attach", "--mode", "ask", "--", path]
    yield ["cancel", "--mode", "ask", "--", path]


ELSEWHERE = {
    "acp": "tests/integration/assistant/test_acp.py",
    "chat": "tests/unit/cli/chat",
    "conformance": "tests/kernels/test_manipulator_conformance.py",
    "demo": "tests/integration/cli/test_doctor.py",
    "doctor": "tests/integration/hostile/test_reading.py",
    "key": "tests/unit/cli",
    "lab": "tests/browser",
}
"""Commands that look at no notebook, or start another program on purpose, and who tests them."""

GENERAL_COMMANDS = [
    *(["runs"], ["sessions"], ["kernel", "specs"], ["artifact"], ["config", "--origin"]),
    *(["engine", "status"], ["mcp", "--print-config", "claude"], ["completion", "fish"]),
]


def reading_calls(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool of every profile that looks at a notebook."""
    for view in ("cells", "text", "outline"):
        yield "notebook_read", {"path": path, "view": view}
    yield "notebook_outputs", {"path": path}
    yield "notebook_history", {"path": path, "action": "log"}
    yield "notebook_history", {"path": path, "action": "diff"}
    yield "kernel", {"action": "status", "path": path}
    yield "GetNotebookCells", {"path": path}
    yield "GetNotebookCells", {"path": path, "cellIds": ["nothing"]}
    yield "GetCellOutputs", {"path": path, "cellId": "cell-0"}
    yield "read", {"path": path}
    yield "get_cell_count", {"path": path}
    yield "get_notebook_metadata", {"path": path}
    yield "get_cell_range", {"path": path, "start": 0, "end": 2}
    yield "notebook_run", {"path": path}  # refused
    yield "eval", {"cells": [{"code": "1"}]}  # refused


def refused_calls(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every other tool, which mode `ask` refuses; it may say the name."""
    yield "notebook_edit", {"path": path, "edits": [{"op": "delete", "cell": 0}]}
    yield "python", {"cells": [{"code": "1"}]}
    yield "RunNotebookCells", {"path": path, "cellIds": ["cell-0"]}
    yield "AddNotebookCell", {"path": path, "cellType": "code", "index": 0, "content": "x"}
    yield "UpdateNotebookCell", {"path": path, "cellId": "cell-0", "content": "x"}
    yield "NotebookEdit", {"notebook_path": path, "cell_id": "cell-0", "new_source": "x"}
    yield "notebook", {"action": "delete", "notebook_path": path, "cell_index": 0}
    yield "edit", {"path": path, "old": "x", "new": "y"}
    yield "write", {"path": path, "content": "x"}
    yield "execute_cell_range", {"path": path, "start": 0, "end": 1}
    yield "splice_cell_range", {"path": path, "start": 0, "delete_count": 1, "cells": []}
    yield "set_notebook_metadata", {"path": path, "metadata": {"a": 1}}


GENERAL_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("notebook_list", {}),
    ("kernel", {"action": "status"}),
    ("kernel", {"action": "specs"}),
    ("kernel", {"action": "variables"}),  # refused
]


async def call_tools(
    root: Path,
    calls: Sequence[tuple[str, dict[str, Any]]],
    *,
    mode: Mode = "ask",
    actor: str = "test:ada",
) -> list[tuple[str, ToolResult]]:
    """What a model gets."""
    found = []
    async with AsyncWorkspace(root, cwd=str(root), mode=mode, actor=actor) as workspace:
        box, caller = Toolbox(PROFILES["all"], mode), ToolCaller(workspace=workspace)
        for name, arguments in calls:
            result = await box.call(name, arguments, caller)
            found.append((f"{name} {arguments}", result))
    return found


async def ask_pages(root: Path, paths: Sequence[str]) -> list[str]:
    """What a page of JupyterLab hears when a person asks the built-in assistant about notebooks."""
    chats = Conversations(str(root), actor="test:ada", engine=False)
    page = Page(chats)
    chat = (await page.call("open"))["id"]
    for path in paths:
        editor = {"path": path, "selected": [], "editing": None}
        asked = {"editor": editor, "files": [path], "tools": []}
        await page.call("preview", id=chat, prompt="", **asked)
        await page.ask(chat, "#getNotebookCells show all cells", **asked)
    await page.call("files", text="")
    await page.call("open", id=chat)
    await chats.close()
    return [json.dumps(message, ensure_ascii=False) for message in page.sent]


# -- what must not come out ---------------------------------------------------------------------

_raw = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066\ufeff\U000e0041\ud800-\udfff]")
_fenced = re.compile(r"<data ([0-9a-f]{4,})(?:: [^<>\n]*)?>\n(.*?)</data \1>", re.DOTALL)
_quoted = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`\n]*`')


def find_raw(shown: str) -> str | None:
    """What a terminal would obey or a person would not see, with what is around it."""
    found = _raw.search(shown)
    return None if found is None else repr(shown[max(0, found.start() - 60) : found.end() + 20])


def find_forged(result: ToolResult, *, echoes: bool = False) -> str | None:
    """What a model gets raw, or as if we had said it: neither fenced nor quoted.

    With `echoes`, the message of an error may say what the model itself has asked for.
    """
    hidden = find_raw(result.text) or find_raw(json.dumps(result.data, ensure_ascii=False))
    if hidden is not None:
        return hidden
    said = _quoted.sub("", _fenced.sub(_find_our_lines, result.text))
    lines = [line for line in said.split("\n") if not (echoes and line.startswith("error: "))]
    return next((repr(line) for line in lines if FORGED in line), None)


def _find_our_lines(fence: re.Match[str]) -> str:
    """What we say inside a fence: the lines that begin with its number."""
    return "\n".join(line for line in fence[2].split("\n") if line.startswith(f"{fence[1]} "))
