"""Older notebooks: read through nbformat's conversion, upgraded when asked, checked by schema."""

from __future__ import annotations

import json
import warnings

from cellwright.document._json.index import BOM
from cellwright.document._layout import Layout, Slot
from cellwright.document._surgery import Surgeon, decode, new_id
from cellwright.document.validity import is_valid_id
from cellwright.errors import InvalidNotebook

NEWEST_MINOR = 5


def convert_old(data: bytes, major: int) -> bytes:
    """An nbformat 2 or 3 notebook as the bytes of an nbformat 4 one."""
    import nbformat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about ids that it makes up, which we drop
            old = nbformat.reads(data.removeprefix(BOM).decode(), as_version=nbformat.NO_CONVERT)
            node = nbformat.convert(old, 4)
    except Exception as error:  # noqa: BLE001  # whatever a broken old file sets off in there
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InvalidNotebook(f"Not a readable nbformat {major} notebook: {reason}") from None
    for cell in node.get("cells", []):
        cell.pop("id", None)
    text = json.dumps(node, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    return text.encode("utf-8", "backslashreplace")


def upgrade(layout: Layout, minor: int) -> Layout:
    """The same notebook as nbformat 4.5: valid, unique ids, and no other byte changed."""
    surgeon = Surgeon(layout, NEWEST_MINOR)
    taken = {slot.facts.id or "" for slot in layout.slots}
    ids: set[str] = set()
    slots = []
    for i, slot in enumerate(layout.slots):
        id_ = slot.facts.id
        keep = slot.facts.problem or (id_ is not None and id_ not in ids and is_valid_id(id_))
        slots.append(slot if keep else Slot.of(surgeon.set_id(slot.raw, new_id(taken | ids), i)))
        ids.add(slots[-1].facts.id or "")
    layout = layout.with_cells(slots, layout.gaps)
    member = layout.members.get("nbformat_minor")
    if minor >= NEWEST_MINOR or member is None:
        return layout
    skeleton = layout.skeleton
    return layout.with_skeleton(
        skeleton[: member.start] + str(NEWEST_MINOR).encode() + skeleton[member.end :]
    )


def schema_problem(data: bytes) -> str | None:
    """What nbformat's own schema says is wrong with a notebook, in one line, or None."""
    import nbformat

    value = decode(data.removeprefix(BOM), "The notebook")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # missing and duplicate ids may be warnings there
            nbformat.validate(value)
    except (nbformat.ValidationError, ValueError, KeyError, Warning) as error:
        return str(error).partition("\n")[0]
    return None
