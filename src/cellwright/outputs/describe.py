"""`describe`: the outputs of a cell as a model sees them, within a budget of tokens.

A token is counted as four characters, which is right for English and code and too much for other
texts. Every line that we add is in `⟦ ⟧`. These signs are removed from what a cell says, so its
text cannot be taken for ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

from cellwright.document.outputs import Display, ErrorOutput, Result, Stream, parse_output
from cellwright.outputs import images as images_module
from cellwright.outputs.charts.reading import Chart, describe_svg
from cellwright.outputs.mime import (
    SVG,
    MimeImage,
    MimeJson,
    StatusReport,
    choose_parts,
    latest_statuses,
    part_size,
)
from cellwright.outputs.sanitize import fold_repeats, make_visible, one_line
from cellwright.outputs.sink import OutputSink
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from cellwright.document.outputs import Output
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.charts.drawing import DrawingTime
    from cellwright.outputs.images import ModelImage

CHARACTERS_PER_TOKEN = 4
NOTICE_CHARACTERS = 400
"""The text may exceed its budget by this much: a last line about what is left out."""
_MARKER = 80  # characters for the line in place of what is left out of a text
_LEAST = 2 * _MARKER  # a shorter part of a text is not worth its header
_SHARE = 0.6  # share of the remaining room for an error, and then for the result
_MOST_NAMED = 6
_MOST_NOTES = 8
_LONGEST_NAME = 40
_AT_ONCE = 16  # elements of JSON that are written in one step
_ALL_LINES = 10**9


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not shown of the outputs `first` to `last`, counted from 0.

    `is_whole` if nothing of them is shown; the numbers are those of their text.
    """

    first: int
    last: int
    lines: int
    bytes: int
    is_whole: bool = False

    def __str__(self) -> str:
        if self.is_whole:
            return f"{_number_outputs(self)} ({self.lines:,} lines, {self.bytes:,} bytes)"
        if self.lines:
            return f"{self.lines:,} lines, {self.bytes:,} bytes of {_number_outputs(self)}"
        return f"{self.bytes:,} bytes of {_number_outputs(self)}"


@dataclass(frozen=True, slots=True)
class Description:
    """Outputs as text, with their images and status reports."""

    text: str
    images: tuple[ModelImage, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    statuses: tuple[StatusReport, ...] = ()


def describe(
    outputs: Sequence[Output | Mapping[str, Any]],
    budget: int = 2000,
    *,
    images: int = 4,
    artifact: str | None = None,
    store: ArtifactStore | None = None,
    pixels: images_module.PixelBudget | None = None,
    drawing: DrawingTime | None = None,
) -> Description:
    """Describe what a cell printed, displayed and raised, in at most `budget` tokens.

    If not everything fits, an error has priority, then the result, then what was printed and
    displayed last. Of long texts both ends are kept, of tracebacks the last part.

    Args:
        outputs: typed outputs of a notebook, or dicts in nbformat's shape.
        budget: tokens for the text; a last line of `NOTICE_CHARACTERS` may be added.
        images: how many images to return; others are only named.
        artifact: the id of the artifact with everything, to be named with what is left out.
        store: gets the originals of images that had to be scaled.
        pixels: how many pixels may be decoded, if other outputs belong to the same answer.
        drawing: how long charts and SVGs may take to draw; without it they are only described.
    """
    reader = OutputReader(images, store, pixels, drawing)
    items = reader.read(outputs)
    room = budget * CHARACTERS_PER_TOKEN
    for item in items:
        item.measure(room)
    _allot(items, room)
    parts: list[str] = []
    left_out: list[LeftOut] = []
    for item in items:
        if item.share is None:
            _skip(item, left_out)
        else:
            parts.append(_render(item, item.share, left_out))
    if left_out:
        parts.append(_notice(left_out, artifact))
    # Once more as a whole: joined texts may contain new unsafe sequences.
    text = make_visible("\n".join(parts))
    return Description(
        text, tuple(reader.pictures), tuple(left_out), tuple(latest_statuses(reader.statuses))
    )


def _allot(items: Sequence[DescriptionItem], room: int) -> None:
    """Set the share of characters of every item that can be shown."""
    waiting = sorted(items, key=lambda item: (item.priority, -item.first))
    chosen: list[DescriptionItem] = []
    for item in waiting:
        least = min(item.wanted, _LEAST)
        if room < item.overhead + least and not chosen:
            least = max(0, room - item.overhead)  # something of the most important one
            if least < min(item.wanted, 8):
                continue
        if room >= item.overhead + least:
            room -= item.overhead + least
            item.share = least
            chosen.append(item)
    for priority in (0, 1):
        some = int(room * _SHARE)
        room -= some - _fill([item for item in chosen if item.priority == priority], some)
    room = _fill([item for item in chosen if item.priority > 1], room)
    for item in chosen:
        room = _fill([item], room)


def _fill(items: Sequence[DescriptionItem], room: int) -> int:
    """Divide room equally among items, to none more than it wants; returns the rest."""
    waiting = sorted(items, key=lambda item: item.wanted - (item.share or 0))
    for number, item in enumerate(waiting):
        share = item.share or 0
        more = min(item.wanted - share, room // (len(waiting) - number))
        item.share = share + more
        room -= more
    return room


def _render(item: DescriptionItem, share: int, left_out: list[LeftOut]) -> str:
    lines = [item.header]
    if item.wanted <= share:
        if item.text:
            lines.append(item.text)
    else:
        mode = item.mode
        kept = share - _MARKER
        if kept < _MARKER // 2:
            mode, kept = "tail", share
        sink = OutputSink(max(1, kept), _ALL_LINES, mode)
        sink.feed(item.source)
        summary = sink.dump()
        left_out.append(LeftOut(item.first, item.last, summary.elided_lines, summary.elided_bytes))
        head = _without_signs(summary.head).rstrip("\n")
        tail = _without_signs(summary.tail).rstrip("\n")
        if head:
            lines.append(head)
        if kept != share:
            lines.append(
                f"⟦… {summary.elided_lines:,} lines, {summary.elided_bytes:,} bytes left out …⟧"
            )
        lines.append(tail)
    return "\n".join([*lines, *item.notes])


def _skip(item: DescriptionItem, left_out: list[LeftOut]) -> None:
    """Count an output that is not shown at all, together with those right before it."""
    lines, size = item.total_lines, item.total_bytes
    last = left_out[-1] if left_out else None
    if last is not None and last.is_whole and last.last + 1 == item.first:
        left_out[-1] = LeftOut(
            last.first, item.last, last.lines + lines, last.bytes + size, is_whole=True
        )
    else:
        left_out.append(LeftOut(item.first, item.last, lines, size, is_whole=True))


def _notice(left_out: Sequence[LeftOut], artifact: str | None) -> str:
    """One line about everything that is left out, of limited length."""
    text = "; ".join(map(str, left_out[:_MOST_NAMED]))
    if len(left_out) > _MOST_NAMED:
        rest = left_out[_MOST_NAMED:]
        size = sum(item.bytes for item in rest)
        text += f"; {size:,} bytes of {len(rest):,} other outputs"
    where = f"artifact://{artifact}" if artifact else "the cell's outputs in the notebook"
    return f"⟦left out: {text}. All of it: {where}⟧"[:NOTICE_CHARACTERS]


def _number_outputs(item: LeftOut) -> str:
    if item.first == item.last:
        return f"output {item.first}"
    return f"outputs {item.first}-{item.last}"


@dataclass(slots=True, eq=False)
class DescriptionItem:
    """One output, or several consecutive pieces of a stream.

    `source` is the text of the cell, and `text` the same made safe, if it fits into all the room.
    `share` is how many characters of it are shown; None if it is not shown.
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
        """Characters that are needed besides the text."""
        return len(self.header) + 2 + sum(len(note) + 1 for note in self.notes)

    def measure(self, room: int) -> None:
        """Measure the text, and keep it if it fits."""
        sink = OutputSink(max(1, 4 * room), _ALL_LINES, "tail")
        sink.feed(self.source)
        summary = sink.dump()
        self.total_lines, self.total_bytes = summary.total_lines, summary.total_bytes
        text = _without_signs(summary.tail).rstrip("\n")
        fits = not summary.truncated and len(text) <= room
        self.text = text if fits else ""
        self.wanted = len(text) if fits else room + 1


def _without_signs(text: str) -> str:
    """The text of a cell without the signs that mark our own lines."""
    return text.replace("⟦", "[").replace("⟧", "]")


class OutputReader:
    """Turns outputs into items; collects the images to send and the status reports."""

    def __init__(
        self,
        most_images: int,
        store: ArtifactStore | None,
        pixels: images_module.PixelBudget | None = None,
        drawing: DrawingTime | None = None,
    ) -> None:
        self._drawing = drawing
        self.pictures: list[ModelImage] = []
        self.statuses: list[StatusReport] = []
        self._most_images = most_images
        self._store = store
        self._pixels = pixels or images_module.PixelBudget()

    def read(self, outputs: Sequence[Output | Mapping[str, Any]]) -> list[DescriptionItem]:
        """The items in order; an output with nothing but a status report is skipped."""
        items: list[DescriptionItem] = []
        for first, last, output in _join_streams(outputs):
            if isinstance(output, Stream):
                label = one_line(output.name[:_LONGEST_NAME])
                items.append(DescriptionItem(first, last, _without_signs(label), output.text, 2))
            elif isinstance(output, ErrorOutput):
                items.append(DescriptionItem(first, last, "error", _error_text(output), 0, "tail"))
            elif isinstance(output, Display):
                is_result = isinstance(output, Result)
                label = "result" if is_result else "display"
                item = DescriptionItem(first, last, label, "", 1 if is_result else 2)
                if self._read_display(item, output.data):
                    items.append(item)
            else:
                kind = output.value.get("output_type") if isinstance(output.value, dict) else None
                label = one_line(str(kind)[:_LONGEST_NAME])
                items.append(
                    DescriptionItem(first, last, f"unknown, {_without_signs(label)}", "", 3)
                )
        return items

    def _read_display(self, item: DescriptionItem, data: Mapping[str, Any]) -> bool:
        """Fill an item from a display; False if there is nothing to say."""
        chosen = choose_parts(data)
        is_silent = bool(chosen.parts)
        item.source = chosen.text.text if chosen.text else ""
        has_image = False
        for part in chosen.parts:
            is_silent = is_silent and isinstance(part, StatusReport)
            if isinstance(part, MimeImage):
                if has_image:
                    continue  # the same image in another format
                has_image = True
                if part.mime == SVG:
                    self._read_drawing(item, part.data.decode("utf-8", "replace"))
                    continue
            if isinstance(part, StatusReport):
                self.statuses.append(part)
            elif isinstance(part, MimeJson):
                item.source = item.source or _json_text(part.value)
            elif isinstance(part, Chart):
                item.source = item.source or str(part)
                if not has_image:
                    self._read_drawing(item, part)
            else:
                note = self._image_note(part) if isinstance(part, MimeImage) else str(part)[1:-1]
                item.notes.append(f"⟦{_without_signs(note)}⟧")
        del item.notes[_MOST_NOTES:]
        return not is_silent

    def _read_drawing(self, item: DescriptionItem, chart: Chart | str) -> None:
        """Draw a chart or an SVG if that is wanted and possible; say what an SVG consists of."""
        picture = None
        if self._drawing is not None and len(self.pictures) < self._most_images:
            from cellwright.outputs.charts import drawing

            if isinstance(chart, str):
                picture = drawing.draw_svg(chart, self._drawing)
            else:
                picture = drawing.draw_chart(chart, self._drawing)
        if picture is not None:
            note = self._image_note(MimeImage("image/png", picture))
            item.notes.append(f"⟦drawn from its data, {_without_signs(note)}⟧")
        elif isinstance(chart, str):
            size = human_size(len(chart.encode("utf-8", "replace")))
            item.source = item.source or describe_svg(chart)
            item.notes.append(f"⟦image/svg+xml, {size}⟧")

    def _image_note(self, image: MimeImage) -> str:
        if len(self.pictures) < self._most_images:
            found = images_module.prepare_image(image, store=self._store, budget=self._pixels)
            if isinstance(found, images_module.ModelImage):
                self.pictures.append(found)
                return f"image {len(self.pictures)}: {str(found)[1:-1]}"
            return str(found)[1:-1]
        size = images_module.read_image_size(image.mime, image.data)
        measured = f", {size[0]}×{size[1]}" if size else ""
        return str(image)[1:-1] + measured


def _join_streams(
    outputs: Sequence[Output | Mapping[str, Any]],
) -> Iterator[tuple[int, int, Output]]:
    """Typed outputs with their places; consecutive pieces of a stream are joined."""
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
        return _dump(value)
    except (TypeError, ValueError, RecursionError):
        return f"<application/json, {part_size('application/json', value)} B, not readable>"


def _dump(value: Any, levels: int = 3) -> str:
    """What `json.dumps` returns, in many steps: no other thread works during one of them."""
    if levels and isinstance(value, list) and value:
        if len(value) <= _AT_ONCE:
            texts = [_dump(each, levels - 1) for each in value]
        else:
            starts = range(0, len(value), _AT_ONCE)
            texts = [_dump(value[start : start + _AT_ONCE], 0)[1:-1] for start in starts]
        return f"[{', '.join(texts)}]"
    if levels and isinstance(value, dict) and value:
        texts = [f"{_dump(key)}: {_dump(each, levels - 1)}" for key, each in value.items()]
        return f"{{{', '.join(texts)}}}"
    return json.dumps(value, ensure_ascii=False)


def _error_text(error: ErrorOutput) -> str:
    summary = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    text = fold_repeats("\n".join(error.traceback).rstrip("\n"))
    if not text:
        return summary
    last = text.rpartition("\n")[2]
    return text if error.ename and error.ename in last else f"{text}\n{summary}"
