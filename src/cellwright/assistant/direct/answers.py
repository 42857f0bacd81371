"""What tools answered, told to a person."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cellwright.dataflow.analyse import analyse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.models import Message

_fence = re.compile(r"<data ([0-9a-f]{8}): ([^<>\n]*)>\n(.*?)\n?</data \1>", re.DOTALL)
_cell_head = re.compile(r"^### Cell (\d+) \(", re.MULTILINE)
_left_out = re.compile(r"^LEFT OUT: .*$", re.MULTILINE)
_MOST_NAMES = 12


def tell_cells(result: Message) -> str:
    """Cells with their status and their source."""
    facts = result.data.get("cells") or []
    sources = sources_of(result.text)
    parts = [
        f"**Cell {fact['index'] + 1}** (`{fact['id']}`): {_standing(fact)}\n\n"
        + block(sources.get(fact["index"], ""))
        for fact in facts
    ]
    return "\n\n".join([*parts, *_missing(result)]) or plain(result.text)


def explain_cell(result: Message, context: NotebookContext) -> str:
    """What a cell is, how it stands, and what it takes from others and gives to them."""
    facts = result.data.get("cells") or []
    sources = sources_of(result.text)
    parts = []
    for fact in facts:
        source = sources.get(fact["index"], "")
        lines = [f"Cell {fact['index'] + 1} (`{fact['id']}`) is a {_standing(fact)}."]
        if fact["type"] == "code":
            stale = [cell.stale for cell in context.known if cell.index == fact["index"]]
            lines += [f"Its result does not stand: {reason}." for reason in stale if reason]
            lines.append(_dataflow(source, fact["index"], context))
        parts.append(" ".join(lines) + "\n\n" + block(source))
    return "\n\n".join([*parts, *_missing(result)]) or plain(result.text)


def tell_outputs(result: Message, name: str) -> str:
    """What a cell put out."""
    inside = [text for _, _, text in _fence.findall(result.text)]
    if not inside:
        return plain(result.text)
    shown = "\n\n".join([block(text) for text in inside] + _missing(result))
    return f"The output of {name}:\n\n{shown}"


def tell_run(result: Message) -> str:
    """How each cell went, and what it put out."""
    rows = result.data.get("executions")
    if rows is None:
        return plain(result.text)
    said = {what.removeprefix("outputs of "): text for _, what, text in _fence.findall(result.text)}
    parts = []
    for row in rows:
        error = f" ({row['error']['ename']})" if row.get("error") else ""
        count = f", run {row['execution_count']}" if row.get("execution_count") else ""
        line = f"Cell {row['index'] + 1} (`{row['cell']}`): {row['status']}{error}{count}."
        output = said.get(row["cell"])
        parts.append(f"{line}\n\n{block(output)}" if output else line)
    if not rows:
        parts.append("There was nothing to run: text cells are not run.")
    if not result.data.get("done", True):
        parts.append("It still runs; its outputs come into the notebook.")
    return "\n\n".join([*parts, *_missing(result)])


def plain(text: str) -> str:
    """A tool's answer without the fences that are for models."""
    return _fence.sub(lambda found: block(found[3]), text)


def sources_of(text: str) -> dict[int, str]:
    """The sources in an answer of `GetNotebookCells`, by the index of the cell."""
    fences = list(_fence.finditer(text))
    inside = [(fence.start(), fence.end()) for fence in fences]
    heads = [
        (head.start(), int(head[1]))
        for head in _cell_head.finditer(text)
        if not any(first <= head.start() < last for first, last in inside)
    ]
    found = {}
    for fence in fences:
        before = [index for place, index in heads if place < fence.start()]
        if before:
            found[before[-1]] = fence[3]
    return found


def block(text: str) -> str:
    """A fenced block that its text cannot end."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{text}\n{ticks}"


def _standing(fact: Mapping[str, Any]) -> str:
    if fact["type"] != "code":
        return f"{fact['type']} cell"
    parts = ["code cell"]
    if fact["executionStatus"] != "idle":
        parts.append(fact["executionStatus"])
    if fact["lastRunSuccess"] is None:
        parts.append("never run")
    else:
        parts.append("last run succeeded" if fact["lastRunSuccess"] else "last run failed")
    if fact["executionOrder"] is not None:
        parts.append(f"run {fact['executionOrder']}")
    if fact["lastExecutionDuration"] is not None:
        parts.append(f"{fact['lastExecutionDuration']} ms")
    parts.append("has output" if fact["hasOutput"] else "no output")
    return ", ".join(parts)


def _dataflow(source: str, index: int, context: NotebookContext) -> str:
    found = analyse(source, context.kernel_language)
    if found.syntax_error or found.opaque:
        why = found.syntax_error or ", ".join(found.opaque)
        return f"What it does to names cannot be told from its text ({why})."
    homes: dict[str, int] = {}
    for cell in context.known:
        if cell.type == "code" and cell.index < index:
            homes |= dict.fromkeys(
                analyse(cell.content, context.kernel_language).defines, cell.index
            )
    uses = [
        f"`{name}` (cell {homes[name] + 1})" if name in homes else f"`{name}`"
        for name in sorted(found.uses)
    ]
    return f"It defines {_listed(f'`{name}`' for name in sorted(found.defines))} and uses {_listed(uses)}."


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more if found else "nothing"


def _missing(result: Message) -> list[str]:
    outside = _fence.sub("", result.text)
    return [line.capitalize() for line in _left_out.findall(outside)]
