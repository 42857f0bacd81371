"""Text in colour: source code, and printed text with colours of its own."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import islice

from rich.color import Color, ColorSystem
from rich.console import Console
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

from cellwright.outputs.sanitize import fold_lines, split_colors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any


# Colours that the terminal defines, so that they suit a light background, too.
# The keys are token types of pygments, which are tuples of their names.
_theme = ANSISyntaxTheme(
    {
        ("Comment",): Style(dim=True, italic=True),
        ("Keyword",): Style(color="magenta"),
        ("Keyword", "Constant"): Style(color="cyan"),
        ("Operator", "Word"): Style(color="magenta"),
        ("Name", "Builtin"): Style(color="cyan"),
        ("Name", "Builtin", "Pseudo"): Style(italic=True),
        ("Name", "Function"): Style(color="blue"),
        ("Name", "Class"): Style(color="blue", bold=True),
        ("Name", "Decorator"): Style(color="yellow"),
        ("Name", "Tag"): Style(color="blue"),
        ("Name", "Attribute"): Style(color="cyan"),
        ("Name", "Exception"): Style(color="cyan"),
        ("Literal", "String"): Style(color="green"),
        ("Literal", "String", "Doc"): Style(color="green", italic=True),
        ("Literal", "String", "Escape"): Style(color="yellow"),
        ("Literal", "String", "Interpol"): Style(color="yellow"),
        ("Literal", "Number"): Style(color="cyan"),
    }
)
_MAGIC = Style(color="yellow")
_magic = re.compile(r"%%(\w+)[^\n]*(?:\n|$)")
_LANGUAGES = {
    "bash": "bash",
    "sh": "bash",
    "script": "bash",
    "cmd": "batch",
    "cython": "cython",
    "html": "html",
    "HTML": "html",
    "javascript": "javascript",
    "js": "javascript",
    "latex": "latex",
    "markdown": "markdown",
    "perl": "perl",
    "R": "r",
    "ruby": "ruby",
    "sql": "sql",
    "svg": "xml",
    "SVG": "xml",
}
# Blinking and concealed text is left out: the one annoys, the other hides.
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {
    21: ("bold",),
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
    39: ("color",),
    49: ("bgcolor",),
}


def language_of(metadata: Mapping[str, Any]) -> str:
    """The language of a notebook by its metadata; Python if that does not say."""
    info, kernel = metadata.get("language_info"), metadata.get("kernelspec")
    info = info if isinstance(info, dict) else {}
    kernel = kernel if isinstance(kernel, dict) else {}
    # The lexer's name first: a notebook of Sage or IPython names itself there.
    for name in (info.get("pygments_lexer"), info.get("name"), kernel.get("language")):
        if isinstance(name, str) and name:
            return "python" if name.lower().startswith("ipython") else name.lower()
    return "python"


def highlight(source: str, language: str) -> list[Text]:
    """The lines of a source in colour; a cell magic sets the language of the lines below it."""
    text = Text()
    magic = _magic.match(source)
    if magic:
        text.append(magic[0], _MAGIC)
        source = source[magic.end() :]
        language = _LANGUAGES.get(magic[1], language)
    if source:
        text.append_text(_find_syntax(language).highlight(source))
    text.rstrip()
    lines = list(text.split("\n"))
    if language == "python":
        for line in lines:
            if line.plain.startswith(("%", "!")):  # IPython's own, no operator
                line.stylize(_MAGIC)
    return lines


@cache
def _find_syntax(language: str) -> Syntax:
    # Given a name, it would look for the lexer again at every cell.
    lexer = Syntax("", language).lexer
    return Syntax("", lexer if lexer is not None else "text", theme=_theme)


def style_printed(
    line: str, state: dict[str, Any], width: int | None = None, *, colored: bool
) -> str:
    """A printed line in its last state, for a terminal: its colours stay, nothing else does.

    `state` is the colour that lasts from the lines before; it is changed. The line is cropped to a
    width, if one is given.
    """
    (text,) = style_lines(fold_lines(line), state)
    if width is not None:
        text.expand_tabs(8)
        text.truncate(width, overflow="ellipsis")
    if not colored:
        return text.plain
    console = Console(force_terminal=True, color_system="truecolor", legacy_windows=False)
    return "".join(
        piece if style is None else style.render(piece, color_system=ColorSystem.TRUECOLOR)
        for piece, style, _ in text.render(console)
    )


def style_lines(lines: Iterable[str], state: dict[str, Any] | None = None) -> list[Text]:
    """Read the colours of printed lines into styles; a colour lasts until the next one.

    `state` is the colour that they begin with, and is changed to the one that they end with.
    """
    state = {} if state is None else state
    result = []
    for line in lines:
        text = Text()
        for parameters, piece in split_colors(line):
            if parameters is not None:
                _update_state(state, parameters)
            text.append(piece, _make_style(tuple(state.items())) if state else None)
        result.append(text)
    return result


def _update_state(state: dict[str, Any], parameters: str) -> None:
    fields = iter(parameters.split(";"))
    for field in fields:
        head, *rest = field.split(":")
        code = _parse_number(head)
        if code == 0:
            state.clear()
        elif code in (38, 48):
            color = _parse_color(iter([rest[0], *rest[1:][-3:]]) if rest else fields)
            if color is not None:
                state["color" if code == 38 else "bgcolor"] = color
        elif code in _ON:
            state[_ON[code]] = True
            if rest == ["0"]:  # 4:0 switches the underline off
                state.pop(_ON[code])
        elif code in _OFF:
            for name in _OFF[code]:
                state.pop(name, None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            state["color"] = Color.from_ansi(code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            state["bgcolor"] = Color.from_ansi(code - 40 if code < 100 else code - 92)


def _parse_color(fields: Iterator[str]) -> Color | None:
    """A colour of 256, or in RGB; None if it is invalid."""
    kind = _parse_number(next(fields, ""))
    numbers = [_parse_number(field) for field in islice(fields, {5: 1, 2: 3}.get(kind, 0))]
    if not all(0 <= number <= 255 for number in numbers):
        return None
    if len(numbers) == 3:
        return Color.from_rgb(*numbers)
    return Color.from_ansi(numbers[0]) if numbers else None


def _parse_number(field: str) -> int:
    return int(field[:4]) if field else 0


@lru_cache(512)
def _make_style(state: tuple[tuple[str, Any], ...]) -> Style:
    wanted = dict(state)
    if wanted.get("color") == wanted.get("bgcolor"):  # text in the colour of its background
        wanted.pop("color", None)
        wanted.pop("bgcolor", None)
    return Style(**wanted)
