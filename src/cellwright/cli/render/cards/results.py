"""A card from its head to the last line of its result."""

from __future__ import annotations

from dataclasses import replace

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.cards.answers import cuts_of, pieces_of, pointers_of
from cellwright.cli.render.cards.frame import BAD, GUTTER, INDENT, Frame
from cellwright.cli.render.cards.general import general_parts
from cellwright.cli.render.cards.headline import cell_name, find_cells
from cellwright.cli.render.cards.runs import run_parts
from cellwright.cli.render.cards.sources import source_parts
from cellwright.cli.render.cards.statuses import human_seconds, sign_of
from cellwright.cli.render.layout import BOLD, DIM, Notice, clip
from cellwright.cli.render.outputs import text_parts
from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from rich.console import RenderableType

    from cellwright.cli.render.cards.card import Card
    from cellwright.cli.render.limits import View
    from cellwright.tools.tool import ToolResult

_TYPE = Style(color="cyan")
_PAST = {
    "Run": "Ran",
    "Update": "Updated",
    "Add": "Added",
    "Delete": "Deleted",
    "Change": "Changed",
    "Edit": "Edited",
    "Write": "Wrote",
}


def card_parts(card: Card, view: View) -> Iterator[RenderableType]:
    """What to print of a card, head first."""
    yield card_head(card, view.width)
    inner = replace(view, width=max(1, view.width - len(INDENT)))
    frame = Frame(inner, f"/expand {card.number} shows them")
    answer = card.answer
    if card.rows and (answer is None or card.status != "refused"):
        yield from run_parts(card, frame)
    elif answer is None:
        yield from _planned(card, frame)
    else:
        yield from _result(card, answer, frame)
    if answer is not None:
        for cut in cuts_of(answer.text):
            yield frame.warning(f"cut for the model: {cut}")
        for artifact in pointers_of(answer):
            yield frame.pointer(artifact)


def card_head(card: Card, width: int) -> Text:
    """Number, action, cell, type, path and status, and a line to the right edge."""
    line = card.headline
    action, name, kind = line.action, line.name, line.kind
    if card.answer is not None and card.status == "complete":
        action, name, kind = _done(card.answer, action, name, kind)
    sign, style = sign_of(card.status)
    took = f"  {_took(card)}" if card.seconds is not None else ""
    status = Text.assemble("  ", (f"{sign} {card.status}", style), (took, DIM))
    head = Text(no_wrap=True, overflow="crop")
    head.append(f"{card.number:>{GUTTER}}  ", BOLD)
    head.append(action, BOLD)
    for part, look in ((name, None), (kind, _TYPE), (line.path, DIM)):
        if part:
            head.append(f"  {part}", look)
    # How it stands is told whatever the room; names give way.
    head.truncate(max(GUTTER + 10, width - status.cell_len - 1), overflow="ellipsis")
    head.append_text(status).append(" ")
    head.truncate(width, overflow="ellipsis")
    return head.append("─" * (width - head.cell_len), DIM)


def _took(card: Card) -> str:
    seconds = card.seconds or 0.0
    return f"{int(seconds)} s" if card.status == "running" else human_seconds(seconds)


def brief(card: Card) -> str:
    """A card in one line without styles, for logs and pipes."""
    line = card.headline
    action, name = line.action, line.name
    if card.answer is not None and card.status == "complete":
        action, name, _ = _done(card.answer, action, name, line.kind)
    sign, _ = sign_of(card.status)
    took = f" {human_seconds(card.seconds)}" if card.seconds is not None else ""
    facts = [part for part in (action, name, line.path, f"{card.status}{took}") if part]
    text = f"{sign} {' · '.join(facts)}"
    if card.status in ("error", "refused") and card.answer is not None:
        said = one_line(next(iter(card.answer.text.splitlines()), "")[:300])
        text = f"{text}: {said}"
    return text


def _done(answer: ToolResult, action: str, name: str, kind: str) -> tuple[str, str, str]:
    """The action in the past, with what only the answer knows."""
    verb, _, rest = action.partition(" ")
    data = answer.data
    if verb == "Add":
        index = data.get("index", data.get("cellIndex"))
        rest = f"cell {index + 1}" if isinstance(index, int) else rest
        made = data.get("cellId")
        name = cell_name(made) if isinstance(made, str) else name
    return f"{_PAST.get(verb, verb)} {rest}".strip(), name, kind


def _planned(card: Card, frame: Frame) -> Iterator[RenderableType]:
    """What a call is going to do, while it has not been done."""
    content = card.call.arguments.get("content")
    if isinstance(content, str):
        kind, old = _kind_and_old(card)
        yield from source_parts(content, kind, card.language, frame, old)
    cells = card.call.arguments.get("cells")
    if isinstance(cells, list):
        for cell in cells[: frame.view.limits.outputs]:
            if isinstance(cell, dict) and isinstance(cell.get("code"), str):
                yield from source_parts(cell["code"], "code", card.language, frame)


def _result(card: Card, answer: ToolResult, frame: Frame) -> Iterator[RenderableType]:
    if card.status == "refused":
        if answer.data.get("code") != "DECLINED":  # who said no knows
            yield frame.words(_message(answer), Style(color="yellow"))
        return
    if card.status == "error":
        yield from _error_block(answer, frame)
        return
    name, arguments = card.call.name, card.call.arguments
    source = answer.data.get("cellSource", arguments.get("content"))
    if isinstance(source, str):
        kind, old = _kind_and_old(card)
        kind = str(answer.data.get("cellType", kind))
        yield from source_parts(source, kind, card.language, frame, old)
    elif name == "GetNotebookCells" and answer.data.get("cells"):
        yield from _cells(card, answer.data["cells"], frame)
    elif name == "GetCellOutputs" and card.after is not None:
        found = find_cells(arguments.get("cellId"), card.after)
        outputs = found[0].outputs if found and found[0].type == "code" else ()
        if outputs:
            yield from frame.outputs(outputs)
        else:
            yield frame.words("no outputs")
    else:
        yield from general_parts(answer, frame)


def _error_block(answer: ToolResult, frame: Frame) -> Iterator[RenderableType]:
    for piece in pieces_of(answer.text):
        text = piece.text if piece.name is not None else _without_prefix(piece.text)
        for part in text_parts(text, frame.view, frame.view.limits.output_lines // 3):
            yield frame.ruled(part, BAD)


def _cells(card: Card, facts: list[Mapping[str, Any]], frame: Frame) -> Iterator[RenderableType]:
    """The cells that were read: a line each, and their sources if the card is expanded."""
    limits = frame.view.limits
    clipped = clip([str(fact["index"]) for fact in facts], limits.output_lines)
    numbers = max(len(str(fact["index"] + 1)) for fact in facts)
    names = max(len(cell_name(str(fact["id"]))) for fact in facts)
    for fact, _ in zip(facts, clipped.head, strict=False):
        line = Text().append(f"cell {fact['index'] + 1:<{numbers}}", BOLD)
        line.append(f"  {cell_name(str(fact['id'])):{names}}")
        line.append(f"  {one_line(str(fact['type'])[:20])}", _TYPE)
        yield frame.part(line)
        if frame.view.expanded:
            for cell in find_cells(fact["id"], card.after):
                yield from source_parts(cell.source, cell.type, card.language, frame)
    if clipped.hidden:
        yield frame.ruled(Notice(clipped.hidden, "cells"))


def _kind_and_old(card: Card) -> tuple[str, str | None]:
    """The type of the cell that a call is about, and its source before; new ones had none."""
    arguments = card.call.arguments
    ref = arguments.get("cellId", arguments.get("cell_index", arguments.get("cell_id")))
    is_new = "insert" in (arguments.get("action"), arguments.get("edit_mode"))
    found = find_cells(ref, card.before) if ref is not None and not is_new else []
    if not found:
        return str(arguments.get("type") or arguments.get("cell_type") or "code"), ""
    if "delete" in (arguments.get("action"), arguments.get("edit_mode")):
        return found[0].type, None
    return found[0].type, found[0].source


def _message(answer: ToolResult) -> str:
    told = answer.data.get("message")
    hint = answer.data.get("hint")
    if isinstance(told, str):
        return f"{told}. {hint}" if isinstance(hint, str) else told
    return _without_prefix(answer.text)


def _without_prefix(text: str) -> str:
    for prefix in ("error: ", "Error: "):
        if text.startswith(prefix):
            return text.removeprefix(prefix)
    return text
