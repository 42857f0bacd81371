"""The line that begins a cell, and the escape that keeps a source from looking like one."""

from __future__ import annotations

import re

# Only a line feed ends a line, which is also how Python's `^` and `$` see it.
_TAIL = r" \[(?:code|markdown|raw)\](?: cell:[0-9]+)?)$"
_escape = re.compile(r"^# %(%+" + _TAIL, re.MULTILINE).sub
_unescape = re.compile(r"^# %(%%+" + _TAIL, re.MULTILINE).sub


def marker(cell_type: str, index: int) -> str:
    """The line that begins a cell."""
    return f"# %% [{cell_type}] cell:{index}"


def escape(source: str) -> str:
    """Give every line that looks like a marker, escaped or not, one more `%`."""
    return _escape(r"# %%\1", source) if "# %%" in source else source


def unescape(text: str) -> str:
    """Take one `%` from every line that `escape` gave one."""
    return _unescape(r"# \1", text) if "# %%%" in text else text
