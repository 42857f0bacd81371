"""How cells and runs read in an answer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from cellwright.errors import CellNotFound, InvalidSelector
from cellwright.outputs.sanitize import make_visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.errors import CellwrightError
    from cellwright.tools.page import Page

MOST_ROWS = 200
"""Rows of one list in the data of an answer."""

# Ids, names of errors, MIME types and actors; no address, no path.
_plain = re.compile(r"[A-Za-z0-9_.+-]+(?:[/:][A-Za-z0-9_.+-]+)?").fullmatch
_LONGEST = 64
_LONGEST_FACT = 300


def one_line(text: str, most: int = 200) -> str:
    """Text from outside as a part of a line of ours."""
    line = " ".join(make_visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def named(name: str, most: int = _LONGEST) -> str:
    """A name from outside; one that could be read as something else stands in quotes."""
    if len(name) <= most and _plain(name):
        return name
    return json.dumps(one_line(name, most), ensure_ascii=False)


def safe_hint(error: CellwrightError) -> str:
    """What to try next; names that come from the notebook stand in quotes where they must."""
    if isinstance(error, CellNotFound) and error.near:
        return f"Did you mean {', '.join(map(named, error.near[:3]))}?"
    if isinstance(error, InvalidSelector) and "Did you mean `" in (error.hint or ""):
        titles = (error.hint or "").partition("Did you mean ")[2].rstrip("?").split(", ")
        return f"Did you mean {', '.join(named(title.strip('`')) for title in titles)}?"
    return one_line(error.hint or "", 400)


def counted(number: int, what: str) -> str:
    """So many of something."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def few(rows: Sequence[Any]) -> list[Any]:
    """As many rows as go into the data of an answer; the text says what is missing."""
    return [_short(row) if isinstance(row, dict) else row for row in rows[:MOST_ROWS]]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A row of facts; what is long in it came from outside, and is no fact."""
    return {
        name: one_line(value, _LONGEST_FACT) if isinstance(value, str) else value
        for name, value in row.items()
    }


def cell_line(cell: dict[str, Any]) -> str:
    """What there is to know of a cell, without its source."""
    parts = [f"cell {cell['index']}", f"id {named(cell['handle'])}", str(cell["type"])]
    if cell["type"] == "code":
        count = cell.get("execution_count")
        parts.append(f"[{count if count is not None else ' '}] {cell['status']}")
        if cell.get("stale"):
            parts.append(f"stale: {one_line(cell.get('stale_reason') or 'its source changed')}")
    if cell.get("problem"):
        parts.append(f"broken: {one_line(cell['problem'])}")
    return " · ".join(parts)


def others_lines(others: Sequence[dict[str, Any]]) -> list[str]:
    """Who else is at work on a notebook."""
    return [
        f"{named(who['actor'])} did `{one_line(who['did'], 40)}` {who['seconds']:.0f} s ago"
        for who in others[:5]
    ]


def tell_run(page: Page, rows: Sequence[dict[str, Any]], path: str = "") -> None:
    """How each cell of a run went and what it said; those that said most are cut."""
    waiting = sum(bool(row["outputs"]) for row in rows)
    shortened: list[int] = []
    for place, row in enumerate(rows):
        if not page.say(run_line(row)):
            page.leave_out(f"{counted(len(rows) - place, 'cell')} of the run")
            break
        for note in row["notes"]:
            page.say(f"  note: {one_line(note, 400)}")
        check = row.get("check")
        if check is not None and check["diff"]:
            page.show(f"how {row['cell']} differs", check["diff"], page.room // 2)
        if row["outputs"]:
            name = f"outputs of {row['cell']}"
            if not page.outputs(name, row["outputs"], page.room // waiting):
                shortened.append(row["index"])
            waiting -= 1
    if shortened:
        whose = f"path={json.dumps(path)}, " if path else ""
        page.leave_out(f"parts of outputs; notebook_outputs with {whose}cells={shortened[:20]}")


def run_line(row: dict[str, Any]) -> str:
    """How one cell went."""
    count = row["execution_count"]
    line = f"cell {row['index']} · id {named(row['cell'])} · {row['status']}"
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
    """What an error is called; what it says is among the outputs, inside the fence."""
    return named(str(error["ename"]))


def run_facts(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The executions for programs: how each went, without what it said."""
    names = ("cell", "index", "status", "execution_count", "seconds", "saved", "stale")
    return [
        {
            **{name: row[name] for name in names},
            "error": row["error"] and {"ename": one_line(str(row["error"]["ename"]), _LONGEST)},
            **({"check": row["check"]["result"]} if row.get("check") is not None else {}),
        }
        for row in few(rows)
    ]


def is_failure(row: dict[str, Any]) -> bool:
    """Whether a cell did not end well, and nobody expected that."""
    return row["status"] not in ("ok", "pending", "running") and not row.get("expected")


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """What happened to the cells of a run, in one line."""
    if not rows:
        return "Nothing to run."
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    failed = next(filter(is_failure, rows), None)
    told = ", ".join(f"{number} {status}" for status, number in counts.items())
    if failed is not None:
        return f"FAILED at cell {failed['index']} ({named(failed['cell'])}): {told}."
    differing = sum(1 for row in rows if (row.get("check") or {}).get("result") == "differs")
    if differing:
        return f"Checked {counted(len(rows), 'cell')}: {differing} with other outputs than the file has."
    return f"Ran {counted(len(rows), 'cell')}: {told}."
