"""The parts of a card, from its head to the last line of its result."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.cards.card import FAILED, format_seconds, sign_of
from cellwright.cli.render.cards.frame import (
    BAD,
    GUTTER,
    INDENT,
    CardFrame,
    find_cells,
    shorten_name,
    source_parts,
)
from cellwright.cli.render.colors import style_lines
from cellwright.cli.render.layout import BOLD, DIM, FoldedLines, Notice, clip, shorten
from cellwright.cli.render.outputs import render_tree, text_parts
from cellwright.document.outputs import Display
from cellwright.outputs.sanitize import fold_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from rich.console import RenderableType

    from cellwright.cli.render.cards.card import Card, CellRow
    from cellwright.cli.render.screen import ScreenView
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
_LIVE_LINES = 6
_LONGEST_JSON = 1_000_000
_NOT_JSON: Any = object()


def card_parts(card: Card, view: ScreenView) -> Iterator[RenderableType]:
    """The parts of a card to print, head first."""
    yield card_head(card, view.width)
    inner = replace(view, width=max(1, view.width - len(INDENT)))
    frame = CardFrame(inner, f"/expand {card.number} shows them")
    answer = card.answer
    if card.rows and (answer is None or card.status != "refused"):
        yield from _run_parts(card, frame)
    elif answer is None:
        yield from _planned_parts(card, frame)
    else:
        yield from _result_parts(card, answer, frame)
    if answer is not None:
        for cut in answer.left_out:
            yield frame.warning(f"cut for the model: {cut}")
        for artifact in _artifacts_of(answer):
            yield frame.pointer(artifact)


# -- the head ------------------------------------------------------------------------------------


def card_head(card: Card, width: int) -> Text:
    """Number, action, cell, type, path and status, and a line to the right edge."""
    line = card.headline
    action, name = _describe_action(card)
    sign, style = sign_of(card.status)
    seconds = card.seconds
    duration = ""
    if seconds is not None:
        is_running = card.status == "running"
        duration = f"  {int(seconds)} s" if is_running else f"  {format_seconds(seconds)}"
    status = Text.assemble("  ", (f"{sign} {card.status}", style), (duration, DIM))
    head = Text(no_wrap=True, overflow="crop")
    head.append(f"{card.number:>{GUTTER}}  ", BOLD)
    head.append(action, BOLD)
    for part, look in ((name, None), (line.kind, _TYPE), (line.path, DIM)):
        if part:
            head.append(f"  {part}", look)
    # The status is shown in any width; names are cut.
    head.truncate(max(GUTTER + 10, width - status.cell_len - 1), overflow="ellipsis")
    head.append_text(status).append(" ")
    head.truncate(width, overflow="ellipsis")
    return head.append("─" * (width - head.cell_len), DIM)


def summarize_card(card: Card) -> str:
    """A card in one line without styles, for logs and pipes."""
    action, name = _describe_action(card)
    sign, _ = sign_of(card.status)
    duration = f" {format_seconds(card.seconds)}" if card.seconds is not None else ""
    facts = (action, name, card.headline.path, f"{card.status}{duration}")
    text = f"{sign} {' · '.join(fact for fact in facts if fact)}"
    if card.status in ("error", "refused") and card.answer is not None:
        first = next(iter(card.answer.text.splitlines()), "")
        text = f"{text}: {one_line(first[:300])}"
    return text


def _describe_action(card: Card) -> tuple[str, str]:
    """The action and the name of its cell; after the call in the past, and as the answer says."""
    line = card.headline
    if card.answer is None or card.status != "complete":
        return line.action, line.name
    verb, _, rest = line.action.partition(" ")
    name, data = line.name, card.answer.data
    if verb == "Add":
        index = data.get("index", data.get("cellIndex"))
        rest = f"cell {index + 1}" if isinstance(index, int) else rest
        name = shorten_name(data["cellId"]) if isinstance(data.get("cellId"), str) else name
    return f"{_PAST.get(verb, verb)} {rest}".strip(), name


# -- a call and its result -----------------------------------------------------------------------


def _planned_parts(card: Card, frame: CardFrame) -> Iterator[RenderableType]:
    """What a call will do."""
    content = card.call.arguments.get("content")
    if isinstance(content, str):
        kind, old = _find_kind_and_old(card)
        yield from source_parts(content, kind, card.language, frame, old)
    cells = card.call.arguments.get("cells")
    if isinstance(cells, list):
        for cell in cells[: frame.view.limits.outputs]:
            if isinstance(cell, dict) and isinstance(cell.get("code"), str):
                yield from source_parts(cell["code"], "code", card.language, frame)


def _result_parts(card: Card, answer: ToolResult, frame: CardFrame) -> Iterator[RenderableType]:
    if card.status == "refused":
        if answer.data.get("code") != "DECLINED":  # the person who declined knows why
            yield frame.words(_refusal_of(answer), Style(color="yellow"))
        return
    if card.status == "error":
        for name, text in _passages_of(answer):
            words = text if name is not None else _without_prefix(text)
            for part in text_parts(words, frame.view, frame.view.limits.output_lines // 3):
                yield frame.add_rule(part, BAD)
        return
    arguments = card.call.arguments
    source = answer.data.get("cellSource", arguments.get("content"))
    if isinstance(source, str):
        kind, old = _find_kind_and_old(card)
        kind = str(answer.data.get("cellType", kind))
        yield from source_parts(source, kind, card.language, frame, old)
    elif card.call.name == "GetNotebookCells" and answer.data.get("cells"):
        yield from _cell_parts(card, answer.data["cells"], frame)
    elif card.call.name == "GetCellOutputs" and card.after is not None:
        found = find_cells(arguments.get("cellId"), card.after)
        outputs = found[0].outputs if found and found[0].type == "code" else ()
        if outputs:
            yield from frame.outputs(outputs)
        else:
            yield frame.words("no outputs")
    else:
        yield from _general_parts(answer, frame)


def _general_parts(answer: ToolResult, frame: CardFrame) -> Iterator[RenderableType]:
    """The answer of any tool: its words, texts of the notebook, trees of JSON, and pictures."""
    view = frame.view
    for name, text in _passages_of(answer):
        if name is not None:
            yield frame.part(Text(one_line(name), DIM))
        value = _parse_json(text)
        if value is not _NOT_JSON:
            yield frame.add_rule(FoldedLines(render_tree(value, view.limits)))
            continue
        for part in text_parts(text, view, view.limits.output_lines // 3):
            yield frame.add_rule(part)
    pictures = [
        Display({picture.mime: b64encode(picture.data).decode("ascii")})
        for picture in answer.images
    ]
    yield from frame.outputs(pictures)


def _cell_parts(
    card: Card, facts: list[Mapping[str, Any]], frame: CardFrame
) -> Iterator[RenderableType]:
    """The cells that were read: a line for each, and on an expanded card its source."""
    clipped = clip([str(fact["index"]) for fact in facts], frame.view.limits.output_lines)
    numbers = max(len(str(fact["index"] + 1)) for fact in facts)
    names = max(len(shorten_name(str(fact["id"]))) for fact in facts)
    for fact, _ in zip(facts, clipped.head, strict=False):
        line = Text().append(f"cell {fact['index'] + 1:<{numbers}}", BOLD)
        line.append(f"  {shorten_name(str(fact['id'])):{names}}")
        line.append(f"  {one_line(str(fact['type'])[:20])}", _TYPE)
        yield frame.part(line)
        if frame.view.expanded:
            for cell in find_cells(fact["id"], card.after):
                yield from source_parts(cell.source, cell.type, card.language, frame)
    if clipped.hidden:
        yield frame.add_rule(Notice(clipped.hidden, "cells"))


def _find_kind_and_old(card: Card) -> tuple[str, str | None]:
    """The type of the cell of a call, and its source before; new cells had an empty one."""
    arguments = card.call.arguments
    ref = arguments.get("cellId", arguments.get("cell_index", arguments.get("cell_id")))
    is_new = "insert" in (arguments.get("action"), arguments.get("edit_mode"))
    found = find_cells(ref, card.before) if ref is not None and not is_new else []
    if not found:
        return str(arguments.get("type") or arguments.get("cell_type") or "code"), ""
    if "delete" in (arguments.get("action"), arguments.get("edit_mode")):
        return found[0].type, None
    return found[0].type, found[0].source


# -- the cells of a run --------------------------------------------------------------------------


def _run_parts(card: Card, frame: CardFrame) -> Iterator[RenderableType]:
    """Each cell with its status; during the run the end of its text, after it its outputs."""
    rows, answer = list(card.rows.values()), card.answer
    clipped = clip([row.handle for row in rows], frame.view.limits.output_lines)
    widest = max((len(_name_of(row)) for row in rows), default=0)
    for row, _ in zip(rows, clipped.head, strict=False):
        if len(rows) > 1:
            yield _render_row(row, widest)
        if answer is None:
            yield from _live_parts(row, frame)
        elif "session" not in answer.data:  # else the answer has the outputs of all cells
            yield from _output_parts(card, answer, row, frame)
    if clipped.hidden:
        yield frame.add_rule(Notice(clipped.hidden, "cells"))
    if answer is None:
        return
    if "session" in answer.data:
        yield from _general_parts(answer, frame)
    elif card.status == "error" and not any(row.status in FAILED for row in rows):
        for name, text in _passages_of(answer):
            if name is None:
                yield frame.words(text, BAD)


def _render_row(row: CellRow, widest: int) -> Text:
    sign, style = sign_of(row.status)
    line = Text(no_wrap=True, overflow="ellipsis").append(f"{sign:>{GUTTER + 1}} ", style)
    number = f"cell {row.index + 1}" if row.index is not None else "cell"
    line.append(number, BOLD).append(f"  {_name_of(row):{widest}}" if widest else "").append("  ")
    line.append(row.status, style)
    if row.seconds is not None and row.status != "not run":
        line.append(f"  {format_seconds(row.seconds)}", DIM)
    return line


def _name_of(row: CellRow) -> str:
    """The name of a cell; code that belongs to no notebook may have a title."""
    has_title = row.title or row.handle == str(row.index)
    return shorten_name(row.title if has_title else row.handle)


def _live_parts(row: CellRow, frame: CardFrame) -> Iterator[RenderableType]:
    """The last lines that a cell has printed."""
    lines = fold_lines(row.text.rstrip("\n"))[-_LIVE_LINES:] if row.text else []
    if lines:
        shown = style_lines(shorten(line, frame.view.limits) for line in lines)
        yield frame.add_rule(FoldedLines(shown))


def _output_parts(
    card: Card, answer: ToolResult, row: CellRow, frame: CardFrame
) -> Iterator[RenderableType]:
    """The outputs of a cell in the notebook, or if the cell is gone, those in the answer."""
    found = find_cells(row.handle, card.after)
    if not found:
        for part in answer.parts:
            if part.name is not None and (part.cell == row.handle or len(card.rows) == 1):
                tail = frame.view.limits.output_lines // 3
                yield from map(frame.add_rule, text_parts(part.text, frame.view, tail))
        return
    (cell,) = found
    outputs = cell.outputs if cell.type == "code" and row.status != "not run" else ()
    if frame.view.expanded:
        yield from source_parts(cell.source, cell.type, card.language, frame)
        if outputs:
            yield frame.part(Text("outputs", DIM))
    yield from frame.outputs(outputs)


# -- answers of tools ----------------------------------------------------------------------------


def _passages_of(answer: ToolResult) -> list[tuple[str | None, str]]:
    """The texts of the notebook in an answer with their names; lines between them have none."""
    if not answer.parts:
        return [(None, answer.text)] if answer.text.strip() else []
    found: list[tuple[str | None, str]] = []
    for part in answer.parts:
        if part.name is None and found and found[-1][0] is None:
            found[-1] = (None, f"{found[-1][1]}\n{part.text}")
        else:
            found.append((part.name, part.text))
    texts = [(name, text if name is not None else text.strip("\n")) for name, text in found]
    return [(name, text) for name, text in texts if name is not None or text.strip()]


def _artifacts_of(answer: ToolResult) -> list[str]:
    """The artifacts that an answer names: in its facts, its pictures and its words."""
    found = [picture.artifact for picture in answer.images if picture.artifact]
    rows = answer.data.get("cells") or answer.data.get("executions") or ()
    ids = [row.get("artifact") for row in rows if isinstance(row, dict)]
    found += [artifact for artifact in ids if isinstance(artifact, str)]
    return list(dict.fromkeys([*found, *answer.artifacts]))


def _refusal_of(answer: ToolResult) -> str:
    message, hint = answer.data.get("message"), answer.data.get("hint")
    if isinstance(message, str):
        return f"{message}. {hint}" if isinstance(hint, str) else message
    return _without_prefix(answer.text)


def _without_prefix(text: str) -> str:
    return text.removeprefix("error: ").removeprefix("Error: ")


def _parse_json(text: str) -> Any:
    """The object or list that a text is in JSON; `_NOT_JSON` if it is not."""
    text = text.strip()
    if not text.startswith(("{", "[")) or len(text) > _LONGEST_JSON:
        return _NOT_JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOT_JSON
