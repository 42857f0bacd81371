"""Selectors of a part of a notebook: `nb.ipynb:5-16`, `:cell=ID`, `:section=Heading`."""

from __future__ import annotations

import re

from cellwright.errors import InvalidSelector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    Kind = Literal["all", "lines", "cell", "section", "outline"]

_range = re.compile(r"([0-9]{1,18})(?:(-)([0-9]{1,18})?|\+([0-9]{1,18}))?").fullmatch


class Selector:
    """A parsed selector.

    `kind` is what it selects: `lines` by `ranges` (first and last, counted from 1; None for up
    to the end), a `cell` or `section` by `name`, the `outline`, or `all`. With `raw` it is about
    the JSON of the file and not about the text. With `has_context`, lines around the ranges are
    shown too.
    """

    __slots__ = ("has_context", "kind", "name", "ranges", "raw", "text")

    def __init__(
        self,
        text: str,
        kind: Kind,
        *,
        name: str = "",
        ranges: Sequence[tuple[int, int | None]] = (),
        raw: bool = False,
        has_context: bool = False,
    ) -> None:
        self.text = text
        self.kind = kind
        self.name = name
        self.ranges = ranges
        self.raw = raw
        self.has_context = has_context

    def __repr__(self) -> str:
        return f"<Selector {self.text}>"


def parse_selector(text: str) -> Selector:
    """Parse a selector.

    Raises:
        InvalidSelector: it has none of the known forms, or a range is not valid.
    """
    if text == "outline":
        return Selector(text, "outline")
    if text == "raw":
        return Selector(text, "all", raw=True)
    kind, equals, name = text.partition("=")
    if equals and kind in ("cell", "section"):
        if not name.strip():
            raise InvalidSelector(text, f"which {kind}?")
        return Selector(text, "cell" if kind == "cell" else "section", name=name.strip())
    listed, colon, raw = text.rpartition(":")
    if colon and raw != "raw":
        raw, colon, listed = text.partition(":")
    if colon and raw != "raw":
        raise InvalidSelector(text, "only `raw` can be added to a range")
    ranges = [_parse_range(part.strip(), text) for part in (listed or text).split(",")]
    return Selector(
        text,
        "lines",
        ranges=_merge_ranges(ranges),
        raw=bool(colon),
        has_context=len(ranges) == 1 and ranges[0][1] is not None,
    )


def _parse_range(part: str, selector: str) -> tuple[int, int | None]:
    found = _range(part)
    if found is None:
        raise InvalidSelector(
            selector, f"`{part}` is not a range of lines" if part else "it is empty"
        )
    first = int(found[1])
    if first == 0:
        raise InvalidSelector(selector, "lines are counted from 1")
    if found[4]:
        if int(found[4]) == 0:
            raise InvalidSelector(selector, f"`{part}` asks for no line")
        return first, first + int(found[4]) - 1
    if not found[2]:
        return first, first
    last = int(found[3]) if found[3] else None
    if last is not None and last < first:
        raise InvalidSelector(selector, f"`{part}` ends before it begins")
    return first, last


def _merge_ranges(ranges: Sequence[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """The ranges in order, joined where they overlap or touch."""
    merged: list[tuple[int, int | None]] = []
    for first, last in sorted(ranges, key=lambda pair: pair[0]):
        if merged:
            start, end = merged[-1]
            if end is None or first <= end + 1:
                merged[-1] = start, None if end is None or last is None else max(end, last)
                continue
        merged.append((first, last))
    return merged


def split_path(text: str, exists: Callable[[str], bool]) -> tuple[str, str | None]:
    """Split `NB[:SELECTOR]` into the path, and the selector if there is one.

    A file that exists wins, the longest name first, so a colon in its name does not start a
    selector. If no file exists, the path ends before the first valid selector, or else after
    `.ipynb`.
    """
    if exists(text):
        return text, None
    colons = [at for at, character in enumerate(text) if character == ":" and at]
    for at in reversed(colons):
        if exists(text[:at]):
            return text[:at], text[at + 1 :]
    for at in colons:
        try:
            parse_selector(text[at + 1 :])
        except InvalidSelector:
            continue
        return text[:at], text[at + 1 :]
    path, ending, selector = text.partition(".ipynb:")
    return (path + ".ipynb", selector) if ending else (text, None)
