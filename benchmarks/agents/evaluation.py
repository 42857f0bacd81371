"""Plays tasks and prints what came of them, side by side."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.agents.players import Bill, ModelPlayer, play_script
from benchmarks.agents.sides import SIDES, open_side
from benchmarks.agents.tasks import TASKS, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.agents.sides import Side
    from benchmarks.agents.tasks import Task

    Play = Callable[[Task, Side, Bill, Callable[[], Awaitable[None]]], Awaitable[str]]


class Played(NamedTuple):
    """One task on one side; `problem` is empty if the check is satisfied."""

    task: str
    side: str
    problem: str
    bill: Bill


async def play_task(task: Task, side: Side, folder: Path, play: Play = play_script) -> Played:
    """Play one task with a side that is open on a folder."""
    bill = Bill()
    path = task.make(folder)
    side.path = path.name
    before = json.loads(path.read_bytes())

    async def meanwhile() -> None:
        if task.meanwhile is not None:
            task.meanwhile(path)
            await side.settle(path)

    try:
        answer = await play(task, side, bill, meanwhile)
    except Exception as error:  # noqa: BLE001  # it belongs into the table
        return Played(task.name, side.name, f"{type(error).__name__}: {error}", bill)
    await side.settle(path)
    return Played(task.name, side.name, find_problem(task, before, path, answer), bill)


def find_problem(task: Task, before: dict[str, Any], path: Path, answer: str) -> str:
    """What is wrong with the notebook at the end; nothing if the check is satisfied."""
    try:
        after = json.loads(path.read_bytes())
        is_done = task.check(Final(before, after, answer))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return f"not a notebook: {error}"
    return "" if is_done else "the check is not satisfied"


async def play_all(
    tasks: Sequence[Task], sides: Sequence[str], play: Play = play_script
) -> list[Played]:
    """Play the tasks one after the other, on one side after the other."""
    found = []
    for name in sides:
        with tempfile.TemporaryDirectory(prefix="agents-") as place:
            try:
                async with open_side(name, Path(place)) as side:
                    if side is None:
                        print(f"{name} is not installed")
                        continue
                    found += [await play_task(task, side, Path(place), play) for task in tasks]
            except OSError as error:
                print(f"{name} does not start: {error}")
    return found


def print_table(played: Sequence[Played]) -> None:
    """Print the failures, then success, calls, tokens and seconds of each side."""
    sides: dict[str, list[Played]] = defaultdict(list)
    for each in played:
        sides[each.side].append(each)
        if each.problem:
            print(f"  {each.task:22} {each.side:20} {each.problem[:90]}")
    print(f"\n{'':20} success   calls  tokens asked  answered  seconds")
    for side, rows in sides.items():
        done = sum(not row.problem for row in rows)
        bills = [row.bill for row in rows]
        print(
            f"{side:20} {done:3}/{len(rows):<3} {sum(b.calls for b in bills):7} "
            f"{sum(b.asked for b in bills):13,} {sum(b.answered for b in bills):9,} "
            f"{sum(b.seconds for b in bills):8.1f}"
        )


def run(*, quick: bool = False) -> list[str]:
    """Play by scripts on every side that is installed; the goal is that Cellwright does all."""
    with tempfile.TemporaryDirectory(prefix="cwb") as name:
        for variable in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "IPYTHONDIR"):
            (Path(name) / variable.lower()).mkdir(mode=0o700)
            os.environ[variable] = f"{name}/{variable.lower()}"
        played = asyncio.run(play_all(TASKS[::5] if quick else TASKS, SIDES))
    print("\nAgents' tasks, by scripts")
    print_table(played)
    return [
        f"agents: {each.task}: {each.problem}"
        for each in played
        if each.side == "cellwright" and each.problem
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Play, print, and return 1 if Cellwright's scripts did not do all tasks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description=__doc__)
    parser.add_argument("--task", action="append", help="by name; default all")
    parser.add_argument("--side", action="append", choices=SIDES, help="default all")
    parser.add_argument("--address", help="an OpenAI-compatible API, such as http://host:8000/v1")
    parser.add_argument("--model", default="", help="the model's name there")
    options = parser.parse_args(words)
    tasks = [task for task in TASKS if not options.task or task.name in options.task]
    play: Play = play_script
    if options.address:
        play = ModelPlayer(
            options.address, options.model, os.environ.get("OPENAI_API_KEY", "")
        ).play
    with contextlib.redirect_stderr(io.StringIO()):
        played = asyncio.run(play_all(tasks, options.side or SIDES, play))
    print_table(played)
    return int(any(each.problem for each in played if each.side == "cellwright"))
