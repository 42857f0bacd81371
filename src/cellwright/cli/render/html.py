"""Read HTML outputs into texts and tables, as far as a terminal can show them."""

from __future__ import annotations

import re
from typing import TypeAlias

from rich.style import Style
from rich.text import Text

from cellwright.cli.render.grid import Grid, OpenTable
from cellwright.cli.render.layout import BOLD, DIM
from cellwright.cli.render.sanitize import visible
from cellwright.cli.render.tags import walk

Block: TypeAlias = Text | Grid

_PARAGRAPHS = frozenset(
    {"address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "fieldset"}
    | {"figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header"}
    | {"hr", "main", "nav", "ol", "p", "pre", "section", "summary", "ul"}
)
_ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_MEDIA = {"img": "image", "audio": "audio", "video": "video", "canvas": "canvas"}
_STYLES = {
    **dict.fromkeys(("b", "strong", "h1", "h2", "h3", "h4", "h5", "h6"), BOLD),
    **dict.fromkeys(("i", "em", "cite", "var"), Style(italic=True)),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), Style(color="cyan")),
    **dict.fromkeys(("s", "del", "strike"), Style(strike=True)),
    **dict.fromkeys(("small", "figcaption"), DIM),
}
_DEEPEST_STYLE = 20
_LONGEST_LINK = 200
_space = re.compile(r"[ \t\n\f\r]+")


def read_html(html: str, most_characters: int) -> list[Block]:
    """The paragraphs and tables of a piece of HTML, without its styles and scripts.

    Only so much of it is read; rows of a table beyond that are counted.
    """
    end = len(html)
    if end > most_characters:
        end = max(html.rfind("<tr", 0, most_characters), most_characters // 2)
    reader = _Reader()
    for part in walk(html[:end]):
        if isinstance(part, str):
            reader.read_text(part)
        elif part.is_closing:
            reader.end(part.name)
        else:
            reader.start(part.name, part.attributes)
    blocks = reader.finish()
    if blocks and isinstance(blocks[-1], Grid):
        blocks[-1].more_rows = len(re.findall("<tr[ >]", html[end:], re.IGNORECASE))
    return blocks


def is_about_tables(blocks: list[Block]) -> bool:
    """Whether there is a table, and not only beside more text than it holds."""
    beside = sum(len(block) for block in blocks if isinstance(block, Text))
    inside = sum(block.characters for block in blocks if isinstance(block, Grid))
    return inside > 0 and beside <= max(40, inside)


class _Reader:
    """Collects blocks, tag by tag; whatever is left open is closed."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.text = Text()
        self.last = ""  # the last character of the text
        self.styles: list[tuple[str, Style]] = []
        self.tables: list[OpenTable] = []
        self.lists: list[int | None] = []  # the next number of each open list
        self.item_start = -1  # where the text of an item would begin
        self.links: list[tuple[str, list[str]]] = []
        self.preformatted = 0

    # -- what is met on the way -------------------------------------------------------------

    def start(self, tag: str, given: dict[str, str]) -> None:
        if tag in _PARAGRAPHS:
            self.end_paragraph()
        if tag in _STYLES and len(self.styles) < _DEEPEST_STYLE:
            self.styles.append((tag, _STYLES[tag]))
        if tag == "br":
            self.break_line()
        elif tag == "pre":
            self.preformatted += 1
        elif tag in {"ul", "ol"}:
            self.lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self.start_item()
        elif tag == "a":
            self.links.append((given.get("href", ""), []))
        elif tag in _MEDIA:
            name = given.get("alt")
            self.add(f"[{_MEDIA[tag]}: {name}]" if name else f"[{_MEDIA[tag]}]", DIM)
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
        self.add(data, Style.combine(style for _, style in self.styles) if self.styles else None)

    # -- text -------------------------------------------------------------------------------

    def add(self, text: str, style: Style | None = None) -> None:
        if text:
            text = visible(text)
            self.text.append(text, style)
            self.last = text[-1]
            for _, shown in self.links[-1:]:
                shown.append(text)

    def break_line(self) -> None:
        if self.last not in {"", "\n"} and len(self.text) != self.item_start:
            self.add("\n")

    def end_paragraph(self) -> None:
        """Close a paragraph; inside a list or a table it only ends the line."""
        if self.lists or (self.tables and not self.tables[-1].is_layout):
            self.break_line()
            return
        text = self.take_text()
        if text.plain.strip():
            self.blocks.append(text)

    def take_text(self) -> Text:
        text, self.text = self.text, Text()
        self.last, self.item_start = "", -1
        text.rstrip()
        return text

    def start_item(self) -> None:
        self.break_line()
        number = self.lists[-1] if self.lists else None
        if number is not None:
            self.lists[-1] = number + 1
        depth = max(0, min(len(self.lists), 8) - 1)
        self.add("  " * depth + ("• " if number is None else f"{number}. "))
        self.item_start = len(self.text)

    def end_link(self, url: str, shown: list[str]) -> None:
        is_plain = url.startswith(("http://", "https://", "mailto:")) and len(url) < _LONGEST_LINK
        # In a cell the address would push everything else out.
        if is_plain and "".join(shown).strip() != url and not self.tables:
            self.add(f" ({url})", DIM)

    # -- tables -----------------------------------------------------------------------------

    def start_part_of_table(self, tag: str, given: dict[str, str]) -> None:
        if tag == "table":
            if self.tables:
                self.end_cell()
                self.blocks += map(Text, self.tables[-1].turn_into_layout())
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
            caption = self.take_text()
            if caption.plain.strip():
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
        text = self.take_text().plain
        if table.cell is not None:
            table.cell.text = _space.sub(" ", f"{table.cell.text} {text}").strip()

    def finish(self) -> list[Block]:
        """Everything that was read, also what was left open."""
        self.lists.clear()
        while self.tables:
            self.end_part_of_table("table")
        self.end_paragraph()
        return self.blocks
