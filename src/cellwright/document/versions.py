"""Older notebooks: converted by nbformat to be read, upgraded on request, checked by schema."""

from __future__ import annotations

import json
import warnings

from cellwright.document._bytes.cell_writer import CellWriter, new_id
from cellwright.document._bytes.slots import Slot
from cellwright.document._bytes.validity import is_valid_id
from cellwright.document._json.index import BOM
from cellwright.document._json.scan import decode
from cellwright.errors import InvalidNotebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document._bytes.layout import Layout

NEWEST_MINOR = 5


def convert_old_notebook(data: bytes, major: int) -> bytes:
    """An nbformat 2 or 3 notebook as the bytes of an nbformat 4 one."""
    import nbformat

    value = decode(data.removeprefix(BOM), "The notebook")
    # The conversion fails on members that an empty file may lack.
    value.setdefault("metadata", {})
    worksheets = value.setdefault("worksheets", [])
    for worksheet in worksheets if isinstance(worksheets, list) else ():
        if isinstance(worksheet, dict):
            worksheet.setdefault("cells", [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the ids that it adds, which are dropped here
            old = nbformat.reads(json.dumps(value), as_version=nbformat.NO_CONVERT)
            node = nbformat.convert(old, 4)
    except Exception as error:  # noqa: BLE001  # a broken file can cause any error in nbformat
        reason = _first_line(error)
        raise InvalidNotebook(f"Not a readable nbformat {major} notebook: {reason}") from None
    node = nbformat.v4.rwbase.strip_transient(node)
    for cell in node.get("cells", []):
        cell.pop("id", None)
    text = json.dumps(node, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    return text.encode("utf-8", "backslashreplace")


def upgrade_layout(layout: Layout) -> Layout:
    """The same notebook as nbformat 4.5: valid, unique ids, and no other byte changed."""
    writer = CellWriter(layout, NEWEST_MINOR)
    taken = {slot.facts.id for slot in layout.slots}
    ids: set[str | None] = set()
    replaced: dict[int, Slot] = {}
    for i, slot in enumerate(layout.slots):
        id_ = slot.facts.id
        if not slot.facts.problem and (id_ in ids or not is_valid_id(id_)):
            id_ = new_id(taken | ids)
            replaced[i] = Slot.of(writer.set_id(slot.raw, id_, i))
        ids.add(id_)
    if replaced:
        layout = layout.with_replaced(replaced)
    if layout.version[1] >= NEWEST_MINOR:
        return layout
    return layout.with_member("nbformat_minor", str(NEWEST_MINOR).encode())


def find_schema_problem(data: bytes) -> str | None:
    """The first problem that nbformat's own schema finds, in one line, or None."""
    import nbformat

    value = decode(data.removeprefix(BOM), "The notebook")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # missing and duplicate ids may be warnings there
            nbformat.validate(value)
    except Exception as error:  # noqa: BLE001  # unexpected values can cause any error there
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    try:
        text = str(error)
    except RecursionError:  # the message would show a whole deeply nested value
        text = ""
    return text.partition("\n")[0] or type(error).__name__
