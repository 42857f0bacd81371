"""Which model a name stands for, where it is asked, and with which key."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.assistant.models import keys
from cellwright.assistant.models.direct import DirectModel
from cellwright.assistant.models.keys import SERVICE, account_of, find_key, forget_key, store_key
from cellwright.assistant.models.language_model import LanguageModel
from cellwright.assistant.models.model import ChatMessage, ModelRequest, Situation
from cellwright.assistant.models.providers import PROVIDERS, choose_model, find_endpoint
from cellwright.assistant.requests import ChatRequest
from cellwright.config.loading import load
from cellwright.config.settings import Settings
from cellwright.errors import InvalidSetting, ModelNotConfigured, UnknownModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.assistant.chatting import Conversation
    from tests.unit.assistant.conftest import MemoryKeyring

    Make = Callable[..., Conversation]


pytestmark = pytest.mark.usefixtures("empty_keyring")


KEY = "0123456789abcdef-secret"


HELLO = ModelRequest(
    (ChatMessage(role="system", text="Be brief."), ChatMessage(role="user", text="hi")),
    (),
    Situation(ChatRequest(prompt="hi")),
)


async def ask(model: Any) -> list[Any]:
    return [event async for event in model.respond(HELLO)]


# --- Names ---------------------------------------------------------------------------------------


def test_nothing_said_means_the_model_that_is_built_in() -> None:
    environ = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    for name in (None, "", "direct"):
        assert isinstance(choose_model(name, Settings(), environ), DirectModel)
    assert isinstance(choose_model("direct", Settings(assistant_model="openai:x"), {}), DirectModel)


@pytest.mark.parametrize(
    ("name", "provider", "address"),
    [
        ("anthropic:claude-sonnet-5-5", "anthropic", "https://api.anthropic.com"),
        ("openai:gpt-5.4", "openai", "https://api.openai.com/v1"),
        ("ollama:qwen3:8b", "ollama", "http://localhost:11434/v1"),
        ("lmstudio:google/gemma-3", "lmstudio", "http://localhost:1234/v1"),
        ("vllm:meta-llama/Llama-4", "vllm", "http://localhost:8000/v1"),
    ],
)
def test_a_name_has_a_provider_and_the_rest_is_the_model(
    name: str, provider: str, address: str
) -> None:
    model = choose_model(None, Settings(assistant_model=name), {})
    assert isinstance(model, LanguageModel)
    assert model.name == name
    place = model.place
    assert (place.provider, place.model) == (provider, name.partition(":")[2])
    assert (place.base_url, place.is_own) == (address, True)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("antropic:claude-x", "`anthropic:claude-x`"),
        ("OpenAI:gpt-5.4", "`openai:gpt-5.4`"),
        ("claude-sonnet-5-5", "`anthropic:claude-sonnet-5-5`"),
        ("gpt-5.4", "`openai:gpt-5.4`"),
        ("olama", "`ollama:NAME`"),
        ("dirct", "`direct`"),
        ("openai:", "PROVIDER:NAME"),
        ("zzz:model", "PROVIDER:NAME"),
    ],
)
def test_an_unknown_provider_is_an_error_with_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(UnknownModel) as raised:
        choose_model(name, Settings(), {})
    assert raised.value.code == "UNKNOWN_MODEL"
    assert meant in (raised.value.hint or "")
    assert f"`{name}`" in raised.value.message


def test_an_address_moves_a_provider() -> None:
    settings = Settings(assistant_base_url="http://gpu:8000/v1/")
    for provider in PROVIDERS:
        place = find_endpoint(f"{provider}:m", settings, {})
        assert (place.base_url, place.is_own) == ("http://gpu:8000/v1", False)
    environ = {"OPENAI_BASE_URL": "https://gateway.example/v1"}
    assert find_endpoint("openai:m", Settings(), environ).base_url == "https://gateway.example/v1"
    assert find_endpoint("ollama:m", Settings(), environ).is_own
    assert find_endpoint("openai:m", settings, environ).base_url == "http://gpu:8000/v1"
    own = Settings(assistant_base_url="https://api.openai.com/v1/")
    assert find_endpoint("openai:m", own, {}).is_own


def test_an_address_is_that_of_the_model_in_the_settings() -> None:
    """Or a switch of models would send a chat to the wrong server."""
    settings = Settings(assistant_model="openai:qwen", assistant_base_url="http://gpu:8000/v1")
    assert find_endpoint("openai:other", settings, {}).base_url == "http://gpu:8000/v1"
    assert find_endpoint("anthropic:claude-x", settings, {}).base_url == "https://api.anthropic.com"


@pytest.mark.parametrize(
    "address",
    [
        "localhost:11434",
        "ftp://x/v1",
        "http://",
        "http://user:secret@x/v1",
        "http://x/v1?key=secret",
    ],
)
def test_an_address_that_is_none_is_told_without_its_secrets(address: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        choose_model("openai:m", Settings(assistant_base_url=address), {})
    assert "http://localhost:11434/v1" in (raised.value.hint or "")
    assert "secret" not in f"{raised.value} {raised.value.hint}"


def test_the_settings_know_their_origin_and_a_project_may_not_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote a repository has no say in where its notebooks and a key are sent."""
    monkeypatch.setenv("CELLWRIGHT_ASSISTANT_MODEL", "ollama:qwen3")
    found = load(tmp_path)
    assert (found.assistant_model, found.origin("assistant_model").kind) == (
        "ollama:qwen3",
        "variable",
    )
    for line in ("assistant_model = 'openai:x'", "assistant_base_url = 'http://evil/v1'"):
        (tmp_path / "cellwright.toml").write_text(line, encoding="utf-8")
        with pytest.raises(InvalidSetting, match=line.split()[0]):
            load(tmp_path)


# --- Keys ----------------------------------------------------------------------------------------


async def test_a_key_that_goes_unencrypted_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for address in ("http://gpu:8000/v1", "https://gpu:8000/v1", "http://127.0.0.1:8000/v1"):
        store_key("openai", KEY, address)
        model = choose_model("openai:m", Settings(assistant_base_url=address), {})
        assert isinstance(model, LanguageModel)
        await model.prepare()
    (warning,) = caplog.records
    assert (warning.levelname, vars(warning)["server"]) == ("WARNING", "gpu:8000")


def test_the_keyring_has_a_key_for_each_provider_and_address(empty_keyring: MemoryKeyring) -> None:
    store_key("anthropic", "a")
    store_key("openai", "b", "https://gateway.example/v1")
    store_key("openai", "c", "https://api.openai.com/v1")
    assert empty_keyring.keys == {
        (SERVICE, "anthropic"): "a",
        (SERVICE, "openai@gateway.example"): "b",
        (SERVICE, "openai"): "c",
    }
    place = find_endpoint("anthropic:x", Settings(), {})
    assert find_key(place, {}) == "a"
    assert forget_key("anthropic")
    assert not forget_key("anthropic")
    assert find_key(place, {}) is None
    with pytest.raises(UnknownModel):
        account_of("nobody")


def test_a_machine_without_a_keyring_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring.core

    class Broken:
        def get_password(self, *words: str) -> str:
            raise RuntimeError(*words)

        def set_password(self, *words: str) -> None:
            raise RuntimeError(*words)

    monkeypatch.setattr(keyring.core, "_keyring_backend", Broken())
    place = find_endpoint("anthropic:x", Settings(), {})
    assert find_key(place, {}) is None
    assert find_key(place, {"ANTHROPIC_API_KEY": KEY}) == KEY
    with pytest.raises(ModelNotConfigured) as raised:
        store_key("anthropic", KEY)
    assert "ANTHROPIC_API_KEY" in (raised.value.hint or "")
    assert KEY not in str(raised.value)
    with pytest.raises(ModelNotConfigured):
        forget_key("anthropic")
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert find_key(place, {}) is None
    with pytest.raises(ModelNotConfigured):
        store_key("ollama", KEY, "gpu:8000")


async def test_a_keyring_that_waits_for_nobody_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import keyring.core

    unlocked = threading.Event()

    class Locked:
        def get_password(self, *_: str) -> str:
            unlocked.wait(30)
            return KEY

    monkeypatch.setattr(keyring.core, "_keyring_backend", Locked())
    monkeypatch.setattr(keys, "KEYRING_TIMEOUT", 0.1)
    model = choose_model("anthropic:claude-sonnet-5-5", Settings(), {})
    assert isinstance(model, LanguageModel)
    with pytest.raises(ModelNotConfigured):
        await model.prepare()
    assert "does not answer" in caplog.text
    local = choose_model("ollama:qwen3", Settings(), {})
    assert isinstance(local, LanguageModel)
    caplog.clear()
    await local.prepare()  # it needs no key, so that nobody is asked for one
    assert caplog.text == ""
    unlocked.set()
    monkeypatch.setattr(keys, "KEYRING_TIMEOUT", 30)
    await model.prepare()


@pytest.mark.parametrize("key", ["sk-ab\ncd", "sk ab", "sk-ä", "sk-\x7fabc"])
async def test_what_is_no_key_is_not_sent(key: str) -> None:
    with pytest.raises(ModelNotConfigured) as raised:
        await ask(choose_model("openai:x", Settings(), {"OPENAI_API_KEY": key}))
    assert key not in str(raised.value)
    assert "OPENAI_API_KEY" in (raised.value.hint or "")
