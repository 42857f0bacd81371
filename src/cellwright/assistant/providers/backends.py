"""The provider's library, set up for one call: address, key, time limits; closed after it.

A connection of its own for every call costs a handshake, and is gone at the moment in which the
call is: nothing outlives a chat, or moves from one event loop to another.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cellwright.config.defaults import ASSISTANT_MAX_TOKENS

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from cellwright.assistant.providers.names import Dialect, Place
    from cellwright.config.settings import Settings

_CONNECT_TIMEOUT = 10.0
_NO_KEY = "no-key"  # the libraries want one even where the server does not
_CREDENTIALS = ("authorization", "x-api-key")
_HEADERS = (
    *_CREDENTIALS,
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
    *("anthropic-beta", "anthropic-version", "user-agent"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """With which key a model is asked, if any.

    `is_trusted` says whether what the libraries find in the environment for their provider, such
    as the name of an organization, may go there, too.
    """

    key: str | None = field(default=None, repr=False)
    is_trusted: bool = False

    async def check(self, request: httpx2.Request) -> None:
        """Take from a request what must not leave with it."""
        for name in list(request.headers):
            is_known = name in _HEADERS or name.startswith("x-stainless-")
            if (not is_known and not self.is_trusted) or (not self.key and name in _CREDENTIALS):
                del request.headers[name]


@asynccontextmanager
async def open_backend(place: Place, access: Access, settings: Settings) -> AsyncIterator[Model]:
    """The model, ready to be asked; leaving closes its connections."""
    import httpx2

    timeout = httpx2.Timeout(
        settings.assistant_timeout, connect=min(_CONNECT_TIMEOUT, settings.assistant_timeout)
    )
    async with httpx2.AsyncClient(
        timeout=timeout,
        verify=_certificates(),
        # A proxy knows no way to this machine; and it is nobody's business what is said here.
        trust_env=not place.is_loopback,
        # The key would go wherever a redirect points to.
        follow_redirects=False,
        event_hooks={"request": [access.check]},
    ) as client:
        make = _anthropic if place.dialect == "anthropic" else _openai
        yield make(place, access.key or _NO_KEY, client, timeout)


def load_libraries(dialect: Dialect) -> None:
    """Import what the first call would, which takes about a second."""
    from importlib import import_module

    import_module("pydantic_ai.direct")
    import_module(f"pydantic_ai.models.{dialect}")
    _certificates()


def request_settings(place: Place, settings: Settings) -> ModelSettings:
    """What is asked for beside the messages.

    Anthropic caches what it is told to: the tools, the system prompt, and, for the calls of one
    turn, which share it, all up to the newest message. Others cache by themselves.
    """
    most = settings.assistant_max_tokens
    asked: dict[str, Any] = {"max_tokens": most}
    if place.dialect == "openai" and not place.needs_key and most == ASSISTANT_MAX_TOKENS:
        asked = {}  # a small model may not be able to say that much, and would refuse
    if place.dialect == "anthropic":
        asked |= {
            "anthropic_cache_tool_definitions": True,
            "anthropic_cache_instructions": True,
            "anthropic_cache_messages": True,
        }
    return asked  # type: ignore[return-value]  # it has the settings of all providers


def _anthropic(
    place: Place, key: str, client: httpx2.AsyncClient, timeout: httpx2.Timeout
) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    # We retry ourselves: with the waits, and the words, that a person in front of it needs.
    sdk = AsyncAnthropic(
        api_key=key, base_url=place.base_url, http_client=client, timeout=timeout, max_retries=0
    )
    provider = AnthropicProvider(anthropic_client=sdk)
    return AnthropicModel(place.model, provider=provider, profile=_as_they_are)


def _openai(place: Place, key: str, client: httpx2.AsyncClient, timeout: httpx2.Timeout) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    sdk = AsyncOpenAI(
        api_key=key, base_url=place.base_url, http_client=client, timeout=timeout, max_retries=0
    )
    if place.provider == "openai" and place.is_own:
        provider: Any = OpenAIProvider(openai_client=sdk)
        more = {"openai_chat_streaming_requires_finish_reason": True}
    else:
        provider = OpenAICompatibleProvider(place.provider, openai_client=sdk)
        # The older name, which all servers know.
        more = {"openai_chat_supports_max_completion_tokens": False}
    return OpenAIChatModel(
        place.model, provider=provider, profile=lambda known: _as_they_are({**known, **more})
    )


def _as_they_are(profile: Any) -> Any:
    """What is known of a model, but that schemas of tools are sent as they are."""
    return {**profile, "json_schema_transformer": None}


@cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust; reading it takes longer than all else here."""
    import httpx2

    return httpx2.create_ssl_context()
