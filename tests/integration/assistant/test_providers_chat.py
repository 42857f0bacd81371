"""Chats over real HTTP, through the providers' own libraries: what leaves, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cellwright import read, write
from cellwright.assistant.models.model import ChatMessage, ModelRequest, Situation, ToolCall, Usage
from cellwright.assistant.models.providers import PROVIDERS
from cellwright.assistant.requests import ChatRequest, ToolAttachment
from cellwright.outputs.images import ModelImage
from tests.integration.assistant import wire
from tests.integration.assistant.model_servers import (
    DIALECTS,
    RawCall,
    Says,
    Thought,
    model_at,
    serve,
)
from tests.unit.assistant.chatting import NOTEBOOK
from tests.unit.cli import samples
from tests.unit.tools import support

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright.workspace.api.requests import Mode
    from tests.integration.assistant.model_servers import Dialect, Script
    from tests.unit.assistant.chatting import Conversation

    Make = Callable[..., Conversation]

pytestmark = pytest.mark.usefixtures("empty_keyring")
both = pytest.mark.parametrize("dialect", DIALECTS)

UPDATE = ToolCall("call_1", "UpdateNotebookCell", {"cellId": "load", "content": "print 43"})
READ = ToolCall("call_2", "GetCellOutputs", {"cellId": "sum"})
ONCE = Usage(wire.INPUT, wire.OUTPUT, wire.CACHED, None)


@both
async def test_text_comes_in_pieces_and_whole(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, ["Grüße: 「2 × 3 = 6」 🙂"]) as server:
        turn = await conversation(model_at(server))("what is 2 × 3?", "ask")
    assert turn.text == turn.done.text == "Grüße: 「2 × 3 = 6」 🙂"
    assert len([event for event in turn.events if event.kind == "text"]) > 1
    assert len(server.requests) == 1
    assert server.last.body["model"] == "scripted"
    assert server.last.body["stream"] is True
    # Anthropic demands a limit; a server of one's own knows best what its model can say.
    assert server.last.body.get("max_tokens") == {"openai": None, "anthropic": 16384}[dialect]


@both
@pytest.mark.parametrize("mode", ["ask", "edit", "agent"])
async def test_the_request_has_the_prompt_the_context_and_the_tools_of_the_mode(
    dialect: Dialect, mode: Mode, conversation: Make
) -> None:
    async with serve(dialect, ["ok"]) as server:
        chat = conversation(model_at(server))
        turn = await chat("look at it", mode, selected=("sum",))
        request = chat.request("look at it", mode, selected=("sum",))
    sent = server.last
    expected = chat.chat.prompts.system_prompt(mode, has_notebook=True, may_edit=False)
    assert sent.system == expected.text
    assert turn.begun.prompts == expected.names
    _, offer = await chat.chat.look(request)
    table = offer.toolbox.table()
    assert sent.tools == {tool["name"]: tool["inputSchema"] for tool in table}
    assert sent.descriptions == [tool["description"] for tool in table]
    assert list(sent.tools) == turn.begun.tools
    assert ("RunNotebookCells" in sent.tools) == (mode == "agent")
    (context, prompt) = sent.said
    assert context[0] == prompt[0] == "user"
    assert context[1].startswith("<notebook-state>")
    assert 'selection="selected"' in context[1]
    assert prompt[1] == "look at it"


@both
@pytest.mark.parametrize("own", [True, False])
async def test_schemas_leave_as_they_are(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch, *, own: bool
) -> None:
    """Also at the provider itself, for whose models the library would rewrite them."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Parameters",
        "type": "object",
        "properties": {
            "at": {"title": "At", "anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Name"}]},
            "kind": {"const": "code", "default": "code"},
            "edits": {"type": "array", "items": {"type": "object"}, "minItems": 1},
        },
        "required": ["at"],
        "additionalProperties": False,
        "$defs": {"Name": {"type": "string", "maxLength": 9, "pattern": "^c", "format": "x"}},
    }
    tool = {"name": "Try", "description": "Tries.", "inputSchema": schema}
    messages = (ChatMessage(role="system", text="s"), ChatMessage(role="user", text="u"))
    request = ModelRequest(messages, (tool,), Situation(ChatRequest(prompt="u")))
    async with serve(dialect, ["ok"]) as server:
        if own:
            moved = replace(PROVIDERS[dialect], base_url=server.base_url)
            monkeypatch.setitem(PROVIDERS, dialect, moved)
        model = model_at(server, "gpt-5.4" if dialect == "openai" else "claude-sonnet-5-5")
        model.environ = {f"{dialect.upper()}_API_KEY": "key"}
        _ = [event async for event in model.respond(request)]
    assert server.last.tools == {"Try": schema}


@both
async def test_the_system_prompt_is_the_same_to_the_byte_though_the_notebook_changes(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, [UPDATE, "done", "yes"]) as server:
        chat = conversation(model_at(server))
        await chat("change it")
        book = read(chat.folder / NOTEBOOK)
        book.apply([{"op": "replace", "cell": "later", "source": "print something else"}])
        write(book, chat.folder / NOTEBOOK)
        await chat("and now?")
    first, _, last = server.requests
    assert first.body.get("system") == last.body.get("system")
    assert first.system == last.system
    assert first.body["tools"] == last.body["tools"]
    assert "print 42" in first.said[0][1]
    assert "print 43" in last.said[0][1]
    assert "print something else" in last.said[0][1]
    assert "print 43" not in last.system


async def test_anthropic_is_told_what_to_cache(conversation: Make) -> None:
    async with serve("anthropic", [READ, "ok"]) as server:
        await conversation(model_at(server))("go")
    first, second = (request.body for request in server.requests)
    for body in (first, second):
        marked = ["cache_control" in tool for tool in body["tools"]]
        assert marked == [False] * 4 + [True]
        assert [block["cache_control"]["type"] for block in body["system"]] == ["ephemeral"]
        *_, last = body["messages"]
        assert last["content"][-1]["cache_control"]["type"] == "ephemeral"
    # What the second call repeats of the first is the same, but for the mark itself.
    again = second["messages"][0]
    first["messages"][0]["content"][-1].pop("cache_control")
    assert again == first["messages"][0]


@both
async def test_tools_that_were_named_are_told_and_change_no_list(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, ["ok", "ok"]) as server:
        chat = conversation(model_at(server))
        turn = await chat("#getNotebookCells and #runNotebookCells please", "ask")
        attached = replace(
            chat.request("hi", "ask"),
            references=(*chat.request("hi").references, ToolAttachment("getCellOutputs")),
        )
        _ = [event async for event in chat.chat.send(attached)]
    told = [(each.name, each.tool is not None) for each in turn.begun.tool_references]
    assert told == [("getNotebookCells", True), ("runNotebookCells", False)]
    prompt = server.requests[0].said[-1][1]
    assert "- #getNotebookCells: the tool GetNotebookCells" in prompt
    assert "- #runNotebookCells: not available" in prompt
    assert "Agent" in prompt or "agent" in prompt
    assert "RunNotebookCells" not in server.requests[0].tools
    assert "- #getCellOutputs: the tool GetCellOutputs" in server.requests[1].said[-1][1]


@both
async def test_without_a_notebook_its_tools_do_not_leave(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, ["ok"]) as server:
        await conversation(model_at(server))("hi", attached=())
    assert server.last.tools == {}
    assert "tools" not in server.last.body or server.last.body["tools"] == []
    assert server.last.said == [("user", "hi")]


@both
async def test_several_calls_of_one_answer_are_carried_out_and_answered(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, [["I will see.", UPDATE, READ], "Done."]) as server:
        chat = conversation(model_at(server))
        turn = await chat("go")
    assert turn.called == ["UpdateNotebookCell", "GetCellOutputs"]
    assert chat.source("load") == "print 43"
    second = server.requests[1]
    assert second.calls == [(each.id, each.name, each.arguments) for each in (UPDATE, READ)]
    assert second.results == [
        (each.id, answer.text, False)
        for each, answer in zip((UPDATE, READ), turn.answers, strict=True)
    ]
    assert ("assistant", "I will see.") in second.said
    roles = [message["role"] for message in second.body["messages"]]
    expected = {
        "openai": ["system", "user", "user", "assistant", "tool", "tool"],
        "anthropic": ["user", "assistant", "user"],
    }
    assert roles == expected[dialect]
    assert turn.done.text == "Done."


@both
async def test_arguments_come_in_fragments_of_any_kind(
    dialect: Dialect, conversation: Make
) -> None:
    source = 'print "ö\\n" {"a": [1, 2]} 日本 ' + "x" * 300
    update = ToolCall("c", "UpdateNotebookCell", {"cellId": "load", "content": source})
    async with serve(dialect, [update, "ok"]) as server:
        chat = conversation(model_at(server))
        await chat("go")
    assert chat.source("load") == source
    assert server.requests[1].calls[0][2]["content"] == source


@both
async def test_failures_of_tools_are_marked(dialect: Dialect, conversation: Make) -> None:
    wrong = ToolCall("a", "GetCellOutputs", {"cellId": "nowhere"})
    forbidden = ToolCall("b", "RunNotebookCells", {"cellIds": ["load"]})
    unknown = ToolCall("c", "FormatDisk")
    async with serve(dialect, [[wrong, forbidden, unknown, READ], "sorry"]) as server:
        turn = await conversation(model_at(server))("go", "ask")
    results = server.requests[1].results
    assert [(name, failed) for name, _, failed in results] == [
        ("a", True),
        ("b", True),
        ("c", True),
        ("call_2", False),
    ]
    assert "nowhere" in results[0][1]
    assert "MODE_FORBIDS" in results[1][1]
    assert [answer.is_error for answer in turn.answers] == [True, True, True, False]


@both
@pytest.mark.parametrize("raw", ['{"cellId": "load", "content": "x', "[1, 2]", "load", '"x"'])
async def test_broken_arguments_go_back_to_the_model_and_to_nobody_else(
    dialect: Dialect, raw: str, conversation: Make
) -> None:
    broken = RawCall("bad", "UpdateNotebookCell", raw)
    async with serve(dialect, [[broken, READ], UPDATE, "ok"]) as server:
        chat = conversation(model_at(server))
        turn = await chat("go")
    (_, text, failed), (_, _, good) = server.requests[1].results
    assert (failed, good) == (True, False)
    assert "nothing was done" in text
    assert raw[:20] in text
    assert turn.answers[0].data == {"code": "INVALID_PARAMETERS"}
    assert turn.done.ending == "answered"
    assert chat.source("load") == "print 43"  # the second try
    assert len(chat.chat.turns[0].edits) == 1


@both
async def test_a_call_without_arguments_is_one(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, [RawCall("a", "GetNotebookCells", ""), "ok"]) as server:
        turn = await conversation(model_at(server))("go", "ask")
    assert not turn.answers[0].is_error
    assert server.requests[1].results[0][2] is False


@both
@pytest.mark.parametrize("name", ["0", "", "call_2"])
async def test_calls_that_share_an_id_are_told_apart(
    dialect: Dialect, name: str, conversation: Make
) -> None:
    first = ToolCall(name, "GetCellOutputs", {"cellId": "sum"})
    second = ToolCall(name, "GetCellOutputs", {"cellId": "load"})
    async with serve(dialect, [[first, second], first, "ok"]) as server:
        turn = await conversation(model_at(server))("go", "ask")
    sent = server.last
    ids = [each for each, _, _ in sent.calls]
    assert ids == [each for each, _, _ in sent.results] == [call.id for call in turn.calls]
    assert len({*ids, ""}) == 4
    texts = [text for _, text, _ in sent.results]
    assert texts == [answer.text for answer in turn.answers]
    assert ["outputs of sum" in text for text in texts] == [True, False, True]


@both
async def test_what_is_no_unicode_is_sent_all_the_same(
    dialect: Dialect, conversation: Make, folder: Path
) -> None:
    """Half of a pair of surrogates: legal in a notebook and in a prompt, but not in a request."""
    book = samples.write(samples.code("odd", "print HALF", samples.STREAM, count=1))
    (folder / NOTEBOOK).write_bytes(book.replace(b"HALF", rb"\ud83d"))
    show = ToolCall("a", "GetNotebookCells")
    raw = RawCall("b", "GetCellOutputs", '{"cellId": "\\ud83d"}')
    async with serve(dialect, [[show, raw], "ok", "ok"]) as server:
        chat = conversation(model_at(server))
        turn = await chat("what is \udce4?", "ask", selected=("odd",))
        # What another model said may hold some, too.
        odd = ToolCall("c", "GetCellOutputs", {"cellId": "\ud83d"})
        chat.chat.history += [
            ChatMessage(role="user", text="so?"),
            ChatMessage(role="assistant", text="\ud83d", calls=(odd,)),
            ChatMessage(role="tool", text="\ud83d", call_id="c", is_error=True),
        ]
        await chat("and now?", "ask")
    assert turn.done.text == "ok"
    assert server.last.calls[-1] == ("c", "GetCellOutputs", {"cellId": "?"})
    assert server.requests[0].said[-1][1] == r"what is \udce4?"
    assert [name for name, _, _ in server.requests[1].results] == ["a", "b"]


# --- Pictures ------------------------------------------------------------------------------------


def plotted(folder: Path) -> None:
    (folder / NOTEBOOK).write_bytes(
        samples.write(
            samples.code("load", "print 42", samples.STREAM, count=1),
            samples.code("plot", "plot", support.picture(8, 8), count=2),
        )
    )


PLOT = ToolCall("p", "GetCellOutputs", {"cellId": "plot"})
PRINTED = ToolCall("q", "GetCellOutputs", {"cellId": "load"})


@both
async def test_pictures_of_results_are_sent(
    dialect: Dialect, conversation: Make, folder: Path
) -> None:
    plotted(folder)
    async with serve(dialect, [[PLOT, PRINTED], "A red square."]) as server:
        turn = await conversation(model_at(server))("what is there?", "ask")
    (sent,) = server.requests[1].images
    assert sent == turn.answers[0].images[0].data
    assert sent.startswith(b"\x89PNG")
    assert server.requests[1].results == [
        (each.id, answer.text, False)
        for each, answer in zip((PLOT, PRINTED), turn.answers, strict=True)
    ]
    last = server.requests[1].body["messages"][-1]
    if dialect == "openai":  # behind both results, since nothing may stand between them
        assert [part["type"] for part in last["content"]] == ["text", "image_url"]
        assert last["role"] == "user"
    else:
        assert [block["type"] for block in last["content"][0]["content"]] == ["text", "image"]


@both
async def test_a_model_without_eyes_gets_words(
    dialect: Dialect, conversation: Make, folder: Path
) -> None:
    plotted(folder)
    async with serve(dialect, [PLOT, "I cannot see."]) as server:
        model = model_at(server, assistant_images=False)
        await conversation(model)("what is there?", "ask")
    assert server.requests[1].images == []
    assert "[not shown: <image/png 8×8" in server.requests[1].results[0][1]


@both
async def test_pictures_of_a_person_are_sent(dialect: Dialect) -> None:
    data = support.png()
    picture = ModelImage("image/png", data, 4, 4, 4, 4, len(data))
    request = ModelRequest(
        (
            ChatMessage(role="system", text="See."),
            ChatMessage(role="user", text="What is it?", images=(picture,)),
        ),
        (),
        Situation(ChatRequest(prompt="What is it?")),
    )
    async with serve(dialect, ["red", "nothing"]) as server:
        _ = [event async for event in model_at(server).respond(request)]
        blind = model_at(server, assistant_images=False)
        _ = [event async for event in blind.respond(request)]
    assert server.requests[0].images == [data]
    assert server.requests[0].said == [("user", "What is it?")]
    assert server.requests[1].images == []
    assert "not shown" in server.requests[1].said[0][1]


# --- What an answer has beside its text ----------------------------------------------------------


@both
async def test_thoughts_are_not_shown_and_go_back_as_they_were(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, [[Thought("hmm, the sum"), READ], "It is 42."]) as server:
        chat = conversation(model_at(server))
        turn = await chat("go", "ask")
    assert turn.text == "It is 42."
    answer = next(
        message for message in server.last.body["messages"] if message["role"] == "assistant"
    )
    if dialect == "anthropic":
        assert answer["content"][0] == {
            "type": "thinking",
            "thinking": "hmm, the sum",
            "signature": "signed",
        }
    else:
        assert answer["reasoning_content"] == "hmm, the sum"


@both
async def test_another_model_goes_on_with_the_conversation(
    dialect: Dialect, conversation: Make
) -> None:
    """Only what both understand is passed on: texts, calls and results."""
    async with serve(dialect, [[Thought("hm"), "So.", READ], "42."]) as server:
        chat = conversation(model_at(server))
        await chat("go", "ask")
    for other in DIALECTS:
        async with serve(other, ["I agree."]) as server:
            chat.chat.model = model_at(server, "another")
            await chat("sure?", "ask")
        sent = server.last
        assert [text for _, text in sent.said[1:5]] == ["go", "So.", "42.", "sure?"]
        assert sent.calls == [(READ.id, READ.name, READ.arguments)]
        assert [name for name, _, _ in sent.results] == [READ.id]
        assert "thinking" not in str(sent.body["messages"])
        assert "reasoning" not in str(sent.body["messages"])
        chat.chat.history = chat.chat.history[:4]


@both
async def test_an_answer_that_was_cut_off_says_so(dialect: Dialect, conversation: Make) -> None:
    half = RawCall("h", "UpdateNotebookCell", '{"cellId": "load", "content": "print 4')
    script: Script = [Says(["Once upon a"], "length"), Says([half], "length"), "I see."]
    async with serve(dialect, script) as server:
        chat = conversation(model_at(server, assistant_max_tokens=77))
        told = await chat("tell me a story", "ask")
        turn = await chat("change it")
    assert server.requests[0].body["max_tokens"] == 77
    assert told.text.startswith("Once upon a")
    assert "assistant_max_tokens" in told.text
    assert "cut off in the middle" in turn.answers[0].text
    assert chat.source("load") == "print 42"


@both
async def test_an_answer_without_a_word_is_one(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, [Says([]), "I am here."]) as server:
        chat = conversation(model_at(server))
        silent = await chat("say nothing", "ask")
        turn = await chat("are you there?", "ask")
    assert (silent.text, silent.done.ending) == ("", "answered")
    assert turn.text == "I am here."
    assert [text for _, text in server.last.said[1:]] == ["say nothing", "are you there?"]


@both
async def test_tokens_are_counted_by_turn_and_by_chat(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, [READ, "42", "yes"]) as server:
        chat = conversation(model_at(server))
        first = await chat("what?", "ask")
        second = await chat("sure?", "ask")
    assert first.done.usage == ONCE + ONCE
    assert second.done.usage == ONCE
    assert chat.chat.usage == ONCE + ONCE + ONCE
    assert second.done.to_json()["usage"] == {
        "input": wire.INPUT,
        "output": wire.OUTPUT,
        "cached": wire.CACHED,
        "cost": None,
    }


@both
async def test_an_agent_edits_runs_and_is_undone(dialect: Dialect, conversation: Make) -> None:
    run = ToolCall("r", "RunNotebookCells", {"cellIds": ["load"]})
    async with serve(dialect, [UPDATE, run, "It prints 43 now."]) as server:
        chat = conversation(model_at(server))
        turn = await chat("make it 43 and run it")
        assert [operation.words for operation in chat.asked] == ["Run cell 2 of sales.ipynb?"]
        assert "43" in str(chat.cells()[1].outputs)
        await chat.chat.undo()
    assert turn.text == "It prints 43 now."
    assert "43" in server.requests[2].results[1][1]
    assert chat.source("load") == "print 42"


@both
async def test_inline_in_a_cell_a_proposal_comes_out(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, ["So:\n\n```python\nprint 7\n```\n"]) as server:
        chat = conversation(model_at(server))
        turn = await chat("mend it", editing="plot", attached=(), location="cell")
    assert turn.done.proposal is not None
    assert turn.done.proposal.new == "print 7"
    assert list(server.last.tools) == ["GetNotebookCells", "GetCellOutputs"]


def test_usage_is_added_up_and_what_is_unknown_stays_unknown() -> None:
    known = Usage(1, 2, 0, 0.25) + Usage(3, 4, 1, 0.5)
    assert known == Usage(4, 6, 1, 0.75)
    assert (known + Usage(1, 1, 0, None)).cost is None
    assert (Usage() + known) == known
