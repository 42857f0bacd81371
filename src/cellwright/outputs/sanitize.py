"""Make text from a notebook harmless to a terminal and to a model.

A notebook may say anything: sequences that move the cursor, rename the window or fill the
clipboard, marks that reorder or hide what a person reads. Text that is shown passes through
here, every time. `visible` is for what a person wrote: whatever is hidden in it is made visible.
`fold`, `pieces` and `printed` are for what a program printed, where progress bars and colours
are usual. For text that comes in pieces there is `cellwright.outputs.sanitizer`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# All that a terminal may obey and all that a person cannot see, but for tab and newline: C0, DEL
# and C1 controls, bidirectional marks, zero-width characters, fillers, variation selectors, line
# separators, surrogates, private use (kitty draws pictures for some), tags and non-characters.
_CONTROLS = r"\x00-\x08\x0b-\x1f"
_UNSAFE = (
    r"\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
    + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 14))
)
# More marks on one letter than any language has; they would cover the lines around it.
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


def find_unsafe(controls: str) -> re.Pattern[str]:
    """A pattern of all that is not safe to show; of the controls below the space, these."""
    context = f"(?P<dropped>{_IN_EMOJI}|{_MANY_MARKS})|(?P<letters>{_IN_LETTERS})"
    return re.compile(f"{context}|[{controls}{_UNSAFE}]")


unsafe = find_unsafe(_CONTROLS)
CSI = r"(?:\x1b\[|\x9b)"
STRING = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])"  # the start of DCS, SOS, OSC, PM and APC
# What such a string may hold. That another one ends it keeps a scan of many linear.
INSIDE = r"[^\x07\x1b\x9c\x90\x98\x9d-\x9f\r\n]"
STRING_END = r"(?:\x07|\x1b\\|\x9c)"
_sequence = re.compile(
    rf"{CSI}(?P<sgr>[0-9;:]*)m"
    rf"|{CSI}[0-?]*[ -/]*[@-~]"
    rf"|{STRING}{INSIDE}*{STRING_END}"
    r"|\x1b[ -/]+[0-~]|\x1b[0-~]"  # character sets; everything of two characters
)
_token = re.compile(f"{_sequence.pattern}|.", re.DOTALL)
_LONGEST_REWRITTEN_LINE = 100_000


def visible(text: str) -> str:
    """The text with everything shown that was hidden; only tabs and newlines remain as they are.

    Controls become their pictures (`␛`), all else its number (`<U+202E>`).
    """
    if text.isascii() and text.isprintable():
        return text
    return unsafe.sub(show, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The text made visible, tabs and newlines too: for names and headings."""
    return visible(text.replace("\r", "\u240d")).replace("\n", "\u240a").replace("\t", "\u2409")


def fold(text: str) -> list[str]:
    """The lines of what a program printed, each in its last state.

    A carriage return starts the line anew, as progress bars do, and a backspace takes back a
    character. Sequences are left in place, for `pieces`.
    """
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    if "\b" in text:
        lines = [_take_back(line) if "\b" in line else line for line in lines]
    return lines


def pieces(line: str) -> Iterator[tuple[str | None, str]]:
    """Split a printed line at its colours: the parameters of one, and the text that follows it.

    Of the sequences in it only colours are told, and as data; all others are gone, and the text
    is visible. The first piece has no colour before it.
    """
    parameters: str | None = None
    text: list[str] = []
    position = 0
    for found in _sequence.finditer(line):
        text.append(line[position : found.start()])
        position = found.end()
        if found["sgr"] is not None:
            yield parameters, visible("".join(text))
            parameters, text = found["sgr"], []
    text.append(line[position:])
    yield parameters, visible("".join(text))


def printed(text: str) -> str:
    """What a program printed, without colours: last states, no sequences, nothing hidden."""
    return "\n".join("".join(piece for _, piece in pieces(line)) for line in fold(text))


def show(found: re.Match[str]) -> str:
    """What stands in the place of something that `unsafe` found."""
    if found["dropped"] is not None:
        return ""
    character = found[0]
    if found["letters"] is not None:
        return character if character == "\u200c" else ""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def _take_back(line: str) -> str:
    """Carry out the backspaces of a line."""
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
