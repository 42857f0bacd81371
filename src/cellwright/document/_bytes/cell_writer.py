"""Change the bytes of one cell, or write a new cell in the style of the file.

Members that are not named keep their bytes. A member that a valid cell needs is added.
"""

from __future__ import annotations

import os

from cellwright.document._bytes.validity import cell_keys, cell_metadata_problem, is_valid_id
from cellwright.document._json.scan import (
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    decode,
    decode_string,
    members,
)
from cellwright.document._json.writing import (
    ListShape,
    Style,
    change_members,
    encode_source,
    is_object,
    merge_patch,
    read_members,
    replace_value,
)
from cellwright.document.costs import blake2b
from cellwright.errors import InvalidMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from typing import Any

    from cellwright.document._bytes.layout import Layout
    from cellwright.document._bytes.slots import Slot
    from cellwright.document._json.scan import Member

# A new cell is written like a neighbour that is at most this far away.
_NEARBY = 200
_LONG_TEXT = 2**16


class CellWriter:
    """Writes cells of one layout; each method takes and returns the bytes of one cell."""

    def __init__(self, layout: Layout, minor: int) -> None:
        self.layout = layout
        self.minor = minor

    def set_source(
        self,
        raw: bytes,
        source: str,
        index: int,
        completed: tuple[str, Callable[[], str]] | None = None,
    ) -> bytes:
        """Replace the source, in the form it has: a list of lines or one string.

        With `completed`, the type of the cell and what makes ids, the cell is also completed.
        """
        found = self._members(raw, index)
        style, indent = self.style(raw, found)
        member = found.get("source")
        old = raw[member.start : member.end] if member else b""
        as_list = self._takes_lists(index) if old in (b"", b'""') else old[0] != QUOTE
        shape = ListShape.of_array(old, style.comma) if old[:1] == b"[" else None
        shape = shape or self._source_shape(index, style) or ListShape.of_style(style, indent)
        changes: dict[str, bytes | None] = {
            "source": encode_source(source, style, shape, old, as_list=as_list)
        }
        if completed is not None:
            changes = {**self._find_missing(raw, found, style, *completed), **changes}
        return change_members(raw, changes, style, indent, f"cell {index}", found=found)

    def set_type(self, raw: bytes, cell_type: str, index: int) -> bytes:
        """Change the type, and remove the members that the new type does not have."""
        style, indent = self.style(raw)
        changes: dict[str, bytes | None] = {"cell_type": style.encode(cell_type)}
        allowed = cell_keys(cell_type, self.minor)
        for key in ("outputs", "execution_count", "attachments"):
            if key not in allowed:
                changes[key] = None
        raw = change_members(raw, changes, style, indent, f"cell {index}")
        return self.fit_metadata(raw, cell_type, index)

    def fit_metadata(self, raw: bytes, cell_type: str, index: int) -> bytes:
        """Drop metadata that are not valid for this type, such as a wrong `collapsed` of code."""
        member = self._members(raw, index).get("metadata")
        if member is None or raw[member.start] != OPEN_OBJECT:
            return raw
        metadata = self._load(raw, member, f"The metadata of cell {index}")
        bad = [
            key
            for key in metadata
            if cell_metadata_problem(metadata, cell_type, self.minor, (key,))
        ]
        return self.set_metadata(raw, dict.fromkeys(bad), cell_type, index) if bad else raw

    def clear_outputs(self, raw: bytes, index: int) -> bytes:
        """Drop the outputs and the execution count of a code cell."""
        style, indent = self.style(raw)
        changes = {"outputs": b"[]", "execution_count": b"null"}
        return change_members(raw, changes, style, indent, f"cell {index}")

    def set_outputs(
        self,
        raw: bytes,
        outputs: Sequence[Mapping[str, Any]],
        count: int | None,
        index: int,
    ) -> bytes:
        """Replace the outputs and the execution count of a code cell."""
        style, indent = self.style(raw)
        changes = {
            "outputs": _write_outputs(outputs, style, indent) if outputs else b"[]",
            "execution_count": style.encode(count),
        }
        return change_members(raw, changes, style, indent, f"cell {index}")

    def set_metadata(
        self,
        raw: bytes,
        patch: Mapping[str, Any],
        cell_type: str,
        index: int,
        *,
        merge: bool = True,
    ) -> bytes:
        """Merge a patch into the metadata, or replace them with it."""
        found = self._members(raw, index)
        style, indent = self.style(raw)
        member = found.get("metadata")
        old = raw[member.start : member.end] if member else b""
        if merge:
            base = old if is_object(old) else b"{}"
            own = Style.of_object(base, self.layout.escapes_unicode, style.comma) or style
            new = merge_patch(base, patch, own, indent + style.unit)
        else:
            new = replace_value(old, dict(patch), style, indent)
        problem = cell_metadata_problem(decode(new, "The metadata"), cell_type, self.minor, patch)
        if problem:
            raise InvalidMetadata(problem)
        return change_members(raw, {"metadata": new}, style, indent, f"cell {index}", found=found)

    def complete(self, raw: bytes, cell_type: str, index: int, make_id: Callable[[], str]) -> bytes:
        """Add the members that a valid cell needs, and remove those of other types."""
        found = self._members(raw, index)
        style, indent = self.style(raw, found)
        changes = self._find_missing(raw, found, style, cell_type, make_id)
        if not changes:
            return raw
        return change_members(raw, changes, style, indent, f"cell {index}", found=found)

    def _find_missing(
        self,
        raw: bytes,
        found: dict[str, Member],
        style: Style,
        cell_type: str,
        make_id: Callable[[], str],
    ) -> dict[str, bytes | None]:
        """What a cell with these members lacks, and None for what it has to lose."""
        changes: dict[str, bytes | None] = {}
        if "source" not in found:
            changes["source"] = b"[]"
        if "metadata" not in found or raw[found["metadata"].start] != OPEN_OBJECT:
            changes["metadata"] = b"{}"
        # One type's members, left on a cell of another, would make it invalid.
        foreign = {"outputs", "execution_count", "attachments"} - cell_keys(cell_type, self.minor)
        changes |= dict.fromkeys(found.keys() & foreign)
        if cell_type == "code":
            outputs = found.get("outputs")
            if outputs is None or raw[outputs.start] != OPEN_ARRAY:
                changes["outputs"] = b"[]"
            if "execution_count" not in found:
                changes["execution_count"] = b"null"
        if self.minor >= 5:
            at = found.get("id")
            is_text = at is not None and raw[at.start] == QUOTE
            if not (at and is_text and is_valid_id(decode_string(raw, at.start, at.end))):
                changes["id"] = style.encode(make_id())
        return changes

    def join_attachments(self, raws: Sequence[bytes], index: int) -> bytes:
        """The first cell with the attachments of all cells; its own win over the same names."""
        values = []
        for raw in raws:
            member = self._members(raw, index).get("attachments")
            value = decode(raw[member.start : member.end], "The attachments") if member else None
            values.append(value if isinstance(value, dict) else {})
        first = raws[0]
        joined = {name: item for value in reversed(values) for name, item in value.items()}
        if joined == values[0]:
            return first
        style, indent = self.style(first)
        changes = {"attachments": style.encode(joined, indent)}
        return change_members(first, changes, style, indent, f"cell {index}")

    def set_id(self, raw: bytes, id_: str, index: int) -> bytes:
        """Give the cell another id."""
        style, indent = self.style(raw)
        return change_members(raw, {"id": style.encode(id_)}, style, indent, f"cell {index}")

    def write_cell(self, cell: Mapping[str, Any], index: int) -> bytes:
        """Write a new cell, for the place before `index`, in the style of its neighbours."""
        template = self._template(cell["cell_type"], index)
        style, indent = self.style(template) if template else self._outer_style()
        order = sorted(cell)
        if template:
            order.sort(key=_place_in([member.key for member in members(template, 0)]))
        shape = self._source_shape(index, style) or ListShape.of_style(style, indent)
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        values = {key: style.encode(cell[key], indent) for key in order if key != "source"}
        values["source"] = encode_source(source, style, shape, as_list=self._takes_lists(index))
        rows = [style.encode(key) + style.colon + values[key] for key in order]
        if not style.newline:
            return b"{" + style.comma.join(rows) + b"}"
        line = style.newline + indent
        end = style.newline + indent[: len(indent) - len(style.unit)]
        return b"{" + line + (b"," + line).join(rows) + end + b"}"

    def _members(self, raw: bytes, index: int) -> dict[str, Member]:
        return read_members(raw, f"cell {index}")

    def _load(self, raw: bytes, member: Member, where: str) -> Any:
        return decode(raw[member.start : member.end], where)

    def style(self, raw: bytes, found: Mapping[str, Member] | None = None) -> tuple[Style, bytes]:
        """The style of a cell and the indentation of its members, which may be known."""
        known = None if found is None else list(found.values())
        style = Style.of_object(raw, self.layout.escapes_unicode, known=known)
        if style is None:
            return self._outer_style()
        if not style.newline:
            return style, b""
        opening = raw[1 : raw.index(b'"')]
        return style, opening[opening.rfind(b"\n") + 1 :]

    def _outer_style(self) -> tuple[Style, bytes]:
        style = self.layout.outer_style()
        return style, style.unit * 3

    def _nearby(self, index: int) -> Iterator[Slot]:
        """The valid cells around a place, the nearest first."""
        slots = self.layout.slots
        for distance in range(_NEARBY):
            for i in (index - 1 - distance, index + distance):
                if 0 <= i < len(slots) and slots[i].facts.problem is None:
                    yield slots[i]

    def _template(self, cell_type: str, index: int) -> bytes | None:
        first = None
        for slot in self._nearby(index):
            if slot.facts.type == cell_type:
                return slot.raw
            first = first or slot
        return first.raw if first else None

    def _nearby_sources(self, index: int) -> Iterator[bytes]:
        for slot in self._nearby(index):
            source = slot.member("source")
            if source is not None:
                yield source

    def _source_shape(self, index: int, style: Style) -> ListShape | None:
        for value in self._nearby_sources(index):
            shape = ListShape.of_array(value, style.comma) if value[:1] == b"[" else None
            if shape:
                return shape
        return None

    def _takes_lists(self, index: int) -> bool:
        """Whether sources near a place are lists of lines; True if none shows it."""
        for value in self._nearby_sources(index):
            if value not in (b"", b"[]", b'""'):
                return value[0] != QUOTE
        return True


def _write_outputs(
    outputs: Sequence[Mapping[str, Any]], style: Style, indent: bytes
) -> Iterator[bytes]:
    """Write a list of outputs, in pieces."""
    shape = ListShape.of_style(style, indent)
    before = b"[" + shape.opening
    for output in outputs:
        yield before
        yield from _write_output(output, style, indent + style.unit)
        before = shape.separator
    yield shape.closing + b"]"


def _write_output(output: Mapping[str, Any], style: Style, indent: bytes) -> Iterator[bytes]:
    from cellwright.document.outputs import to_file_shape

    text = output.get("text")
    is_stream = output.get("output_type") == "stream"
    if is_stream and isinstance(text, list):
        texts = text
    elif is_stream and isinstance(text, str) and len(text) >= _LONG_TEXT:
        texts = [text]
    else:
        yield style.encode(to_file_shape(output), indent)
        return
    rest = style.encode(to_file_shape({**output, "text": ""}), indent)
    place = read_members(rest, "an output")["text"]
    yield rest[: place.start]
    yield from style.encode_lines(texts, indent + style.unit)
    yield rest[place.end :]


def new_id(taken: Container[str | None]) -> str:
    """Eight random hex digits that no cell has yet; with a letter, so that it is not a number."""
    while True:
        id_ = os.urandom(4).hex()
        if id_ not in taken and not id_.isdigit():
            return id_


def derive_id(seed: str, taken: Container[str | None]) -> str:
    """An id that no cell has yet, the same whenever it is made from the same text."""
    number = 0
    while True:
        id_ = blake2b(f"{number} {seed}".encode(), digest_size=4).hexdigest()
        if id_ not in taken and not id_.isdigit():
            return id_
        number += 1


def _place_in(order: list[str]) -> Callable[[str], Any]:
    """A sort key for the order of the template, or the alphabet if the template is sorted."""
    if order == sorted(order):
        return lambda key: key
    return lambda key: (order.index(key) if key in order else len(order), key)
