"""Markdown as it comes: which blocks of it are finished, and which one is still being written."""

from __future__ import annotations

from itertools import pairwise

from rich.markdown import Markdown


class Blocks:
    """A text that grows; nothing that comes later changes what it has given out as finished.

    Only the last block at the top can still change: a paragraph may become a heading, a list a
    longer one. All before it stands.
    """

    def __init__(self) -> None:
        self.open = ""

    def feed(self, text: str) -> list[str]:
        """Add a piece; returns the blocks that it has finished."""
        self.open += text
        if "\n" not in self.open:
            return []
        starts = _starts(self.open)
        if len(starts) < 2:
            return []
        lines = self.open.split("\n")
        finished = ["\n".join(lines[first:last]) for first, last in pairwise(starts)]
        self.open = "\n".join(lines[starts[-1] :])
        return finished

    def end(self) -> list[str]:
        """No more comes; returns what is left."""
        left, self.open = self.open, ""
        return [left] if left.strip() else []


def _starts(text: str) -> list[int]:
    """The first lines of the blocks at the top."""
    return [
        token.map[0]
        for token in Markdown(text).parsed
        if token.level == 0 and token.nesting >= 0 and token.map is not None
    ]
