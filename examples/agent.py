"""What an agent does to a notebook over MCP, call by call: `./dev demo` shows it.

The agent is a script, so that it needs no key: an official MCP client that starts the server as
Claude Code or an editor would, and asks what a model would ask.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).parent / "harvest.ipynb"
BROKEN = 'float(row["tonnes"]) for row in rows}'
MENDED = 'float(row["tonnes"]) for row in rows if row["tonnes"] != "n/a"}'
LINES = 16
WIDTH = 100
COLOR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


@dataclass
class Tally:
    """What a task cost: calls, and characters that a model would have read and written."""

    calls: int = 0
    asked: int = 0
    answered: int = 0
    pictures: int = 0
    seconds: float = 0.0


class Agent:
    """Calls tools, and shows each call as a person would like to see it."""

    def __init__(self, client: Any, *, shows: bool = True) -> None:
        self._client = client
        self._shows = shows
        self.tally = Tally()

    async def call(self, thought: str, tool: str, **arguments: Any) -> Any:
        """Call a tool; returns the result."""
        started = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        seconds = time.perf_counter() - started
        text = "\n".join(part.text for part in result.content if part.type == "text")
        pictures = [part for part in result.content if part.type == "image"]
        self.tally.calls += 1
        self.tally.asked += len(str(arguments))
        self.tally.answered += len(text)
        self.tally.pictures += len(pictures)
        self.tally.seconds += seconds
        if self._shows:
            words = " ".join(f"{name}={_short(value)}" for name, value in arguments.items())
            _show(thought, f"→ {tool} {words}", text, pictures, seconds)
        return result


async def task(agent: Agent, path: str) -> None:
    """Find the failing cell, mend it, run what is stale, look at the plot, take it back."""
    found = await agent.call(
        "Which cell fails, and why?", "notebook_read", path=path, only="errors", outputs=True
    )
    facts = found.meta["cellwright/facts"]
    cell = facts["cells"][0]["id"]
    await agent.call(
        "One value is missing. Mend the cell, and run what follows from it",
        "notebook_edit",
        path=path,
        base=facts["revision"],
        edits=[{"op": "replace_text", "cell": cell, "old": BROKEN, "new": MENDED}],
        run="stale",
    )
    await agent.call("Look at the chart", "notebook_outputs", path=path, cells=["chart"])
    await agent.call(
        "It was only a try: take it back", "notebook_history", path=path, action="undo"
    )


async def play(folder: Path, environment: dict[str, str]) -> Tally:
    """Play the task on a copy of the sample in a folder."""
    from mcp import Client, StdioServerParameters

    shutil.copyfile(SAMPLE, folder / SAMPLE.name)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "cellwright", "mcp", "--root", str(folder)],
        env=environment,
        cwd=folder,
    )
    async with Client(server) as client:
        agent = Agent(client)
        await task(agent, SAMPLE.name)
    tally = agent.tally
    print(
        f"{tally.calls} calls, {tally.asked + tally.answered:,} characters, "
        f"{tally.pictures} pictures, {tally.seconds:.1f} s"
    )
    return tally


def run(folder: Path, environment: dict[str, str]) -> None:
    """Play the task, and end the demo if it did not work."""
    tally = asyncio.run(play(folder, environment))
    if tally.calls > 5 or not tally.pictures:
        sys.exit("demo: the agent did not do its task")


def _show(thought: str, call: str, text: str, pictures: list[Any], seconds: float) -> None:
    print(f"\n{_styled('3', thought)}")
    for line in textwrap.wrap(call, WIDTH, subsequent_indent="    "):
        print(_styled("1", line))
    lines = text.splitlines()
    for line in lines[:LINES]:
        print(f"  {line[: WIDTH - 2]}")
    if len(lines) > LINES:
        print(f"  … {len(lines) - LINES} more lines")
    for picture in pictures:
        print(f"  [a picture, {picture.mime_type}, {len(picture.data) * 3 // 4:,} bytes]")
    print(_styled("2", f"  {seconds * 1000:,.0f} ms"))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _styled(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOR else text


def main() -> None:
    """Play it in a folder that was given, or in one of its own."""
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]), dict(os.environ))
        return
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / ".runtime").mkdir(mode=0o700)
        places = {
            "XDG_STATE_HOME": f"{name}/.state",
            "XDG_RUNTIME_DIR": f"{name}/.runtime",
            "CELLWRIGHT_ENGINE": "never",
        }
        run(Path(name), {**os.environ, **places})


if __name__ == "__main__":
    main()
