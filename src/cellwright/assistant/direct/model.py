"""`DirectModel`: carries out what it is told with the tools at hand, and asks for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cellwright.assistant.direct.answers import (
    explain_cell,
    plain,
    tell_cells,
    tell_outputs,
    tell_run,
)
from cellwright.assistant.direct.cells import Unclear
from cellwright.assistant.direct.sentences import TOOL_OF, understand, verb_of
from cellwright.assistant.models import TextDelta, ToolCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.direct.sentences import Order, Verb
    from cellwright.assistant.models import Message, ModelEvent, ModelRequest, Situation

WHAT_I_AM = (
    "I am the built-in assistant: no language model is set up, so that I do what I am told and "
    "nothing more. I understand sentences such as `show all cells`, `what does cell 2 do`, `show "
    "the output of cell 2`, and in Agent mode `run cell 2`, `run all cells`, `add a markdown cell "
    "after 2: # Results` and `update cell 2 to: x = 1`; and the names of tools, such as "
    "`#getNotebookCells`. Give the chat a language model for everything else."
)
_MOST_OUTPUTS = 10
_DOING: dict[Verb, str] = {
    "run": "run cells",
    "add": "add cells",
    "update": "change cells",
    "delete": "delete cells",
}


class DirectModel:
    """A model that needs no key and no network."""

    name = "direct"

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Call the tool that the sentence asks for; then tell what came of it."""
        for event in _decide(request):
            yield event


def _decide(request: ModelRequest) -> list[ModelEvent]:
    situation = request.situation
    prompt = situation.request.prompt
    named = [
        reference.tool.name for reference in situation.references if reference.tool is not None
    ]
    absent = [each.note for each in situation.references if each.tool is None]
    if absent:
        return [TextDelta(_refused(absent, situation))]
    verb = verb_of(prompt, named)
    if situation.context is None:
        return [TextDelta(f"{situation.reason}\n\n{WHAT_I_AM}" if verb else WHAT_I_AM)]
    if verb is None:
        return [TextDelta(WHAT_I_AM)]
    if verb == "delete":
        return [TextDelta(_no_delete(situation))]
    if TOOL_OF[verb] not in [tool["name"] for tool in request.tools]:
        return [TextDelta(_not_here(verb, situation))]
    try:
        order = understand(prompt, verb, situation.context)
    except Unclear as problem:
        return [TextDelta(str(problem))]
    results = _results(request)
    if results:
        return [TextDelta(_tell(order, results, situation.context))]
    return _act(order, situation.context, f"direct-{len(request.messages)}")


def _act(order: Order, context: NotebookContext, name: str) -> list[ModelEvent]:
    if order.verb in ("add", "update") and order.source is None:
        return [TextDelta(
            "I write no code of my own. Spell the source out behind a colon or in a ``` block, or "
            "give the chat a language model."
        )]  # fmt: skip
    calls: list[dict[str, Any]]
    if order.verb in ("show", "explain"):
        wanted = bool(order.cells) and not order.is_all
        calls = [{"cellIds": list(order.cells)} if wanted else {}]
    elif order.verb == "outputs":
        calls = [{"cellId": ref} for ref in _with_outputs(order, context)]
        if not calls:
            return [TextDelta("No cell of the notebook has outputs.")]
    elif order.verb == "run":
        calls = [{"cellIds": list(order.cells)}]
    elif order.verb == "add":
        calls = [{"type": order.type, "index": order.index, "content": order.source}]
    else:
        calls = [{"cellId": order.cells[0], "content": order.source}]
    tool = TOOL_OF[order.verb]
    return [ToolCall(f"{name}-{number}", tool, each) for number, each in enumerate(calls)]


def _with_outputs(order: Order, context: NotebookContext) -> list[Any]:
    """The cells that are named, else those selected, else those that have any."""
    if order.cells and not order.is_all:
        return list(order.cells)
    chosen = [] if order.is_all else [cell.id for cell in context.selected_cells]
    return (chosen or [cell.id for cell in context.known if cell.has_output])[:_MOST_OUTPUTS]


def _tell(order: Order, results: list[tuple[ToolCall, Message]], context: NotebookContext) -> str:
    return "\n\n".join(_tell_one(order, call, result, context) for call, result in results)


def _tell_one(order: Order, call: ToolCall, result: Message, context: NotebookContext) -> str:
    if order.verb == "run" and "executions" in result.data:
        return tell_run(result)
    if result.is_error:
        return f"That did not work. {plain(result.text)}"
    if order.verb == "show":
        return tell_cells(result)
    if order.verb == "explain":
        return explain_cell(result, context)
    if order.verb == "outputs":
        return tell_outputs(result, _called(call.arguments["cellId"]))
    if order.verb == "add":
        number = result.data["index"] + 1
        return f"Added a {order.type} cell: cell {number} (`{result.data['cellId']}`)."
    handle = result.data["cellId"]
    has_output = any(cell.id == handle and cell.has_output for cell in context.known)
    kept = " Its outputs are those of the old one until it runs." if has_output else ""
    name = _called(call.arguments["cellId"]).capitalize()
    return f"{name} (`{handle}`) has its new source.{kept}"


def _called(ref: object) -> str:
    return f"cell {ref + 1}" if isinstance(ref, int) else f"cell `{ref}`"


def _results(request: ModelRequest) -> list[tuple[ToolCall, Message]]:
    """The calls of this turn with their results."""
    messages = request.messages
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    calls = {call.id: call for message in messages[last:] for call in message.calls}
    return [
        (calls[message.call_id], message)
        for message in messages[last:]
        if message.role == "tool" and message.call_id in calls
    ]


def _refused(notes: list[str], situation: Situation) -> str:
    told = " ".join(dict.fromkeys(notes))
    return told if situation.context is not None else f"{told} {situation.reason}"


def _not_here(verb: Verb, situation: Situation) -> str:
    doing, request = _DOING.get(verb, "do that"), situation.request
    if request.location == "cell":
        return f"I cannot {doing} from inside a cell. Use the chat pane in Agent mode to {doing}."
    mode = request.mode.capitalize()
    return f"I cannot {doing} in {mode} mode. Switch to Agent mode to {doing}."


def _no_delete(situation: Situation) -> str:
    if situation.request.mode != "agent":
        return _not_here("delete", situation)
    return "I have no tool to delete cells; delete them in the notebook."
