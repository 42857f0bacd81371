"""Wording that tools share: names, counts, hints, and how cells and runs read in a result."""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from typing import TYPE_CHECKING, Any

from cellwright.errors import CellNotFound, CellwrightError, InvalidSelector
from cellwright.outputs.sanitize import make_visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.tools.page import Page
    from cellwright.workspace.workspace import AsyncWorkspace

MOST_ROWS = 200
"""Rows of one list in the data of a result."""

# Ids, names of errors, MIME types and actors; no address, no path.
_plain = re.compile(r"[A-Za-z0-9_.+-]+(?:[/:][A-Za-z0-9_.+-]+)?").fullmatch
_LONGEST = 64
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


def format_hint(error: CellwrightError) -> str:
    """What to try next; names that come from the notebook are quoted where they must be."""
    if isinstance(error, CellNotFound) and error.near:
        return f"Did you mean {', '.join(map(quote_name, error.near[:3]))}?"
    if isinstance(error, InvalidSelector) and "Did you mean `" in (error.hint or ""):
        titles = (error.hint or "").partition("Did you mean ")[2].rstrip("?").split(", ")
        return f"Did you mean {', '.join(quote_name(title.strip('`')) for title in titles)}?"
    return shorten(error.hint or "", 400)


def format_count(number: int, what: str) -> str:
    """A number with its noun, such as `3 cells`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def code_block(text: str, language: str = "") -> str:
    """A block of code in Markdown that its text cannot end."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def first_rows(rows: Sequence[Any]) -> list[Any]:
    """As many rows as go into the data of a result; the text says what is missing."""
    return [_shorten_values(row) if isinstance(row, dict) else row for row in rows[:MOST_ROWS]]


def _shorten_values(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its texts shortened; a long one came from outside."""
    return {
        name: shorten(value, _LONGEST_FACT) if isinstance(value, str) else value
        for name, value in row.items()
    }


def cell_line(cell: dict[str, Any]) -> str:
    """The facts about a cell, without its source."""
    parts = [f"cell {cell['index']}", f"id {quote_name(cell['handle'])}", str(cell["type"])]
    if cell["type"] == "code":
        count = cell.get("execution_count")
        parts.append(f"[{count if count is not None else ' '}] {cell['status']}")
        if cell.get("stale"):
            parts.append(f"stale: {shorten(cell.get('stale_reason') or 'its source changed')}")
    if cell.get("problem"):
        parts.append(f"broken: {shorten(cell['problem'])}")
    return " · ".join(parts)


def others_lines(others: Sequence[dict[str, Any]]) -> list[str]:
    """Who else is at work on a notebook."""
    return [
        f"{quote_name(who['actor'])} did `{shorten(who['did'], 40)}` {who['seconds']:.0f} s ago"
        for who in others[:5]
    ]


def show_run(page: Page, rows: Sequence[dict[str, Any]], path: str = "") -> None:
    """Show how each cell of a run went and what it said; those that said most are cut."""
    waiting = sum(bool(row["outputs"]) for row in rows)
    shortened: list[int] = []
    for place, row in enumerate(rows):
        if not page.say(run_line(row)):
            page.leave_out(f"{format_count(len(rows) - place, 'cell')} of the run")
            break
        for note in row["notes"]:
            page.say(f"  note: {shorten(note, 400)}")
        check = row.get("check")
        if check is not None and check["diff"]:
            page.show(f"how {row['cell']} differs", check["diff"], page.room // 2)
        if row["outputs"]:
            if not page.show_outputs(row["cell"], row["outputs"], page.room // waiting):
                shortened.append(row["index"])
            waiting -= 1
    if shortened:
        whose = f"path={json.dumps(path)}, " if path else ""
        page.leave_out(f"parts of outputs; notebook_outputs with {whose}cells={shortened[:20]}")


def run_line(row: dict[str, Any]) -> str:
    """How one cell went."""
    count = row["execution_count"]
    line = f"cell {row['index']} · id {quote_name(row['cell'])} · {row['status']}"
    if row["status"] != "pending":
        line += f" · [{count if count is not None else ' '}] · {row['seconds']:.2f} s"
    if row["error"]:
        line += f" · {error_name(row['error'])}"
        if row["error"].get("line"):
            line += f" at its line {row['error']['line']}"
        if row.get("expected"):
            line += ", as its tag says"
    if row.get("check") is not None:
        line += f" · check: {row['check']['result']}"
    elif row["status"] not in ("pending", "running") and not row["saved"]:
        line += " · outputs NOT saved"
    if row["stale"]:
        line += " · edited while it ran"
    return line


def error_name(error: dict[str, Any]) -> str:
    """The name of an error; its message is among the outputs, inside the fence."""
    return quote_name(str(error["ename"]))


def run_facts(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The executions for programs: how each went, without what it said."""
    names = ("cell", "index", "status", "execution_count", "seconds", "saved", "stale")
    return [
        {
            **{name: row[name] for name in names},
            "error": row["error"] and {"ename": shorten(str(row["error"]["ename"]), _LONGEST)},
            **({"check": row["check"]["result"]} if row.get("check") is not None else {}),
        }
        for row in first_rows(rows)
    ]


def has_failed(row: dict[str, Any]) -> bool:
    """Whether a cell failed although no tag of it says that it would."""
    return row["status"] not in ("ok", "pending", "running") and not row.get("expected")


def summarize_run(rows: Sequence[dict[str, Any]]) -> str:
    """What happened to the cells of a run, in one line."""
    if not rows:
        return "Nothing to run."
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    failed = next(filter(has_failed, rows), None)
    statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
    if failed is not None:
        return f"FAILED at cell {failed['index']} ({quote_name(failed['cell'])}): {statuses}."
    differing = sum(1 for row in rows if (row.get("check") or {}).get("result") == "differs")
    if differing:
        return f"Checked {format_count(len(rows), 'cell')}: {differing} with other outputs than the file has."
    return f"Ran {format_count(len(rows), 'cell')}: {statuses}."


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
    return find_similar_paths(path, [row["path"] for row in rows])


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
