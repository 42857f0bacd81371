"""Markdown in a terminal, with rich's parser and our own look.

rich's renderer drops HTML, draws boxes around headings, and puts pictures before their paragraph.
"""

from __future__ import annotations

import re

from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from cellwright.cli.render.colors import highlight
from cellwright.cli.render.layout import BOLD, DIM, FoldedLines, Margin, Stack
from cellwright.cli.render.screen import PROSE_WIDTH
from cellwright.outputs.sanitize import make_visible, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult

    from cellwright.cli.render.screen import ScreenView


_INLINE = {
    "strong_open": BOLD,
    "em_open": Style(italic=True),
    "s_open": Style(strike=True),
    "link_open": Style(underline=True),
}
_CODE = Style(color="cyan")
_HEADING = Style(bold=True, color="blue")
_LONGEST_LINK = 200
_code_fence = re.compile(r" {0,3}(`{3,}|~{3,})")
_display = re.compile(r" {0,3}(?:(\$\$)|\\begin\{([a-z]+\*?)\})")
_code_span = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
# A price is not a formula: an opening $ has no space after it, a closing $ none before it.
_inline = re.compile(r"(?<![\\$])\$(?![\s$])((?:\\.|[^$\\])+?)(?<!\s)\$(?![\d$])")
_punctuation = re.compile(r"([!-/:-@\[-`{-~])")
# A formula that is never closed must not swallow the rest of the cell.
_MOST_LINES = 200
_LONGEST_LINE = 10_000


class MarkdownView:
    """A text in Markdown, no wider than is easy to read."""

    def __init__(self, source: str, view: ScreenView) -> None:
        from rich.markdown import Markdown  # its parser is slow to load, and most cells are code

        tokens = Markdown(protect_formulas(make_visible(source))).parsed
        self.parts = _Builder(tokens, view).blocks(None)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render all blocks."""
        width = min(options.max_width, PROSE_WIDTH)
        yield from console.render(Stack(self.parts), options.update(width=width))


class _Heading:
    """A heading: the first two levels are underlined, the others have their signs."""

    def __init__(self, text: Text, level: int) -> None:
        signs = Text().append("#" * level + " ", DIM)
        self.text = text if level < 3 else signs.append_text(text)
        self.level = level

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text
        if self.level < 3:
            width = min(self.text.cell_len, options.max_width)
            yield Segment("═─"[self.level - 1] * width, DIM)
            yield Segment.line()


class _Rule:
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment("─" * options.max_width, DIM)
        yield Segment.line()


class _Builder:
    """Turns the parser's tokens into blocks."""

    def __init__(self, tokens: Sequence[Token], view: ScreenView) -> None:
        self.tokens = iter(tokens)
        self.view = view

    def blocks(self, end: str | None) -> list[RenderableType]:
        """The blocks before the token `end`."""
        found: list[RenderableType] = []
        for token in self.tokens:
            if token.type == end:
                break
            found.extend(self.block(token))
        return found

    def block(self, token: Token) -> list[RenderableType]:
        kind = token.type
        if kind == "inline":
            return [self.inline(token.children or ())]
        if kind == "heading_open":
            (text,) = self.blocks("heading_close")
            assert isinstance(text, Text)  # noqa: S101  # a heading holds one line of text
            text.stylize_before(_HEADING)
            return [_Heading(text, int(token.tag[1]))]
        if kind == "paragraph_open":
            return [text for text in self.blocks("paragraph_close") if text]
        if kind in {"bullet_list_open", "ordered_list_open"}:
            return [self.list_of(token)]
        if kind == "blockquote_open":
            return [Margin(Stack(self.blocks("blockquote_close")), "▎ ")]
        if kind in {"fence", "code_block"}:
            language = token.info.split()[0] if token.info.split() else "text"
            code = make_visible(token.content)
            lines = highlight(code, language) if self.view.colors else _split_lines(code)
            return [Margin(FoldedLines(lines), "  ")]
        if kind == "table_open":
            return [self.table()]
        if kind == "html_block":
            return self.html(token.content)
        return [_Rule()] if kind == "hr" else []

    def list_of(self, opening: Token) -> RenderableType:
        end = opening.type.replace("open", "close")
        number = int(opening.attrs.get("start", 1)) if opening.tag == "ol" else None
        items: list[RenderableType] = []
        gap = 1
        for token in self.tokens:
            if token.type == end:
                break
            if token.type != "list_item_open":
                continue
            mark = "• " if number is None else f"{number + len(items)}. "
            parts, is_tight = self.item()
            gap = 0 if is_tight else gap
            items.append(Margin(Stack(parts, gap), mark, " " * len(mark)))
        return Stack(items, gap)

    def item(self) -> tuple[list[RenderableType], bool]:
        """The blocks of an item, and whether no empty line separates it from its neighbours."""
        parts: list[RenderableType] = []
        is_tight = False
        for token in self.tokens:
            if token.type == "list_item_close":
                break
            is_tight = is_tight or token.hidden
            parts.extend(self.block(token))
        return parts or [Text()], is_tight

    def table(self) -> RenderableType:
        from cellwright.cli.render.tables import make_table

        table = make_table()
        row: list[Text] = []
        in_head = True
        justify: JustifyMethod = "left"
        for token in self.tokens:
            if token.type == "table_close":
                break
            if token.type in {"th_open", "td_open"}:
                justify = _parse_justify(str(token.attrs.get("style", "")))
            elif token.type == "inline":
                cell = self.inline(token.children or ())
                if in_head:
                    table.add_column(cell, justify=justify)
                row.append(cell)
            elif token.type == "thead_close":
                in_head = False
                row = []
            elif token.type == "tr_close" and not in_head:
                table.add_row(*row)
                row = []
        return table

    def html(self, content: str) -> list[RenderableType]:
        from cellwright.cli.render.tables import read_html, render_table

        width = self.view.width
        found: list[RenderableType] = []
        for block in read_html(content, self.view.limits.html_characters):
            if isinstance(block, Text):
                found.append(block)
            else:
                found.extend(render_table(block, width, self.view.limits.table_rows))
        return found

    def inline(self, tokens: Sequence[Token]) -> Text:
        text = Text()
        styles: list[Style] = []
        links: list[tuple[str, int]] = []
        for token in tokens:
            kind = token.type
            if kind == "link_open":
                links.append((str(token.attrs.get("href", "")), len(text)))
            if kind in _INLINE:
                styles.append(_INLINE[kind])
            elif kind.endswith("_close") and styles:
                styles.pop()
                if kind == "link_close" and links:
                    url, start = links.pop()
                    text.append(_describe_address(url, text.plain[start:]), DIM)
            elif kind == "code_inline":
                mark = "" if self.view.colors else "`"
                text.append(f"{mark}{one_line(token.content)}{mark}", _CODE)
            elif kind == "image":
                text.append(one_line(f"[image: {token.content or token.attrs.get('src')}]"), DIM)
            elif kind == "hardbreak" or (kind == "html_inline" and token.content[:3] == "<br"):
                text.append("\n")
            elif kind == "softbreak":
                text.append(" ")
            elif kind == "text":
                style = Style.combine(styles) if styles else None
                text.append(make_visible(token.content), style)
        return text


def _describe_address(url: str, shown: str) -> str:
    """The address of a link, unless its text says it, or a terminal cannot follow it."""
    is_shown = url in {shown, f"mailto:{shown}"} or url.startswith(("#", "data:"))
    if is_shown or not url:
        return ""
    return one_line(f" ({url[:_LONGEST_LINK]}{'…' if len(url) > _LONGEST_LINK else ''})")


def _parse_justify(style: str) -> JustifyMethod:
    if "right" in style:
        return "right"
    return "center" if "center" in style else "left"


def _split_lines(code: str) -> list[Text]:
    return [Text(line) for line in code.rstrip("\n").split("\n")]


def protect_formulas(source: str) -> str:
    """Keep formulas unchanged by Markdown, where underscores have a meaning.

    Formulas on lines of their own become blocks of LaTeX code; those within a line are escaped.
    """
    if "$" not in source and "\\begin{" not in source:
        return source
    return "\n".join(_protect_lines(source.split("\n")))


def _protect_lines(lines: list[str]) -> Iterator[str]:
    fence = ""
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        found = _code_fence.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
            yield line
        elif found:
            fence = found[1]
            yield line
        elif line.startswith(("    ", "\t")):
            yield line
        else:
            end = _find_end(lines, number - 1)
            if end is None:
                yield _escape_formulas(line)
            else:
                block = "\n".join(lines[number - 1 : end]).strip()
                formula = block.removeprefix("$$").removesuffix("$$").strip()
                yield from ("", "````latex", formula, "````", "")
                number = end


def _find_end(lines: list[str], start: int) -> int | None:
    """The end of a formula that starts at this line, if one does."""
    found = _display.match(lines[start])
    if not found:
        return None
    closing = "$$" if found[1] else f"\\end{{{found[2]}}}"
    if lines[start].rstrip().endswith(closing) and lines[start].strip() != closing:
        return start + 1
    if closing in lines[start][found.end() :]:
        return None  # more text follows it
    for number in range(start + 1, min(len(lines), start + _MOST_LINES)):
        if lines[number].rstrip().endswith(closing):
            return number + 1
    return None


def _escape_formulas(line: str) -> str:
    """Escape the punctuation of formulas in a line, but not in code."""
    if "$" not in line or len(line) > _LONGEST_LINE:
        return line
    result = []
    position = 0
    for span in _code_span.finditer(line):
        result += [_inline.sub(_escape_punctuation, line[position : span.start()]), span[0]]
        position = span.end()
    return "".join([*result, _inline.sub(_escape_punctuation, line[position:])])


def _escape_punctuation(found: re.Match[str]) -> str:
    return _punctuation.sub(r"\\\1", found[0])
