"""`Collector`: the outputs of one cell, as its notebook will hold them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from cellwright.outputs._limit import Limit, cost
from cellwright.outputs.events import Cleared, Raised, Shown, StreamText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cellwright.outputs._spill import SpillWriter
    from cellwright.outputs.events import OutputEvent


@dataclass(slots=True, eq=False)
class Content:
    """What an output says; the displays of one id share it, however many they are."""

    value: dict[str, Any]
    size: int = 0
    holders: int = 0


@dataclass(slots=True, eq=False)
class Entry:
    """One output while it may still change; a stream is held in pieces."""

    head: dict[str, Any]
    content: Content
    pieces: list[str] | None = None
    display_id: str | None = None
    is_kept: bool = False  # never makes room for others

    @property
    def value(self) -> dict[str, Any]:
        """The output as nbformat has it, but for the text of a stream."""
        return {**self.head, **self.content.value}

    def to_json(self) -> dict[str, Any]:
        """The output as nbformat has it."""
        if self.pieces is not None:
            text = "".join(self.pieces)
            self.pieces[:] = [text]  # joined once, however often it is asked for
            return {**self.head, "text": text}
        return deepcopy(self.value)


class Collector:
    """Takes what a cell says, event by event, and keeps its outputs the way Jupyter does.

    Pieces of one stream that follow each other become one output. `Cleared` with `wait` clears
    when the next output comes. An update changes every output with its display id, and so does a
    display that is shown again; those in other cells are the business of whoever knows them.

    Without `limit_bytes` everything is kept. With it, the oldest outputs make room when a cell
    says more, streams piece by piece; then `outputs` begins with a note on stderr that tells how
    much is gone, and `spill` opens the artifact that gets all of it. The result of the cell and
    its error always stay.
    """

    def __init__(
        self,
        *,
        limit_bytes: int | None = None,
        spill: Callable[[], SpillWriter] | None = None,
    ) -> None:
        self._entries: list[Entry] = []
        self._displays: dict[str, Content] = {}
        self._clears_next = False
        self._limit = None if limit_bytes is None else Limit(limit_bytes, spill)

    def feed(self, event: OutputEvent) -> bool:
        """Take the next event; False if it is an update for a display that is not in this cell."""
        if isinstance(event, Cleared):
            self._clears_next = event.wait
            if not event.wait:
                self._clear()
            return True
        if isinstance(event, Shown) and event.is_update:
            return self.update(event)
        if self._clears_next:
            self._clear()
        if isinstance(event, StreamText):
            self._add_text(event)
        elif isinstance(event, Shown):
            self._add_shown(event)
        else:
            self._add_raised(event)
        self._apply_limit()
        return True

    def update(self, event: Shown) -> bool:
        """Give every output with the event's display id new content; False if there is none.

        A display may be in earlier cells, too: whoever knows them asks their collectors, for
        updates and for displays that are shown again alike.
        """
        content = self._displays.get(event.display_id or "")
        if content is None:
            return False
        content.value = _shown(event)
        if self._limit is not None:
            self._limit.changed(content, cost(content.value))
            self._apply_limit()
        return True

    @property
    def display_ids(self) -> set[str]:
        """The displays in this cell that can be updated."""
        return set(self._displays)

    def outputs(self) -> list[dict[str, Any]]:
        """The outputs as nbformat 4 has them, the text of a stream as one string."""
        note = self._limit.note() if self._limit is not None else None
        found = [entry.to_json() for entry in self._entries]
        return found if note is None else [note, *found]

    def finish(self) -> list[dict[str, Any]]:
        """End the artifact, if there is one; returns the outputs."""
        if self._limit is not None:
            self._limit.finish()
        return self.outputs()

    def _clear(self) -> None:
        self._clears_next = False
        self._entries.clear()
        self._displays.clear()
        if self._limit is not None:
            self._limit.clear()

    def _add_text(self, event: StreamText) -> None:
        if not event.text:
            return
        last = self._entries[-1] if self._entries else None
        if last is None or last.pieces is None or last.head["name"] != event.name:
            last = Entry({"output_type": "stream", "name": event.name}, Content({}), pieces=[])
            self._add(last)
        assert last.pieces is not None  # noqa: S101  # looked at above
        last.pieces.append(event.text)
        if self._limit is not None:
            self._limit.printed(last, event.text)

    def _add_shown(self, event: Shown) -> None:
        self.update(event)  # Jupyter shows the new content also where this display was before
        content = self._displays.get(event.display_id or "") or Content(_shown(event))
        head: dict[str, Any] = {"output_type": "display_data"}
        if event.is_result:
            head = {"output_type": "execute_result", "execution_count": event.execution_count}
        entry = Entry(head, content, display_id=event.display_id, is_kept=event.is_result)
        if event.display_id:
            self._displays[event.display_id] = content
        self._add(entry)
        if self._limit is not None:
            self._limit.shown(entry)

    def _add_raised(self, event: Raised) -> None:
        value = {
            "ename": event.ename,
            "evalue": event.evalue,
            "traceback": list(event.traceback),
        }
        entry = Entry({"output_type": "error"}, Content(value), is_kept=True)
        self._add(entry)
        if self._limit is not None:
            self._limit.shown(entry)

    def _apply_limit(self) -> None:
        if self._limit is None:
            return
        for entry in self._limit.apply(self._entries):
            if entry.display_id and not entry.content.holders:
                self._displays.pop(entry.display_id, None)

    def _add(self, entry: Entry) -> None:
        entry.content.holders += 1
        self._entries.append(entry)


def _shown(event: Shown) -> dict[str, Any]:
    return {"data": dict(event.data), "metadata": dict(event.metadata)}
