"""Errors as results for models: what happened, and which call of which tool helps.

Errors state facts, with hints that fit every door. This module adds the next call, if its tool is
there, and leaves out what only a person at a shell can do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cellwright.errors import CellNotFound, CellwrightError, Conflict, InvalidSelector
from cellwright.tools.page import Page
from cellwright.tools.wording import quote_name, shorten

if TYPE_CHECKING:
    from collections.abc import Collection

    from cellwright.tools.tool import ToolResult


class NextCall(NamedTuple):
    """A call that helps after an error; `arguments` are written as `name=value`."""

    tool: str
    arguments: str = ""

    def __str__(self) -> str:
        return f"{self.tool} with {self.arguments}" if self.arguments else self.tool


_LIST = NextCall("notebook_list")
_READ = NextCall("notebook_read")
_LOG = NextCall("notebook_history", "action=log")
_SPECS = NextCall("kernel", "action=specs")
_STATUS = NextCall("kernel", "action=status")

NEXT_CALLS: dict[str, tuple[NextCall, ...]] = {
    "NOTEBOOK_NOT_FOUND": (_LIST, NextCall("notebook_edit", "create=true")),
    "UNREADABLE_FILE": (_LIST,),
    "CELL_NOT_FOUND": (_READ,),
    "TEXT_MISMATCH": (_READ,),
    "INVALID_SELECTOR": (NextCall("notebook_read", "view=outline"),),
    "CONFLICT": (_READ,),
    "UNKNOWN_REVISION": (_READ,),
    "DURABILITY_UNCONFIRMED": (_READ,),
    "CHANGE_NOT_FOUND": (_LOG,),
    "NOTHING_TO_UNDO": (_LOG, NextCall("notebook_history", "action=restore, change=ID^")),
    "KERNEL_MISSING": (_SPECS,),
    "KERNEL_START_FAILED": (_SPECS,),
    "KERNEL_DIED": (NextCall("notebook_run", "which=replay"),),
    "SESSION_NOT_FOUND": (_STATUS,),
    "SESSIONS_BUSY": (_STATUS, NextCall("kernel", "action=interrupt")),
    "OUTSIDE_ROOT": (_LIST,),
    "RUN_NOT_FOUND": (_READ,),
    "ENGINE_LOST": (_READ,),
}
"""The calls that help, by error code."""

# A flag, or a command in backticks.
_for_shells = re.compile(r"--\w|`[^`]* -|`cellwright |pip install").search


def describe_error(error: CellwrightError, tools: Collection[str] = ()) -> ToolResult:
    """An error of ours as a result; a conflict shows what every side holds.

    Args:
        error: what was raised.
        tools: the names of the tools that can be called next.
    """
    page = Page(2000)
    message, hint = shorten(error.message, 400), format_hint(error, tools) or None
    page.say(f"error: {error.code}: {message}")
    if hint:
        page.say(f"hint: {hint}")
    for cell in error.cells if isinstance(error, Conflict) else ():
        if not page.say(
            f"cell {quote_name(cell.handle)} (index {cell.index}): {shorten(cell.reason)}"
        ):
            break
        for side, text in (("now", cell.current), ("yours", cell.other)):
            if text is not None:
                page.show(side, text, 2000, cell=cell.handle)
    data = {"code": error.code, "message": message, "hint": hint}
    return page.to_result({**data, "retryable": error.retryable}, is_error=True)


def format_hint(error: CellwrightError, tools: Collection[str] = ()) -> str:
    """What to try next; a call is named if its tool is among `tools`."""
    hint = _quote_suggestions(error) or drop_shell_hint(error.hint)
    if hint.endswith("?"):  # it names what was probably meant
        return hint
    calls = [str(call) for call in NEXT_CALLS.get(error.code, ()) if call.tool in tools]
    return ": ".join(part for part in (hint, " or ".join(calls)) if part)


def drop_shell_hint(hint: str | None) -> str:
    """A hint as a part of a line; empty if it is a command or a flag, which models cannot use."""
    return "" if not hint or _for_shells(hint) else shorten(hint, 400)


def _quote_suggestions(error: CellwrightError) -> str:
    """Suggestions whose names come from the notebook, quoted where they must be."""
    if isinstance(error, CellNotFound) and error.near:
        return f"Did you mean {', '.join(map(quote_name, error.near[:3]))}?"
    if isinstance(error, InvalidSelector) and "Did you mean `" in (error.hint or ""):
        titles = (error.hint or "").partition("Did you mean ")[2].rstrip("?").split(", ")
        return f"Did you mean {', '.join(quote_name(title.strip('`')) for title in titles)}?"
    return ""
