"""The head of a prompt file: a few names and values between two lines of dashes.

The part of YAML that such heads use: `name: value`, lists as `[a, b]` or one item a line behind a
dash, quotes, comments.
"""

from __future__ import annotations

import re

Value = str | list[str]

_head = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE).match
_opening = re.compile(r"\A\ufeff?---[ \t]*(?:\n|\Z)").match
_pair = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?").fullmatch
_item = re.compile(r"\s*-\s+(.+)").fullmatch
_comment = re.compile(r"(?:^|\s)#.*$").sub
_QUOTES = "\"'"


class BadFrontMatter(ValueError):
    """A head that cannot be read."""


def split(text: str) -> tuple[dict[str, Value], str]:
    """The values of the head, and the text below it; no values if there is no head.

    Raises:
        BadFrontMatter: there is a head, and it says something that cannot be read.
    """
    text = text.replace("\r\n", "\n")
    found = _head(text)
    if found is None:
        if _opening(text):
            raise BadFrontMatter("it does not end")
        return {}, text.lstrip("\ufeff")
    return _values(found[1]), text[found.end() :]


def _values(head: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    name = ""
    for line in head.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item, pair = _item(line), _pair(line)
        if item is not None and name:
            there = values[name] or []
            if isinstance(there, str):
                raise BadFrontMatter(f"{name} has a value and a list")
            values[name] = [*there, _plain(item[1])]
        elif pair is not None:
            name = pair[1]
            if name in values:
                raise BadFrontMatter(f"{name} is there twice")
            values[name] = _value(pair[2] or "")
        else:
            raise BadFrontMatter(f"the line {line.strip()[:40]!r} means nothing")
    return values


def _value(text: str) -> Value:
    text = text.strip()
    if text.startswith("["):
        inside = _comment("", text).strip()
        if not inside.endswith("]"):
            raise BadFrontMatter("a list does not end")
        return [_plain(item) for item in inside[1:-1].split(",") if item.strip()]
    return _plain(text)


def _plain(text: str) -> str:
    text = text.strip()
    if text[:1] and text[0] in _QUOTES:
        end = text.find(text[0], 1)
        if end < 0 or _comment("", text[end + 1 :]).strip():
            raise BadFrontMatter("a quote does not end")
        return text[1:end]
    return _comment("", text).strip()
