"""A card from its head to the last line of its result."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass, replace

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.cards.card import FAILED, format_seconds, sign_of
from cellwright.cli.render.cards.frame import BAD, GUTTER, INDENT, Frame, source_parts
from cellwright.cli.render.cards.headline import find_cells, shorten_name
from cellwright.cli.render.colors import style_lines
from cellwright.cli.render.layout import BOLD, DIM, Lines, Notice, clip, shorten
from cellwright.cli.render.outputs import render_tree, text_parts
from cellwright.document.outputs import Display
from cellwright.outputs.sanitize import fold, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from rich.console import RenderableType

    from cellwright.cli.render.cards.card import Card, CellRow
    from cellwright.cli.render.cards.frame import Frame
    from cellwright.cli.render.view import View
    from cellwright.document.cells import Cell
    from cellwright.document.outputs import Output
    from cellwright.tools.tool import Answer


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
        yield from _planned_parts(card, frame)
    else:
        yield from _result_parts(card, answer, frame)
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
        action, name, kind = _describe_done(card.answer, action, name, kind)
    sign, style = sign_of(card.status)
    took = f"  {_describe_seconds(card)}" if card.seconds is not None else ""
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


def _describe_seconds(card: Card) -> str:
    seconds = card.seconds or 0.0
    return f"{int(seconds)} s" if card.status == "running" else format_seconds(seconds)


def summarize_card(card: Card) -> str:
    """A card in one line without styles, for logs and pipes."""
    line = card.headline
    action, name = line.action, line.name
    if card.answer is not None and card.status == "complete":
        action, name, _ = _describe_done(card.answer, action, name, line.kind)
    sign, _ = sign_of(card.status)
    took = f" {format_seconds(card.seconds)}" if card.seconds is not None else ""
    facts = [part for part in (action, name, line.path, f"{card.status}{took}") if part]
    text = f"{sign} {' · '.join(facts)}"
    if card.status in ("error", "refused") and card.answer is not None:
        said = one_line(next(iter(card.answer.text.splitlines()), "")[:300])
        text = f"{text}: {said}"
    return text


def _describe_done(answer: Answer, action: str, name: str, kind: str) -> tuple[str, str, str]:
    """The action in the past, with what only the answer knows."""
    verb, _, rest = action.partition(" ")
    data = answer.data
    if verb == "Add":
        index = data.get("index", data.get("cellIndex"))
        rest = f"cell {index + 1}" if isinstance(index, int) else rest
        made = data.get("cellId")
        name = shorten_name(made) if isinstance(made, str) else name
    return f"{_PAST.get(verb, verb)} {rest}".strip(), name, kind


def _planned_parts(card: Card, frame: Frame) -> Iterator[RenderableType]:
    """What a call is going to do, while it has not been done."""
    content = card.call.arguments.get("content")
    if isinstance(content, str):
        kind, old = _find_kind_and_old(card)
        yield from source_parts(content, kind, card.language, frame, old)
    cells = card.call.arguments.get("cells")
    if isinstance(cells, list):
        for cell in cells[: frame.view.limits.outputs]:
            if isinstance(cell, dict) and isinstance(cell.get("code"), str):
                yield from source_parts(cell["code"], "code", card.language, frame)


def _result_parts(card: Card, answer: Answer, frame: Frame) -> Iterator[RenderableType]:
    if card.status == "refused":
        if answer.data.get("code") != "DECLINED":  # who said no knows
            yield frame.words(_message_of(answer), Style(color="yellow"))
        return
    if card.status == "error":
        yield from _error_parts(answer, frame)
        return
    name, arguments = card.call.name, card.call.arguments
    source = answer.data.get("cellSource", arguments.get("content"))
    if isinstance(source, str):
        kind, old = _find_kind_and_old(card)
        kind = str(answer.data.get("cellType", kind))
        yield from source_parts(source, kind, card.language, frame, old)
    elif name == "GetNotebookCells" and answer.data.get("cells"):
        yield from _cell_parts(card, answer.data["cells"], frame)
    elif name == "GetCellOutputs" and card.after is not None:
        found = find_cells(arguments.get("cellId"), card.after)
        outputs = found[0].outputs if found and found[0].type == "code" else ()
        if outputs:
            yield from frame.outputs(outputs)
        else:
            yield frame.words("no outputs")
    else:
        yield from general_parts(answer, frame)


def _error_parts(answer: Answer, frame: Frame) -> Iterator[RenderableType]:
    for piece in pieces_of(answer.text):
        text = piece.text if piece.name is not None else _without_prefix(piece.text)
        for part in text_parts(text, frame.view, frame.view.limits.output_lines // 3):
            yield frame.ruled(part, BAD)


def _cell_parts(
    card: Card, facts: list[Mapping[str, Any]], frame: Frame
) -> Iterator[RenderableType]:
    """The cells that were read: a line each, and their sources if the card is expanded."""
    limits = frame.view.limits
    clipped = clip([str(fact["index"]) for fact in facts], limits.output_lines)
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
        yield frame.ruled(Notice(clipped.hidden, "cells"))


def _find_kind_and_old(card: Card) -> tuple[str, str | None]:
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


def _message_of(answer: Answer) -> str:
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


_LIVE_LINES = 6


def run_parts(card: Card, frame: Frame) -> Iterator[RenderableType]:
    """Every cell with its status; while it runs the end of what it says, then its outputs."""
    rows = list(card.rows.values())
    limits = frame.view.limits
    clipped = clip([row.handle for row in rows], limits.output_lines)
    widest = max((len(_name_of(row)) for row in rows), default=0)
    for row, _ in zip(rows, clipped.head, strict=False):
        if len(rows) > 1:
            yield _render_row(row, widest)
        if card.answer is None:
            yield from _live_parts(row, frame)
        else:
            yield from _output_parts(card, row, frame)
    if clipped.hidden:
        yield frame.ruled(Notice(clipped.hidden, "cells"))
    if card.answer is not None and "session" in card.answer.data:
        yield from general_parts(card.answer, frame)
    elif card.answer is not None and card.status == "error" and not _is_explained(card):
        for piece in pieces_of(card.answer.text):
            if piece.name is None:
                yield frame.words(piece.text, BAD)


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
    """The cell's own name; code that belongs to no notebook may have a title."""
    if row.title or row.handle == str(row.index):
        return shorten_name(row.title)
    return shorten_name(row.handle)


def _live_parts(row: CellRow, frame: Frame) -> Iterator[RenderableType]:
    """The last lines of what a cell has said; a cell that waits has said nothing."""
    lines = fold(row.text.rstrip("\n"))[-_LIVE_LINES:] if row.text else []
    if lines:
        shown = style_lines(shorten(line, frame.view.limits) for line in lines)
        yield frame.ruled(Lines(shown))


def _output_parts(card: Card, row: CellRow, frame: Frame) -> Iterator[RenderableType]:
    if card.answer is not None and "session" in card.answer.data:
        return  # the answer tells of all of them
    found = find_cells(row.handle, card.after)
    if not found:
        yield from _answer_parts(card, row, frame)
        return
    (cell,) = found
    outputs = _outputs_of(cell) if row.status != "not run" else ()
    if frame.view.expanded:
        yield from source_parts(cell.source, cell.type, card.language, frame)
        if outputs:
            yield frame.part(Text("outputs", DIM))
    yield from frame.outputs(outputs)


def _outputs_of(cell: Cell) -> Sequence[Output]:
    return cell.outputs if cell.type == "code" else ()


def _answer_parts(card: Card, row: CellRow, frame: Frame) -> Iterator[RenderableType]:
    """What a cell has put out by the tool's answer, where the notebook does not tell."""
    if card.answer is None:
        return
    name = one_line(f"outputs of {row.handle}")
    for piece in pieces_of(card.answer.text):
        if piece.name is not None and (piece.name == name or len(card.rows) == 1):
            for part in text_parts(piece.text, frame.view, frame.view.limits.output_lines // 3):
                yield frame.ruled(part)


def _is_explained(card: Card) -> bool:
    """Whether one of the cells says why the call failed."""
    return any(row.status in FAILED for row in card.rows.values())


def general_parts(answer: Answer, frame: Frame) -> Iterator[RenderableType]:
    """An answer as it was given: our words, texts of the notebook, trees, pictures."""
    view = frame.view
    for piece in pieces_of(answer.text):
        if piece.name is not None:
            yield frame.part(Text(one_line(piece.name), DIM))
        value = as_json(piece.text)
        if value is not NOTHING:
            yield frame.ruled(Lines(render_tree(value, view.limits)))
            continue
        for part in text_parts(piece.text, view, view.limits.output_lines // 3):
            yield frame.ruled(part)
    shown = [
        Display({picture.mime: b64encode(picture.data).decode("ascii")})
        for picture in answer.images
    ]
    yield from frame.outputs(shown)


_fence_of_answer = re.compile(r"<data ([0-9a-f]{8}): ([^<>\n]*)>\n(.*?)\n?</data \1>", re.DOTALL)
_pointer = re.compile(r"\bartifact://([A-Za-z0-9_-]{4,40})")
_CUT = "LEFT OUT: "
_ERRORS = ("error:", "Error:")

NOTHING: Any = object()
"""Stands for no value, where any value may be one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer: our own words, or a text of the notebook with its name."""

    text: str
    name: str | None = None


def pieces_of(text: str) -> list[Piece]:
    """The parts of an answer, in order; lines about cuts are not among them."""
    found: list[Piece] = []
    position = 0
    for fence in _fence_of_answer.finditer(text):
        found.append(Piece(_uncut(text[position : fence.start()])))
        found.append(Piece(fence[3], fence[2]))
        position = fence.end()
    found.append(Piece(_uncut(text[position:])))
    return [piece for piece in found if piece.name is not None or piece.text.strip()]


def cuts_of(text: str) -> list[str]:
    """What the tool says it has left out; a cell cannot say that for it."""
    lines = _fence_of_answer.sub("", text).splitlines()
    return [line.removeprefix(_CUT) for line in lines if line.startswith(_CUT)]


def pointers_of(answer: Answer) -> list[str]:
    """The artifacts that an answer points to: by its facts, its pictures and its own words."""
    found = [picture.artifact for picture in answer.images if picture.artifact]
    rows = answer.data.get("cells") or answer.data.get("executions") or ()
    told = [row.get("artifact") for row in rows if isinstance(row, dict)]
    found += [artifact for artifact in told if isinstance(artifact, str)]
    found += _pointer.findall(_fence_of_answer.sub("", answer.text))
    return list(dict.fromkeys(found))


def is_failure(answer: Answer) -> bool:
    """Whether an answer tells of an error, by its flag or by how its text begins."""
    return answer.is_error or answer.text.startswith(_ERRORS)


def as_json(text: str) -> Any:
    """The object or list that a text is, for a tree; `NOTHING` if it is none."""
    text = text.strip()
    if not text.startswith(("{", "[")) or len(text) > 1_000_000:
        return NOTHING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING


def _uncut(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith(_CUT)).strip("\n")
