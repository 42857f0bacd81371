"""Older notebooks: read through nbformat's conversion, upgraded when asked, checked by schema."""

from __future__ import annotations

import json
import warnings

from cellwright.document._json.index import BOM
from cellwright.document._skeleton import set_top_member
from cellwright.document._slots import Slot
from cellwright.document._surgery import Surgeon, decode, new_id
from cellwright.document.validity import is_valid_id
from cellwright.errors import InvalidNotebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document._layout import Layout

NEWEST_MINOR = 5


def convert_old(data: bytes, major: int) -> bytes:
    """An nbformat 2 or 3 notebook as the bytes of an nbformat 4 one."""
    import nbformat

    value = decode(data.removeprefix(BOM), "The notebook")
    # The conversion stumbles over what a file with nothing to say may leave out.
    value.setdefault("metadata", {})
    worksheets = value.setdefault("worksheets", [])
    for worksheet in worksheets if isinstance(worksheets, list) else ():
        if isinstance(worksheet, dict):
            worksheet.setdefault("cells", [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about ids that it makes up, which we drop
            old = nbformat.reads(json.dumps(value), as_version=nbformat.NO_CONVERT)
            node = nbformat.convert(old, 4)
    except Exception as error:  # noqa: BLE001  # whatever a broken old file sets off in there
        reason = _first_line(error)
        raise InvalidNotebook(f"Not a readable nbformat {major} notebook: {reason}") from None
    node = nbformat.v4.rwbase.strip_transient(node)
    for cell in node.get("cells", []):
        cell.pop("id", None)
    text = json.dumps(node, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    return text.encode("utf-8", "backslashreplace")


def upgrade(layout: Layout) -> Layout:
    """The same notebook as nbformat 4.5: valid, unique ids, and no other byte changed."""
    surgeon = Surgeon(layout, NEWEST_MINOR)
    taken = {slot.facts.id for slot in layout.slots}
    ids: set[str | None] = set()
    replaced: dict[int, Slot] = {}
    for i, slot in enumerate(layout.slots):
        id_ = slot.facts.id
        if not slot.facts.problem and (id_ in ids or not is_valid_id(id_)):
            id_ = new_id(taken | ids)
            replaced[i] = Slot.of(surgeon.set_id(slot.raw, id_, i))
        ids.add(id_)
    if replaced:
        layout = layout.with_replaced(replaced)
    if layout.version[1] >= NEWEST_MINOR:
        return layout
    return set_top_member(layout, "nbformat_minor", str(NEWEST_MINOR).encode())


def schema_problem(data: bytes) -> str | None:
    """What nbformat's own schema says is wrong with a notebook, in one line, or None."""
    import nbformat

    value = decode(data.removeprefix(BOM), "The notebook")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # missing and duplicate ids may be warnings there
            nbformat.validate(value)
    except Exception as error:  # noqa: BLE001  # it stumbles over what it does not expect
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    try:
        text = str(error)
    except RecursionError:  # the message would show all of a value that is nested deeply
        text = ""
    return text.partition("\n")[0] or type(error).__name__
