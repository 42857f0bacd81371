"""`%who`, `%whos` and `%%capture`: names, and output that is kept aside."""

from __future__ import annotations

import io
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HIDDEN = frozenset({"In", "Out"})
SHOWN_CHARS = 60


def own_names(names: dict[str, Any]) -> list[str]:
    """Give the names that cells have defined, sorted."""
    return sorted(name for name in names if not name.startswith("_") and name not in HIDDEN)


def table(names: dict[str, Any]) -> str:
    """Give name, type and the beginning of the value, a line each."""
    found = [(name, names[name]) for name in own_names(names)]
    rows = [("Variable", "Type", "Value")]
    rows += [(name, type(value).__name__, _brief(value)) for name, value in found]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in rows)


def _brief(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return "x".join(map(str, shape))
    if isinstance(value, (dict, list, set, frozenset, tuple)):
        return f"n={len(value)}"
    try:
        text = " ".join(repr(value).split())
    except Exception as problem:  # noqa: BLE001
        return f"<its repr raised {type(problem).__name__}>"
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 3] + "..."


class captured:  # noqa: N801 (used as a function)
    """Keep what is printed to `sys.stdout` and `sys.stderr` aside, for `%%capture`."""

    def __init__(self) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()
        self.result: Any = None

    @property
    def stdout(self) -> str:
        """What went to stdout."""
        return self._out.getvalue()

    @property
    def stderr(self) -> str:
        """What went to stderr."""
        return self._err.getvalue()

    def show(self) -> None:
        """Print it after all."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show

    def __str__(self) -> str:
        return self.stdout

    def __enter__(self) -> captured:  # noqa: PYI034 (3.9 has no Self)
        self._before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self._out, self._err
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._before
