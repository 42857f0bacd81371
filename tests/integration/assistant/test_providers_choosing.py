"""Which model a name stands for, where it is asked, and with which key."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.assistant.models.keys import store_key
from cellwright.assistant.models.model import ChatMessage, ModelRequest, Situation, ToolCall
from cellwright.assistant.models.providers import PROVIDERS, choose_model
from cellwright.assistant.requests import ChatRequest
from cellwright.config.settings import Settings
from cellwright.errors import ModelNotConfigured, ModelRefused
from tests.integration.assistant.model_servers import DIALECTS, Fails, model_at, serve, served
from tests.unit.assistant.chatting import NOTEBOOK, Conversation
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright.assistant.models.language_model import LanguageModel
    from tests.integration.assistant.model_servers import Dialect, ModelServer

    Make = Callable[..., Conversation]


pytestmark = pytest.mark.usefixtures("empty_keyring")

both = pytest.mark.parametrize("dialect", DIALECTS)


KEY = "0123456789abcdef-secret"


VARIABLE = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


HELLO = ModelRequest(
    (ChatMessage(role="system", text="Be brief."), ChatMessage(role="user", text="hi")),
    (),
    Situation(ChatRequest(prompt="hi")),
)


async def ask(model: Any) -> list[Any]:
    return [event async for event in model.respond(HELLO)]


# --- Keys ----------------------------------------------------------------------------------------


def own(monkeypatch: pytest.MonkeyPatch, server: ModelServer, dialect: Dialect) -> LanguageModel:
    """The provider itself is at the server, as far as anybody here knows."""
    moved = replace(PROVIDERS[dialect], base_url=server.base_url)
    monkeypatch.setitem(PROVIDERS, dialect, moved)
    model = model_at(server, "gpt-5.4" if dialect == "openai" else "claude-sonnet-5-5")
    assert model.place.is_own
    return model


def sent_keys(server: ModelServer) -> str:
    headers = server.last.headers
    return f"{headers.get('authorization', '')} {headers.get('x-api-key', '')}"


@both
async def test_without_a_key_a_provider_is_not_asked(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(dialect, ["hello"]) as server:
        model = own(monkeypatch, server, dialect)
        with pytest.raises(ModelNotConfigured) as raised:
            await model.prepare()
        with pytest.raises(ModelNotConfigured):
            await ask(model)
    assert server.requests == []
    assert VARIABLE[dialect] in (raised.value.hint or "")
    assert f"cellwright key {dialect}" in (raised.value.hint or "")


@both
async def test_what_the_hint_about_a_refused_key_says_can_be_done(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Fails(401, "invalid key", "authentication_error")
    async with serve(dialect, [refused, refused, "hello"]) as server:
        model = own(monkeypatch, server, dialect)
        model.environ = {VARIABLE[dialect]: "sk-wrong"}  # the keyring would not be asked
        with pytest.raises(ModelRefused) as raised:
            await ask(model)
        assert str(raised.value.hint).startswith(f"Correct {VARIABLE[dialect]},")

        model = own(monkeypatch, server, dialect)
        store_key(dialect, "sk-old")
        with pytest.raises(ModelRefused) as raised:
            await ask(model)
        assert str(raised.value.hint).endswith(f"run: cellwright key {dialect}")
        store_key(dialect, "sk-new")
        await ask(model)  # the same chat
        assert "sk-new" in sent_keys(server)


@both
async def test_a_key_comes_from_the_environment_or_else_from_the_keyring(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(dialect, ["one", "two"]) as server:
        model = own(monkeypatch, server, dialect)
        store_key(dialect, "sk-from-the-keyring")
        await ask(model)
        assert "sk-from-the-keyring" in sent_keys(server)
        model = own(monkeypatch, server, dialect)
        model.environ = {VARIABLE[dialect]: f" {KEY}\n"}
        await ask(model)
        assert KEY in sent_keys(server)


@both
async def test_a_key_goes_nowhere_but_where_it_belongs(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by ours nor by the libraries, which look into the environment on their own."""
    monkeypatch.setenv(VARIABLE[dialect], KEY)
    for variable in ("ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID"):
        monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("OPENAI_PROJECT_ID", KEY)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Gateway: {KEY}")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Gateway: {KEY}")
    store_key(dialect, KEY)
    async with serve(dialect, ["hello"]) as server:
        settings = Settings(assistant_base_url=server.base_url)
        await ask(choose_model(f"{dialect}:m", settings))
    assert KEY not in str(server.last)
    assert sent_keys(server).strip() == ""  # nor does anything else that looks like one
    assert len(server.requests) == 1


@both
async def test_a_gateway_gets_the_headers_that_are_meant_for_it(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gateway: yes")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    async with serve(dialect, ["hello"]) as server:
        environ = {f"{dialect.upper()}_BASE_URL": server.base_url}
        await ask(choose_model(f"{dialect}:m", Settings(), environ))
    header = {"anthropic": "x-gateway", "openai": "openai-organization"}[dialect]
    assert header in server.last.headers


@both
async def test_a_key_that_was_stored_for_an_address_goes_there(dialect: Dialect) -> None:
    async with serve(dialect, ["hello"]) as server:
        store_key(dialect, "sk-for-this-one", server.base_url)
        store_key(dialect, KEY)
        await ask(model_at(server))
    assert "sk-for-this-one" in sent_keys(server)


@both
async def test_an_address_of_the_environment_goes_with_the_key_of_the_environment(
    dialect: Dialect,
) -> None:
    async with serve(dialect, ["one", "two"]) as server:
        variable = PROVIDERS[dialect].url_variable
        assert variable is not None
        environ = {variable: server.base_url, VARIABLE[dialect]: KEY}
        await ask(choose_model(f"{dialect}:m", Settings(), environ))
        assert KEY in sent_keys(server)
        elsewhere = environ | {variable: "https://gateway.example/v1"}
        moved = Settings(assistant_base_url=server.base_url)
        await ask(choose_model(f"{dialect}:m", moved, elsewhere))
        assert KEY not in sent_keys(server)


@both
async def test_a_key_is_in_no_error_event_log_or_repr(
    dialect: Dialect,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    conversation: Make,
) -> None:
    caplog.set_level(logging.DEBUG)
    masked = "sk-proj-****cdef"  # as OpenAI tells it
    refusal = Fails(401, f"Incorrect API key: {KEY}, or {masked}", "authentication_error")
    broken = Fails(500, f"Bearer {KEY}")
    async with serve(dialect, [refusal, broken, broken, "hello"]) as server:
        model = own(monkeypatch, server, dialect)
        model.environ = {VARIABLE[dialect]: KEY}
        chat = conversation(model)
        with pytest.raises(ModelRefused) as raised:
            await chat("hi", "ask")
        turn = await chat("hi", "ask")
    assert KEY in sent_keys(server)
    told = [repr(raised.value), str(raised.value), raised.value.hint, repr(vars(raised.value))]
    seen = [*told, repr(model), caplog.text, [event.to_json() for event in turn.events]]
    seen += [repr(turn.events), repr(chat.chat.history), str([vars(r) for r in caplog.records])]
    for text in map(str, seen):
        assert KEY not in text
        assert masked not in text
    assert "Incorrect API key" in raised.value.message


async def test_a_kernel_does_not_see_the_key_that_pays_for_the_chat(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a real kernel, started by a model that is asked with that key."""
    for variable in VARIABLE.values():
        monkeypatch.setenv(variable, KEY)
    look = (
        "import os\n"
        "print('keys', [name for name in os.environ if name.endswith('_API_KEY')])\n"
        f"print('seen', {KEY[::-1]!r}[::-1] in str(dict(os.environ)))"
    )
    (folder / NOTEBOOK).write_bytes(samples.write(samples.code("look", look)))
    run = ToolCall("r", "RunNotebookCells", {"cellIds": ["look"]})
    async with serve("openai", [run, "nothing there"]) as server:
        model = own(monkeypatch, server, "openai")
        model.environ = {"OPENAI_API_KEY": KEY}
        chat = Conversation(folder, model)
        try:
            turn = await chat("look around")
        finally:
            await chat.workspaces.close()
    assert KEY in sent_keys(server)
    assert "keys []" in turn.answers[0].text
    assert "seen False" in turn.answers[0].text
    assert KEY.encode() not in (folder / NOTEBOOK).read_bytes()
    assert KEY not in str([request.body for request in server.requests])


# --- What it costs -------------------------------------------------------------------------------


@both
async def test_prices_are_known_without_a_network_and_only_where_they_hold(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(dialect, ["one", "two", "three"]) as server:
        model = own(monkeypatch, server, dialect)
        model.environ = {VARIABLE[dialect]: KEY}
        usage = (await ask(model))[-2]
        assert usage.cost is not None
        assert 0 < usage.cost < 0.01
        assert (usage.input, usage.output, usage.cached) == (120, 30, 100)
        # Somebody else's server may call its models as it likes.
        model.place = replace(model.place, is_own=False)
        assert (await ask(model))[-2].cost is None
        unknown = own(monkeypatch, server, dialect)
        unknown.place = replace(unknown.place, model="brand-new-model")
        unknown.environ = model.environ
        assert (await ask(unknown))[-2].cost is None


# --- Libraries -----------------------------------------------------------------------------------

HEAVY = ("pydantic_ai", "openai", "anthropic", "keyring", "httpx2", "genai_prices")


CHOOSE = """
import sys
from cellwright.assistant.chat import Chat
from cellwright.assistant.models.providers import choose_model
from cellwright.config.settings import Settings
for name in ("direct", "openai:gpt-5.4", "anthropic:claude-sonnet-5-5"):
    choose_model(name, Settings(), {})
print(*sys.modules)
"""


HELP = """
import sys
from cellwright.cli import entry
sys.argv = ["cellwright", "--help"]
try:
    entry()
except SystemExit:
    pass
print(*sys.modules)
"""


WITHOUT = """
import asyncio, sys
sys.modules.update(dict.fromkeys({names!r}))  # whoever imports them gets an ImportError
from cellwright.assistant.models.providers import choose_model
from cellwright.config.settings import Settings
from cellwright.errors import ModelNotConfigured
print(choose_model(None, Settings(), {{}}).name)
try:
    asyncio.run(choose_model("ollama:x", Settings(), {{}}).prepare())
except ModelNotConfigured as error:
    print(error.code, error.hint)
"""


ASK = """
import asyncio
from cellwright.assistant.models.model import ChatMessage, ModelRequest, Situation, TextDelta
from cellwright.assistant.models.providers import choose_model
from cellwright.assistant.requests import ChatRequest
from cellwright.config.loading import load
async def main():
    model = choose_model(None, load())
    request = ModelRequest(
        (ChatMessage(role="system", text="s"), ChatMessage(role="user", text="hi")),
        (),
        Situation(ChatRequest(prompt="hi")),
    )
    parts = [part async for part in model.respond(request)]
    print(model.name, "".join(part.text for part in parts if isinstance(part, TextDelta)))
asyncio.run(main())
"""


def run(program: str, **variables: str) -> str:
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", program]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


@both
def test_another_process_is_set_up_by_its_environment(dialect: Dialect) -> None:
    """Nothing is left open at its end, and nothing is said beside the answer."""
    with served(dialect, ["hello there"]) as server:
        told = run(
            ASK,
            CELLWRIGHT_ASSISTANT_MODEL=f"{dialect}:m",
            CELLWRIGHT_ASSISTANT_BASE_URL=server.base_url,
            PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring",
        )
    assert told == f"{dialect}:m hello there\n"
    assert server.last.said == [("user", "hi")]


@pytest.mark.parametrize("program", [CHOOSE, HELP], ids=["choosing", "help"])
def test_nothing_heavy_is_imported_before_a_model_is_asked(program: str) -> None:
    loaded = run(program).splitlines()[-1].split()
    assert "cellwright" in loaded
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.parametrize("missing", [HEAVY, ("openai",)], ids=["all", "one"])
def test_without_the_extra_there_is_the_built_in_model_and_a_hint(missing: tuple[str, ...]) -> None:
    name, told = run(WITHOUT.format(names=missing)).splitlines()
    assert name == "direct"
    assert told == "MODEL_NOT_CONFIGURED pip install 'cellwright[assistant]'"
