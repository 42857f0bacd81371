"""Walk through HTML, tag by tag, in time linear in its length.

The standard library's parser takes minutes for some kilobytes of unclosed comments. Outputs can
hold anything, and only a few attributes matter here, so that a walk of our own is short.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Tag(NamedTuple):
    """An opening or closing tag; `attributes` are those of the few that anybody asks for."""

    name: str
    is_closing: bool
    attributes: dict[str, str]


_LONGEST_TAG = 2000  # with quotes; where it is longer, the first > ends it
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


def walk(source: str) -> Iterator[str | Tag]:
    """Texts, with their references resolved, and tags, in order.

    Comments, declarations, and elements whose content is no text are left out; what is left
    open at the end is dropped.
    """
    position = 0
    while True:
        start = source.find("<", position)
        if start < 0:
            yield _resolved(source[position:])
            return
        found = _name.match(source, start)
        if found is None and source[start + 1 : start + 2] not in {"!", "?", "/"}:
            yield _resolved(source[position : start + 1])  # a sign that opens nothing
            position = start + 1
            continue
        if start > position:
            yield _resolved(source[position:start])
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
            yield Tag(name, is_closing, {key.lower(): _value(value) for key, value in attributes})


def _end(source: str, start: int) -> int:
    """The position after a tag or comment, or -1 if it is never closed."""
    if source.startswith("<!--", start):
        end = source.find("-->", start + 4)
        return end + 3 if end >= 0 else -1
    whole = _tag.match(source, start, start + _LONGEST_TAG)
    return whole.end() if whole else source.find(">", start) + 1 or -1


def _value(quoted: str) -> str:
    return _resolved(quoted[1:-1] if quoted[0] in "\"'" else quoted)


def _resolved(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a reference by a number of thousands of digits
        return text
