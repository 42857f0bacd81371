"""`Collector`: the outputs of one cell, as its notebook will hold them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from cellwright.outputs._artifact_writer import ArtifactSpill
from cellwright.outputs.events import (
    ClearEvent,
    DisplayEvent,
    ErrorEvent,
    RawPiece,
    StreamEvent,
    bound_error,
    error_size,
)
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cellwright.outputs._artifact_writer import ArtifactWriter
    from cellwright.outputs.events import OutputEvent

_OVERHEAD = 200  # bytes of an output besides its content
_PIECE = 60  # bytes of a piece of a stream besides its text
_LONG_PIECE = 4 * 2**10  # bytes; longer ones are not joined, which takes long
_JOINED = 2**20  # characters
_KEPT_ERROR = 8 * 2**20  # characters of an error in an artifact


@dataclass(slots=True, eq=False)
class OutputContent:
    """The content of an output; all displays with the same id share it."""

    value: dict[str, Any]
    size: int = 0
    holders: int = 0


def _copy_plain(value: Any) -> Any:
    """Copy plain data; `copy.deepcopy` takes ten times as long."""
    if isinstance(value, dict):
        return {name: _copy_plain(item) for name, item in value.items()}
    return [_copy_plain(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True, eq=False)
class CollectedOutput:
    """One output that may still change; the text of a stream is kept in pieces."""

    head: dict[str, Any]
    content: OutputContent
    pieces: list[str] | None = None
    display_id: str | None = None
    is_kept: bool = False  # never removed by the limit

    @property
    def value(self) -> dict[str, Any]:
        """The output in nbformat's shape, without the text of a stream."""
        return {**self.head, **self.content.value}

    def to_json(self, *, in_pieces: bool = False) -> dict[str, Any]:
        """The output in nbformat's shape; the text of a stream perhaps as a list of pieces."""
        if self.pieces is not None:
            _join_small(self.pieces)
            text = self.pieces.copy() if in_pieces else "".join(self.pieces)
            return {**self.head, "text": text}
        copied: dict[str, Any] = _copy_plain(self.value)
        return copied


class Collector:
    """Collects the output events of a cell, and keeps its outputs the way Jupyter does.

    Consecutive pieces of one stream become one output. `ClearEvent` with `wait` clears when the
    next output comes. An update changes every output of this cell with its display id, and so
    does a display that is shown again; the caller passes it to the collectors of other cells.

    Beyond `limit_bytes` the oldest outputs are removed, streams piece by piece. Then `outputs`
    begins with a note on stderr that says how much is missing, and `spill` opens the artifact
    that gets everything. The result of the cell and its error always stay.
    """

    def __init__(
        self, *, limit_bytes: int, spill: Callable[[], ArtifactWriter] | None = None
    ) -> None:
        self._entries: list[CollectedOutput] = []
        self._displays: dict[str, OutputContent] = {}
        self._clears_next = False
        self._limit = OutputLimit(limit_bytes, spill)

    def feed(self, event: OutputEvent) -> bool:
        """Add the next event; False if it updates a display that is not in this cell."""
        if isinstance(event, ClearEvent):
            self._clears_next = event.wait
            if not event.wait:
                self._clear()
            return True
        if isinstance(event, DisplayEvent) and event.is_update:
            return self.update(event)
        if self._clears_next:
            self._clear()
        if isinstance(event, StreamEvent):
            self._add_text(event)
        elif isinstance(event, RawPiece):
            self._limit.add_raw(event.data)
        elif isinstance(event, DisplayEvent):
            self._add_display(event)
        else:
            self._add_error(event)
        self._apply_limit()
        return True

    def update(self, event: DisplayEvent) -> bool:
        """Give every output with the event's display id new content; False if there is none.

        Earlier cells may have the same display: the caller also asks their collectors, for
        updates and for displays that are shown again.
        """
        content = self._displays.get(event.display_id or "")
        if content is None:
            return False
        content.value = _bundle(event)
        self._limit.set_size(content, output_cost(content.value))
        self._apply_limit()
        return True

    def outputs(self, *, in_pieces: bool = False) -> list[dict[str, Any]]:
        """The outputs in nbformat 4's shape, the text of a stream as one string, or in pieces."""
        self._apply_limit(exactly=True)
        note = self._limit.note()
        found = [entry.to_json(in_pieces=in_pieces) for entry in self._entries]
        return found if note is None else [note, *found]

    def finish(self) -> list[dict[str, Any]]:
        """End the artifact, if there is one; returns the outputs."""
        self._apply_limit(exactly=True)
        self._limit.finish()
        for entry in self._entries:
            if entry.pieces is not None:  # all that asks from now on gets the same text
                entry.pieces[:] = ["".join(entry.pieces)]
        return self.outputs()

    def _clear(self) -> None:
        self._clears_next = False
        self._entries.clear()
        self._displays.clear()
        self._limit.clear()

    def _add_text(self, event: StreamEvent) -> None:
        if not event.text:
            return
        last = self._entries[-1] if self._entries else None
        if last is None or last.pieces is None or last.head["name"] != event.name:
            last = CollectedOutput(
                {"output_type": "stream", "name": event.name}, OutputContent({}), pieces=[]
            )
            self._add(last)
        assert last.pieces is not None  # noqa: S101  # checked above
        last.pieces.append(event.text)
        self._limit.add_text(last, event.text)

    def _add_display(self, event: DisplayEvent) -> None:
        self.update(event)  # Jupyter also updates the earlier displays with this id
        content = self._displays.get(event.display_id or "") or OutputContent(_bundle(event))
        head: dict[str, Any] = {"output_type": "display_data"}
        if event.is_result:
            head = {"output_type": "execute_result", "execution_count": event.execution_count}
        entry = CollectedOutput(head, content, display_id=event.display_id, is_kept=event.is_result)
        if event.display_id:
            self._displays[event.display_id] = content
        self._add(entry)
        self._limit.add_output(entry)

    def _add_error(self, event: ErrorEvent) -> None:
        event = self._limit.cut_error(event)
        content = OutputContent(_error_value(event))
        entry = CollectedOutput({"output_type": "error"}, content, is_kept=True)
        self._add(entry)
        self._limit.add_output(entry)

    def _apply_limit(self, *, exactly: bool = False) -> None:
        for entry in self._limit.apply(self._entries, exactly=exactly):
            if entry.display_id and not entry.content.holders:
                self._displays.pop(entry.display_id, None)

    def _add(self, entry: CollectedOutput) -> None:
        entry.content.holders += 1
        self._entries.append(entry)


def _error_value(event: ErrorEvent) -> dict[str, Any]:
    return {"ename": event.ename, "evalue": event.evalue, "traceback": list(event.traceback)}


def _bundle(event: DisplayEvent) -> dict[str, Any]:
    return {"data": dict(event.data), "metadata": dict(event.metadata)}


def output_cost(value: dict[str, Any]) -> int:
    """Approximately how many bytes an output takes."""
    return _OVERHEAD + len(_as_line(value))


class OutputLimit:
    """Removes the oldest outputs of a cell when there are too many, and writes all to an artifact.

    The artifact has everything from the first byte. Streams are written as they are, other
    outputs as a line of JSON.
    """

    def __init__(
        self, most_bytes: int, open_writer: Callable[[], ArtifactWriter] | None = None
    ) -> None:
        self._most_bytes = most_bytes
        self._size = 0
        self._removed_bytes = 0
        self._removed_outputs = 0
        self._is_partial = False
        self._spill = ArtifactSpill(open_writer, most_bytes)

    def add_text(self, entry: CollectedOutput, text: str) -> None:
        """Count a piece that was added to a stream."""
        raw = text.encode("utf-8", "backslashreplace")
        self._spill.feed(raw)
        content = entry.content
        self.set_size(content, (content.size or _OVERHEAD) + len(raw) + _PIECE)

    def add_output(self, entry: CollectedOutput) -> None:
        """Count another output."""
        line = _as_line(entry.value)
        self._spill.feed(line + b"\n")
        self._size += entry.content.size  # already known if it is shared
        self.set_size(entry.content, _OVERHEAD + len(line))

    def add_raw(self, data: bytes) -> None:
        """Take a piece of an output of which only the beginning is kept here."""
        self._spill.feed(data)
        self._spill.start()
        self._removed_bytes += len(data)

    def cut_error(self, event: ErrorEvent) -> ErrorEvent:
        """An error within half of the limit; the artifact gets more of a longer one."""
        short = bound_error(event, self._most_bytes // 2)
        if short is not event:
            # To encode and write a hundred megabytes would keep every other client waiting.
            kept = bound_error(event, max(_KEPT_ERROR, self._most_bytes // 2))
            self._is_partial = self._is_partial or kept is not event
            self._spill.feed(_as_line({"output_type": "error", **_error_value(kept)}) + b"\n")
            self._spill.start()
            self._removed_bytes += max(1, error_size(event) - error_size(short))
        return short

    def set_size(self, content: OutputContent, size: int) -> None:
        """Count the new size of a content, for every output that shares it."""
        self._size += (size - content.size) * content.holders
        content.size = size

    def apply(
        self, entries: list[CollectedOutput], *, exactly: bool = False
    ) -> list[CollectedOutput]:
        """Remove the oldest outputs if there are too many; returns them.

        A quarter at a time, unless some were removed and there must not be a quarter too many.
        """
        is_exact = exactly and self._removed_bytes
        if self._size <= self._most_bytes + (0 if is_exact else self._most_bytes // 4):
            return []
        self._spill.start()
        kept: list[CollectedOutput] = []
        removed: list[CollectedOutput] = []
        for number, entry in enumerate(entries):
            if self._size <= self._most_bytes:
                kept.extend(entries[number:])
                break
            is_removed = not entry.is_kept and self._shrink(entry)
            (removed if is_removed else kept).append(entry)
        entries[:] = kept
        return removed

    def note(self) -> dict[str, Any] | None:
        """The output that says what was removed, or None if nothing was."""
        if not self._removed_bytes:
            return None
        what = f"{human_size(self._removed_bytes)} of earlier output"
        if self._removed_outputs:
            what += f" and {self._removed_outputs:,} displays"
        where = self._spill.describe() or "not kept"
        if self._is_partial:
            where = where.replace("all of it", "all but the middle of an error", 1)
        if self._spill.id is None and self._spill.warning:
            where += f": {self._spill.warning}"
        text = f"[cellwright: {what} left out of the notebook; {where}]\n"
        return {"output_type": "stream", "name": "stderr", "text": text}

    def clear(self) -> None:
        """Count again from zero, after all outputs were cleared."""
        self._size = self._removed_bytes = self._removed_outputs = 0
        self._spill.forget_held()

    def finish(self) -> None:
        """End the artifact; it is kept only if an output was removed."""
        self._spill.end(keep=bool(self._removed_bytes))

    def _shrink(self, entry: CollectedOutput) -> bool:
        """Remove an output, or the needed part of a stream; True if nothing is left."""
        content = entry.content
        if entry.pieces is None:
            self._removed_bytes += content.size
            self._removed_outputs += 1
            self._size -= content.size
            content.holders -= 1
            return True
        pieces = entry.pieces
        if content.size < len(pieces) * _LONG_PIECE:
            # Many small pieces take more room than their text; joined they may fit.
            _join_small(pieces)
            size = sum(len(piece.encode("utf-8", "surrogatepass")) + _PIECE for piece in pieces)
            self.set_size(content, _OVERHEAD + size)
        dropped = 0
        for piece in pieces:
            needed = self._size - self._most_bytes
            if needed <= 0:
                break
            raw = piece.encode("utf-8", "surrogatepass")
            rest = raw[needed:]
            while rest and rest[0] & 0xC0 == 0x80:
                rest = rest[1:]
            gone = len(raw) - len(rest)
            self._removed_bytes += gone
            if rest:
                pieces[dropped] = rest.decode("utf-8", "surrogatepass")
            else:
                dropped += 1
                gone += _PIECE
            self.set_size(content, content.size - gone)
        del pieces[:dropped]
        if not pieces:
            self.set_size(content, 0)
        return not pieces


def _join_small(pieces: list[str]) -> None:
    """Join neighbours until each piece is long, and none so long that to cut it costs much."""
    joined: list[str] = []
    start = size = 0
    for end, piece in enumerate(pieces):
        if end > start and size + len(piece) > _JOINED:
            joined.append("".join(pieces[start:end]))
            start, size = end, 0
        size += len(piece)
    pieces[:] = [*joined, "".join(pieces[start:])]


def _as_line(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode("utf-8", "backslashreplace")
