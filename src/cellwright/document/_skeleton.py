"""Change what a notebook holds besides its cells, and leave every other byte as it is."""

from __future__ import annotations

from cellwright.document._json.objects import change_members, is_object, merge_patch
from cellwright.document._json.style import Style
from cellwright.document._surgery import decode, replace_value
from cellwright.document.validity import notebook_metadata_problem
from cellwright.errors import InvalidMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.document._layout import Layout


def set_notebook_metadata(
    layout: Layout, patch: Mapping[str, Any], minor: int, *, merge: bool
) -> Layout:
    """The notebook with a patch merged into its metadata, or put in their place."""
    style, skeleton = layout.outer_style(), layout.skeleton
    member = layout.members.get("metadata")
    old = skeleton[member.start : member.end] if member else b"{}"
    if merge:
        old = old if is_object(old) else b"{}"
        own = Style.of_object(old, layout.escapes_unicode, style.comma) or style
        new = merge_patch(old, patch, own, style.unit * 2)
    else:
        new = replace_value(old, dict(patch), style, style.unit)
    metadata = decode(new, "The metadata")
    problem = notebook_metadata_problem(metadata, minor, patch)
    if problem:
        raise InvalidMetadata(problem)
    if member and new == skeleton[member.start : member.end]:
        return layout
    return set_top_member(layout, "metadata", new)


def set_top_member(layout: Layout, key: str, value: bytes) -> Layout:
    """The notebook with another value for one of its own members."""
    style, skeleton, start = layout.outer_style(), layout.skeleton, layout.start
    end = skeleton.rindex(b"}") + 1
    whole = change_members(skeleton[start:end], {key: value}, style, style.unit, "the notebook")
    return layout.with_skeleton(skeleton[:start] + whole + skeleton[end:])
