"""Sentences that the built-in assistant understands: what to do, with which cells, and which source.

Something is changed or run only if the sentence begins with the order to do so, or names the tool;
a question about running does not run anything. People count cells from 1.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

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
ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
]
_TO = r"-|–|to|through"
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


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_orders = {verb: _compile(_POLITE + order).match for verb, order in _ORDERS.items()}
_negation = _compile(r"\b(?:do\s+not|don't|dont|never|not|except|unless|but|without)\b").search
_relative = _compile(r"\b(?:after|before|above|below|until|from|next|previous)\b").search
_more = _compile(
    rf"\b(?:and|then)\s+(?:then\s+)?(?:{_ADD}|{_UPDATE}|{_SHOW}|delete|remove|run|execute)\b"
).search
_tool = "|".join(sorted(set(TOOL_OF.values())))  # in small letters or large
_marks = _compile(rf"(?<![\w#/&])#(?:{_tool})\b|(?<![\w@])@(?:\"[^\"\n]+\"|[^\s`]+?\.ipynb\b)").sub
_written = _compile(r"```|:|\n").search
_new_cell = _compile(
    rf"{_POLITE}(?:{_ADD}\s+)?(?:an?\s+|another\s+)?"
    r"(?P<kinds>(?:(?:new|empty|code|python|markdown|text)\s+)*)cell\b"
).match
_at_an_end = _compile(r"[\s,]*(?:at|to)\s+the\s+(?P<end>end|bottom|start|beginning|top)\b").match
_beside = _compile(
    r"[\s,]*(?P<side>after|below|before|above)\s+(?P<cell>(?:cell\s+)?\d+\b"
    r"|cell\s+[`'\"\w-]+|(?:(?:this|the)\s+)?(?:\w+\s+)?cell\b|this\b|it\b|here\b)"
).match
_in_notebook = _compile(r"[\s,]*(?:in|to|of)\s+(?:the|this|my)\s+notebook\b").match
_old_cell = _compile(
    rf"{_POLITE}(?:{_UPDATE}\s+)?{_OF_CELL}(?P<cell>{_CELLS}"
    r"(?:\s+(?!(?:to|with|so)\b)(?:[`'\"][^`'\"\n]+[`'\"]|[\w-]+))?)"
    r"\s*(?=$|```|:|(?:to|with|so\s+that\s+it)\b)"
).match
_quoted = _compile(r"\bcells?\s+[`'\"]([^`'\"\n]+)[`'\"]").search
_numbered = _compile(rf"\bcells?\s+(\d+(?:\s*(?:,\s*and|,|and|&|{_TO})\s*\d+)*)\b").findall
_ordinal = _compile(rf"\b(last|{'|'.join(ORDINALS)})\s+(?:code\s+|markdown\s+)?cell\b").search
_named = _compile(r"\bcells?\s+([A-Za-z0-9][\w-]*)").search
_this_cell = _compile(
    r"\b(?:this|that|the|current|active)\s+cell\b|\b(?:these|selected)\s+cells?\b"
).search
_all = _compile(r"\b(?:all|every|everything|each|entire|whole|notebook)\b").search
_this = _compile(r"\b(?:this|these|it|here|selected)\b").search
_range = _compile(rf"(\d+)\s*(?:{_TO})\s*(\d+)|(\d+)").finditer
_fenced = re.compile(r"(`{3,})[^\n`]*\n(.*?)\n?\1", re.DOTALL).search
_leading = re.compile(
    r"(?:so\s+that\s+it\s+(?:is|says|reads)|(?:that|which)\s+says|to\s+(?:be|say|read)"
    r"|to|with|as|saying|containing)\b",
    re.IGNORECASE,
).match
_ANSWER = "Your next message is all of it, as you write it; `cancel` leaves the cell as it is."
_QUESTION = "I write no code of my own. What is the new source of"
_asked = re.compile(rf"{_QUESTION} cell (?:(\d+)|`([^`\n]+)`)\? {re.escape(_ANSWER)}").fullmatch
# Not two quoted texts with something between them.
_quoted_source = re.compile(r"""`[^`]*`|'[^']*'|"[^"]*\"""").fullmatch


class UnclearSentence(Exception):
    """A sentence that does not say which cell it means; the message says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
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


@dataclass(frozen=True, slots=True)
class MeantCells:
    """The cells that a sentence means, as tools take them; none if it names none."""

    refs: tuple[CellRef, ...] = ()
    is_all: bool = False


def find_verb(prompt: str, tools: Sequence[str]) -> Verb | None:
    """What is to be done: by the tool that is named, or by how the sentence begins.

    None if it is none of the things that can be done here.
    """
    text = _strip_marks(prompt)
    said = next((verb for verb, begins in _orders.items() if begins(text)), None)
    for verb, tool in TOOL_OF.items():
        if tool in tools:
            said = said if said is not None and TOOL_OF.get(said) == tool else verb
            break
    if said in ("add", "update"):  # these hold a source, which may say anything
        return said
    return None if _negation(text) else said


def parse_instruction(prompt: str, verb: Verb, context: NotebookContext) -> Instruction:
    """What a prompt asks for.

    Args:
        prompt: what the person wrote.
        verb: what is to be done.
        context: the notebook it is about.

    Raises:
        UnclearSentence: it does not say which cell, or asks for more than one thing.
    """
    text = _strip_marks(prompt)
    if verb == "add":
        return _parse_add(text, context)
    if verb == "update":
        return _parse_update(text, context)
    if _more(text):
        raise UnclearSentence("One thing at a time: I understand only the first half of this.")
    if verb == "run" and _relative(text):
        raise UnclearSentence(
            "Say which cells to run by their numbers, such as `run cells 2 to 4`."
        )
    meant = find_cells(text, context)
    refs = meant.refs
    if not refs and not meant.is_all and verb in ("run", "explain"):
        refs = selected_cells(context)
    return Instruction(verb=verb, cells=refs, is_all=meant.is_all)


def _parse_add(text: str, context: NotebookContext) -> Instruction:
    found = _new_cell(text)
    if found is None:
        raise UnclearSentence("Say what to add, such as `add a markdown cell after 2: # Results`.")
    kind = "markdown" if {"markdown", "text"} & set(found["kinds"].lower().split()) else "code"
    rest, index = text[found.end() :], -1
    while place := _at_an_end(rest) or _beside(rest) or _in_notebook(rest):
        where = place.groupdict()
        if "end" in where:
            index = -1 if place["end"].lower() in ("end", "bottom") else 0
        elif "side" in where:
            after = place["side"].lower() in ("after", "below")
            index = _find_place(place["cell"], context) + after
        rest = rest[place.end() :]
    source = find_source(rest, kind, context.kernel_language) if rest.strip(" .!\n") else ""
    return Instruction(verb="add", type=kind, index=index, source=source)


def _find_place(name: str, context: NotebookContext) -> int:
    """The index of the cell beside which another is to be."""
    if name.isdecimal():
        return index_of(int(name), context.cell_count)
    refs = find_cells(name, context).refs
    known = {cell.id: cell.index for cell in context.known_cells}
    if len(refs) == 1:
        index = refs[0] if isinstance(refs[0], int) else known.get(refs[0])
        if index is not None:
            return index
    raise UnclearSentence(f"Which cell is `{name}`? Give its number, such as `after 2`.")


def _parse_update(text: str, context: NotebookContext) -> Instruction:
    found = _old_cell(text)
    refs: tuple[CellRef, ...] = ()
    order = _find_order(text).strip()
    if found is not None:
        refs = find_cells(found["cell"], context).refs
    elif not order:  # only the tool is named
        refs = selected_cells(context)
    elif order.isdecimal():  # and a cell by its number alone
        return Instruction(verb="update", cells=(index_of(int(order), context.cell_count),))
    if len(refs) != 1:
        raise UnclearSentence(
            "Say which cell and its whole new source, such as `update cell 2 to: x = 1`."
        )
    kinds = [cell.type for cell in context.known_cells if refs[0] in (cell.id, cell.index)]
    kind = kinds[0] if kinds else "code"
    rest = text[found.end() :] if found is not None else text
    source = find_source(rest, kind, context.kernel_language) if rest.strip() else None
    return Instruction(verb="update", cells=refs, source=source)


def ask_for_source(ref: CellRef) -> str:
    """The question whose answer, the person's next message, is the new source of a cell."""
    name = f"cell {ref + 1}" if isinstance(ref, int) else f"cell `{ref}`"
    return f"{_QUESTION} {name}? {_ANSWER}"


def parse_answer(question: str, prompt: str) -> Instruction | None:
    """The change that a person asks for by answering the question for a source; None if it is not one."""
    found = _asked(question)
    if found is None or prompt.strip().lower() == "cancel":
        return None
    ref: CellRef = int(found[1]) - 1 if found[1] else found[2]
    fenced = _fenced(prompt)
    source = fenced[2] if fenced and fenced[0] == prompt.strip() else prompt.strip("\n")
    return Instruction(verb="update", cells=(ref,), source=source)


def strip_tools(prompt: str, names: Sequence[str]) -> str:
    """A prompt without the tools that it names with `#`."""
    wanted = "|".join(map(re.escape, names))
    return re.sub(rf"(?<![\w#/&])#(?:{wanted})\b", "", prompt, flags=re.IGNORECASE).strip()


def _strip_marks(prompt: str) -> str:
    """A prompt without the tools and notebooks that it names; what is to be a source stays."""
    head = _find_order(prompt)
    return _marks("", head).strip() + prompt[len(head) :]


def _find_order(text: str) -> str:
    """The order itself, as far as no source can have begun."""
    begins = _written(text)
    return text[: begins.start()] if begins else text


def find_cells(text: str, context: NotebookContext) -> MeantCells:
    """The cells that a sentence means.

    Raises:
        UnclearSentence: it names a cell that is not there, or means a selection that is empty.
    """
    found = _quoted(text)
    if found:
        return MeantCells((found[1],))
    numbers = _numbered(text)
    if numbers:
        return MeantCells(_parse_numbers(" ".join(numbers), context.cell_count))
    found = _ordinal(text)
    if found:
        word = found[1].lower()
        number = context.cell_count if word == "last" else ORDINALS.index(word) + 1
        return MeantCells((index_of(number, context.cell_count),))
    found = _named(text)
    if found and any(found[1] == cell.id for cell in context.known_cells):
        return MeantCells((found[1],))
    if _this_cell(text):
        return MeantCells(selected_cells(context))
    if _all(text):
        return MeantCells(tuple(range(context.cell_count)), is_all=True)
    return MeantCells(selected_cells(context)) if _this(text) else MeantCells()


def index_of(number: int, count: int) -> int:
    """The index of the cell with that number."""
    if 1 <= number <= count:
        return number - 1
    cells = "1 cell" if count == 1 else f"{count} cells"
    raise UnclearSentence(f"There is no cell {number}: the notebook has {cells}, counted from 1.")


def selected_cells(context: NotebookContext) -> tuple[CellRef, ...]:
    """The cell that is being edited, or else those that are selected."""
    cells = context.selected_cells
    found = [cell.id for cell in cells if cell.selection == "active"] or [cell.id for cell in cells]
    if not found:
        raise UnclearSentence(
            "No cell is selected. Select one, or give its number, such as `cell 2`."
        )
    return tuple(found)


def _parse_numbers(text: str, count: int) -> tuple[int, ...]:
    found: list[int] = []
    for first, last, single in (match.groups() for match in _range(text)):
        low, high = index_of(int(first or single), count), index_of(int(last or single), count)
        found += range(low, high + 1)
    return tuple(dict.fromkeys(found))


def find_source(text: str, kind: str, language: str) -> str | None:
    """The source that the rest of a sentence gives; None if it only tells what it should do.

    It is in a fenced block, behind a colon, or in quotes. Without any of these, it is taken
    for Python if it is, and for markdown behind a word such as `saying`.
    """
    fenced = _fenced(text)
    if fenced:
        return fenced[2]
    text = text.strip(" ,\t")
    leading = _leading(text)
    words = text[leading.end() :].lstrip(" \t") if leading else text
    if words.startswith(":"):
        return words[1:].strip("\n").removeprefix(" ")
    words = words.strip()
    if _quoted_source(words):
        return words[1:-1]
    if kind == "markdown":
        return words if leading and words else None
    return words if _is_code(words, language) else None


def _is_code(text: str, language: str) -> bool:
    """Whether a text is Python, and not a word that happens to be."""
    if not language.lower().startswith(("python", "ipython")):
        return False
    try:
        parts = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        not isinstance(part, ast.Expr) or not isinstance(part.value, ast.Name) for part in parts
    )
