"""The outputs of a cell as items of a description: a header, a text, and notes of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

from cellwright.document.outputs import Display, Error, Result, Stream, parse_output
from cellwright.outputs import images
from cellwright.outputs.mime import Image, Json, Status, choose, size_of
from cellwright.outputs.sanitize import one_line
from cellwright.outputs.sink import OutputSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from cellwright.document.outputs import Output
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.images import Picture

_LONGEST_NAME = 40
_MOST_NOTES = 8
_ALL_LINES = 10**9


@dataclass(slots=True, eq=False)
class Item:
    """One output, or several pieces of a stream that follow each other.

    `source` is what the cell said and `text` the same made harmless, if it is no longer than all
    the room there is. `share` is how many characters of it are shown, None if none.
    """

    first: int
    last: int
    label: str
    source: str
    priority: int
    mode: Literal["tail", "head_tail"] = "head_tail"
    notes: list[str] = field(default_factory=list)
    text: str = ""
    wanted: int = 0
    total_lines: int = 0
    total_bytes: int = 0
    share: int | None = None

    @property
    def header(self) -> str:
        """The line above the text."""
        number = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"⟦output {number}: {self.label}⟧"

    @property
    def overhead(self) -> int:
        """Characters that are needed beside the text."""
        return len(self.header) + 2 + sum(len(note) + 1 for note in self.notes)

    def measure(self, room: int) -> None:
        """Find out how long the text is, and keep it if it fits."""
        sink = OutputSink(max(1, 4 * room), _ALL_LINES, "tail")
        sink.feed(self.source)
        summary = sink.dump()
        self.total_lines, self.total_bytes = summary.total_lines, summary.total_bytes
        text = own(summary.tail).rstrip("\n")
        fits = not summary.truncated and len(text) <= room
        self.text = text if fits else ""
        self.wanted = len(text) if fits else room + 1


def own(text: str) -> str:
    """What a cell says, without the signs that mark our own words."""
    return text.replace("⟦", "[").replace("⟧", "]")


class Reader:
    """Turns outputs into items; collects the images to send and the status reports beside them."""

    def __init__(self, most_images: int, store: ArtifactStore | None) -> None:
        self.pictures: list[Picture] = []
        self.statuses: list[Status] = []
        self._most_images = most_images
        self._store = store

    def read(self, outputs: Sequence[Output | Mapping[str, Any]]) -> list[Item]:
        """The items, in order; an output that is a status report and nothing else is none."""
        items: list[Item] = []
        for first, last, output in _joined(outputs):
            if isinstance(output, Stream):
                label = one_line(output.name[:_LONGEST_NAME])
                items.append(Item(first, last, own(label), output.text, 2))
            elif isinstance(output, Error):
                items.append(Item(first, last, "error", _error_text(output), 0, "tail"))
            elif isinstance(output, Display):
                is_result = isinstance(output, Result)
                label = "result" if is_result else "display"
                item = Item(first, last, label, "", 1 if is_result else 2)
                if self._read_display(item, output.data):
                    items.append(item)
            else:
                kind = output.value.get("output_type") if isinstance(output.value, dict) else None
                label = one_line(str(kind)[:_LONGEST_NAME])
                items.append(Item(first, last, f"unknown, {own(label)}", "", 3))
        return items

    def _read_display(self, item: Item, data: Mapping[str, Any]) -> bool:
        """Fill an item from a display; False if there is nothing to tell."""
        chosen = choose(data)
        is_silent = bool(chosen.parts)
        item.source = chosen.text.text if chosen.text else ""
        has_image = False
        for part in chosen.parts:
            is_silent = is_silent and isinstance(part, Status)
            if isinstance(part, Image):
                if has_image:
                    continue  # the same picture in another format: nobody needs to see it twice
                has_image = True
            if isinstance(part, Status):
                self.statuses.append(part)
            elif isinstance(part, Json):
                item.source = item.source or _json_text(part.value)
            else:
                note = self._image_note(part) if isinstance(part, Image) else str(part)[1:-1]
                item.notes.append(f"⟦{own(note)}⟧")
        del item.notes[_MOST_NOTES:]
        return not is_silent

    def _image_note(self, image: Image) -> str:
        if len(self.pictures) < self._most_images:
            found = images.prepare(image, store=self._store)
            if isinstance(found, images.Picture):
                self.pictures.append(found)
                return f"image {len(self.pictures)}: {str(found)[1:-1]}"
            return str(found)[1:-1]
        size = images.measure(image)
        measured = f", {size[0]}×{size[1]}" if size else ""
        return str(image)[1:-1] + measured


def _joined(outputs: Sequence[Output | Mapping[str, Any]]) -> Iterator[tuple[int, int, Output]]:
    """Typed outputs with their places; what was printed in pieces is put together."""
    typed = [
        parse_output(dict(output)) if isinstance(output, Mapping) else output for output in outputs
    ]
    for name, group in groupby(enumerate(typed), lambda place: getattr(place[1], "name", None)):
        members = list(group)
        if name is None:
            yield from ((place, place, output) for place, output in members)
        else:
            text = "".join(output.text for _, output in members)  # type: ignore[union-attr]
            yield members[0][0], members[-1][0], Stream(name, text)


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"<application/json, {size_of('application/json', value)} B, not readable>"


def _error_text(error: Error) -> str:
    told = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    text = "\n".join(error.traceback).rstrip("\n")
    if not text:
        return told
    last = text.rpartition("\n")[2]
    return text if error.ename and error.ename in last else f"{text}\n{told}"
