"""What a sentence asks for: one of a few things that can be done with cells.

Something is changed or run only where the sentence begins with the order to do so, or names the
tool; a question about running is no order to run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from cellwright.assistant.direct.cells import (
    ORDINALS,
    Unclear,
    cells_meant,
    index_of,
    selected,
)
from cellwright.assistant.direct.sources import spelled_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.assistant.context import NotebookContext
    from cellwright.document.snapshot import CellRef

Verb: TypeAlias = Literal["show", "explain", "outputs", "run", "add", "update", "delete"]

TOOL_OF: dict[Verb, str] = {
    "show": "GetNotebookCells",
    "explain": "GetNotebookCells",
    "outputs": "GetCellOutputs",
    "run": "RunNotebookCells",
    "add": "AddNotebookCell",
    "update": "UpdateNotebookCell",
}
_POLITE = r"\W*(?:(?:please|now|ok|okay|then|and|also|just|can|could|would|will|you)[\s,]+)*"
_WHICH = (
    r"(?:(?:all|every|each|both|the|this|that|these|those|my|whole|entire|selected|current|active"
    rf"|last|{'|'.join(ORDINALS)}|code|markdown|of)\s+)*"
)
# The cells themselves, and not something in them: `change this colour` means no cell.
_CELLS = (
    rf"{_WHICH}(?:cells?\b|notebook\b|(?:this|these|it|all|everything)\b"
    r"(?=\s*(?:$|[.,;!?:`]|(?:again|now|please|in|of|to|with)\b)))"
)
_MENTIONED = r"\b(?:cells?|this|these|it|everything|all|here|notebook)\b"
_SHOW = r"(?:show|give|get|list|read|print|see|display|what|which)"
_ADD = r"(?:add|insert|append|create)"
_UPDATE = r"(?:update|change|replace|rewrite|edit|modify|set)"
_OF_CELL = r"(?:(?:the\s+)?(?:source|contents?|code|text)\s+of\s+)?"
_ORDERS: dict[Verb, str] = {
    "add": rf"{_ADD}\b[^.?!:]*\bcell\b",
    "update": rf"{_UPDATE}\s+{_OF_CELL}{_CELLS}",
    "delete": rf"(?:delete|remove|drop)\s+{_CELLS}",
    "run": rf"(?:run|execute|rerun|re-run)\s+{_CELLS}",
    "outputs": rf"{_SHOW}\b[^.]*?\b(?:outputs?|results?|printed|prints?)\b",
    "explain": rf"(?:what\s+(?:does|do|is|are)|explain|describe)\b[^.]*?{_MENTIONED}",
    "show": rf"{_SHOW}\b[^.]*?{_MENTIONED}",
}


def _find(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_orders = {verb: _find(_POLITE + order).match for verb, order in _ORDERS.items()}
_negation = _find(r"\b(?:do\s+not|don't|dont|never|not|except|unless|but|without)\b").search
_relative = _find(r"\b(?:after|before|above|below|until|from|next|previous)\b").search
_more = _find(
    rf"\b(?:and|then)\s+(?:then\s+)?(?:{_ADD}|{_UPDATE}|{_SHOW}|delete|remove|run|execute)\b"
).search
_tool = "|".join(sorted(set(TOOL_OF.values())))  # in small letters or large
_marks = _find(rf"(?<![\w#/&])#(?:{_tool})\b|(?<![\w@])@(?:\"[^\"\n]+\"|[^\s`]+?\.ipynb\b)").sub
_written = _find(r"```|:|\n").search
_new_cell = _find(
    rf"{_POLITE}(?:{_ADD}\s+)?(?:an?\s+|another\s+)?"
    r"(?P<kinds>(?:(?:new|empty|code|python|markdown|text)\s+)*)cell\b"
).match
_at_an_end = _find(r"[\s,]*(?:at|to)\s+the\s+(?P<end>end|bottom|start|beginning|top)\b").match
_beside = _find(
    r"[\s,]*(?P<side>after|below|before|above)\s+(?P<cell>(?:cell\s+)?\d+\b"
    r"|cell\s+[`'\"\w-]+|(?:(?:this|the)\s+)?(?:\w+\s+)?cell\b|this\b|it\b|here\b)"
).match
_in_notebook = _find(r"[\s,]*(?:in|to|of)\s+(?:the|this|my)\s+notebook\b").match
_old_cell = _find(
    rf"{_POLITE}(?:{_UPDATE}\s+)?{_OF_CELL}(?P<cell>{_CELLS}"
    r"(?:\s+(?!(?:to|with|so)\b)(?:[`'\"][^`'\"\n]+[`'\"]|[\w-]+))?)"
    r"\s*(?=$|```|:|(?:to|with|so\s+that\s+it)\b)"
).match


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a sentence asks for.

    `cells` are references as tools take them; `index` and `type` are those of a cell to add.
    `source` is None where one is wanted that the sentence does not spell out.
    """

    verb: Verb
    cells: tuple[CellRef, ...] = ()
    is_all: bool = False
    type: str = "code"
    index: int = -1
    source: str | None = None


def understand(prompt: str, verb: Verb, context: NotebookContext) -> Order:
    """What a prompt asks for.

    Args:
        prompt: what the person wrote.
        verb: what is to be done.
        context: the notebook it is about.

    Raises:
        Unclear: it is not told to which cell, or more is told than can be done at once.
    """
    text = _unmarked(prompt)
    if verb == "add":
        return _understand_add(text, context)
    if verb == "update":
        return _understand_update(text, context)
    if _more(text):
        raise Unclear("One thing at a time: I understand only the first half of this.")
    if verb == "run" and _relative(text):
        raise Unclear("Say which cells to run by their numbers, such as `run cells 2 to 4`.")
    meant = cells_meant(text, context)
    refs = meant.refs
    if not refs and not meant.is_all and verb in ("run", "explain"):
        refs = selected(context)
    return Order(verb=verb, cells=refs, is_all=meant.is_all)


def verb_of(prompt: str, tools: Sequence[str]) -> Verb | None:
    """What is to be done: by the tool that is named, or by how the sentence begins.

    None if it is nothing of what can be done here.
    """
    text = _unmarked(prompt)
    told = next((verb for verb, begins in _orders.items() if begins(text)), None)
    for verb, tool in TOOL_OF.items():
        if tool in tools:
            told = told if told is not None and TOOL_OF.get(told) == tool else verb
            break
    if told in ("add", "update"):  # these hold a source, which may say anything
        return told
    return None if _negation(text) else told


def _unmarked(prompt: str) -> str:
    """A prompt without the tools and notebooks that it names; what is to be a source stays."""
    head = _head(prompt)
    return _marks("", head).strip() + prompt[len(head) :]


def _head(text: str) -> str:
    """The order itself, as far as no source can have begun."""
    begins = _written(text)
    return text[: begins.start()] if begins else text


def _understand_add(text: str, context: NotebookContext) -> Order:
    found = _new_cell(text)
    if found is None:
        raise Unclear("Say what to add, such as `add a markdown cell after 2: # Results`.")
    kind = "markdown" if {"markdown", "text"} & set(found["kinds"].lower().split()) else "code"
    rest, index = text[found.end() :], -1
    while place := _at_an_end(rest) or _beside(rest) or _in_notebook(rest):
        where = place.groupdict()
        if "end" in where:
            index = -1 if place["end"].lower() in ("end", "bottom") else 0
        elif "side" in where:
            after = place["side"].lower() in ("after", "below")
            index = _place(place["cell"], context) + after
        rest = rest[place.end() :]
    source = spelled_out(rest, kind, context.kernel_language) if rest.strip(" .!\n") else ""
    return Order(verb="add", type=kind, index=index, source=source)


def _place(name: str, context: NotebookContext) -> int:
    """The index of the cell beside which another is to be."""
    if name.isdecimal():
        return index_of(int(name), context.cell_count)
    refs = cells_meant(name, context).refs
    known = {cell.id: cell.index for cell in context.known}
    if len(refs) == 1:
        index = refs[0] if isinstance(refs[0], int) else known.get(refs[0])
        if index is not None:
            return index
    raise Unclear(f"Which cell is `{name}`? Give its number, such as `after 2`.")


def _understand_update(text: str, context: NotebookContext) -> Order:
    found = _old_cell(text)
    refs = cells_meant(found["cell"], context).refs if found else ()
    if found is None or len(refs) != 1:
        raise Unclear("Say which cell and its whole new source, such as `update cell 2 to: x = 1`.")
    kinds = [cell.type for cell in context.known if refs[0] in (cell.id, cell.index)]
    kind = kinds[0] if kinds else "code"
    source = spelled_out(text[found.end() :], kind, context.kernel_language)
    return Order(verb="update", cells=refs, source=source)
