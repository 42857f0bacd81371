"""What to type next after an error: the command or the option that its hint is about.

Errors state facts in words that fit every door; this table adds the words of the command line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.errors import CellwrightError
    from cellwright.workspace.runs.execution import Execution

_SPECS = "`cellwright kernel specs` lists the kernels"
_KERNEL = f"`--kernel NAME` chooses one, and {_SPECS}"
_RUNNER = f"`--kernel NAME` or `--runner` chooses one, and {_SPECS}"
_LOG = "Use `cellwright log NB`"

NEXT_STEPS = {
    "NEEDS_UPGRADE": "Use `cellwright upgrade NB`",
    "UNKNOWN_REVISION": "Use `cellwright read NB --json`",
    "JOURNAL_UNAVAILABLE": "`cellwright doctor` shows where it is",
    "CHANGE_NOT_FOUND": _LOG,
    "NOTHING_TO_UNDO": _LOG,
    "KERNEL_MISSING": _SPECS,
    "KERNEL_MISSING run": _KERNEL,
    "KERNEL_MISSING eval": _RUNNER,
    "KERNEL_START_FAILED": _SPECS,
    "KERNEL_START_FAILED run": _KERNEL,
    "KERNEL_START_FAILED eval": _RUNNER,
    "SESSION_NOT_FOUND": "Use `cellwright sessions`",
    "ARTIFACT_NOT_FOUND": "`cellwright artifact` lists those that are stored",
    "MODE_FORBIDS": "Use `--mode agent`",
    "MODE_FORBIDS chat": "Use `/mode agent`, or begin the chat with `--mode agent`",
    "OUTSIDE_ROOT": "`--root DIR` names the root",
    "OWNED_ELSEWHERE": "Leave out `--no-engine`, or use `cellwright kernel shutdown NB`",
    "RUN_NOT_FOUND": "Use `cellwright runs`",
    "ENGINE_UNAVAILABLE": "Use `cellwright engine logs`, or `--no-engine`",
    "ENGINE_DRAINING": "Use `cellwright engine stop`",
}
"""The next step by error code; after a space, the command that it is for."""


def complete_hint(error: CellwrightError, command: str = "") -> str | None:
    """Return the hint of an error, with the next step in the words of the command line."""
    step = NEXT_STEPS.get(f"{error.code} {command}") or NEXT_STEPS.get(error.code)
    return ". ".join(part for part in (error.hint, step) if part) or None


def complete_notes(execution: Execution, notebook: str) -> list[str]:
    """Return the notes of a cell that ran, and the command that brings lost variables back."""
    notes = list(execution.notes)
    if execution.replay and execution.cell:
        from shlex import quote

        command = f"cellwright run {quote(notebook)} --replay {quote(execution.cell)}"
        notes.append(f"`{command}` does that")
    return notes
