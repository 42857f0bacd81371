"""The exit code of a chat that nobody sits at.

A language model is told when a tool fails, and answers all the same: that is an answer. The
built-in assistant only carries out what it was told, so that its failure is the command's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellwright.assistant.direct.model import DirectModel
from cellwright.cli.chat.slash import WrongCommand
from cellwright.cli.output import FAILED, FORBIDDEN, INTERRUPTED, OK, STATUS_CODES, USAGE, exit_code
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from cellwright.assistant.events import Begun
    from cellwright.assistant.models import Model
    from cellwright.cli.chat.turn import Outcome
    from cellwright.tools.tool import Answer

_REFUSED = frozenset({"MODE_FORBIDS", "NOT_CONFIRMED", "DECLINED", "TOOL_UNAVAILABLE"})


def code_of_error(error: CellwrightError) -> int:
    """The exit code for an error; a wrong command of the chat is wrong usage."""
    return USAGE if isinstance(error, WrongCommand) else exit_code(error)


def code_of_turn(outcome: Outcome, model: Model, prompt: str) -> int:
    """The exit code of a turn."""
    if outcome.error is not None:
        return code_of_error(outcome.error)
    if outcome.ending == "stopped":
        return INTERRUPTED
    if outcome.ending == "limit":
        return FAILED
    if not isinstance(model, DirectModel):
        return OK
    if outcome.begun is not None and _is_refused(outcome.begun, prompt):
        return FORBIDDEN
    return next((code for code in map(_code_of_answer, outcome.answers) if code), OK)


def _is_refused(begun: Begun, prompt: str) -> bool:
    """Whether the built-in assistant could not do what it was told, because of the mode."""
    from cellwright.assistant.direct.sentences import TOOL_OF, verb_of

    if begun.mode == "agent":
        return False
    if any(each.tool is None for each in begun.tool_references):
        return True
    named = [each.tool.name for each in begun.tool_references if each.tool is not None]
    verb = verb_of(prompt, named)
    if verb is None or begun.notebook is None:
        return False
    return TOOL_OF.get(verb) not in begun.tools


def _code_of_answer(answer: Answer) -> int:
    if not answer.is_error:
        return OK
    code = answer.data.get("code")
    if code in _REFUSED:
        return FORBIDDEN
    for row in answer.data.get("executions") or ():
        if STATUS_CODES.get(row["status"], OK) and row["status"] != "pending":
            return STATUS_CODES[row["status"]]
    from cellwright import errors

    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, CellwrightError) and kind.code == code:
            return exit_code(kind.__new__(kind))
    return FAILED
