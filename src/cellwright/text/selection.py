"""Find the part of a text that a selector asks for."""

from __future__ import annotations

from typing import NamedTuple

from cellwright.errors import InvalidSelector, TooDeep
from cellwright.text.selectors import Selector, parse_selector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.text.headings import Heading
    from cellwright.text.view import TextView

# Lines shown around a single range, to see what it is part of.
_LINES_BEFORE = 1
_LINES_AFTER = 3


class SelectedLine(NamedTuple):
    """A line and its number, counted from 1; `context` if it is outside the selected range."""

    number: int
    text: str
    context: bool = False


class OutlineEntry(NamedTuple):
    """One row of an outline: a heading with its section, or a cell.

    `first` and `last` are the lines of the section or of the cell, marker included. A cell's
    title is the first line of its source that is not blank, and its level that of the heading
    above it, or 0. `cell` is the index of the cell, and `handle` refers to it.
    """

    kind: str
    level: int
    title: str
    first: int
    last: int
    cell: int
    handle: str
    id: str | None
    type: str
    has_outputs: bool

    def to_json(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        return self._asdict()


class Selection:
    """The selected lines, or the entries of an outline; and the totals of the notebook.

    `total_cells` is None for the file's own text, which may be that of any file.
    """

    __slots__ = ("lines", "outline", "selector", "total_cells", "total_lines")

    def __init__(
        self,
        selector: Selector,
        lines: Sequence[SelectedLine],
        total_lines: int,
        total_cells: int | None,
        outline: Sequence[OutlineEntry] = (),
    ) -> None:
        self.selector = selector
        self.lines = lines
        self.outline = outline
        self.total_lines = total_lines
        self.total_cells = total_cells

    @property
    def text(self) -> str:
        """The selected lines, without context."""
        return "\n".join(line.text for line in self.lines if not line.context)


def select(view: TextView, selector: str | Selector) -> Selection:
    """The part of a text that a selector asks for.

    Raises:
        InvalidSelector: it is not valid, finds nothing, or is about the JSON of the file.
        CellNotFound: no cell has this id or position.
        AmbiguousCell: several cells have this id.
    """
    chosen = parse_selector(selector) if isinstance(selector, str) else selector
    if chosen.raw:
        raise InvalidSelector(chosen.text, "it is about the JSON of the file, not about the text")
    total_cells = len(view.cells)
    if chosen.kind == "outline":
        return Selection(chosen, (), len(view.lines), total_cells, outline(view))
    if chosen.kind == "cell":
        from cellwright.document.snapshot import Resolver

        cell = view.cells[Resolver([lines.cell.id for lines in view.cells]).index(chosen.name)]
        lines = _lines(view.lines, cell.marker, cell.last)
    elif chosen.kind == "section":
        section = _section(view, chosen)
        lines = _lines(view.lines, section.first, section.last)
    else:
        lines = _select_lines(view.lines, chosen)
    return Selection(chosen, lines, len(view.lines), total_cells)


def select_raw(text: str, selector: str | Selector) -> Selection:
    """The part of the file's own text that a selector with `raw` asks for.

    Raises:
        InvalidSelector: it is not valid, is not about the JSON, or is past the end.
    """
    chosen = parse_selector(selector) if isinstance(selector, str) else selector
    if not chosen.raw:
        raise InvalidSelector(chosen.text, "it is not about the JSON of the file")
    all_lines = text.removesuffix("\n").split("\n") if text else []
    if chosen.kind == "all":
        lines = _lines(all_lines, 1, len(all_lines))
    else:
        lines = _select_lines(all_lines, chosen)
    return Selection(chosen, lines, len(all_lines), None)


def outline(view: TextView) -> list[OutlineEntry]:
    """Headings and cells in the order of the text, each with its lines."""
    from cellwright.text.headings import find_headings

    by_cell: dict[int, list[Heading]] = {}
    for heading in find_headings(view):
        by_cell.setdefault(heading.cell, []).append(heading)
    entries: list[OutlineEntry] = []
    level = 0
    for index, lines in enumerate(view.cells):
        cell = lines.cell
        facts = (index, cell.handle, cell.id, cell.type, _has_outputs(cell))
        found = by_cell.get(index, [])
        rows = [OutlineEntry("heading", h.level, h.title, h.first, h.last, *facts) for h in found]
        if found and found[0].first == lines.marker:  # the cell is part of what it begins
            entries.append(rows.pop(0))
            level = found[0].level
        title = cell.source.lstrip().partition("\n")[0].rstrip()
        entries.append(OutlineEntry("cell", level, title, lines.marker, lines.last, *facts))
        entries += rows
        level = found[-1].level if found else level
    return entries


def _has_outputs(cell: Cell) -> bool:
    if cell.type != "code":
        return False
    try:
        # The types are known without decoding pictures.
        return bool(cell.output_types or cell.outputs)
    except TooDeep:
        return True


def _lines(
    lines: Sequence[str], first: int, last: int, *, context: bool = False
) -> list[SelectedLine]:
    """Lines `first` to `last` of those there are."""
    last = min(last, len(lines))
    return [
        SelectedLine(number, lines[number - 1], context)
        for number in range(max(first, 1), last + 1)
    ]


def _select_lines(lines: Sequence[str], selector: Selector) -> list[SelectedLine]:
    total = len(lines)
    selected: list[SelectedLine] = []
    for first, last in selector.ranges:
        if first > total:
            raise InvalidSelector(
                selector.text, f"line {first} is past the end", hint=f"There are {total} lines"
            )
        end = total if last is None else min(last, total)
        if selector.has_context:
            selected += _lines(lines, first - _LINES_BEFORE, first - 1, context=True)
        selected += _lines(lines, first, end)
        if selector.has_context:
            selected += _lines(lines, end + 1, end + _LINES_AFTER, context=True)
    return selected


def _section(view: TextView, selector: Selector) -> Heading:
    """The one section with that name; it never guesses."""
    from cellwright.text.headings import find_headings, fold_title, plain_title

    known = find_headings(view)
    found = [h for h in known if fold_title(h.title) == fold_title(selector.name)]
    found = found or [h for h in known if plain_title(h.title) == plain_title(selector.name)]
    if len(found) == 1:
        return found[0]
    if found:
        places = " or ".join(f"{h.first}-{h.last}" for h in found)
        raise InvalidSelector(
            selector.text,
            f"{len(found)} headings have this title",
            hint=f"Ask for the lines: {places}",
        )
    near = _near(plain_title(selector.name), {plain_title(h.title): h.title for h in known})
    if near:
        hint = f"Did you mean {', '.join(f'`{title}`' for title in near)}?"
    elif known:
        hint = f"`outline` lists the {len(known)} headings"
    else:
        hint = "There are no headings; `outline` lists the cells"
    raise InvalidSelector(selector.text, "no heading has this title", hint=hint)


def _near(name: str, titles: dict[str, str]) -> list[str]:
    from difflib import get_close_matches

    holding = [title for title in titles if name and name in title]
    close = get_close_matches(name, titles)
    return [titles[title] for title in dict.fromkeys(holding + close)][:3]
