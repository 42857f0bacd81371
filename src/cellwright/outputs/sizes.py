"""Sizes in words."""

from __future__ import annotations


def human_size(size: int) -> str:
    """A number of bytes as people say it."""
    if size < 1000:
        return f"{size} B"
    number = float(size)
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 999.5 or unit == "GB":
            break
    return f"{number:,.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"
