"""Make a stream of text harmless, piece by piece, in memory that does not grow.

A sequence may be cut anywhere between two pieces, and what comes out is the same however the
text was cut. A string for the terminal (a title, a picture) that ends within its line is
dropped; of one longer than `LONGEST_SEQUENCE` only the length is told; one that never ends is
text like any other, but for the two characters that begin it.
"""

from __future__ import annotations

import re
from functools import cache

from cellwright.outputs.sanitize import (
    CSI,
    INSIDE,
    STRING,
    STRING_END,
    find_unsafe,
    show,
    unsafe,
)

LONGEST_SEQUENCE = 4096

ERASE_REST = "\x00"
"""Stands for the sequence that erases from the cursor to the end of the line."""

ERASE_LINE = "\x01"
"""Stands for the sequence that erases the line."""

REWRITES = f"\b\r{ERASE_REST}{ERASE_LINE}"
"""What `Sanitizer(keep_rewrites=True)` lets through, for a reader who carries it out."""

_introducer = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")
_color = re.compile(r"\x1b\[[0-9;:]{0,100}m")
_sequence = re.compile(
    rf"(?P<erase>{CSI}[02]?K)"
    rf"|(?P<whole>{CSI}[0-?]{{0,{LONGEST_SEQUENCE}}}[ -/]{{0,16}}[@-~]"
    rf"|{STRING}{INSIDE}{{0,{LONGEST_SEQUENCE}}}{STRING_END}|\x1b[ -/]{{1,8}}[0-~])"
    rf"|(?P<long>{STRING}{INSIDE}{{{LONGEST_SEQUENCE + 1}}})"
    rf"|(?P<cut>(?:{CSI}[0-?]{{0,{LONGEST_SEQUENCE}}}[ -/]{{0,16}}"
    rf"|{STRING}{INSIDE}{{0,{LONGEST_SEQUENCE}}}\x1b?|\x1b[ -/]{{0,8}})\Z)"
    r"|\x1b[0-~]"
)
_string_end = re.compile(r"[\x07\x1b\x9c\x90\x98\x9d-\x9f\r\n]")
_open_flag = re.compile(r"(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,8}\Z")
_CONTEXT = 4  # how far back one has to look to judge a character
_PLAIN_BYTES = b"\t\n" + bytes(range(0x20, 0x7F))

# Most of what is safe, and all that is common; none of it is judged by what stands before it.
_PLAIN = (
    r"\t\n -~\xa0-\xac\xae-\u02ff\u0370-\u061b\u061d-\u115e\u1161-\u17b3\u1810-\u1aaf"
    r"\u1b00-\u1dbf\u1e00-\u200a\u2010-\u2027\u202f-\u205f\u2070-\u20cf\u2100-\u3163"
    r"\u3165-\ud7ff\uf900-\ufdcf\uff00-\uff9f\U0001f000-\U0001fffd\U00020000-\U0002fffd"
)


@cache
def _patterns(*, keep_rewrites: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What can pass without a look, and what is unsafe; made when first needed."""
    if keep_rewrites:
        return re.compile(f"[{_PLAIN}\r\b]*"), find_unsafe(r"\x00-\x07\x0b\x0c\x0e-\x1f")
    return re.compile(f"[{_PLAIN}]*"), unsafe


class Sanitizer:
    r"""Takes text in pieces of any size and gives it back without anything to obey or hide.

    Only tabs and newlines are left of all controls; `\r\n` is a newline. With `keep_rewrites`
    carriage returns and backspaces are left too, and the two marks above.
    """

    def __init__(self, *, keep_rewrites: bool = False) -> None:
        self._keeps_rewrites = keep_rewrites
        self._plain, self._unsafe = _patterns(keep_rewrites=keep_rewrites)
        self._plain_bytes = _PLAIN_BYTES + b"\r\b" if keep_rewrites else _PLAIN_BYTES
        self._held = ""  # what may be the beginning of a sequence
        self._held_tags = ""  # what may be the middle of a flag
        self._before = ""  # the last characters of the text so far
        self._hidden = 0  # length of the endless string we are in

    def feed(self, text: str) -> str:
        """Give the next piece; returns what is certain by now."""
        if not (self._held or self._hidden or self._held_tags) and self._is_plain(text):
            if text:
                self._before = text[-_CONTEXT:]
            return text
        return "".join(self._feed(text))

    def passes(self, text: bytes) -> bool:
        """Whether ASCII needs no look at all, as most floods: nothing to obey, nothing to rewrite.

        If so it counts as fed, and is its own answer.
        """
        if self._held or self._hidden or self._held_tags or text.translate(None, _PLAIN_BYTES):
            return False
        if text:
            self._before = text[-_CONTEXT:].decode("ascii")
        return True

    def finish(self) -> str:
        """What was held back, as the text that it turned out to be; ready for another stream."""
        held, self._held = self._held, ""
        parts = [] if not self._hidden else [self._tell_hidden()]
        if held[:2] in {"\x1b[", "\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_"}:
            held = held[2:]
        parts.append(self._harmless(held, is_last=True))
        self._before = ""
        return "".join(parts)

    def _feed(self, text: str) -> list[str]:
        text, self._held = self._held + text, ""
        if not self._keeps_rewrites:
            text = text.replace("\r\n", "\n")
            if text.endswith("\r"):
                text, self._held = text[:-1], "\r"
        parts: list[str] = []
        position = 0
        while position < len(text):
            if self._hidden:
                position = self._skip(text, position, parts)
                continue
            position = self._read(text, position, parts)
        return parts

    def _read(self, text: str, position: int, parts: list[str]) -> int:
        """Take text and whole sequences, up to the end or to the start of an endless string."""
        if "\x1b" in text and not position:
            # Nearly always only colours are to be dropped, which can be done at once.
            without = _color.sub("", text)
            if _introducer.search(without) is None:
                parts.append(self._harmless(without))
                return len(text)
        start = position
        while (introducer := _introducer.search(text, start)) is not None:
            start = introducer.start()
            found = _sequence.match(text, start)
            if found is None:  # a sign that introduces nothing is shown
                start += 1
                continue
            parts.append(self._harmless(text[position:start]))
            start = position = found.end()
            kind = found.lastgroup
            if kind == "erase" and self._keeps_rewrites:
                parts.append(ERASE_LINE if "2" in found[0] else ERASE_REST)
            elif kind == "cut":
                # After a sequence that is cut there can only be a `\r` that is held already.
                self._held = found[0] + self._held
                return len(text)
            elif kind == "long":
                self._hidden = len(found[0])
                return position
        parts.append(self._harmless(text[position:]))
        return len(text)

    def _skip(self, text: str, position: int, parts: list[str]) -> int:
        """Look for the end of an endless string; the end of its line will do."""
        found = _string_end.search(text, position)
        end = len(text) if found is None else found.start()
        self._hidden += end - position
        if found is None:
            return end
        if found[0] == "\x1b":
            if end + 1 == len(text):
                self._held = "\x1b" + self._held
                return end + 1
            end += 2 if text[end + 1] == "\\" else 0
        elif found[0] in "\x07\x9c":
            end += 1
        parts.append(self._tell_hidden())
        return end

    def _tell_hidden(self) -> str:
        hidden, self._hidden = self._hidden, 0
        self._before = ">"
        return f"<{hidden:,} characters for a terminal>"

    def _is_plain(self, text: str) -> bool:
        if text.isascii():  # several times faster, and floods are nothing else
            return not text.encode("ascii").translate(None, self._plain_bytes)
        return self._plain.fullmatch(text) is not None

    def _harmless(self, run: str, *, is_last: bool = False) -> str:
        """Text without sequences, with everything shown that was hidden."""
        run, self._held_tags = self._held_tags + run, ""
        if not run:
            return ""
        if self._is_plain(run):
            self._before = (self._before + run[-_CONTEXT:])[-_CONTEXT:]
            return run
        start = len(self._before)
        text = self._before + run
        end = len(text)
        flag = None if is_last else _open_flag.search(text, start)
        if flag is not None:
            end = flag.start()
            self._held_tags = flag[0]
        parts: list[str] = []
        position = start
        for found in self._unsafe.finditer(text, start, end):
            parts.append(text[position : found.start()])
            position = found.end()
            parts.append(show(found))
        parts.append(text[position:end])
        self._before = text[max(0, end - _CONTEXT) : end]
        return "".join(parts)
