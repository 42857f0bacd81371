"""What to type next after an error: the command or the option that its hint is about.

Errors state facts in words that fit every door; this table adds the words of the command line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.errors import CellwrightError
    from cellwright.workspace.runs.execution import Execution

_KERNEL = "`--kernel NAME`, one of `cellwright kernel specs`"
_RUNNER = f"{_KERNEL}, or `--runner`"

NEXT_STEPS = {
    "NEEDS_UPGRADE": "`cellwright upgrade NB`",
    "UNKNOWN_REVISION": "`cellwright read NB --json`",
    "JOURNAL_UNAVAILABLE": "see `cellwright doctor`",
    "CHANGE_NOT_FOUND": "`cellwright log NB`",
    "NOTHING_TO_UNDO": "`cellwright log NB`, `cellwright backup NB --restore ID^`",
    "KERNEL_MISSING": "see `cellwright kernel specs`",
    "KERNEL_MISSING run": _KERNEL,
    "KERNEL_MISSING eval": _RUNNER,
    "KERNEL_START_FAILED": "see `cellwright kernel specs`",
    "KERNEL_START_FAILED run": _KERNEL,
    "KERNEL_START_FAILED eval": _RUNNER,
    "KERNEL_CANNOT eval": "`--reset`, or `-s NAME`",
    "KERNEL_CANNOT run": "`--restart`",
    "SESSION_NOT_FOUND": "`cellwright sessions`",
    "MODE_FORBIDS": "`--mode agent`",
    "MODE_FORBIDS chat": "`/mode agent`, or `--mode agent` for the next chat",
    "OUTSIDE_ROOT": "`--root DIR`",
    "OWNED_ELSEWHERE": "without `--no-engine`, or `cellwright kernel shutdown NB`",
    "RUN_NOT_FOUND": "`cellwright runs`",
    "ENGINE_UNAVAILABLE": "`cellwright engine logs`, `--no-engine`",
    "ENGINE_DRAINING": "`cellwright engine stop`",
}
"""The next step by error code; after a space, the command that it is for."""


def complete_hint(error: CellwrightError, command: str = "") -> str | None:
    """Return the hint of an error, with the next step in the words of the command line."""
    step = NEXT_STEPS.get(f"{error.code} {command}") or NEXT_STEPS.get(error.code)
    return ": ".join(part for part in (error.hint, step) if part) or None


def complete_notes(execution: Execution, notebook: str) -> list[str]:
    """Return the notes of a cell that ran, and the command that brings lost variables back."""
    notes = list(execution.notes)
    if execution.replay and execution.cell:
        from shlex import quote

        command = f"cellwright run {quote(notebook)} --replay {quote(execution.cell)}"
        notes.append(f"`{command}` does that")
    return notes
