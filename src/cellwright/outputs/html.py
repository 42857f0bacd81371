"""Read HTML outputs as paragraphs and tables, in time linear in their length.

Styles, scripts, comments and everything else that is not text are left out. `read_html` returns
blocks, for the terminal; `html_to_text` returns one text, for models.

The standard library's parser takes minutes for some kilobytes of unclosed comments, and an output
can contain anything. Only a few attributes matter here, so a parser of our own is short.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple, TypeAlias

from cellwright.outputs.sanitize import make_visible
from cellwright.outputs.tables import Grid, OpenTable, render_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Block", "Paragraph", "html_to_text", "read_html"]
_MOST_CHARACTERS = 2_000_000
_LONGEST_TAG = 2000  # with quotes; in a longer one, the first > ends it
_LONGEST_LINK = 200
_LONGEST_CELL = 1000
_DEEPEST = 20  # nested styles; deeper ones are ignored
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
_row = re.compile("<tr[ >]", re.IGNORECASE)
_space = re.compile(r"[ \t\n\f\r]+")
_name = re.compile(r"</?([a-zA-Z][a-zA-Z0-9:-]{0,40})")
_tag = re.compile(r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""")
_attribute = re.compile(
    r"""(?<![\w-])(href|alt|colspan|rowspan)\s{0,9}=\s{0,9}("[^"]*"|'[^']*'|[^\s>"']+)""",
    re.IGNORECASE,
)
_RAW = {
    name: re.compile(f"</{name}", re.IGNORECASE)
    for name in ("script", "style", "svg", "template", "object", "iframe", "head", "title")
}


@dataclass(slots=True)
class Paragraph:
    """A text, as runs with styles: bold, italic, code, strike, dim.

    `heading` is the level of a heading, or 0.
    """

    runs: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    length: int = 0
    heading: int = 0

    @property
    def text(self) -> str:
        """The text without styles."""
        return "".join(run for run, _ in self.runs)

    def add(self, text: str, styles: tuple[str, ...] = ()) -> None:
        """Append a run."""
        self.runs.append((text, styles))
        self.length += len(text)

    def strip_end(self) -> None:
        """Remove white space at the end."""
        while self.runs:
            text, styles = self.runs.pop()
            self.length -= len(text)
            if text := text.rstrip():
                self.add(text, styles)
                return


Block: TypeAlias = Paragraph | Grid


def read_html(html: str, most_characters: int = _MOST_CHARACTERS) -> list[Block]:
    """The paragraphs and tables of HTML, without its styles and scripts.

    Only `most_characters` are read; table rows beyond that are counted.
    """
    end = len(html)
    if end > most_characters:
        end = max(html.rfind("<tr", 0, most_characters), most_characters // 2)
    reader = HtmlReader()
    for part in walk_tags(html[:end]):
        if isinstance(part, str):
            reader.read_text(part)
        elif part.is_closing:
            reader.end(part.name)
        else:
            reader.start(part.name, part.attributes)
    blocks = reader.finish()
    if blocks and isinstance(blocks[-1], Grid):
        blocks[-1].more_rows += sum(1 for _ in _row.finditer(html, end))
    return blocks


def html_to_text(html: str, most_characters: int = _MOST_CHARACTERS) -> str:
    """HTML as text: separate paragraphs, headings marked with `#`, tables in aligned columns.

    Only `most_characters` of the HTML are read; then the last line says how long it is.
    """
    parts: list[str] = []
    for block in read_html(html, most_characters):
        if isinstance(block, Grid):
            parts.append(render_table(block))
        else:
            parts.append("#" * block.heading + " " * bool(block.heading) + block.text.strip("\n"))
    if len(html) > most_characters:
        parts.append(f"[{len(html):,} characters of HTML, not all of them read]")
    # Once more as a whole: joined texts may contain new unsafe sequences.
    return make_visible("\n\n".join(parts))


class HtmlTag(NamedTuple):
    """An opening or closing tag, with the few attributes that are used here."""

    name: str
    is_closing: bool
    attributes: dict[str, str]


def walk_tags(source: str) -> Iterator[str | HtmlTag]:
    """Texts, with character references resolved, and tags, in order.

    Comments, declarations, and elements whose content is not text are left out. A tag or comment
    that is not closed is dropped.
    """
    position = 0
    while True:
        start = source.find("<", position)
        if start < 0:
            yield _unescape(source[position:])
            return
        found = _name.match(source, start)
        if found is None and source[start + 1 : start + 2] not in {"!", "?", "/"}:
            yield _unescape(source[position : start + 1])  # a `<` that opens nothing
            position = start + 1
            continue
        if start > position:
            yield _unescape(source[position:start])
        end = _end(source, start)
        if end < 0:
            return
        position = end
        if found is None:
            continue
        name, is_closing = found[1].lower(), source.startswith("</", start)
        if name in _RAW and not is_closing and source[end - 2] != "/":
            closing = _RAW[name].search(source, end)
            if closing is None:
                return
            position = closing.start()
        elif name not in _RAW:
            attributes = _attribute.findall(source, start, min(end, start + _LONGEST_TAG))
            yield HtmlTag(
                name, is_closing, {key.lower(): _value(value) for key, value in attributes}
            )


def _end(source: str, start: int) -> int:
    """The position after a tag or comment, or -1 if it is never closed."""
    if source.startswith("<!--", start):
        end = source.find("-->", start + 4)
        return end + 3 if end >= 0 else -1
    whole = _tag.match(source, start, start + _LONGEST_TAG)
    return whole.end() if whole else source.find(">", start) + 1 or -1


def _value(quoted: str) -> str:
    return _unescape(quoted[1:-1] if quoted[0] in "\"'" else quoted)


def _unescape(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # a numeric reference with thousands of digits
        return text


class HtmlReader:
    """Collects blocks, tag by tag; open elements are closed at the end."""

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

    # -- tags and texts in order ------------------------------------------------------------

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
            text = make_visible(text)
        if text:
            self.paragraph.add(text, styles)
            self.last = text[-1]

    def break_line(self) -> None:
        if self.last not in {"", "\n"} and self.paragraph.length != self.item_start:
            self.add("\n")

    def end_paragraph(self) -> None:
        """End a paragraph; inside a list or a table, only end the line."""
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
        # In a table cell the address would take too much room.
        if is_plain and not self.tables and self.text_since(start) != make_visible(url):
            self.add(f" ({url})", ("dim",))

    def text_since(self, start: int) -> str:
        """The text from a place on, or nothing if it is longer than a link."""
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
        """All blocks, with those that were left open."""
        self.lists.clear()
        while self.tables:
            self.end_part_of_table("table")
        self.end_paragraph()
        return self.blocks
