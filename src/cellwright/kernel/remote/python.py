"""What a Python kernel can be told and asked in its own language, without a trace in its names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.kernel.remote.framing import Message

_OUTCOME = "application/x-cellwright-outcome+json"

_PATCH = """
import os, sys
for name, value in env.items():
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
if cwd is not None:
    os.chdir(cwd)
    if cwd not in sys.path:
        sys.path.insert(0, cwd)
"""

_ASK = """
import hashlib
from IPython import get_ipython
shell = get_ipython()
result = getattr(shell, "last_execution_result", None)
info = getattr(result, "info", None)
source = getattr(info, "raw_cell", None) or ""
error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
shell.display_pub.publish({mime: {
    "source": hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
    "count": getattr(result, "execution_count", None),
    "ename": type(error).__name__ if error is not None else None,
    "evalue": str(error)[:10000] if error is not None else None,
}})
"""


class Patcher:
    """Remembers what a kernel was told about its folder and variables, and tells only news."""

    def __init__(self) -> None:
        self._cwd: str | None = None
        self._env: dict[str, str | None] = {}

    def news(
        self, cwd: str | None, env: Mapping[str, str | None]
    ) -> tuple[str | None, dict[str, str | None]]:
        """What of this the kernel does not have yet."""
        missing = object()
        return (
            cwd if cwd != self._cwd else None,
            {name: value for name, value in env.items() if self._env.get(name, missing) != value},
        )

    def told(self, cwd: str | None, env: Mapping[str, str | None]) -> None:
        """Note that the kernel has this now."""
        self._cwd = cwd or self._cwd
        self._env.update(env)


def patch_code(cwd: str | None, env: Mapping[str, str | None]) -> str:
    """Code that sets variables, changes to a folder and makes its modules importable."""
    return _in_names_of_its_own(_PATCH, {"cwd": cwd, "env": dict(env)})


def ask_code() -> str:
    """Code that makes a kernel tell how the cell before went."""
    return _in_names_of_its_own(_ASK, {"mime": _OUTCOME})


@dataclass(frozen=True, slots=True)
class LastCell:
    """What a kernel remembers of the cell it ran last."""

    source_hash: str
    count: int | None
    ename: str | None
    evalue: str

    def is_of(self, source: str) -> bool:
        """Whether that cell had this source."""
        digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        return digest == self.source_hash


def last_cell(published: list[Message]) -> LastCell | None:
    """The kernel's answer to `ask_code`, if it gave one."""
    for message in published:
        data = message.content.get("data")
        told = data.get(_OUTCOME) if isinstance(data, dict) else None
        if isinstance(told, dict):
            count, ename = told.get("count"), told.get("ename")
            return LastCell(
                str(told.get("source")),
                count if isinstance(count, int) else None,
                ename if isinstance(ename, str) else None,
                str(told.get("evalue") or ""),
            )
    return None


def _in_names_of_its_own(code: str, names: dict[str, Any]) -> str:
    return f"exec({code!r}, {names!r})"
