"""What an agent works with: the tools of each side, and how a plan is carried out with them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from benchmarks.agents.tasks import Step

_SETTLE_WITHIN = 60.0


class ToolCall(NamedTuple):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]


class Side(Protocol):
    """One set of tools."""

    name: str
    path: str
    """The notebook of the task."""
    tools: list[dict[str, Any]]
    """Name, description and JSON schema of the parameters."""

    async def call(self, call: ToolCall) -> str:
        """Call a tool, and return the text of its result."""
        ...

    async def read(self) -> list[ToolCall]:
        """The calls with which a script looks at the notebook."""
        ...

    async def plan(self, steps: Sequence[Step], sources: list[str]) -> list[ToolCall]:
        """The calls that carry out a plan; `sources` are those that were read."""
        ...

    async def settle(self, file: Path) -> None:
        """Wait until the file and what the side shows of it are the same; this costs the agent nothing."""
        ...


# -- Cellwright -------------------------------------------------------------------------------------


class CellwrightSide:
    """The native tools, in this process or behind an MCP client."""

    name = "cellwright"

    def __init__(self, tools: list[dict[str, Any]], call: Any) -> None:
        self.tools = tools
        self._call = call
        self._revision = self.path = ""

    async def call(self, call: ToolCall) -> str:
        """Call a tool; the revision that was read is the base of what is edited."""
        text, facts = await self._call(call.tool, call.arguments)
        self._revision = facts.get("revision") or self._revision
        return str(text)

    async def read(self) -> list[ToolCall]:
        """Read all cells."""
        return [ToolCall("notebook_read", {"path": self.path})]

    async def plan(self, steps: Sequence[Step], sources: list[str]) -> list[ToolCall]:
        """Edit in one call, then run."""
        del sources
        edits: list[dict[str, Any]] = []
        calls: list[ToolCall] = []
        for kind, *rest in steps:
            if kind == "replace":
                cell, old, new = rest
                edits.append({"op": "replace_text", "cell": cell, "old": old, "new": new})
            elif kind == "insert":
                at, type_, source = rest
                edits.append({"op": "insert", "at": at, "type": type_, "source": source})
            elif kind == "delete":
                edits.append({"op": "delete", "cell": rest[0]})
            elif kind == "run":
                calls.append(ToolCall("notebook_run", {"path": self.path, **_chosen(rest[0])}))
            elif kind == "outputs":
                calls.append(ToolCall("notebook_outputs", {"path": self.path, **_chosen(rest[0])}))
        if edits:
            arguments = {"path": self.path, "base": self._revision, "edits": edits}
            calls.insert(0, ToolCall("notebook_edit", arguments))
        return calls

    async def settle(self, file: Path) -> None:
        """It answers when the file is saved."""


def _chosen(cells: list[int] | None) -> dict[str, Any]:
    return {} if cells is None else {"cells": cells}


@contextlib.asynccontextmanager
async def open_cellwright(folder: Path) -> AsyncIterator[Side]:
    """The tools of Cellwright on a folder, in this process, with a kernel of its own."""
    from cellwright import AsyncWorkspace
    from cellwright.tools.profiles import PROFILES
    from cellwright.tools.tool import ToolCaller
    from cellwright.tools.toolbox import Toolbox

    box = Toolbox(PROFILES["native"])
    async with AsyncWorkspace(
        folder, cwd=str(folder), engine=False, actor="bench:agent"
    ) as workspace:
        caller = ToolCaller(workspace=workspace)

        async def call(tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
            done = await box.call(tool, arguments, caller)
            return done.text, dict(done.data)

        tools = [
            {"name": row["name"], "description": row["description"], "schema": row["inputSchema"]}
            for row in box.table()
        ]
        yield CellwrightSide(tools, call)


# -- jupyter-mcp-server -----------------------------------------------------------------------------


class RivalSide:
    """The tools of jupyter-mcp-server, which work on cells of the notebook in use."""

    name = "jupyter-mcp-server"

    def __init__(self, client: Any, tools: list[dict[str, Any]]) -> None:
        self._client = client
        self.path = ""
        self.tools = tools

    async def call(self, call: ToolCall) -> str:
        """Call a tool."""
        result = await self._client.call_tool(call.tool, call.arguments)
        return "\n".join(part.text for part in result.content if part.type == "text")

    async def read(self) -> list[ToolCall]:
        """Use the notebook, and read all of it."""
        use = {"notebook_name": self.path, "notebook_path": self.path}
        words = {"notebook_name": self.path, "response_format": "detailed", "limit": 0}
        return [ToolCall("use_notebook", use), ToolCall("read_notebook", words)]

    async def plan(self, steps: Sequence[Step], sources: list[str]) -> list[ToolCall]:
        """One call for each cell; indices move with what is inserted and deleted."""
        calls: list[ToolCall] = []
        now = list(sources)
        moved: list[tuple[int, int]] = []

        def place(cell: int) -> int:
            return cell + sum(by for at, by in moved if at <= cell)

        for kind, *rest in steps:
            if kind == "replace":
                cell, old, new = rest
                words = {"cell_index": place(cell), "old_string": old, "new_string": new}
                calls.append(ToolCall("edit_cell_source", words))
            elif kind == "insert":
                cell, type_, source = rest
                at = place(cell)
                now.insert(at, source)
                moved.append((cell, 1))
                words = {"cell_index": at, "cell_type": type_, "cell_source": source}
                calls.append(ToolCall("insert_cell", words))
            elif kind == "delete":
                at = place(rest[0])
                del now[at]
                moved.append((rest[0], -1))
                calls.append(ToolCall("delete_cell", {"cell_indices": [at]}))
            elif kind == "run":
                chosen = range(len(now)) if rest[0] is None else map(place, rest[0])
                calls += [ToolCall("execute_cell", {"cell_index": at}) for at in chosen]
            elif kind == "outputs":
                calls += [ToolCall("read_cell", {"cell_index": place(at)}) for at in rest[0]]
        return calls

    async def settle(self, file: Path) -> None:
        """Its document is in a Jupyter server, which saves it, and takes over other saves, later."""
        deadline = time.monotonic() + _SETTLE_WITHIN
        while time.monotonic() < deadline:
            try:
                found = await self._client.read_resource(f"notebook://{self.path}")
                if _read_essence(found.contents[0].text) == _read_essence(file):
                    return
            except (ValueError, KeyError, TypeError):
                pass  # a file that is just being written
            await asyncio.sleep(0.2)


def _read_essence(source: Path | str) -> list[Any]:
    """What a person sees of a notebook, in a file or as text: sources, texts and types of outputs."""
    notebook = json.loads(source if isinstance(source, str) else source.read_bytes())
    return [
        (
            "".join(cell["source"]),
            [
                (
                    output["output_type"],
                    "".join(output.get("text") or ()),
                    sorted(output.get("data") or ()),
                    output.get("ename"),
                )
                for output in cell.get("outputs") or ()
            ],
        )
        for cell in notebook["cells"]
    ]


@contextlib.asynccontextmanager
async def open_rival(folder: Path) -> AsyncIterator[Side | None]:
    """jupyter-mcp-server with the Jupyter server it needs; None where it is not installed."""
    from benchmarks.mcp_rival import rival

    async with rival(str(folder)) as client:
        if client is None:
            yield None
            return
        listed = await client.list_tools()
        tools = [
            {"name": tool.name, "description": tool.description, "schema": tool.input_schema}
            for tool in listed.tools
        ]
        yield RivalSide(client, tools)


# -- plain files ------------------------------------------------------------------------------------

_NBCLIENT = Path(__file__).resolve().parent.parent.parent / ".dev" / "corpus" / "bin" / "python"
_RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
try:
    NotebookClient(notebook, timeout=60).execute()
finally:
    nbformat.write(notebook, sys.argv[1])
"""


class PlainSide:
    """Files as they are: read, write, and run a notebook from its start."""

    name = "plain files"

    def __init__(self, folder: Path, python: str) -> None:
        self._folder = folder
        self._python = python
        self._read = self.path = ""
        path = {"path": {"type": "string"}}
        self.tools = [
            {"name": name, "description": words, "schema": {"type": "object", "properties": more}}
            for name, words, more in (
                ("read_file", "Read a file.", path),
                ("write_file", "Write a file.", {**path, "content": {"type": "string"}}),
                ("run_notebook", "Run all cells of a notebook and save it.", path),
            )
        ]

    async def call(self, call: ToolCall) -> str:
        """Read, write or run."""
        path = self._folder / call.arguments["path"]
        if call.tool == "read_file":
            self._read = path.read_text("utf-8")
            return self._read
        if call.tool == "write_file":
            path.write_text(call.arguments["content"], encoding="utf-8")
            return "written"
        return await asyncio.to_thread(self._run, path)

    def _run(self, path: Path) -> str:
        done = subprocess.run(
            [self._python, "-c", _RUN, path],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
        )
        return done.stderr[-4000:] or "done"

    async def read(self) -> list[ToolCall]:
        """Read the file."""
        return [ToolCall("read_file", {"path": self.path})]

    async def plan(self, steps: Sequence[Step], sources: list[str]) -> list[ToolCall]:
        """Write the whole file anew, then run it, then read it."""
        del sources
        shape = json.loads(self._read)
        cells = list(shape["cells"])
        placed = list(enumerate(cells))
        calls: list[ToolCall] = []
        edited = False
        for kind, *rest in steps:
            if kind == "replace":
                cell, old, new = rest
                text = "".join(cells[cell]["source"]).replace(old, new)
                cells[cell]["source"] = text.splitlines(keepends=True)
                edited = True
            elif kind == "insert":
                at, type_, source = rest
                new_cell: dict[str, Any] = {"cell_type": type_, "id": f"n{len(placed)}"}
                new_cell |= {"metadata": {}, "source": source.splitlines(keepends=True)}
                if type_ == "code":
                    new_cell |= {"execution_count": None, "outputs": []}
                before = [each for each in placed if each[0] < at or each[0] == at - 0.5]
                rest_of = [each for each in placed if each not in before]
                placed = [*before, (at - 0.5, new_cell), *rest_of]
                edited = True
            elif kind == "delete":
                placed = [each for each in placed if each[0] != rest[0]]
                edited = True
            elif kind in ("run", "outputs"):
                calls.append(
                    ToolCall("run_notebook" if kind == "run" else "read_file", {"path": self.path})
                )
        if edited:
            shape["cells"] = [cell for _, cell in placed]
            text = json.dumps(shape, indent=1) + "\n"
            calls.insert(0, ToolCall("write_file", {"path": self.path, "content": text}))
        if any(call.tool == "run_notebook" for call in calls):
            calls.append(ToolCall("read_file", {"path": self.path}))
        return calls

    async def settle(self, file: Path) -> None:
        """The file is all there is."""


@contextlib.asynccontextmanager
async def open_plain(folder: Path) -> AsyncIterator[Side | None]:
    """Plain files; None if there is no interpreter with nbclient."""
    yield PlainSide(folder, str(_NBCLIENT)) if _NBCLIENT.exists() else None


def open_side(name: str, folder: Path) -> AbstractAsyncContextManager[Side | None]:
    """Open a side by its name, on a folder."""
    openers: dict[str, Any] = {
        CellwrightSide.name: open_cellwright,
        RivalSide.name: open_rival,
        PlainSide.name: open_plain,
    }
    opened: AbstractAsyncContextManager[Side | None] = openers[name](folder)
    return opened


SIDES = (CellwrightSide.name, RivalSide.name, PlainSide.name)
