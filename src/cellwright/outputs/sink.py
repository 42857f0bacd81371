"""`OutputSink`: what a program prints, limited while it comes in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cellwright.config.defaults import OUTPUT_BYTES_KEPT, OUTPUT_LINES_KEPT
from cellwright.outputs._artifact_writer import ArtifactSpill
from cellwright.outputs.sanitize import ERASE_LINE, ERASE_REST, REWRITES, Sanitizer
from cellwright.outputs.sizes import HeadAndTail, human_size, whole_end, whole_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from cellwright.outputs._artifact_writer import ArtifactWriter

_SLICE = 64 * 2**10  # a large piece is processed in slices, so that memory stays limited
_steps = re.compile(f"(\b+|[\r{ERASE_REST}{ERASE_LINE}])")


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """What is kept of an output, and exact numbers about the rest.

    Totals are of the text as it is shown: sanitized, with every line in its last state. A line
    that is kept in part counts as kept. `raw_bytes` is what was really printed, and what the
    artifact has: everything from the first byte, unless `artifact_truncated`.
    """

    head: str
    tail: str
    truncated: bool
    total_lines: int
    total_bytes: int
    kept_lines: int
    kept_bytes: int
    raw_bytes: int
    artifact: str | None = None
    artifact_bytes: int = 0
    artifact_truncated: bool = False
    warning: str | None = None

    @property
    def elided_lines(self) -> int:
        """Lines of which nothing is kept."""
        return self.total_lines - self.kept_lines

    @property
    def elided_bytes(self) -> int:
        """Bytes that are not kept."""
        return self.total_bytes - self.kept_bytes

    @property
    def text(self) -> str:
        """The kept text; if something is left out after the head, a line says how much."""
        if not (self.truncated and self.head):
            return self.head + self.tail
        gap = "" if self.head.endswith("\n") else "\n"
        marker = f"[… {self.elided_lines:,} lines, {self.elided_bytes:,} bytes left out …]"
        return f"{self.head}{gap}{marker}\n{self.tail}"

    @property
    def notice(self) -> str | None:
        """One sentence that says what is left out and where it is; None if nothing is."""
        if not self.truncated:
            return None
        kept = f"{self.kept_lines:,} of {self.total_lines:,} lines"
        sizes = f"{human_size(self.kept_bytes)} of {human_size(self.total_bytes)}"
        where = ""
        if self.artifact:
            what = "the ends" if self.artifact_truncated else "all"
            where = f"; {what} of it: artifact://{self.artifact}"
        elif self.warning:
            where = f"; the rest is lost: {self.warning}"
        return f"Output truncated: {kept}, {sizes} shown{where}"


class OutputSink:
    """Keeps the end of a stream of text, or both ends, and writes all of it to an artifact.

    Memory stays near twice `kept_bytes`, and the result does not depend on how the text is split
    into pieces.

    Args:
        kept_bytes: how much text is kept, in bytes of UTF-8.
        kept_lines: how many lines are kept; the limit that is reached first counts.
        mode: `tail` keeps the end; `head_tail` keeps one half from the beginning and one half
            from the end.
        spill: opens the artifact when the stream is longer than what is kept; None for no
            artifact.
    """

    def __init__(
        self,
        kept_bytes: int = OUTPUT_BYTES_KEPT,
        kept_lines: int = OUTPUT_LINES_KEPT,
        mode: Literal["tail", "head_tail"] = "tail",
        spill: Callable[[], ArtifactWriter] | None = None,
    ) -> None:
        has_head = mode == "head_tail"
        self._kept_bytes = kept_bytes
        self._kept_lines = kept_lines
        self._head_bytes = kept_bytes // 2 if has_head else 0
        self._head_lines = kept_lines // 2 if has_head else 0
        # A little more than requested, to see which character a cut goes through.
        self._lines = PrintedLines(self._head_bytes, kept_bytes - self._head_bytes + 4)
        self._sanitizer = Sanitizer(keep_rewrites=True)
        self._spill = ArtifactSpill(spill, kept_bytes)
        self._raw_bytes = 0
        self._has_more = False  # in the artifact alone
        self._final: OutputSummary | None = None

    def feed(self, text: str) -> None:
        """Add the next piece of the stream, which may end anywhere.

        Raises:
            ValueError: `dump` was called already.
        """
        if self._final is not None:
            raise ValueError("this sink has been dumped")
        for start in range(0, len(text), _SLICE):
            self._feed(text if len(text) <= _SLICE else text[start : start + _SLICE])

    def keep_raw(self, data: bytes) -> None:
        """Add bytes to the artifact alone; what is kept here is then not all."""
        self._has_more = True
        self._raw_bytes += len(data)
        self._spill.feed(data)

    def clear(self) -> None:
        """Forget the kept text and all counts; the artifact keeps what was written."""
        self._sanitizer = Sanitizer(keep_rewrites=True)
        self._lines.clear()
        self._raw_bytes = 0
        self._spill.forget_held()

    def dump(self) -> OutputSummary:
        """End the stream: finish the artifact if something was left out; returns the summary."""
        if self._final is None:
            self._lines.feed(self._sanitizer.finish())
            found = self._summary()
            if found.truncated:
                self._spill.start()
            self._spill.end(keep=found.truncated)
            has_spilled = found.truncated or found.artifact or found.warning
            self._final = self._summary() if has_spilled else found
        return self._final

    def _feed(self, text: str) -> None:
        # A lone surrogate is not text; an artifact with one in it could not be read.
        raw = text.encode("utf-8", "backslashreplace")
        self._raw_bytes += len(raw)
        self._spill.feed(raw)
        if text.isascii() and self._lines.takes_bytes and self._sanitizer.passes(raw):
            self._lines.feed_bytes(raw)
        else:
            self._lines.feed(self._sanitizer.feed(text))

    def _summary(self) -> OutputSummary:
        text = self._lines.ends()
        total_bytes = self._lines.total_bytes
        newlines = self._lines.newlines
        total_lines = newlines + bool(self._lines.open_bytes)
        truncated = total_bytes > self._kept_bytes or total_lines > self._kept_lines
        if truncated:
            head, tail = self._cut(text.head, text.tail, is_whole=not text.lost)
        else:
            head, tail = b"", bytes(text.head + text.tail)
        kept = len(head) + len(tail)
        kept_lines = _count_lines(head) + _count_lines(tail)
        if head and tail and not head.endswith(b"\n"):
            # Both ends may belong to one line.
            kept_lines -= newlines == head.count(b"\n") + tail.count(b"\n")
        committed = self._spill.committed
        return OutputSummary(
            head=head.decode(),
            tail=tail.decode(),
            truncated=truncated or self._has_more,
            total_lines=total_lines,
            total_bytes=total_bytes,
            kept_lines=kept_lines,
            kept_bytes=kept,
            raw_bytes=self._raw_bytes,
            artifact=self._spill.id,
            artifact_bytes=committed.size if committed else 0,
            artifact_truncated=bool(committed and committed.truncated),
            warning=self._spill.warning,
        )

    def _cut(self, head: bytearray, tail: bytearray, *, is_whole: bool) -> tuple[bytes, bytes]:
        """The parts within both limits, cut at the end of a line if one is near."""
        if is_whole:
            both = head + tail
            first = _first_part(both, self._head_bytes, self._head_lines)
            rest = both[len(first) :]
        else:
            first = _first_part(head, self._head_bytes, self._head_lines)
            rest = tail
        room = self._kept_bytes - self._head_bytes
        return first, _last_part(rest, room, self._kept_lines - self._head_lines)


def _first_part(data: bytearray, most_bytes: int, most_lines: int) -> bytes:
    end = whole_end(data, most_bytes)
    if end == len(data) and end == most_bytes:
        end = len(bytes(data).decode("utf-8", "ignore").encode())  # cut inside its last character
    position = -1
    for _ in range(most_lines):
        position = data.find(b"\n", position + 1, end)
        if position < 0:
            break
    else:
        return bytes(data[: position + 1])
    newline = data.rfind(b"\n", 0, end)
    return bytes(data[: newline + 1 if newline >= end // 2 else end])


def _last_part(data: bytearray, most_bytes: int, most_lines: int) -> bytes:
    start = whole_start(data, max(0, len(data) - most_bytes))
    position = len(data) - data.endswith(b"\n")
    for _ in range(most_lines):
        position = data.rfind(b"\n", start, position)
        if position < 0:
            break
    else:
        return bytes(data[position + 1 :])
    if start and data[start - 1 : start] != b"\n":
        newline = data.find(b"\n", start)
        # Part of a line reads like another line; keep one only if lines are very long.
        if 0 <= newline < start + (len(data) - start) // 2:
            start = newline + 1
    return bytes(data[start:])


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))


class PrintedLines:
    r"""Printed text as lines, each in its last state; the first and last bytes are kept.

    The text is sanitized except for its rewrites, which are applied here. A carriage return
    starts the line again when something follows it, so `\r\n` is a newline. A backspace removes
    a character, as far as the line is still kept.
    """

    def __init__(self, head_limit: int, tail_limit: int) -> None:
        self.newlines = 0
        self._done = HeadAndTail(head_limit, tail_limit)
        self._line = HeadAndTail(head_limit, tail_limit)
        self._has_returned = False

    @property
    def open_bytes(self) -> int:
        """Length of the line that has not ended yet."""
        return len(self._line)

    @property
    def total_bytes(self) -> int:
        """Length of the whole text."""
        return len(self._done) + self.open_bytes

    @property
    def takes_bytes(self) -> bool:
        """Whether text without rewrites can be added as it is."""
        return not self._has_returned

    def feed(self, text: str) -> None:
        """Append text."""
        if self.takes_bytes and not any(sign in text for sign in REWRITES):
            self.feed_bytes(text.encode())
            return
        for number, part in enumerate(text.split("\n")):
            if number:
                self._end_line()
            if part:
                self._write(part)

    def ends(self) -> HeadAndTail:
        """The text with its open line."""
        text = self._done.copy()
        text.add_all(self._line)
        return text

    def clear(self) -> None:
        """Forget everything."""
        self.newlines = 0
        self._done.clear()
        self._clear_line()

    def feed_bytes(self, data: bytes) -> None:
        """Append text without rewrites, if `takes_bytes` allows it."""
        end = data.rfind(b"\n") + 1
        if end:
            self._done.add_all(self._line)
            self._line.clear()
            self._done.add(data[:end])
            self.newlines += data.count(b"\n")
        if end < len(data):
            self._line.add(data[end:])

    def _end_line(self) -> None:
        self._done.add_all(self._line)
        self._done.add(b"\n")
        self.newlines += 1
        self._clear_line()

    def _clear_line(self) -> None:
        self._line.clear()
        self._has_returned = False

    def _write(self, part: str) -> None:
        """Apply a part of one line, with its rewrites."""
        last = part.rstrip("\r").rfind("\r")
        if last >= 0:  # everything before it is overwritten
            self._clear_line()
            part = part[last + 1 :]
        for step in _steps.split(part):
            if step == "\r":
                self._has_returned = True
            elif step == ERASE_REST:
                if self._has_returned:
                    self._clear_line()
            elif step == ERASE_LINE:
                self._clear_line()
            elif step:
                if self._has_returned:
                    self._clear_line()
                if step[0] == "\b":
                    for _ in step:
                        self._line.take_back_character()
                else:
                    self._line.add(step.encode())
