"""Make text from a notebook safe for a terminal and for a model.

A notebook can contain anything: sequences that move the cursor, rename the window or fill the
clipboard, marks that reorder or hide what a person reads. All text that is shown passes through
here. `make_visible` is for what a person wrote: it shows everything that is hidden. `fold_lines`,
`split_colors` and `render_printed` are for what a program printed, with progress bars and colours.

`Sanitizer` is for text that comes in pieces, and its memory does not grow. A sequence can be split
anywhere between two pieces; the result does not depend on the pieces. A string for the terminal (a
title, a picture) that ends within its line is dropped; one longer than `LONGEST_SEQUENCE` is
replaced by its length; one that never ends is normal text, without its first two characters.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Everything that a terminal may obey or a person cannot see, except tab and newline: C0, DEL and
# C1 controls, bidirectional marks, zero-width characters, fillers, variation selectors, line
# separators, surrogates, private use (kitty draws pictures for some), tags and non-characters.
_CONTROLS = r"\x00-\x08\x0b-\x1f"
_UNSAFE = (
    r"\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
    + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 14))
)
# More marks on one letter than any language uses; they would cover the lines around it.
_MARKS = r"\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_MANY_MARKS = f"(?<=[{_MARKS}]{{4}})[{_MARKS}]+"
# Joiners and variation selectors that belong to an emoji. They are dropped rather than shown:
# terminals disagree on the width of a joined emoji, and agree on that of its parts.
_IN_EMOJI = (
    r"(?<=[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f#*0-9"
    r"\U0001f000-\U0001faff])[\u200d\ufe0e\ufe0f]"
    r"|(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,8}\U000e007f"
)
# Scripts whose letters take another shape next to these, which have no width themselves.
_IN_LETTERS = r"(?<=[\u0600-\u0fff\u1780-\u18af])[\u200c\u200d]"


def _compile_unsafe(controls: str) -> re.Pattern[str]:
    """A pattern for everything that is not safe to show, with these control characters."""
    context = f"(?P<dropped>{_IN_EMOJI}|{_MANY_MARKS})|(?P<letters>{_IN_LETTERS})"
    return re.compile(f"{context}|[{controls}{_UNSAFE}]")


unsafe = _compile_unsafe(_CONTROLS)
_CSI = r"(?:\x1b\[|\x9b)"
_STRING = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])"  # the start of DCS, SOS, OSC, PM and APC
# What such a string may contain. A new string ends it, so a scan of many stays linear.
_INSIDE = r"[^\x07\x1b\x9c\x90\x98\x9d-\x9f\r\n]"
_STRING_END = r"(?:\x07|\x1b\\|\x9c)"
_sequence = re.compile(
    rf"{_CSI}(?P<sgr>[0-9;:]*)m"
    rf"|{_CSI}[0-?]*[ -/]*[@-~]"
    rf"|{_STRING}{_INSIDE}*{_STRING_END}"
    r"|\x1b[ -/]+[0-~]|\x1b[0-~]"  # character sets; everything of two characters
)
_token = re.compile(f"{_sequence.pattern}|.", re.DOTALL)
_LONGEST_REWRITTEN_LINE = 100_000
LONGEST_SEQUENCE = 4096
ERASE_REST = "\x00"
"""Means the sequence that erases from the cursor to the end of the line."""
ERASE_LINE = "\x01"
"""Means the sequence that erases the line."""
REWRITES = f"\b\r{ERASE_REST}{ERASE_LINE}"
"""What `Sanitizer(keep_rewrites=True)` lets through, for a reader that applies it."""
_CONTEXT = 4  # how many characters before another decide whether it is safe
_PLAIN_BYTES = b"\t\n" + bytes(range(0x20, 0x7F))
# Common safe characters; for none of them does the character before matter.
_PLAIN = (
    r"\t\n -~\xa0-\xac\xae-\u02ff\u0370-\u061b\u061d-\u115e\u1161-\u17b3\u1810-\u1aaf"
    r"\u1b00-\u1dbf\u1e00-\u200a\u2010-\u2027\u202f-\u205f\u2070-\u20cf\u2100-\u3163"
    r"\u3165-\ud7ff\uf900-\ufdcf\uff00-\uff9f\U0001f000-\U0001fffd\U00020000-\U0002fffd"
)


def make_visible(text: str) -> str:
    """The text with everything visible that was hidden; only tabs and newlines stay as they are.

    Control characters become their symbols (`␛`), others their number (`<U+202E>`).
    """
    if text.isascii() and text.isprintable():
        return text
    return unsafe.sub(show_unsafe, text.replace("\r\n", "\n"))


def make_all_visible(value: Any) -> Any:
    """A value of JSON with nothing hidden in its texts."""
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, dict):
        return {one_line(str(name)): make_all_visible(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [make_all_visible(each) for each in value]
    return value


def one_line(text: str) -> str:
    """The text made visible, including tabs and newlines: for names and headings."""
    return (
        make_visible(text.replace("\r", "\u240d")).replace("\n", "\u240a").replace("\t", "\u2409")
    )


_LEAST_REPEATS = 4
_LONGEST_BLOCK = 60  # lines: a cycle of some ten functions


def fold_repeats(text: str) -> str:
    """The text with blocks of lines that come again and again said once, as frames of a recursion.

    A block may be several frames: functions that call each other.
    """
    lines = text.split("\n")
    if len(lines) < _LEAST_REPEATS * 2:
        return text
    folded: list[str] = []
    at = filled = 0
    while at < len(lines):
        filled = max(filled, at)
        while filled < len(lines) and not lines[filled].strip():
            filled += 1
        length, times = _find_repeat(lines, at, filled - at + 1)
        folded += lines[at : at + length]
        if times > 1:
            what = "line" if length == 1 else f"{length} lines"
            folded.append(f"[the same {what} {times - 1:,} more times]")
        at += length * times
    return "\n".join(folded)


def _find_repeat(lines: list[str], at: int, least: int) -> tuple[int, int]:
    """How long the block is that begins there and repeats itself, and how often it comes.

    A block of less than `least` lines is empty: of many empty lines, each would be compared with
    all that are behind it.
    """
    for length in range(least, _LONGEST_BLOCK + 1):
        if at + length >= len(lines) or lines[at + length] != lines[at]:
            continue
        block = lines[at : at + length]
        times = 1
        while lines[at + times * length : at + (times + 1) * length] == block:
            times += 1
        if times >= _LEAST_REPEATS:
            return length, times
    return 1, 1


def fold_lines(text: str) -> list[str]:
    """The lines of what a program printed, each in its last state.

    A carriage return starts the line again, as progress bars do, and a backspace removes a
    character. Escape sequences stay, for `split_colors`.
    """
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    if "\b" in text:
        lines = [_apply_backspaces(line) if "\b" in line else line for line in lines]
    return lines


def split_colors(line: str) -> Iterator[tuple[str | None, str]]:
    """Split a printed line at its colours: the parameters of each, and the text after it.

    All other sequences are removed, and the text is made visible. The first piece has no colour
    before it.
    """
    parameters: str | None = None
    text: list[str] = []
    position = 0
    for found in _sequence.finditer(line):
        text.append(line[position : found.start()])
        position = found.end()
        if found["sgr"] is not None:
            yield parameters, make_visible("".join(text))
            parameters, text = found["sgr"], []
    text.append(line[position:])
    yield parameters, make_visible("".join(text))


def render_printed(text: str) -> str:
    """What a program printed, without colours: lines in their last state, nothing hidden."""
    return "\n".join("".join(piece for _, piece in split_colors(line)) for line in fold_lines(text))


def show_unsafe(found: re.Match[str]) -> str:
    """The text to show in place of a match of `unsafe`."""
    if found["dropped"] is not None:
        return ""
    character = found[0]
    if found["letters"] is not None:
        return character if character == "\u200c" else ""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def _apply_backspaces(line: str) -> str:
    """Apply the backspaces of a line."""
    if len(line) > _LONGEST_REWRITTEN_LINE:
        return line
    kept: list[str] = []
    colors: list[str] = []
    for found in _token.finditer(line):
        part = found[0]
        if len(part) > 1:
            colors.append(part)
        elif part == "\b":
            if kept:  # the colours before the character stay
                colors.insert(0, kept.pop()[:-1])
        else:
            kept.append("".join(colors) + part)
            colors.clear()
    return "".join(kept + colors)


class _StreamPatterns(NamedTuple):
    """What a `Sanitizer` looks for; compiled for the first one, because that takes a while."""

    plain: re.Pattern[str]
    unsafe: re.Pattern[str]
    introducer: re.Pattern[str]
    color: re.Pattern[str]
    sequence: re.Pattern[str]
    string_end: re.Pattern[str]
    open_flag: re.Pattern[str]


@cache
def _stream_patterns(*, keep_rewrites: bool) -> _StreamPatterns:
    controls = r"\x00-\x07\x0b\x0c\x0e-\x1f"
    return _StreamPatterns(
        plain=re.compile(f"[{_PLAIN}\r\b]*" if keep_rewrites else f"[{_PLAIN}]*"),
        unsafe=_compile_unsafe(controls) if keep_rewrites else unsafe,
        introducer=re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]"),
        color=re.compile(r"\x1b\[[0-9;:]{0,100}m"),
        sequence=re.compile(
            rf"(?P<erase>{_CSI}[02]?K)"
            rf"|(?P<whole>{_CSI}[0-?]{{0,{LONGEST_SEQUENCE}}}[ -/]{{0,16}}[@-~]"
            rf"|{_STRING}{_INSIDE}{{0,{LONGEST_SEQUENCE}}}{_STRING_END}|\x1b[ -/]{{1,8}}[0-~])"
            rf"|(?P<long>{_STRING}{_INSIDE}{{{LONGEST_SEQUENCE + 1}}})"
            rf"|(?P<cut>(?:{_CSI}[0-?]{{0,{LONGEST_SEQUENCE}}}[ -/]{{0,16}}"
            rf"|{_STRING}{_INSIDE}{{0,{LONGEST_SEQUENCE}}}\x1b?|\x1b[ -/]{{0,8}})\Z)"
            r"|\x1b[0-~]"
        ),
        string_end=re.compile(r"[\x07\x1b\x9c\x90\x98\x9d-\x9f\r\n]"),
        open_flag=re.compile(r"(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,8}\Z"),
    )


class Sanitizer:
    r"""Makes a stream of text safe, in pieces of any size.

    Of all control characters, only tabs and newlines stay; `\r\n` becomes a newline. With
    `keep_rewrites`, carriage returns and backspaces stay too, and `ERASE_REST` and `ERASE_LINE`
    take the place of sequences that erase.
    """

    def __init__(self, *, keep_rewrites: bool = False) -> None:
        self._keeps_rewrites = keep_rewrites
        self._patterns = _stream_patterns(keep_rewrites=keep_rewrites)
        self._plain_bytes = _PLAIN_BYTES + b"\r\b" if keep_rewrites else _PLAIN_BYTES
        self._held = ""  # what may be the beginning of a sequence
        self._held_tags = ""  # what may be the middle of a flag
        self._before = ""  # the last characters of the text so far
        self._hidden = 0  # length of the endless string we are in

    def feed(self, text: str) -> str:
        """Add the next piece; returns the text that is certain by now."""
        if not (self._held or self._hidden or self._held_tags) and self._is_plain(text):
            if text:
                self._before = text[-_CONTEXT:]
            return text
        return "".join(self._feed(text))

    def passes(self, text: bytes) -> bool:
        """Whether ASCII text is safe as it is, without rewrites; then it counts as fed.

        This makes floods of output fast.
        """
        if self._held or self._hidden or self._held_tags or text.translate(None, _PLAIN_BYTES):
            return False
        if text:
            self._before = text[-_CONTEXT:].decode("ascii")
        return True

    def finish(self) -> str:
        """End the stream: returns the text that was held back. The next stream can follow."""
        held, self._held = self._held, ""
        parts = [] if not self._hidden else [self._describe_hidden()]
        if held[:2] in {"\x1b[", "\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_"}:
            held = held[2:]
        parts.append(self._make_safe(held, is_last=True))
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
        """Read text and whole sequences, up to the end or to the start of an endless string."""
        if "\x1b" in text and not position:
            # Nearly always there are only colours, which can be dropped at once.
            without = self._patterns.color.sub("", text)
            if self._patterns.introducer.search(without) is None:
                parts.append(self._make_safe(without))
                return len(text)
        start = position
        while (introducer := self._patterns.introducer.search(text, start)) is not None:
            start = introducer.start()
            found = self._patterns.sequence.match(text, start)
            if found is None:  # it introduces nothing, and is shown
                start += 1
                continue
            parts.append(self._make_safe(text[position:start]))
            start = position = found.end()
            kind = found.lastgroup
            if kind == "erase" and self._keeps_rewrites:
                parts.append(ERASE_LINE if "2" in found[0] else ERASE_REST)
            elif kind == "cut":
                # After a split sequence there can only be a `\r`, which is held already.
                self._held = found[0] + self._held
                return len(text)
            elif kind == "long":
                self._hidden = len(found[0])
                return position
        parts.append(self._make_safe(text[position:]))
        return len(text)

    def _skip(self, text: str, position: int, parts: list[str]) -> int:
        """Skip an endless string up to its end or the end of its line."""
        found = self._patterns.string_end.search(text, position)
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
        parts.append(self._describe_hidden())
        return end

    def _describe_hidden(self) -> str:
        hidden, self._hidden = self._hidden, 0
        self._before = ">"
        return f"<{hidden:,} characters for a terminal>"

    def _is_plain(self, text: str) -> bool:
        if text.isascii():  # several times faster, and most floods are ASCII
            return not text.encode("ascii").translate(None, self._plain_bytes)
        return self._patterns.plain.fullmatch(text) is not None

    def _make_safe(self, run: str, *, is_last: bool = False) -> str:
        """Text without sequences, with everything visible that was hidden."""
        run, self._held_tags = self._held_tags + run, ""
        if not run:
            return ""
        if self._is_plain(run):
            self._before = (self._before + run[-_CONTEXT:])[-_CONTEXT:]
            return run
        start = len(self._before)
        text = self._before + run
        end = len(text)
        flag = None if is_last else self._patterns.open_flag.search(text, start)
        if flag is not None:
            end = flag.start()
            self._held_tags = flag[0]
        parts: list[str] = []
        position = start
        for found in self._patterns.unsafe.finditer(text, start, end):
            parts.append(text[position : found.start()])
            position = found.end()
            parts.append(show_unsafe(found))
        parts.append(text[position:end])
        self._before = text[max(0, end - _CONTEXT) : end]
        return "".join(parts)
