"""Read HTML, tag by tag, into paragraphs and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cellwright.outputs.grid import Grid, OpenTable
from cellwright.outputs.sanitize import visible

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_PARAGRAPHS = _HEADINGS | {
    *("address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "fieldset"),
    *("figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "pre"),
    *("section", "summary", "ul"),
}
_ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_MEDIA = {"img": "image", "audio": "audio", "video": "video", "canvas": "canvas"}
_STYLES = {
    **dict.fromkeys(("b", "strong", *_HEADINGS), "bold"),
    **dict.fromkeys(("i", "em", "cite", "var"), "italic"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "code"),
    **dict.fromkeys(("s", "del", "strike"), "strike"),
    **dict.fromkeys(("small", "figcaption"), "dim"),
}
_DEEPEST = 20  # styles and lists inside each other; deeper ones are read, not told apart
_LONGEST_LINK = 200
_LONGEST_CELL = 1000
_space = re.compile(r"[ \t\n\f\r]+")


@dataclass(slots=True)
class Paragraph:
    """A text, as runs that each have some styles: bold, italic, code, strike, dim.

    `heading` is the level of a heading, and 0 for any other text.
    """

    runs: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    length: int = 0
    heading: int = 0

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(run for run, _ in self.runs)

    def add(self, text: str, styles: tuple[str, ...] = ()) -> None:
        """Go on with another run."""
        self.runs.append((text, styles))
        self.length += len(text)

    def strip_end(self) -> None:
        """Take the space at the end away."""
        while self.runs:
            text, styles = self.runs.pop()
            self.length -= len(text)
            if text := text.rstrip():
                self.add(text, styles)
                return


class Reader:
    """Collects blocks, tag by tag; whatever is left open is closed."""

    def __init__(self) -> None:
        self.blocks: list[Paragraph | Grid] = []
        self.paragraph = Paragraph()
        self.last = ""  # the last character of the text
        self.styles: list[tuple[str, str]] = []
        self.style: tuple[str, ...] = ()
        self.tables: list[OpenTable] = []
        self.lists: list[int | None] = []  # the next number of each open list
        self.item_start = -1  # where the text of an item would begin
        self.links: list[tuple[str, int]] = []  # the address, and where in the text it began
        self.preformatted = 0

    # -- what is met on the way -------------------------------------------------------------

    def start(self, tag: str, given: dict[str, str]) -> None:
        if tag in _PARAGRAPHS:
            self.end_paragraph()
        if tag in _HEADINGS:
            self.paragraph.heading = int(tag[1])
        if tag in _STYLES and len(self.styles) < _DEEPEST:
            self.styles.append((tag, _STYLES[tag]))
            self.style = tuple(style for _, style in self.styles)
        if tag == "br":
            self.break_line()
        elif tag == "pre":
            self.preformatted += 1
        elif tag in {"ul", "ol"}:
            self.lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self.start_item()
        elif tag == "a":
            self.links.append((given.get("href", ""), self.paragraph.length))
        elif tag in _MEDIA:
            name = given.get("alt")
            self.add(f"[{_MEDIA[tag]}: {name}]" if name else f"[{_MEDIA[tag]}]", ("dim",))
        else:
            self.start_part_of_table(tag, given)

    def end(self, tag: str) -> None:
        if tag == "a" and self.links:
            self.end_link(*self.links.pop())
        if tag in _PARAGRAPHS:
            self.end_paragraph()
        for number in reversed(range(len(self.styles))):
            if self.styles[number][0] == tag:
                del self.styles[number:]
                self.style = tuple(style for _, style in self.styles)
                break
        if tag == "pre":
            self.preformatted = max(0, self.preformatted - 1)
        elif tag in {"ul", "ol"} and self.lists:
            self.lists.pop()
            self.end_paragraph()
        else:
            self.end_part_of_table(tag)

    def read_text(self, data: str) -> None:
        if not self.preformatted:
            data = _space.sub(" ", data)
            if self.last in {"", " ", "\n"}:
                data = data.lstrip(" ")
        self.add(data, self.style)

    # -- text -------------------------------------------------------------------------------

    def add(self, text: str, styles: tuple[str, ...] = ()) -> None:
        if text:
            text = visible(text)
        if text:
            self.paragraph.add(text, styles)
            self.last = text[-1]

    def break_line(self) -> None:
        if self.last not in {"", "\n"} and self.paragraph.length != self.item_start:
            self.add("\n")

    def end_paragraph(self) -> None:
        """Close a paragraph; inside a list or a table it only ends the line."""
        if self.lists or (self.tables and not self.tables[-1].is_layout):
            self.break_line()
            return
        paragraph = self.take_paragraph()
        if paragraph.runs:
            self.blocks.append(paragraph)

    def take_paragraph(self) -> Paragraph:
        paragraph, self.paragraph = self.paragraph, Paragraph()
        self.last, self.item_start = "", -1
        paragraph.strip_end()
        return paragraph

    def start_item(self) -> None:
        self.break_line()
        number = self.lists[-1] if self.lists else None
        if number is not None:
            self.lists[-1] = number + 1
        depth = max(0, min(len(self.lists), 8) - 1)
        self.add("  " * depth + ("• " if number is None else f"{number}. "))
        self.item_start = self.paragraph.length

    def end_link(self, url: str, start: int) -> None:
        is_plain = url.startswith(("http://", "https://", "mailto:")) and len(url) < _LONGEST_LINK
        # In a cell the address would push everything else out.
        if is_plain and not self.tables and self.shown_since(start) != visible(url):
            self.add(f" ({url})", ("dim",))

    def shown_since(self, start: int) -> str:
        """The text from a place on, or nothing if it is longer than a link can be."""
        length = self.paragraph.length - start
        if not 0 < length < 2 * _LONGEST_LINK:
            return ""
        shown: list[str] = []
        for run, _ in reversed(self.paragraph.runs):
            shown.append(run)
            length -= len(run)
            if length <= 0:
                break
        return "".join(reversed(shown))[-(self.paragraph.length - start) :].strip()

    # -- tables -----------------------------------------------------------------------------

    def start_part_of_table(self, tag: str, given: dict[str, str]) -> None:
        if tag == "table":
            if self.tables:
                self.end_cell()
                for text in self.tables[-1].turn_into_layout():
                    self.blocks.append(Paragraph([(text, ())], len(text)))
            self.end_paragraph()
            self.tables.append(OpenTable())
            return
        if not self.tables or tag not in {"tr", "td", "th", *_ROW_GROUPS}:
            return
        self.end_cell()
        table = self.tables[-1]
        if tag in _ROW_GROUPS:
            table.in_head = tag == "thead"
        elif tag == "tr":
            table.add_row()
        else:
            table.add_cell(given.get("colspan"), given.get("rowspan"), is_label=tag == "th")

    def end_part_of_table(self, tag: str) -> None:
        if not self.tables:
            return
        if tag in {"tr", "td", "th", *_ROW_GROUPS}:
            self.end_cell()
            if tag == "thead":
                self.tables[-1].in_head = False
        elif tag == "caption":
            caption = self.take_paragraph()
            if caption.runs:
                self.blocks.append(caption)
        elif tag == "table":
            self.end_cell()
            table = self.tables.pop()
            grid = table.close()
            if grid is not None:
                self.blocks.append(grid)

    def end_cell(self) -> None:
        table = self.tables[-1]
        if table.is_layout:
            self.end_paragraph()
            return
        text = self.take_paragraph().text
        if text and table.cell is not None and len(table.cell.text) < _LONGEST_CELL:
            table.cell.text = _space.sub(" ", f"{table.cell.text} {text}").strip()

    def finish(self) -> list[Paragraph | Grid]:
        """Everything that was read, also what was left open."""
        self.lists.clear()
        while self.tables:
            self.end_part_of_table("table")
        self.end_paragraph()
        return self.blocks
