"""`DirectModel`: a built-in program instead of a language model. It needs no key.

It calls the tools that a prompt names, understands a few plain sentences about cells, and tells a
person what came of it. It writes no code of its own, and says so if that is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cellwright.assistant.models.model import TextDelta, ToolCall
from cellwright.assistant.models.sentences import (
    TOOL_OF,
    UnclearSentence,
    ask_for_source,
    find_verb,
    parse_answer,
    parse_instruction,
    strip_tools,
)
from cellwright.dataflow.analyse import analyse
from cellwright.tools.wording import code_block, shorten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from cellwright.assistant.context import NotebookContext
    from cellwright.assistant.models.model import ChatMessage, ModelEvent, ModelRequest, Situation
    from cellwright.assistant.models.sentences import Instruction, Verb


WHAT_I_AM = (
    "I am the built-in assistant: no language model is set up, so that I do what I am told and "
    "nothing more. I understand sentences such as `show all cells`, `what does cell 2 do`, `show "
    "the output of cell 2`, and in Agent mode `run cell 2`, `run all cells`, `add a markdown cell "
    "after 2: # Results` and `update cell 2 to: x = 1`; and the names of tools, such as "
    "`#getNotebookCells`, or without a notebook `#read notes.txt` and `#search total`. Give the chat a language model for everything else."
)
_ARGUMENT_OF = {"read": "path", "search": "text"}
_MOST_OUTPUTS = 10
_MOST_NAMES = 12
_DOING: dict[Verb, str] = {
    "run": "run cells",
    "add": "add cells",
    "update": "change cells",
    "delete": "delete cells",
}


class DirectModel:
    """A model that needs no key and no network.

    Args:
        repeats_outputs: whether it repeats the outputs of cells that ran; without that it only
            tells how each cell went, for doors that show the outputs themselves.
    """

    name = "direct"

    def __init__(self, *, repeats_outputs: bool = True) -> None:
        self.repeats_outputs = repeats_outputs

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Call the tool that the sentence asks for; then tell what came of it."""
        for event in self._decide(request):
            yield event

    def _decide(self, request: ModelRequest) -> list[ModelEvent]:
        situation = request.situation
        prompt, context = situation.request.prompt, situation.context
        # A source may hold what looks like the name of a tool, but does not begin with it.
        if not (situation.references and prompt.lstrip().startswith("#")) and context is not None:
            answer = parse_answer(_find_last_words(request), prompt)
            if answer is not None:
                return self._carry_out(request, answer, context)
        absent = [each.note for each in situation.references if each.tool is None]
        if absent:
            return [TextDelta(_explain_absence(absent, situation))]
        named = [each.tool.name for each in situation.references if each.tool]
        if named and named[0] in _ARGUMENT_OF:
            return self._use_file_tool(request, named[0])
        verb = find_verb(prompt, named)
        if verb is None:
            return [TextDelta(WHAT_I_AM)]
        if context is None:
            return [TextDelta(f"{situation.reason}\n\n{WHAT_I_AM}")]
        if verb == "delete":
            return [TextDelta(_explain_delete(situation))]
        if not _has_tool(request, verb):
            return [TextDelta(_explain_mode(verb, situation))]
        try:
            instruction = parse_instruction(prompt, verb, context)
        except UnclearSentence as problem:
            return [TextDelta(str(problem))]
        return self._carry_out(request, instruction, context)

    def _carry_out(
        self, request: ModelRequest, instruction: Instruction, context: NotebookContext
    ) -> list[ModelEvent]:
        """Call the tools for an instruction, or tell what came of it if they were called."""
        if not _has_tool(request, instruction.verb):
            return [TextDelta(_explain_mode(instruction.verb, request.situation))]
        results = _find_results(request)
        if results:
            texts = [self._describe(instruction, *each, context) for each in results]
            return [TextDelta("\n\n".join(texts))]
        return _call_tools(instruction, context, f"direct-{len(request.messages)}")

    def _use_file_tool(self, request: ModelRequest, tool: str) -> list[ModelEvent]:
        """List, read or search: what the prompt says beside the tool is the path or the text."""
        results = _find_results(request)
        if results:
            return [TextDelta("\n\n".join(_plain(result) for _, result in results))]
        said = strip_tools(request.situation.request.prompt, [tool]).strip("`'\" ")
        if not said and tool == "search":
            return [TextDelta("Say what to search for, such as `#search total`.")]
        arguments = {_ARGUMENT_OF[tool]: said or "."}
        return [ToolCall(f"direct-{len(request.messages)}", tool, arguments)]

    def _describe(
        self,
        instruction: Instruction,
        call: ToolCall,
        result: ChatMessage,
        context: NotebookContext,
    ) -> str:
        """Tell a person what a tool answered."""
        verb = instruction.verb
        if verb == "run" and "executions" in result.data:
            return _describe_run(result, with_outputs=self.repeats_outputs)
        if result.is_error:
            return f"That did not work. {_plain(result)}"
        if verb == "show":
            return _describe_cells(result)
        if verb == "explain":
            return _explain_cells(result, context)
        if verb == "outputs":
            return _describe_outputs(result, _cell_name(call.arguments["cellId"]))
        if verb == "add":
            number = result.data["index"] + 1
            return f"Added a {instruction.type} cell: cell {number} (`{result.data['cellId']}`)."
        handle = result.data["cellId"]
        has_output = any(cell.id == handle and cell.has_output for cell in context.known_cells)
        kept = " Its outputs are those of the old one until it runs." if has_output else ""
        name = _cell_name(call.arguments["cellId"]).capitalize()
        return f"{name} (`{handle}`) has its new source.{kept}"


# -- calling tools --------------------------------------------------------------------------------


def _call_tools(instruction: Instruction, context: NotebookContext, name: str) -> list[ModelEvent]:
    verb = instruction.verb
    if verb == "update" and instruction.source is None:
        return [TextDelta(ask_for_source(instruction.cells[0]))]
    if verb == "add" and instruction.source is None:
        return [TextDelta(
            "I write no code of my own. Spell the source out behind a colon or in a ``` block, or "
            "give the chat a language model."
        )]  # fmt: skip
    calls: list[dict[str, Any]]
    if verb in ("show", "explain"):
        wanted = bool(instruction.cells) and not instruction.is_all
        calls = [{"cellIds": list(instruction.cells)} if wanted else {}]
    elif verb == "outputs":
        calls = [{"cellId": ref} for ref in _choose_outputs(instruction, context)]
        if not calls:
            return [TextDelta("No cell of the notebook has outputs.")]
    elif verb == "run":
        calls = [{"cellIds": list(instruction.cells)}]
    elif verb == "add":
        place = {"type": instruction.type, "index": instruction.index}
        calls = [{**place, "content": instruction.source}]
    else:
        calls = [{"cellId": instruction.cells[0], "content": instruction.source}]
    tool = TOOL_OF[verb]
    return [ToolCall(f"{name}-{number}", tool, each) for number, each in enumerate(calls)]


def _choose_outputs(instruction: Instruction, context: NotebookContext) -> list[Any]:
    """The cells that are named, else those selected, else those that have outputs."""
    if instruction.cells and not instruction.is_all:
        return list(instruction.cells)
    chosen = [] if instruction.is_all else [cell.id for cell in context.selected_cells]
    return (chosen or [cell.id for cell in context.known_cells if cell.has_output])[:_MOST_OUTPUTS]


def _has_tool(request: ModelRequest, verb: Verb) -> bool:
    return TOOL_OF[verb] in [tool["name"] for tool in request.tools]


def _find_last_words(request: ModelRequest) -> str:
    """What the assistant said before the person's message."""
    messages = request.messages
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    return next(
        (each.text for each in reversed(messages[:last]) if each.role == "assistant" and each.text),
        "",
    )


def _find_results(request: ModelRequest) -> list[tuple[ToolCall, ChatMessage]]:
    """The calls of this turn with their results."""
    messages = request.messages
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    calls = {call.id: call for message in messages[last:] for call in message.calls}
    return [
        (calls[message.call_id], message)
        for message in messages[last:]
        if message.role == "tool" and message.call_id in calls
    ]


# -- explaining what cannot be done ---------------------------------------------------------------


def _explain_absence(notes: list[str], situation: Situation) -> str:
    text = " ".join(dict.fromkeys(notes))
    return text if situation.context is not None else f"{text} {situation.reason}"


def _explain_mode(verb: Verb, situation: Situation) -> str:
    doing, request = _DOING.get(verb, "do that"), situation.request
    if request.location == "cell":
        return f"I cannot {doing} from inside a cell. Use the chat pane in Agent mode to {doing}."
    mode = request.mode.capitalize()
    return f"I cannot {doing} in {mode} mode. Switch to Agent mode to {doing}."


def _explain_delete(situation: Situation) -> str:
    if situation.request.mode != "agent":
        return _explain_mode("delete", situation)
    return "I have no tool to delete cells; delete them in the notebook."


# -- telling what tools answered ------------------------------------------------------------------


def _describe_cells(result: ChatMessage) -> str:
    """Cells with their status and their source."""
    sources = _texts_by_cell(result)
    parts = [
        f"**Cell {fact['index'] + 1}** (`{fact['id']}`): {_describe_status(fact)}\n\n"
        + code_block(sources.get(fact["id"], ""))
        for fact in result.data.get("cells") or []
    ]
    return "\n\n".join([*parts, *_left_out(result)]) or _plain(result)


def _explain_cells(result: ChatMessage, context: NotebookContext) -> str:
    """What a cell is, its status, and what it takes from others and gives to them."""
    sources = _texts_by_cell(result)
    parts = []
    for fact in result.data.get("cells") or []:
        source = sources.get(fact["id"], "")
        lines = [f"Cell {fact['index'] + 1} (`{fact['id']}`) is a {_describe_status(fact)}."]
        if fact["type"] == "code":
            stale = [cell.stale for cell in context.known_cells if cell.index == fact["index"]]
            lines += [f"Its result is stale: {reason.rstrip('.')}." for reason in stale if reason]
            lines.append(_describe_dataflow(source, fact["index"], context))
        parts.append(" ".join(lines) + "\n\n" + code_block(source))
    return "\n\n".join([*parts, *_left_out(result)]) or _plain(result)


def _describe_outputs(result: ChatMessage, name: str) -> str:
    """What a cell put out."""
    shown = [code_block(part.text) for part in result.parts if part.name is not None]
    if not shown:
        return _plain(result)
    return f"The output of {name}:\n\n" + "\n\n".join(shown + _left_out(result))


def _describe_run(result: ChatMessage, *, with_outputs: bool) -> str:
    """How each cell went, and perhaps what it put out."""
    rows = result.data["executions"]
    outputs = _texts_by_cell(result) if with_outputs else {}
    parts = []
    for row in rows:
        error = f" ({row['error']['ename']})" if row.get("error") else ""
        count = f", run {row['execution_count']}" if row.get("execution_count") else ""
        line = f"Cell {row['index'] + 1} (`{row['cell']}`): {row['status']}{error}{count}."
        output = outputs.get(shorten(row["cell"], 100))
        parts.append(f"{line}\n\n{code_block(output)}" if output else line)
    if not rows:
        parts.append("There was nothing to run: text cells are not run.")
    if not result.data.get("done", True):
        parts.append("It still runs; its outputs come into the notebook.")
    return "\n\n".join([*parts, *_left_out(result)])


def _plain(result: ChatMessage) -> str:
    """A tool's result without the fences that are for models."""
    if not result.parts:
        return result.text
    lines = [part.text if part.name is None else code_block(part.text) for part in result.parts]
    return "\n".join([*lines, *_left_out(result)])


def _texts_by_cell(result: ChatMessage) -> dict[str, str]:
    """The texts of the notebook in a result, by the id of their cell as the data has it."""
    return {shorten(part.cell, 100): part.text for part in result.parts if part.cell}


def _left_out(result: ChatMessage) -> list[str]:
    return [f"Left out: {what}" for what in result.left_out]


def _describe_status(fact: Mapping[str, Any]) -> str:
    if fact["type"] != "code":
        return f"{fact['type']} cell"
    parts = ["code cell"]
    if fact["executionStatus"] != "idle":
        parts.append(fact["executionStatus"])
    if fact["lastRunSuccess"] is None:
        parts.append("never run")
    else:
        parts.append("last run succeeded" if fact["lastRunSuccess"] else "last run failed")
    if fact["executionOrder"] is not None:
        parts.append(f"run {fact['executionOrder']}")
    if fact["lastExecutionDuration"] is not None:
        parts.append(f"{fact['lastExecutionDuration']} ms")
    parts.append("has output" if fact["hasOutput"] else "no output")
    return ", ".join(parts)


def _describe_dataflow(source: str, index: int, context: NotebookContext) -> str:
    found = analyse(source, context.kernel_language)
    if found.syntax_error or found.opaque:
        why = found.syntax_error or ", ".join(found.opaque)
        return f"What it does to names cannot be told from its text ({why})."
    homes: dict[str, int] = {}
    for cell in context.known_cells:
        if cell.type == "code" and cell.index < index:
            homes |= dict.fromkeys(
                analyse(cell.content, context.kernel_language).defines, cell.index
            )
    uses = [
        f"`{name}` (cell {homes[name] + 1})" if name in homes else f"`{name}`"
        for name in sorted(found.uses)
    ]
    defines = _join_names(f"`{name}`" for name in sorted(found.defines))
    return f"It defines {defines} and uses {_join_names(uses)}."


def _join_names(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more if found else "nothing"


def _cell_name(ref: object) -> str:
    return f"cell {ref + 1}" if isinstance(ref, int) else f"cell `{ref}`"
