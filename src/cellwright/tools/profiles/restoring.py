"""From what a model was shown of a text, and gives back, to the text itself."""

from __future__ import annotations

import re

from cellwright.errors import InvalidText
from cellwright.tools.fence import readable

_folded = re.compile(r"⟦[\d,]+ characters of base64 left out⟧")


def restored(content: str, old: str) -> str:
    """A text that was shown and is given back: its lines as they were before they were shown.

    What was hidden in a line, and base64 that was left out of it, comes back with it if the line
    was left alone. Where two lines looked the same, nobody can tell. A file whose lines all end in
    CR LF keeps to that.
    """
    if old.count("\n") == old.count("\r\n") > 0 and "\r" not in content:
        return restored(content, old.replace("\r\n", "\n")).replace("\n", "\r\n")
    before: dict[str, set[str]] = {}
    for line in old.split("\n"):
        before.setdefault(readable(line.removesuffix("\r")), set()).add(line)
    lines = content.split("\n")
    for at, line in enumerate(lines):
        known = before.get(line, set())
        if len(known) == 1 and line not in known:
            lines[at] = next(iter(known))
    return "\n".join(lines)


def whole(text: str, old: str) -> str:
    """The text, if nothing in it says that `read` left something out there."""
    folded = _folded.search(text)
    if folded is not None and folded[0] not in old:
        raise InvalidText(
            "here `read` has left out base64, which would be lost; use `edit`",
            text.count("\n", 0, folded.start()) + 1,
        )
    return text
