"""`describe`: the outputs of a cell as a model sees them, within a budget of tokens.

A token is taken for four characters, which holds for English and code and is generous for all
else. Every line that is ours stands in `⟦ ⟧`; what a cell says cannot hold these signs, so that
nothing it says can be taken for our word.
"""

from __future__ import annotations

from dataclasses import dataclass

from cellwright.outputs._items import Item, Reader, own
from cellwright.outputs.mime import latest
from cellwright.outputs.sanitize import visible
from cellwright.outputs.sink import OutputSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from cellwright.document.outputs import Output
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.images import Picture
    from cellwright.outputs.mime import Status

CHARACTERS_PER_TOKEN = 4

NOTICE_CHARACTERS = 400
"""The text may be longer than its budget by so much: a last line about what is left out."""

_MARKER = 80  # room for the line that stands for what is left out of a text
_LEAST = 2 * _MARKER  # less of a text is not worth its header
_MOST_NAMED = 6
_ALL_LINES = 10**9
_SHARE = 0.6  # of the room that is left, for an error, and then for the result


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not shown of the outputs `first` to `last`, counted from 0.

    `is_whole` if nothing of them is; the numbers are those of their text.
    """

    first: int
    last: int
    lines: int
    bytes: int
    is_whole: bool = False

    def __str__(self) -> str:
        if self.is_whole:
            return f"{_numbered(self)} ({self.lines:,} lines, {self.bytes:,} bytes)"
        if self.lines:
            return f"{self.lines:,} lines, {self.bytes:,} bytes of {_numbered(self)}"
        return f"{self.bytes:,} bytes of {_numbered(self)}"


@dataclass(frozen=True, slots=True)
class Description:
    """Outputs in words, with the images and status reports that go beside them."""

    text: str
    images: tuple[Picture, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    statuses: tuple[Status, ...] = ()


def describe(
    outputs: Sequence[Output | Mapping[str, Any]],
    budget: int = 2000,
    *,
    images: int = 4,
    artifact: str | None = None,
    store: ArtifactStore | None = None,
) -> Description:
    """Tell what a cell printed, showed and raised, in at most `budget` tokens.

    When not everything fits, an error comes first, then the result, then what was printed and
    shown last; of long texts both ends are kept, of tracebacks the last part.

    Args:
        outputs: typed outputs of a notebook, or dicts as nbformat has them.
        budget: tokens for the text; a last line of `NOTICE_CHARACTERS` may come on top.
        images: how many images to give back; others are only named.
        artifact: the id under which everything can be read, to be named with what is left out.
        store: gets the originals of images that had to be scaled.
    """
    reader = Reader(images, store)
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
    # Once more as a whole: what stood apart may have come together.
    text = visible("\n".join(parts))
    return Description(
        text, tuple(reader.pictures), tuple(left_out), tuple(latest(reader.statuses))
    )


def _allot(items: Sequence[Item], room: int) -> None:
    """Give every item that can be shown its share of characters."""
    waiting = sorted(items, key=lambda item: (item.priority, -item.first))
    chosen: list[Item] = []
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


def _fill(items: Sequence[Item], room: int) -> int:
    """Share room among items, the same for each, and to none more than it wants; tells the rest."""
    hungry = sorted(items, key=lambda item: item.wanted - (item.share or 0))
    for number, item in enumerate(hungry):
        share = item.share or 0
        more = min(item.wanted - share, room // (len(hungry) - number))
        item.share = share + more
        room -= more
    return room


def _render(item: Item, share: int, left_out: list[LeftOut]) -> str:
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
        head = own(summary.head).rstrip("\n")
        tail = own(summary.tail).rstrip("\n")
        if head:
            lines.append(head)
        if kept != share:
            lines.append(
                f"⟦… {summary.elided_lines:,} lines, {summary.elided_bytes:,} bytes left out …⟧"
            )
        lines.append(tail)
    return "\n".join([*lines, *item.notes])


def _skip(item: Item, left_out: list[LeftOut]) -> None:
    """Count an output that is not shown at all, together with such ones before it."""
    lines, size = item.total_lines, item.total_bytes
    last = left_out[-1] if left_out else None
    if last is not None and last.is_whole and last.last + 1 == item.first:
        left_out[-1] = LeftOut(
            last.first, item.last, last.lines + lines, last.bytes + size, is_whole=True
        )
    else:
        left_out.append(LeftOut(item.first, item.last, lines, size, is_whole=True))


def _notice(left_out: Sequence[LeftOut], artifact: str | None) -> str:
    """One line about all that is missing, of bounded length."""
    told = "; ".join(map(str, left_out[:_MOST_NAMED]))
    if len(left_out) > _MOST_NAMED:
        rest = left_out[_MOST_NAMED:]
        size = sum(item.bytes for item in rest)
        told += f"; {size:,} bytes of {len(rest):,} other outputs"
    where = f"artifact://{artifact}" if artifact else "the cell's outputs in the notebook"
    return f"⟦left out: {told}. All of it: {where}⟧"[:NOTICE_CHARACTERS]


def _numbered(item: LeftOut) -> str:
    if item.first == item.last:
        return f"output {item.first}"
    return f"outputs {item.first}-{item.last}"
