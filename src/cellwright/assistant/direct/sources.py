"""The source of a cell, where a sentence spells it out."""

from __future__ import annotations

import ast
import re

_fenced = re.compile(r"(`{3,})[^\n`]*\n(.*?)\n?\1", re.DOTALL).search
_leading = re.compile(
    r"(?:so\s+that\s+it\s+(?:is|says|reads)|(?:that|which)\s+says|to\s+(?:be|say|read)"
    r"|to|with|as|saying|containing)\b",
    re.IGNORECASE,
).match


# Not two quoted texts with something between them.
_quoted = re.compile(r"""`[^`]*`|'[^']*'|"[^"]*\"""").fullmatch


def spelled_out(text: str, kind: str, language: str) -> str | None:
    """The source that the rest of a sentence gives; None if it only tells what it should do.

    It stands in a fenced block, behind a colon, or in quotes. Without any of these, it is taken
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
    if _quoted(words):
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
