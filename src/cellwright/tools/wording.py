"""Wording that tools share: names, counts, and how cells and runs read in a result."""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import make_visible
from cellwright.workspace.api.values import to_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cellwright.tools.page import Page
    from cellwright.workspace.api.answers import CellView, OtherActor
    from cellwright.workspace.api.values import Value
    from cellwright.workspace.hosts.host import Presence
    from cellwright.workspace.runs.execution import Execution
    from cellwright.workspace.workspace import AsyncWorkspace

MOST_ROWS = 200
"""Rows of one list in the data of a result."""

# Ids, names of errors, MIME types and actors; no address, no path.
_plain = re.compile(r"[A-Za-z0-9_.+-]+(?:[/:][A-Za-z0-9_.+-]+)?").fullmatch
_plain_path = re.compile(r"[\w./+@=~,-]+").fullmatch
_LONGEST = 64
_RESERVE = 600  # of a page's room, for a cell that must be shown
_LONGEST_FACT = 300
_MOST_NEAR = 3
_NEAR_TIMEOUT = 2.0  # seconds; a hint is not worth more


def shorten(text: str, most: int = 200) -> str:
    """Text from outside as a part of a line of ours."""
    line = " ".join(make_visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def quote_name(name: str, most: int = _LONGEST) -> str:
    """A name from outside; one that could be read as something else is quoted."""
    if len(name) <= most and _plain(name):
        return name
    return json.dumps(shorten(name, most), ensure_ascii=False)


def quote_path(path: str, most: int = 120) -> str:
    """A path; one that could be read as a sentence is quoted."""
    if len(path) <= most and _plain_path(path):
        return path
    return json.dumps(shorten(path, most), ensure_ascii=False)


def format_count(number: int, what: str) -> str:
    """A number with its noun, such as `3 cells`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def code_block(text: str, language: str = "") -> str:
    """A block of code in Markdown that its text cannot end."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def code_span(text: str) -> str:
    """A name as code in a line of Markdown that it cannot end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {text} {ticks}" if longest else f"{ticks}{text}{ticks}"


def to_facts(rows: Sequence[Value | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As many rows as go into the data of a result, with long texts cut."""
    return [
        {
            name: shorten(value, _LONGEST_FACT) if isinstance(value, str) else value
            for name, value in to_plain(row).items()
        }
        for row in rows[:MOST_ROWS]
    ]


def cell_line(cell: CellView) -> str:
    """The facts about a cell, without its source."""
    parts = [f"cell {cell.index}", f"id {quote_name(cell.handle)}", name_cell_type(cell.type)]
    if cell.id is None:  # its index is all the name it has
        del parts[1]
    if cell.type == "code":
        count = "" if cell.execution_count is None else f"[{cell.execution_count}] "
        parts.append(f"{count}{cell.status}")
        if cell.stale:
            parts.append(f"stale: {shorten(cell.stale_reason or 'its source changed')}")
    if cell.problem:
        parts.append(f"broken: {shorten(cell.problem)}")
    return " · ".join(parts)


def name_cell_type(kind: str) -> str:
    """The type of a cell, if it is one that there is."""
    return kind if kind in ("code", "markdown", "raw") else "of unknown type"


def others_lines(others: Sequence[OtherActor]) -> list[str]:
    """Who else is at work on a notebook."""
    return [
        f"{quote_name(who.actor)} did `{shorten(who.did, 40)}` {who.seconds:.0f} s ago"
        for who in others[:5]
    ]


def person_line(person: Presence) -> str:
    """Where a person is in a notebook that is open in an editor."""
    parts = ["open in an editor"]
    if person.active is not None:
        does = "edits" if person.mode == "edit" else "is at"
        parts.append(f"the person {does} cell {quote_name(person.active)}")
    others = [quote_name(each) for each in person.selected[:10] if each != person.active]
    if others:
        parts.append(f"also selected: {', '.join(others)}")
    return "; ".join(parts)


def show_run(page: Page, executions: Sequence[Execution], path: str = "") -> None:
    """Show how each cell of a run went and what it said; those that said most are cut.

    Cells that ended well and said nothing are one line. The last cell and those that failed are
    shown whatever the others take.
    """
    waiting = sum(bool(execution.outputs) for execution in executions)
    shortened: list[int | None] = []
    groups = _fold_silent(executions)
    needed = [len(groups) - 1]
    needed += [
        at for at, (each, *_) in enumerate(groups) if each.is_failure or each.status == "running"
    ]
    left = 0
    for place, group in enumerate(groups):
        execution = group[0]
        reserve = _RESERVE * min(3, sum(at > place for at in needed)) if place not in needed else 0
        line = run_line(execution) if len(group) == 1 else _group_line(group)
        if page.room < reserve or not page.say(line):
            left += len(group)
            continue
        for note in execution.notes:
            page.say(f"  note: {shorten(note, 400)}")
        cell, check = execution.cell or "", execution.check
        if check is not None and check.diff:
            page.show(f"how {cell} differs", check.diff, (page.room - reserve) // 2)
        if execution.outputs:
            share = (page.room - reserve) // waiting
            artifact = execution.artifact  # has them if they could not be saved
            if not page.show_outputs(cell, execution.outputs, share, artifact=artifact):
                if artifact:
                    page.leave_out(
                        f"parts of outputs; notebook_outputs with artifact=artifact://{artifact}"
                    )
                else:
                    shortened.append(execution.index)
            waiting -= 1
    if left:
        page.leave_out(f"{format_count(left, 'cell')} of the run")
    if shortened:
        whose = f"path={json.dumps(path)}, " if path else ""
        page.leave_out(f"parts of outputs; notebook_outputs with {whose}cells={shortened[:20]}")


def _fold_silent(executions: Sequence[Execution]) -> list[list[Execution]]:
    """The executions, with those in a row together of which there is nothing to say."""
    groups: list[list[Execution]] = []
    for is_silent, group in groupby(executions[:-1], _is_silent):
        found = list(group)
        groups += [found] if is_silent and len(found) > 2 else [[each] for each in found]
    return [*groups, *([each] for each in executions[-1:])]


def _is_silent(execution: Execution) -> bool:
    said = execution.outputs or execution.notes or execution.check or execution.stale
    return execution.status == "ok" and execution.saved and not said


def _group_line(group: Sequence[Execution]) -> str:
    seconds = sum(execution.seconds for execution in group)
    return f"cells {group[0].index}-{group[-1].index} · {len(group)} ok · {seconds:.2f} s"


def run_line(execution: Execution) -> str:
    """How one cell went."""
    line = f"cell {execution.index} · id {quote_name(execution.cell or '')} · {execution.status}"
    if execution.status != "pending":
        count = " " if execution.count is None else execution.count
        line += f" · [{count}] · {execution.seconds:.2f} s"
    if execution.error:
        line += f" · {quote_name(execution.error.ename)}"
        if execution.error.line:
            line += f" at its line {execution.error.line}"
        if execution.expected:
            line += ", as its tag says"
    if execution.check is not None:
        line += f" · check: {execution.check.result}"
    elif execution.status not in ("pending", "running") and not execution.saved:
        line += " · outputs NOT saved"
    if execution.stale:
        line += " · edited while it ran"
    return line


def run_facts(executions: Sequence[Execution]) -> list[dict[str, Any]]:
    """The executions for programs: how each went, without what it said."""
    return [
        {
            "cell": shorten(execution.cell or "", _LONGEST_FACT),
            "index": execution.index,
            "status": execution.status,
            "execution_count": execution.count,
            "seconds": round(execution.seconds, 3),
            "saved": execution.saved,
            "stale": execution.stale,
            "error": execution.error and {"ename": shorten(execution.error.ename, _LONGEST)},
            **({} if execution.check is None else {"check": execution.check.result}),
        }
        for execution in executions[:MOST_ROWS]
    ]


def summarize_run(executions: Sequence[Execution]) -> str:
    """What happened to the cells of a run, in one line."""
    if not executions:
        return "Nothing to run."
    counts = Counter(execution.status for execution in executions)
    failed = next((execution for execution in executions if execution.is_failure), None)
    statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
    if failed is not None:
        return f"FAILED at cell {failed.index} ({quote_name(failed.cell or '')}): {statuses}."
    running = next((each for each in executions if each.status == "running"), None)
    if running is not None:
        where = f"cell {running.index} ({quote_name(running.cell or '')})"
        return f"RUNNING {where} for {running.seconds:.0f} s: {statuses}."
    if counts["pending"]:
        return f"WAITING: {statuses}."
    number = format_count(len(executions), "cell")
    differing = sum(
        each.check is not None and each.check.result == "differs" for each in executions
    )
    if differing:
        return f"Checked {number}: {differing} with other outputs than the file has."
    return f"Ran {number}: {statuses}."


def describe_unfinished_run(run: str) -> str:
    """What to do about a run that has not ended."""
    return (
        f"Still running as {run}: notebook_run with run={run} waits for it, cancel=true stops it."
    )


async def find_similar_notebooks(workspace: AsyncWorkspace, path: str) -> list[str]:
    """The notebooks that were probably meant, the likeliest first."""
    try:
        async with asyncio.timeout(_NEAR_TIMEOUT):
            rows = await workspace.list()
    except (TimeoutError, CellwrightError):
        return []
    return find_similar_paths(path, [row.path for row in rows])


def find_similar_paths(path: str, known: list[str]) -> list[str]:
    """Those of the same name elsewhere, then those of a similar path, then of a similar name."""
    wanted = _without_suffix(path)
    same = [each for each in known if _file_name(_without_suffix(each)) == _file_name(wanted)]
    paths = {each.lower(): each for each in known} | {_without_suffix(each): each for each in known}
    close = [
        paths[each]
        for name in (wanted, path.lower())
        for each in difflib.get_close_matches(name, paths, _MOST_NEAR, 0.7)
    ]
    names: dict[str, list[str]] = {}
    for each in known:
        names.setdefault(_file_name(_without_suffix(each)), []).append(each)
    for name in difflib.get_close_matches(_file_name(wanted), names, _MOST_NEAR, 0.7):
        close += names[name]
    return list(dict.fromkeys(same + close))[:_MOST_NEAR]


def _without_suffix(path: str) -> str:
    return path.lower().removesuffix(".ipynb")


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
