"""Three-way merge of JSON objects, byte by byte the current one where nothing else changed."""

from __future__ import annotations

from cellwright.document._json.objects import change_members, is_object, read_members
from cellwright.document._surgery import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document._json.style import Style

# What a run writes: the other side's is taken only if this side did not run the cell itself.
_OF_A_RUN = frozenset({"outputs", "execution_count"})
# What frontends write by themselves; not worth a conflict.
_OF_A_FRONTEND = frozenset({"execution", "ExecuteTime", "collapsed", "scrolled"})


def merge_objects(
    base: bytes, current: bytes, other: bytes, style: Style, indent: bytes
) -> tuple[bytes, list[str]]:
    """The merged object, and the keys (as paths) that both sides changed in different ways."""
    was, now, then = (_values(raw) for raw in (base, current, other))
    changes: dict[str, bytes | None] = {}
    clashes: list[str] = []
    ran_here = any(not _same(was.get(key), now.get(key)) for key in _OF_A_RUN)
    for key in {**was, **now, **then}:
        before, here, there = was.get(key), now.get(key), then.get(key)
        if _same(there, before) or _same(there, here):
            continue
        if key in _OF_A_RUN and ran_here:
            continue
        if _same(here, before):
            changes[key] = there
        elif key in _OF_A_FRONTEND:
            continue
        elif here and there and is_object(here) and is_object(there):
            inner = before if before and is_object(before) else b"{}"
            changes[key], deeper = merge_objects(inner, here, there, style, indent + style.unit)
            clashes += [f"{key}.{path}" for path in deeper]
        else:
            clashes.append(key)
    return change_members(current, changes, style, indent, "the notebook"), clashes


def _values(raw: bytes) -> dict[str, bytes]:
    return {
        key: raw[member.start : member.end]
        for key, member in read_members(raw, 0, "the notebook").items()
    }


def _same(one: bytes | None, two: bytes | None) -> bool:
    """Whether two values say the same, however they are spelled."""
    if one == two:
        return True
    if one is None or two is None:
        return False
    first, second = decode(one, "A value"), decode(two, "A value")
    if isinstance(first, list) and isinstance(second, str):
        first, second = second, first
    if isinstance(first, str) and isinstance(second, list):
        # A text may be written as one string or as a list of lines.
        return all(isinstance(line, str) for line in second) and "".join(second) == first
    return repr(first) == repr(second)
