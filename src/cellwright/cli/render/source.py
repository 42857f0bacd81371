"""The source of code cells in colour: which language, and a theme for any background."""

from __future__ import annotations

import re
from functools import cache

from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Colours that the reader's own terminal defines, so that they suit a light background too.
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


def language_of(metadata: Mapping[str, Any]) -> str:
    """The language of a notebook by what it says about its kernel; Python if it says nothing."""
    info, kernel = metadata.get("language_info"), metadata.get("kernelspec")
    info = info if isinstance(info, dict) else {}
    kernel = kernel if isinstance(kernel, dict) else {}
    # The lexer's name first: a notebook of Sage or IPython names itself there.
    for name in (info.get("pygments_lexer"), info.get("name"), kernel.get("language")):
        if isinstance(name, str) and name:
            return "python" if name.lower().startswith("ipython") else name.lower()
    return "python"


def highlight(source: str, language: str) -> list[Text]:
    """The lines of a source in colour; a cell magic decides about what stands below it."""
    text = Text()
    magic = _magic.match(source)
    if magic:
        text.append(magic[0], _MAGIC)
        source = source[magic.end() :]
        language = _LANGUAGES.get(magic[1], language)
    if source:
        text.append_text(_syntax(language).highlight(source))
    text.rstrip()
    lines = list(text.split("\n"))
    if language == "python":
        for line in lines:
            if line.plain.startswith(("%", "!")):  # IPython's own, no operator
                line.stylize(_MAGIC)
    return lines


@cache
def _syntax(language: str) -> Syntax:
    # Given a name, it would look for the lexer again at every cell.
    lexer = Syntax("", language).lexer
    return Syntax("", lexer if lexer is not None else "text", theme=_theme)
