"""What goes wrong with a model over HTTP: tried again, told in one line, or broken off."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.assistant.chat import TextEvent
from cellwright.assistant.models.language_model import Backoff, LanguageModel
from cellwright.assistant.models.model import ToolCall
from cellwright.assistant.models.providers import choose_model
from cellwright.config.settings import Settings
from cellwright.errors import (
    ConversationTooLong,
    ModelError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    UnknownModel,
)
from tests.integration.assistant.model_servers import (
    DIALECTS,
    Breaks,
    Complains,
    Fails,
    Holds,
    Says,
    model_at,
    serve,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.assistant.model_servers import Dialect, Received, Step
    from tests.unit.assistant.chatting import Conversation

    Make = Callable[..., Conversation]

pytestmark = pytest.mark.usefixtures("empty_keyring")
both = pytest.mark.parametrize("dialect", DIALECTS)

UPDATE = ToolCall("call_1", "UpdateNotebookCell", {"cellId": "load", "content": "print 43"})
READ = ToolCall("call_2", "GetCellOutputs", {"cellId": "sum"})


# --- Asked again ---------------------------------------------------------------------------------


@both
async def test_too_many_requests_are_made_again_when_the_server_says(
    dialect: Dialect, conversation: Make
) -> None:
    busy = Fails(429, "slow down", "rate_limit_error", headers={"retry-after-ms": "300"})
    async with serve(dialect, [busy, "here"]) as server:
        model = model_at(server)
        told: list[str] = []
        model.notice = told.append
        began = time.monotonic()
        turn = await conversation(model)("hi", "ask")
        took = time.monotonic() - began
    assert turn.text == "here"
    assert took >= 0.3
    (line,) = told
    assert "slow down (HTTP 429); asking again in 0.3 s" in line
    first, second = server.requests
    assert first.body == second.body


@both
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_a_server_in_trouble_is_asked_again(
    dialect: Dialect, status: int, conversation: Make
) -> None:
    async with serve(dialect, [Fails(status), Fails(status), "here"]) as server:
        turn = await conversation(model_at(server))("hi", "ask")
    assert turn.text == "here"
    assert len(server.requests) == 3


@both
async def test_trouble_without_end_is_told_after_the_last_try(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, [*[Fails(500, "out of order")] * 3, "back"]) as server:
        chat = conversation(model_at(server, assistant_retries=2))
        with pytest.raises(ModelUnavailable) as raised:
            await chat("hi", "ask")
        assert len(server.requests) == 3
        assert (await chat("hi again", "ask")).text == "back"
    assert raised.value.retryable
    assert raised.value.tries == 3
    assert "out of order" in raised.value.message
    assert "3 tries" in raised.value.message
    # The question that got no answer is not in the conversation.
    assert [text for _, text in server.last.said[1:]] == ["hi again"]


@both
async def test_no_retries_means_none(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, [Fails(500), "never"]) as server:
        with pytest.raises(ModelUnavailable):
            await conversation(model_at(server, assistant_retries=0))("hi", "ask")
    assert len(server.requests) == 1


@both
async def test_a_wait_that_is_too_long_is_told_at_once(
    dialect: Dialect, conversation: Make
) -> None:
    busy = Fails(429, "come back tomorrow", "rate_limit_error", headers={"Retry-After": "86400"})
    async with serve(dialect, [busy, "never"]) as server:
        with pytest.raises(ModelUnavailable, match="tomorrow"):
            await conversation(model_at(server))("hi", "ask")
    assert len(server.requests) == 1


@both
async def test_nobody_there_is_told(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, []) as server:
        model = model_at(server, assistant_retries=1)
    with pytest.raises(ModelUnavailable) as raised:
        await conversation(model)("hi", "ask")
    assert f"nothing answers at {model.place.origin}; is the server" in raised.value.message
    assert raised.value.tries == 2


@both
async def test_a_connection_lost_before_the_first_word_is_made_again(
    dialect: Dialect, conversation: Make
) -> None:
    """Half a call of a tool was no event yet; nobody has seen anything of it."""
    async with serve(dialect, [Breaks([]), Breaks([UPDATE]), "here"]) as server:
        chat = conversation(model_at(server))
        turn = await chat("hi")
    assert turn.text == "here"
    assert turn.calls == []
    assert chat.source("load") == "print 42"
    assert len(server.requests) == 3


def test_waits_double_up_to_a_limit_and_are_never_all_the_same() -> None:
    backoff = Backoff(first=1, most=8, patience=60)
    for tries, longest in enumerate([1, 2, 4, 8, 8, 8], start=1):
        waits = {backoff.wait(tries, None) for _ in range(20)}
        assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)
        assert len(waits) > 1
    assert backoff.wait(1, 30) == 30
    assert backoff.wait(1, 61) is None


# --- Told ----------------------------------------------------------------------------------------

TOLD: list[tuple[str, Step, type[ModelError], str]] = [
    (
        "key",
        Fails(401, "invalid x-api-key", "authentication_error"),
        ModelRefused,
        "cellwright key ",
    ),
    ("forbidden", Fails(403, "not for you", "permission_error"), ModelRefused, "cellwright key "),
    ("account", Fails(402, "pay first", "billing_error"), ModelRefused, "billing"),
    (
        "unknown",
        Fails(404, "model: scripted", "not_found_error", "model_not_found"),
        UnknownModel,
        "PROVIDER:NAME",
    ),
    (
        "long",
        Fails(
            400,
            "prompt is too long: 300000 tokens > 200000 maximum",
            "invalid_request_error",
            "context_length_exceeded",
        ),
        ConversationTooLong,
        "new chat",
    ),
    ("large", Fails(413, "request too large", "request_too_large"), ConversationTooLong, "fewer"),
    ("odd", Fails(400, "unsupported parameter", "invalid_request_error"), ModelRejected, "another"),
    (
        "words",
        Fails(400, "max_tokens is too large: 16384. This model supports at most 4096", "x"),
        ModelRejected,
        "assistant_max_tokens",
    ),
    (
        "blind",
        Fails(400, "scripted is not a multimodal model", "invalid_request_error"),
        ModelRejected,
        "assistant_images",
    ),
    (
        "clumsy",
        Fails(400, "scripted does not support tools", "invalid_request_error"),
        ModelRejected,
        "call tools",
    ),
    ("paint", Fails(404, "no model gpt-image", "not_found_error"), UnknownModel, "PROVIDER:NAME"),
    ("odder", Fails(422, "tools: extra field", "invalid_request_error"), ModelRejected, "another"),
]


@both
@pytest.mark.parametrize(
    ("step", "kind", "hint"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD]
)
async def test_what_no_second_try_would_mend_is_told_at_once(
    dialect: Dialect, step: Fails, kind: type[ModelError], hint: str, conversation: Make
) -> None:
    async with serve(dialect, [step, "well"]) as server:
        chat = conversation(model_at(server))
        with pytest.raises(ModelError) as raised:
            await chat("hi", "ask")
        assert type(raised.value) is kind
        assert len(server.requests) == 1
        assert (await chat("again", "ask")).text == "well"
    assert not raised.value.retryable
    assert f"{dialect}:scripted" in raised.value.message
    assert step.message in raised.value.message
    assert hint in (raised.value.hint or "")
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


@both
@pytest.mark.parametrize(
    "body", ["<html>Bad gateway</html>", "", "[]", '{"error": "plain"}', '{"detail": [1]}']
)
async def test_errors_in_any_form_are_told(
    dialect: Dialect, body: str, conversation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.integration.assistant import wire

    async def send(writer: Any, status: int, _: Any, __: Any) -> None:
        content = body.encode()
        head = f"HTTP/1.1 {status} No\r\nContent-Length: {len(content)}\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Type: text/html\r\n\r\n".encode() + content)
        await writer.drain()

    monkeypatch.setattr(wire, "send", send)
    async with serve(dialect, [Fails(400)]) as server:
        with pytest.raises(ModelRejected, match="HTTP 400"):
            await conversation(model_at(server))("hi", "ask")


async def test_an_answer_that_is_withheld_is_told(conversation: Make) -> None:
    async with serve("openai", [Says([], "content_filter")]) as server:
        with pytest.raises(ModelRejected, match="no answer"):
            await conversation(model_at(server))("hi", "ask")


# --- Broken off ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "is_polite"), [("openai", False), ("anthropic", False), ("anthropic", True)]
)
async def test_a_broken_answer_tells_how_much_had_come_and_does_nothing(
    dialect: Dialect, conversation: Make, *, is_polite: bool
) -> None:
    said = "The first half of it. "
    async with serve(dialect, [Breaks([said, UPDATE], is_polite=is_polite), "whole"]) as server:
        chat = conversation(model_at(server))
        seen: list[str] = []

        async def watch() -> None:
            async for event in chat.chat.send(chat.request("go")):
                seen.append(event.text if isinstance(event, TextEvent) else "")  # noqa: PERF401  # it raises

        with pytest.raises(ModelUnavailable) as raised:
            await watch()
        assert "".join(seen) == said
        assert raised.value.characters == len(said)
        assert f"{len(said)} characters" in raised.value.message
        assert len(server.requests) == 1  # what was seen cannot be unsaid
        assert chat.source("load") == "print 42"
        assert chat.chat.turns == []
        turn = await chat("again")
    assert turn.text == "whole"
    assert [text for _, text in server.last.said[1:]] == ["again"]


@both
async def test_an_error_inside_the_stream_is_as_any_other(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, [Complains([]), Complains(["So"]), "fine"]) as server:
        chat = conversation(model_at(server))
        with pytest.raises(ModelUnavailable, match="Overloaded") as raised:
            await chat("hi", "ask")
        assert raised.value.characters == 2
        assert len(server.requests) == 2  # the first was made again, the second cannot be
        assert (await chat("hi", "ask")).text == "fine"


async def test_a_server_that_never_tells_the_end_makes_no_half_calls(conversation: Make) -> None:
    async with serve("openai", [Breaks(["Well.", UPDATE], is_polite=True), "I see."]) as server:
        chat = conversation(model_at(server))
        turn = await chat("go")
    assert turn.answers[0].is_error
    assert chat.source("load") == "print 42"


@both
async def test_after_a_break_in_a_later_step_what_was_done_is_kept(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, [UPDATE, Breaks(["So I"]), "yes"]) as server:
        chat = conversation(model_at(server))
        with pytest.raises(ModelUnavailable):
            await chat("go")
        assert chat.source("load") == "print 43"
        assert len(chat.chat.turns) == 1
        await chat("did you do it?")
    sent = server.last
    assert sent.calls == [(UPDATE.id, UPDATE.name, UPDATE.arguments)]
    assert [name for name, _, _ in sent.results] == [UPDATE.id]
    assert sent.said[-1] == ("user", "did you do it?")
    assert chat.chat.usage.input > 0


@both
async def test_silence_in_the_middle_is_told(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, [Holds(["Let me"])]) as server:
        # On a busy machine even the first word may take that long.
        model = model_at(server, assistant_timeout=1, assistant_retries=0)
        with pytest.raises(ModelUnavailable, match="silent"):
            await conversation(model)("hi", "ask")
        await server.wait_left()


# --- Left ----------------------------------------------------------------------------------------


@both
async def test_whoever_closes_the_stream_closes_the_connection(
    dialect: Dialect, conversation: Make
) -> None:
    async with serve(dialect, [Holds(["Once upon a time"]), "hello"]) as server:
        chat = conversation(model_at(server))
        async with contextlib.aclosing(chat.chat.send(chat.request("tell", "ask"))) as events:
            async for event in events:
                if isinstance(event, TextEvent):
                    break
        await server.wait_left()
        assert server.left == 1
        assert (await chat("hi", "ask")).text == "hello"


@both
@pytest.mark.parametrize("lines", [["Once upon a time"], []], ids=["speaking", "silent"])
async def test_whoever_is_cancelled_closes_the_connection(
    dialect: Dialect, lines: list[Any], conversation: Make
) -> None:
    async with serve(dialect, [Holds(lines), "hello"]) as server:
        chat = conversation(model_at(server))
        task = asyncio.ensure_future(chat("tell", "ask"))
        await asyncio.wait_for(server.said_all.wait(), 40)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_left()
        assert server.left == 1
        assert (await chat("hi", "ask")).text == "hello"


@both
async def test_a_cancel_while_waiting_for_the_next_try_is_heard(
    dialect: Dialect, conversation: Make
) -> None:
    came = asyncio.Event()

    def busy(_: Received) -> Step:
        came.set()
        return Fails(429, headers={"Retry-After": "50"})

    async with serve(dialect, [busy]) as server:
        chat = conversation(model_at(server))
        task = asyncio.ensure_future(chat("hi", "ask"))
        await asyncio.wait_for(came.wait(), 40)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)


async def test_two_chats_ask_at_the_same_time(conversation: Make) -> None:
    def echo(request: Received) -> Step:
        return request.said[-1][1]

    async with serve("openai", [echo] * 8) as server:
        model = model_at(server)
        chats = [conversation(model) for _ in range(4)]
        turns = await asyncio.gather(*(c(f"number {at}", "ask") for at, c in enumerate(chats)))
    assert [turn.text for turn in turns] == [f"number {at}" for at in range(4)]


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    conversation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with serve("openai", ["here"]) as server:
        assert (await conversation(model_at(server))("hi", "ask")).text == "here"


@both
async def test_a_redirect_is_not_followed(dialect: Dialect, conversation: Make) -> None:
    async with serve(dialect, ["secret"]) as other:
        path = "/chat/completions" if dialect == "openai" else "/v1/messages"
        moved = Fails(307, headers={"Location": f"{other.base_url}{path}"})
        async with serve(dialect, [moved]) as server:
            with pytest.raises(ModelRejected, match="points elsewhere"):
                await conversation(model_at(server))("hi", "ask")
            assert len(server.requests) == 1
        assert other.requests == []


@both
@pytest.mark.parametrize("step", [Fails(200), Breaks([], is_polite=True)], ids=["page", "nothing"])
async def test_something_that_is_no_answer_is_told(
    dialect: Dialect, step: Step, conversation: Make
) -> None:
    """Such as the page of a proxy, or of a server that has its models at another path."""
    async with serve(dialect, [step, step]) as server:
        with pytest.raises(ModelUnavailable):
            await conversation(model_at(server, assistant_retries=1))("hi", "ask")
    assert len(server.requests) == 2


def test_retries_are_a_setting() -> None:
    model = choose_model("openai:x", Settings(assistant_retries=7), {})
    assert isinstance(model, LanguageModel)
    assert model.settings.assistant_retries == 7
