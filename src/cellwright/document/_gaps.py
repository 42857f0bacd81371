"""What stands between cells after they were moved, added or taken away."""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document._layout import Layout


def place_gaps(layout: Layout, origins: Sequence[int | None]) -> list[bytes]:
    """What stands between cells that come from those old places, or are new (None).

    Neighbours that were neighbours keep their separator; others get the one that stood before
    the second of them, or one like its neighbours'.
    """
    gaps = layout.gaps
    count = len(layout.slots)
    if not origins:
        return [b""]
    if not count:
        style = layout.outer_style()
        line = style.newline + style.unit * 2 if style.newline else b""
        between = b"," + line if style.newline else style.comma
        end = style.newline + style.unit if style.newline else b""
        return [line, *[between] * (len(origins) - 1), end]
    usual = b"," + gaps[0] if gaps[0] else layout.outer_style().comma
    usual = gaps[1] if count > 1 else usual
    placed = [gaps[0]]
    for before, after in pairwise(origins):
        if after:
            placed.append(gaps[after])
        elif before is not None and before + 1 < count:
            placed.append(gaps[before + 1])
        else:
            placed.append(usual)
    return [*placed, gaps[-1]]
