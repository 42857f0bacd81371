"""The headline of a card, and what is beside its rule: text, outputs, sources with changed lines."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from itertools import groupby
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.colors import highlight
from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import DIM, FoldedLines, Margin, Notice, clip, shorten
from cellwright.cli.render.outputs import join_streams, show_output
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import make_visible, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rich.console import RenderableType

    from cellwright.assistant.models.model import ToolCall
    from cellwright.cli.render.screen import ScreenView
    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.document.outputs import Output


GUTTER = 2
"""Columns for the numbers of cards; everything else begins two columns further right."""

INDENT = " " * (GUTTER + 2)
RULE = " " * GUTTER + "│ "
ADDED = " " * GUTTER + "+ "
REMOVED = " " * GUTTER + "- "
CUT = " " * GUTTER + "… "
PART = " " * GUTTER + "▸ "
POINTER = " " * GUTTER + "→ "

BAD = Style(color="red")
GOOD = Style(color="green")
WARNING = Style(color="yellow")

_LONGEST_COMPARED = 5_000
_match_hunk = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@").match


class CardFrame:
    """Puts parts beside the rule; `remedy` says how to see what is hidden."""

    def __init__(self, view: ScreenView, remedy: str) -> None:
        self.view = view
        self.remedy = remedy

    def add_rule(
        self, part: RenderableType, style: Style = DIM, rule: str = RULE
    ) -> RenderableType:
        """A part beside the rule; a `Notice` gets a sign in place of the rule."""
        if isinstance(part, Notice):
            return Margin(Notice(part.hidden, part.things, self.remedy), CUT, INDENT)
        return Margin(part, rule, style=style)

    def words(self, text: str, style: Style = DIM) -> RenderableType:
        """Lines of text beside a rule in a style."""
        return Margin(
            FoldedLines(Text(line) for line in make_visible(text).split("\n")), RULE, style=style
        )

    def warning(self, text: str) -> RenderableType:
        """A warning that something was cut, with a sign in place of the rule."""
        return Margin(Text(one_line(text), WARNING), CUT, INDENT, style=WARNING)

    def part(self, title: Text) -> RenderableType:
        """The title of a part, with a sign in place of the rule."""
        return Margin(title, PART, INDENT)

    def pointer(self, artifact: str) -> RenderableType:
        """The name of an artifact, and the command that prints it."""
        name = one_line(artifact[:80])
        text = Text.assemble(f"artifact://{name}", (f"  cellwright artifact {name}", DIM))
        return Margin(text, POINTER, INDENT)

    def outputs(self, outputs: Iterable[Output]) -> Iterator[RenderableType]:
        """The outputs of a cell, as `show` shows them."""
        try:
            shown = join_streams(outputs)
        except CellwrightError as error:
            yield self.words(error.message, BAD)
            return
        most = self.view.limits.outputs
        for number, output in enumerate(shown[:most]):
            if number:
                yield Text(RULE.rstrip(), DIM)
            yield from self._output(output)
        if len(shown) > most:
            yield self.add_rule(Notice(len(shown) - most, "outputs"))

    def _output(self, output: Output) -> Iterator[RenderableType]:
        shown = show_output(output, self.view)
        if shown.label is not None:
            yield self.add_rule(Text(shown.label, shown.style), shown.style)
        if shown.picture is not None:
            yield Graphic(shown.picture, self.view, RULE, shown.style)
        for part in shown.parts:
            yield self.add_rule(part, shown.style)


def source_parts(
    source: str,
    kind: str,
    language: str,
    frame: CardFrame,
    old: str | None = None,
    most: int | None = None,
) -> Iterator[RenderableType]:
    """A source beside the rule, cut to the lines that a source may have.

    Args:
        source: the source.
        kind: the type of its cell.
        language: the language of the notebook's code.
        frame: puts it beside the rule.
        old: the source before; new and removed lines are marked.
        most: how many lines to show; by default as many as a source may have.
    """
    lines = source.rstrip("\n").split("\n") if source.strip() else []
    if not lines:
        yield frame.add_rule(Text("(empty)", DIM))
        return
    rows = _compare_lines(old, lines)
    clipped = clip([row.text for row in rows], most or frame.view.limits.source_lines)
    yield from _row_parts(rows[: len(clipped.head)], _choose_language(kind, language), frame)
    if clipped.hidden:
        yield frame.add_rule(Notice(clipped.hidden, "lines"))


def hunk_parts(diff: str, kind: str, language: str, frame: CardFrame) -> Iterator[RenderableType]:
    """All lines of the diff of one cell's source, in the look of a source.

    Args:
        diff: hunks, with or without the lines that name the cell.
        kind: the type of the cell.
        language: the language of the notebook's code.
        frame: puts it beside the rule.
    """
    lines = diff.splitlines()
    if lines[:1] and lines[0].startswith("@@ cell "):
        lines = lines[1:]
    elif len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ "):
        lines = lines[2:]
    rows: list[_DiffRow] = []
    for line in lines:
        hunk = _match_hunk(line)
        if hunk is None:
            rows.append(_DiffRow(line[:1] or " ", line[1:]))
            continue
        yield from _row_parts(rows, _choose_language(kind, language), frame)
        rows = []
        if int(hunk[1]) > 1:
            yield frame.part(Text(f"line {hunk[1]}", DIM))
    yield from _row_parts(rows, _choose_language(kind, language), frame)


class _DiffRow(NamedTuple):
    sign: str
    text: str


def _choose_language(kind: str, language: str) -> str:
    return {"markdown": "markdown", "raw": "text"}.get(kind, language)


def _row_parts(
    rows: Sequence[_DiffRow], language: str, frame: CardFrame
) -> Iterator[RenderableType]:
    limits = frame.view.limits
    texts = iter(_color_lines([row.text for row in rows if row.sign != "-"], language, frame.view))
    for sign, group in groupby(rows, lambda row: row.sign):
        if sign == "-":
            removed = [Text(make_visible(shorten(row.text, limits)), BAD) for row in group]
            yield frame.add_rule(FoldedLines(removed), BAD, REMOVED)
        else:
            rule, style = (ADDED, GOOD) if sign == "+" else (RULE, DIM)
            yield frame.add_rule(FoldedLines([next(texts) for _ in group]), style, rule)


def _color_lines(lines: Sequence[str], language: str, view: ScreenView) -> list[Text]:
    # A text must be short and harmless before it is coloured.
    text = make_visible("\n".join(shorten(line, view.limits) for line in lines))
    if not (view.colors and language != "text" and text.strip()):
        return [Text(line) for line in text.split("\n")]
    found = highlight(text, language)
    # Colouring drops empty lines at the end.
    return [*found, *(Text() for _ in range(len(lines) - len(found)))]


def _compare_lines(old: str | None, lines: Sequence[str]) -> list[_DiffRow]:
    """The lines of a source, each marked as kept, new or removed."""
    before = old.rstrip("\n").split("\n") if old else []
    if old is None or max(len(before), len(lines)) > _LONGEST_COMPARED:
        return [_DiffRow(" ", line) for line in lines]
    matcher = SequenceMatcher(None, before, list(lines), autojunk=False)
    rows: list[_DiffRow] = []
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            rows += [_DiffRow("-", line) for line in before[first:last]]
        rows += [_DiffRow(" " if kind == "equal" else "+", line) for line in lines[start:end]]
    return rows


_LONGEST_NAME = 40
_LONGEST_ARGUMENTS = 200
_NAMED = 5
_VERBS = {"edit": "Update", "replace": "Update", "insert": "Add", "delete": "Delete"}
_FILES = {"read": "Read", "edit": "Edit", "write": "Write"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What a call does.

    `action` is in words, with cells counted from 1; `name` and `kind` are the name and the type of
    the cell.
    """

    action: str
    name: str = ""
    kind: str = ""
    path: str = ""


def make_headline(
    call: ToolCall, notebook: Notebook | None, path: str, title: str = ""
) -> Headline:
    """Describe a call.

    Args:
        call: the tool and its arguments, which come from a model.
        notebook: the notebook of the call, before it.
        path: the path of the notebook.
        title: the title of the tool, for tools that are not known here.
    """
    arguments = call.arguments
    where = one_line(path[:300])
    maker = _KNOWN.get(call.name)
    if maker is not None:
        return maker(arguments, notebook, where)
    if call.name in _FILES and isinstance(arguments.get("path"), str):
        return Headline(action=f"{_FILES[call.name]} file", path=one_line(arguments["path"][:300]))
    if isinstance(arguments.get("cells"), list) and call.name in ("python", "eval"):
        count = len(arguments["cells"])
        return Headline(action="Run code" if count == 1 else f"Run {count} pieces of code")
    words = json.dumps(dict(arguments), ensure_ascii=False, default=str)
    words = words if len(words) <= _LONGEST_ARGUMENTS else f"{words[: _LONGEST_ARGUMENTS - 1]}…"
    name = one_line(title or call.name[:_LONGEST_NAME])
    return Headline(action=name, name="" if words == "{}" else one_line(words), path=where)


def find_cells(refs: object, notebook: Notebook | None) -> list[Cell]:
    """The cells that references name; references to missing cells are skipped."""
    if notebook is None:
        return []
    found: list[Cell] = []
    for ref in refs if isinstance(refs, (list, tuple)) else [refs]:
        if isinstance(ref, (str, int)):
            with suppress(LookupError, ValueError, CellwrightError):
                cell = notebook.cell(ref)
                found += [cell] if all(cell.index != each.index for each in found) else []
    return found


def shorten_name(handle: str) -> str:
    """A name for a line of a card, cut if it is long."""
    name = one_line(handle[:200])
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _describe_cells(verb: str, cells: Sequence[Cell], path: str, refs: object) -> Headline:
    if len(cells) == 1:
        (cell,) = cells
        name, kind = shorten_name(cell.handle), one_line(cell.type[:20])
        return Headline(action=f"{verb} cell {cell.index + 1}", name=name, kind=kind, path=path)
    if cells:
        numbers = ", ".join(str(cell.index + 1) for cell in cells[:_NAMED])
        more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
        return Headline(action=f"{verb} {len(cells)} cells", name=numbers + more, path=path)
    names = ", ".join(map(str, refs)) if isinstance(refs, (list, tuple)) else str(refs)
    return Headline(action=f"{verb} cell", name=shorten_name(names), path=path)


def _describe_read(arguments: Mapping[str, Any], notebook: Notebook | None, path: str) -> Headline:
    refs = arguments.get("cellIds")
    if refs is None:
        return Headline(action="Read all cells", path=path)
    return _describe_cells("Read", find_cells(refs, notebook), path, refs)


def _describe_cell(
    verb: str, arguments: Mapping[str, Any], notebook: Notebook | None, path: str
) -> Headline:
    ref = arguments.get("cellId")
    return _describe_cells(verb, find_cells(ref, notebook), path, ref)


def _describe_run(arguments: Mapping[str, Any], notebook: Notebook | None, path: str) -> Headline:
    refs = arguments.get("cellIds")
    cells = find_cells(refs, notebook)
    # Only code cells are run.
    return _describe_cells(
        "Run", [cell for cell in cells if cell.type == "code"] or cells, path, refs
    )


def _describe_add(arguments: Mapping[str, Any], notebook: Notebook | None, path: str) -> Headline:
    index = arguments.get("index")
    place = "at the end"
    if isinstance(index, int) and index >= 0 and (notebook is None or index < len(notebook.cells)):
        place = f"as cell {index + 1}"
    return Headline(action=f"Add cell {place}", kind=_kind_of(arguments.get("type")), path=path)


def _describe_notebook(
    arguments: Mapping[str, Any], notebook: Notebook | None, path: str
) -> Headline:
    verb = _VERBS.get(str(arguments.get("action")), "Change")
    path = path or one_line(str(arguments.get("notebook_path", ""))[:300])
    index = arguments.get("cell_index")
    if verb == "Add":
        return _describe_add({"index": index, "type": arguments.get("cell_type")}, notebook, path)
    return _describe_cells(verb, find_cells(index, notebook), path, index)


def _describe_notebook_edit(
    arguments: Mapping[str, Any], notebook: Notebook | None, path: str
) -> Headline:
    mode = str(arguments.get("edit_mode") or "replace")
    path = path or one_line(str(arguments.get("notebook_path", ""))[:300])
    ref = arguments.get("cell_id")
    if mode == "insert":
        place = "first" if ref is None else f"after {shorten_name(str(ref))}"
        kind = _kind_of(arguments.get("cell_type"))
        return Headline(action=f"Add cell {place}", kind=kind, path=path)
    return _describe_cells(_VERBS.get(mode, "Change"), find_cells(ref, notebook), path, ref)


def _kind_of(name: object) -> str:
    return one_line(str(name or "code")[:20])


_KNOWN: dict[str, Callable[[Mapping[str, Any], Notebook | None, str], Headline]] = {
    "GetNotebookCells": _describe_read,
    "GetCellOutputs": partial(_describe_cell, "Read outputs of"),
    "RunNotebookCells": _describe_run,
    "UpdateNotebookCell": partial(_describe_cell, "Update"),
    "AddNotebookCell": _describe_add,
    "notebook": _describe_notebook,
    "NotebookEdit": _describe_notebook_edit,
}
