"""Change members of an object and leave every other byte as it is."""

from __future__ import annotations

import json

from cellwright.document._json.scan import OPEN_OBJECT, Member, members
from cellwright.errors import DuplicateKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.document._json.style import Style


def read_members(raw: bytes, at: int, where: str) -> dict[str, Member]:
    """The members of the object that opens at `at`, by key; a key must not stand twice."""
    found: dict[str, Member] = {}
    for member in members(raw, at):
        if member.key in found:
            raise DuplicateKey(member.key, where)
        found[member.key] = member
    return found


def change_members(
    raw: bytes, changes: Mapping[str, bytes | None], style: Style, indent: bytes, where: str
) -> bytes:
    """The object with members set to those bytes, or removed where None.

    `indent` is the indentation of the line that the object's members stand on; it matters only
    for members that are new.
    """
    found = read_members(raw, 0, where)
    raw = _replace_and_remove(raw, found, changes)
    new = {key: value for key, value in changes.items() if value is not None and key not in found}
    for key, value in new.items():
        raw = _add(raw, key, value, style, indent)
    return raw


def merge_patch(raw: bytes, patch: Mapping[str, Any], style: Style, indent: bytes) -> bytes:
    """Apply an RFC 7396 patch to an object: null removes, objects merge, the rest replaces."""
    found = read_members(raw, 0, "the metadata")
    changes: dict[str, bytes | None] = {}
    for key, value in patch.items():
        member = found.get(key)
        if value is None:
            changes[key] = None
        elif isinstance(value, dict):
            old = raw[member.start : member.end] if member else b"{}"
            # A patch creates objects too, without the nulls that would remove nothing.
            old = old if old[0] == OPEN_OBJECT else b"{}"
            changes[key] = merge_patch(old, value, style, indent + style.unit)
        elif not member or not _equal(raw[member.start : member.end], value):
            changes[key] = style.encode(value, indent)  # the same value keeps its spelling
    return change_members(raw, changes, style, indent, "the metadata")


def _equal(old: bytes, value: Any) -> bool:
    try:
        loaded = json.loads(old)
    except (ValueError, RecursionError):
        return False
    # 1 == True == 1.0 in Python, not in JSON.
    return type(loaded) is type(value) and json.dumps(loaded) == json.dumps(value)


def _replace_and_remove(
    raw: bytes, found: dict[str, Member], changes: Mapping[str, bytes | None]
) -> bytes:
    ordered = list(found.values())
    removed = {key for key, value in changes.items() if value is None and key in found}
    if ordered and len(removed) == len(ordered):
        return b"{}"
    pieces: list[bytes] = []
    done = 0
    kept_before = False
    for i, member in enumerate(ordered):
        if member.key in removed:
            if kept_before:
                start, end = ordered[i - 1].end, member.end
            else:
                start, end = member.key_start, ordered[i + 1].key_start
            pieces.append(raw[done:start])
            done = end
            continue
        kept_before = True
        value = changes.get(member.key)
        if value is not None:
            pieces += (raw[done : member.start], value)
            done = member.end
    pieces.append(raw[done:])
    return b"".join(pieces)


def _add(raw: bytes, key: str, value: bytes, style: Style, indent: bytes) -> bytes:
    ordered = list(members(raw, 0))
    name = style.spell(json.dumps(key, ensure_ascii=False))
    if not ordered:
        line = style.newline + indent if style.newline else b""
        end = style.newline + indent[: len(indent) - len(style.unit)] if style.newline else b""
        return b"{" + line + name + style.colon + value + end + b"}"
    first = ordered[0]
    opening = raw[1 : first.key_start]
    colon = raw[first.key_end : first.start]
    if len(ordered) > 1:
        separator = raw[first.end : ordered[1].key_start]
    else:
        separator = b"," + opening if b"\n" in opening else style.comma
    # Jupyter sorts keys; a sorted object stays sorted, so that its next save moves nothing.
    keys = [member.key for member in ordered]
    place = len(keys)
    if keys == sorted(keys):
        place = sum(1 for other in keys if other < key)
    if place == 0:
        at = first.key_start
        return raw[:at] + name + colon + value + separator + raw[at:]
    at = ordered[place - 1].end
    return raw[:at] + separator + name + colon + value + raw[at:]


def is_object(raw: bytes) -> bool:
    """Whether the value is an object."""
    return raw[:1] == b"{"
