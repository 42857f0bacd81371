"""`OutputSink`: what a program prints, bounded while it comes."""

from __future__ import annotations

from dataclasses import dataclass

from cellwright.config.defaults import OUTPUT_BYTES_KEPT, OUTPUT_LINES_KEPT
from cellwright.outputs._ends import whole_end, whole_start
from cellwright.outputs._lines import Lines
from cellwright.outputs._spill import Spill
from cellwright.outputs.sanitizer import Sanitizer
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from cellwright.outputs._spill import SpillWriter

_SLICE = 64 * 2**10  # a piece of any size is worked off in slices, so that memory stays bounded


@dataclass(frozen=True, slots=True)
class Summary:
    """What is left of an output, and exact numbers about the rest.

    Totals are of the text as it is shown: harmless, with every line in its last state. A line of
    which a part is kept counts as kept. `raw_bytes` is what was printed in fact, and what the
    artifact holds: everything from the first byte, unless `artifact_truncated`.
    """

    head: str
    tail: str
    truncated: bool
    total_lines: int
    total_bytes: int
    kept_lines: int
    kept_bytes: int
    raw_bytes: int
    long_lines: int = 0
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
        return max(0, self.total_bytes - self.kept_bytes)  # the `…` of a cut line counts as kept

    @property
    def text(self) -> str:
        """What is kept; where something is left out after a head, a line says how much."""
        if not (self.truncated and self.head):
            return self.head + self.tail
        gap = "" if self.head.endswith("\n") else "\n"
        return f"{self.head}{gap}{self.marker}\n{self.tail}"

    @property
    def marker(self) -> str:
        """The line that stands for what is left out."""
        return f"[… {self.elided_lines:,} lines, {self.elided_bytes:,} bytes left out …]"

    @property
    def notice(self) -> str | None:
        """One sentence about what is left out and where it is; None if nothing is."""
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
    """Keeps the end of a stream of text, or both ends, and spills all of it to an artifact.

    Memory stays near twice `kept_bytes`, whatever comes and in whatever pieces, and the result
    does not depend on the pieces.

    Args:
        kept_bytes: how much text is kept, in bytes of UTF-8.
        kept_lines: the same in lines; whichever is reached first counts.
        mode: `tail` keeps the end; `head_tail` keeps half of the beginning and half of the end.
        spill: opens the artifact, when the stream is longer than what is kept. None: no artifact.
        columns: characters kept of one line; a line that is cut ends with `…`.
    """

    def __init__(
        self,
        kept_bytes: int = OUTPUT_BYTES_KEPT,
        kept_lines: int = OUTPUT_LINES_KEPT,
        mode: Literal["tail", "head_tail"] = "tail",
        spill: Callable[[], SpillWriter] | None = None,
        columns: int | None = None,
    ) -> None:
        has_head = mode == "head_tail"
        self._kept_bytes = kept_bytes
        self._kept_lines = kept_lines
        self._head_bytes = kept_bytes // 2 if has_head else 0
        self._head_lines = kept_lines // 2 if has_head else 0
        # A little more than is asked for, to see what a cut goes through.
        self._lines = Lines(self._head_bytes, kept_bytes - self._head_bytes + 4, columns)
        self._sanitizer = Sanitizer(keep_rewrites=True)
        self._spill = Spill(spill, kept_bytes)
        self._raw_bytes = 0
        self._final: Summary | None = None

    def feed(self, text: str) -> None:
        """Take the next piece of the stream, which may end anywhere.

        Raises:
            ValueError: `dump` was called already.
        """
        if self._final is not None:
            raise ValueError("this sink has been dumped")
        for start in range(0, len(text), _SLICE):
            self._feed(text if len(text) <= _SLICE else text[start : start + _SLICE])

    def clear(self) -> None:
        """Forget what is kept and all counts; what was spilled stays in the artifact."""
        self._sanitizer = Sanitizer(keep_rewrites=True)
        self._lines.clear()
        self._raw_bytes = 0
        self._spill.forget_held()

    def peek(self) -> Summary:
        """The summary so far; the stream may go on. An artifact it names cannot be read yet."""
        return self._final or self._summary()

    def dump(self) -> Summary:
        """End the stream: finish the artifact if something was left out, and sum up."""
        if self._final is None:
            self._lines.feed(self._sanitizer.finish())
            is_truncated = self._summary().truncated
            if is_truncated:
                self._spill.start()
            self._spill.end(keep=is_truncated)
            self._final = self._summary()
        return self._final

    def _feed(self, text: str) -> None:
        # A lone surrogate is no text; nobody could read an artifact with one in it.
        raw = text.encode("utf-8", "backslashreplace")
        self._raw_bytes += len(raw)
        self._spill.feed(raw)
        if text.isascii() and self._lines.takes_bytes and self._sanitizer.passes(raw):
            self._lines.feed_bytes(raw)
        else:
            self._lines.feed(self._sanitizer.feed(text))

    def _summary(self) -> Summary:
        text, long_lines = self._lines.ends()
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
        return Summary(
            head=head.decode(),
            tail=tail.decode(),
            truncated=truncated or bool(long_lines),
            total_lines=total_lines,
            total_bytes=total_bytes,
            kept_lines=kept_lines,
            kept_bytes=kept,
            raw_bytes=self._raw_bytes,
            long_lines=long_lines,
            artifact=self._spill.id,
            artifact_bytes=committed.size if committed else 0,
            artifact_truncated=bool(committed and committed.truncated),
            warning=self._spill.warning,
        )

    def _cut(self, head: bytearray, tail: bytearray, *, is_whole: bool) -> tuple[bytes, bytes]:
        """The parts that stay within both limits, at ends of lines where those are near."""
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
        # Half a line reads as another; only where lines are very long is a part better.
        if 0 <= newline < start + (len(data) - start) // 2:
            start = newline + 1
    return bytes(data[start:])


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))
