"""How much a cell may keep in its notebook, and what happens to the rest."""

from __future__ import annotations

import json

from cellwright.outputs._spill import Spill
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cellwright.outputs._spill import SpillWriter
    from cellwright.outputs.collector import Content, Entry

_OVERHEAD = 200  # what an output takes beside its content
_PIECE = 60  # what a piece of a stream takes beside its text


def cost(value: dict[str, Any]) -> int:
    """About how many bytes an output takes."""
    return _OVERHEAD + len(_as_line(value))


class Limit:
    """Lets the oldest outputs of a cell go when there are too many, and passes all of them on.

    The artifact begins with the first byte: nothing goes before there is too much, and then what
    is there is written first. Streams are written as they came, other outputs as a line of JSON.
    """

    def __init__(
        self, most_bytes: int, open_writer: Callable[[], SpillWriter] | None = None
    ) -> None:
        self._most_bytes = most_bytes
        self._size = 0
        self._gone_bytes = 0
        self._gone_outputs = 0
        self._spill = Spill(open_writer, most_bytes)

    def printed(self, entry: Entry, text: str) -> None:
        """A piece was added to a stream."""
        raw = text.encode("utf-8", "backslashreplace")
        self._spill.feed(raw)
        content = entry.content
        self.changed(content, (content.size or _OVERHEAD) + len(raw) + _PIECE)

    def shown(self, entry: Entry) -> None:
        """Another output was added."""
        line = _as_line(entry.value)
        self._spill.feed(line + b"\n")
        self._size += entry.content.size  # already known, if others show the same
        self.changed(entry.content, _OVERHEAD + len(line))

    def changed(self, content: Content, size: int) -> None:
        """Outputs have become larger or smaller, all that share their content alike."""
        self._size += (size - content.size) * content.holders
        content.size = size

    def apply(self, entries: list[Entry]) -> list[Entry]:
        """Remove what is too much, the oldest first, a quarter at a time; tell which went."""
        if self._size <= self._most_bytes + self._most_bytes // 4:
            return []
        self._spill.start()
        kept: list[Entry] = []
        gone: list[Entry] = []
        for number, entry in enumerate(entries):
            if self._size <= self._most_bytes:
                kept.extend(entries[number:])
                break
            is_gone = not entry.is_kept and self._shrink(entry)
            (gone if is_gone else kept).append(entry)
        entries[:] = kept
        return gone

    def note(self) -> dict[str, Any] | None:
        """The output that tells what is gone, or None if nothing is."""
        if not self._gone_bytes:
            return None
        what = f"{human_size(self._gone_bytes)} of earlier output"
        if self._gone_outputs:
            what += f" and {self._gone_outputs:,} displays"
        where = "not kept"
        if self._spill.id is not None:
            where = f"all of it: artifact://{self._spill.id}"
        elif self._spill.warning:
            where += f": {self._spill.warning}"
        text = f"[cellwright: {what} left out of the notebook; {where}]\n"
        return {"output_type": "stream", "name": "stderr", "text": text}

    def clear(self) -> None:
        """All outputs were cleared."""
        self._size = self._gone_bytes = self._gone_outputs = 0
        self._spill.forget_held()

    def finish(self) -> None:
        """End the artifact; it is kept only if something is missing elsewhere."""
        self._spill.end(keep=bool(self._gone_bytes))

    def _shrink(self, entry: Entry) -> bool:
        """Let go of an output, or of as much of a stream as is needed; True if nothing is left."""
        content = entry.content
        if entry.pieces is None:
            self._gone_bytes += content.size
            self._gone_outputs += 1
            self._size -= content.size
            content.holders -= 1
            return True
        text = "".join(entry.pieces)
        raw = text.encode("utf-8", "surrogatepass")
        # Many small pieces take more than their text does; joined they may fit.
        self.changed(content, _OVERHEAD + len(raw) + _PIECE)
        needed = self._size - self._most_bytes
        cut = min(len(raw), max(0, needed))
        rest = raw[cut:]
        while rest and rest[0] & 0xC0 == 0x80:
            rest = rest[1:]
        self._gone_bytes += len(raw) - len(rest)
        entry.pieces[:] = [rest.decode("utf-8", "surrogatepass")] if rest else []
        self.changed(content, _OVERHEAD + len(rest) + _PIECE if rest else 0)
        return not rest


def _as_line(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode("utf-8", "backslashreplace")
