"""Sizes of text: numbers for people, tokens, whole characters, and both ends of a long text."""

from __future__ import annotations

import re
from functools import cache, lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Tokens of a piece of text, and of each of its characters beyond the first three.
_TOKENS = {
    "word": (1, 0.25),
    "capitals": (1.5, 0.5),
    "digits": (1, 0),
    "apart": (2, 0),
    "lines": (0.9, 0),
    "space": (1, 0),
    "row": (1.25, 0.125),
    "sign": (0.9, 0),
    "near": (1, 0.5),
    "cjk": (1.7, 0.85),
    "far": (2.2, 0),
}


def estimate_tokens(text: str) -> float:
    """How many tokens a text has for a language model, without a model's vocabulary.

    The estimate is rather too high: for real notebooks OpenAI's o200k counts at most a tenth more,
    and usually a quarter less. It reads words, numbers and signs as such tokenizers do.
    """
    return _estimate_once(text) if len(text) <= _SHORT else _estimate(text)


def _estimate(text: str) -> float:
    total = 0.0
    for piece in _piece_pattern().finditer(text):  # as below, without a step for each piece
        first, more = _TOKENS[piece.lastgroup]  # type: ignore[index]  # one group always matches
        start, end = piece.span()
        total += first + more * (end - start - 3) if end - start > 3 else first
    return total


_SHORT = 200
# The same rows are shown again and again: cells in an outline, lines of a head.
_estimate_once = lru_cache(maxsize=4096)(_estimate)


def count_fitting(text: str, tokens: float) -> int:
    """How many characters from the beginning of a text have at most so many tokens."""
    for start, cost in _split_into_tokens(text):
        tokens -= cost
        if tokens < 0:
            return start
    return len(text)


def _split_into_tokens(text: str) -> Iterator[tuple[int, float]]:
    """Where each piece of a text begins, and its tokens."""
    for piece in _piece_pattern().finditer(text):
        first, more = _TOKENS[str(piece.lastgroup)]
        beyond = piece.end() - piece.start() - 3
        yield piece.start(), first + more * beyond if beyond > 0 else first


@cache
def _piece_pattern() -> re.Pattern[str]:  # when needed: most commands count no tokens
    return re.compile(
        r"(?P<word>[A-Z]?[a-z]+)|(?P<capitals>[A-Z]+)|(?P<digits>[0-9]{1,3})"
        r"|(?P<apart> [0-9]{1,3})|(?P<lines>\n+)|(?P<space>[^\S\n]+(?=[^\S\n])|\t+)"
        r"|(?P<row>(?P<one>[!-/:-@\[-`{-~\u2500-\u259f])(?P=one){3,})|(?P<sign>[!-/:-@\[-`{-~])"
        r"|(?P<near>[\u0080-\u0eff]+)"
        r"|(?P<cjk>[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff\uff00-\uffef]+)|(?P<far>[^\x00-\x7f])"
    )


def human_size(size: int) -> str:
    """A number of bytes for people, such as `1.2 MB`."""
    if size < 1000:
        return f"{size} B"
    number = float(size)
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 999.5 or unit == "GB":
            break
    return f"{number:,.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"


class HeadAndTail:
    """Keeps the first and the last bytes of something long, and counts those between.

    Of the end, a quarter more is kept than requested, so that bytes are rarely moved. The result
    depends only on the bytes that were added, not on how they were split into pieces.
    """

    __slots__ = ("_most", "_tail_limit", "head", "head_limit", "lost", "tail")

    def __init__(self, head_limit: int, tail_limit: int) -> None:
        self.head_limit = head_limit
        self.head = bytearray()
        self.lost = 0
        self.tail = bytearray()
        self._tail_limit = tail_limit
        self._most = tail_limit + max(1, tail_limit // 4)

    def __len__(self) -> int:
        return len(self.head) + self.lost + len(self.tail)

    def add(self, data: bytes | bytearray) -> None:
        """Append bytes."""
        room = self.head_limit - len(self.head)
        if room > 0 and not (self.tail or self.lost):
            self.head += data[:room]
            data = data[room:]
        over = len(self.tail) + len(data) - self._most
        if over >= 0:  # drop as many parts as would have been dropped piece by piece
            part = self._most - self._tail_limit
            cut = part * (over // part + 1)
            data = data[max(0, cut - len(self.tail)) :]
            del self.tail[:cut]
            self.lost += cut
        self.tail += data

    def add_all(self, other: HeadAndTail) -> None:
        """Append what `other` holds; it must have the same limits."""
        self.add(other.head)
        if other.lost:
            # Its head has filled ours, and its tail is longer than what we would keep.
            self.lost += len(self.tail) + other.lost
            self.tail.clear()
        self.add(other.tail)

    def take_back_character(self) -> None:
        """Remove the last UTF-8 character, if one is kept."""
        while kept := self.tail or (bytearray() if self.lost else self.head):
            if kept.pop() & 0xC0 != 0x80:
                return

    def clear(self) -> None:
        """Forget everything."""
        self.head.clear()
        self.tail.clear()
        self.lost = 0

    def copy(self) -> HeadAndTail:
        """A copy with the same content."""
        other = HeadAndTail(self.head_limit, self._tail_limit)
        other.add_all(self)
        return other


def whole_start(data: bytes | bytearray | memoryview, position: int) -> int:
    """The first place from `position` on where a UTF-8 character begins."""
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position


def whole_end(data: bytes | bytearray | memoryview, position: int) -> int:
    """The last place up to `position` where a UTF-8 character ends."""
    if position >= len(data):
        return len(data)
    while position > 0 and data[position] & 0xC0 == 0x80:
        position -= 1
    return position
