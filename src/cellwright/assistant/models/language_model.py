"""`LanguageModel`: calls of a provider's model, as a stream of our events.

Every call has a connection of its own. That costs a handshake, but nothing outlives a chat or moves
from one event loop to another.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cellwright.assistant.models.keys import belongs_to_environment, key_hint, look_up_key
from cellwright.assistant.models.model import TextDelta
from cellwright.assistant.models.providers import missing_library
from cellwright.assistant.models.translation import (
    FailedCall,
    Translation,
    explain_failure,
    read_end,
    translate_tools,
)
from cellwright.config.defaults import ASSISTANT_MAX_TOKENS
from cellwright.errors import ModelNotConfigured, ModelRefused

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from cellwright.assistant.models.model import ModelEvent, ModelRequest
    from cellwright.assistant.models.providers import Dialect, ModelEndpoint
    from cellwright.config.settings import Settings

_log = logging.getLogger("cellwright.assistant.providers")
_CONNECT_TIMEOUT = 10.0
_NO_KEY = "no-key"  # the libraries want one even where the server does not
_CREDENTIALS = ("authorization", "x-api-key")
_HEADERS = (
    *_CREDENTIALS,
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
    *("anthropic-beta", "anthropic-version", "user-agent"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits that double, with a random share.

    Args:
        first: seconds before the second try.
        most: the longest wait of our own.
        patience: the longest wait that a provider may ask for; beyond it we give up at once, since
            a person waits.
    """

    first: float = 0.5
    most: float = 20.0
    patience: float = 60.0

    def wait(self, tries: int, asked: float | None) -> float | None:
        """Seconds to wait after so many tries; None to give up.

        Args:
            tries: how many there were.
            asked: how long the provider asked us to wait, if it did.
        """
        if asked is not None:
            return asked if asked <= self.patience else None
        longest = min(self.first * float(2 ** (tries - 1)), self.most)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  # no secret depends on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The key of a model, if any.

    `is_trusted` says whether what the libraries find in the environment for their provider, such
    as the name of an organization, may go there, too.
    """

    key: str | None = field(default=None, repr=False)
    is_trusted: bool = False

    async def check(self, request: httpx2.Request) -> None:
        """Remove from a request what must not be sent."""
        for name in list(request.headers):
            is_known = name in _HEADERS or name.startswith("x-stainless-")
            if (not is_known and not self.is_trusted) or (not self.key and name in _CREDENTIALS):
                del request.headers[name]


@dataclass(slots=True)
class _Attempt:
    """One try of a call; `characters` of its answer were given out already."""

    characters: int = 0


@dataclass(slots=True)
class LanguageModel:
    """A model of a provider, or of a server that speaks like one.

    A call that fails before its first word is made again, `assistant_retries` times at most. Tools
    are called only when the answer is complete, so that half an answer does nothing. Leaving or
    cancelling the stream closes the connection.

    Args:
        place: which model, and where.
        settings: those of the assistant.
        environ: where its key is looked for.
        backoff: how long to wait between tries.
        notice: gets a line for the person before each wait for the next try.
    """

    place: ModelEndpoint
    settings: Settings
    environ: Mapping[str, str] = field(repr=False)
    backoff: Backoff = field(default_factory=Backoff)
    notice: Callable[[str], object] | None = field(default=None, repr=False)
    _access: Credentials = field(default_factory=Credentials, init=False, repr=False)
    _is_prepared: bool = field(default=False, init=False, repr=False)

    @property
    def name(self) -> str:
        """As it was chosen: `provider:name`."""
        return self.place.name

    async def prepare(self) -> None:
        """Find its key and load its library, before they are needed.

        Raises:
            ModelNotConfigured: one of them is missing.
        """
        if self._is_prepared:
            return
        key = await look_up_key(self.place, self.environ)
        if key is None and self.place.needs_key:
            hint = key_hint(self.place, self.environ)
            raise ModelNotConfigured(self.name, "it needs a key, and there is none", hint=hint)
        try:
            await asyncio.to_thread(load_libraries, self.place.dialect)
        except ImportError:
            raise missing_library(self.name) from None
        if key and not self.place.is_encrypted and not self.place.is_loopback:
            _log.warning("a key goes unencrypted", extra={"server": self.place.origin})
        is_trusted = belongs_to_environment(self.place, self.environ)
        self._access, self._is_prepared = Credentials(key=key, is_trusted=is_trusted), True

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer, piece by piece.

        Raises:
            ModelError: there is no answer, or only a part of one; its code says why.
        """
        await self.prepare()
        tries = 0
        while True:
            tries += 1
            attempt = _Attempt()
            stream = self._ask(request, attempt)
            try:
                async for event in stream:
                    yield event
            except Exception as error:  # noqa: BLE001  # `_retry_delay` raises what is not a provider's
                wait = self._retry_delay(error, attempt, tries)
            else:
                return
            finally:
                await stream.aclose()
            await asyncio.sleep(wait)

    def _retry_delay(self, error: Exception, attempt: _Attempt, tries: int) -> float:
        """Seconds to wait before the next try; raises if there is none."""
        known = FailedCall(
            place=self.place,
            key=self._access.key,
            environ=self.environ,
            characters=attempt.characters,
            tries=tries,
        )
        failure = explain_failure(error, known)
        if failure is None:
            raise error
        wait = self.backoff.wait(tries, failure.wait)
        is_last = tries > self.settings.assistant_retries or attempt.characters
        if is_last or not failure.may_retry or wait is None:
            # A key that was refused may be another one the next time.
            self._is_prepared = self._is_prepared and not isinstance(failure.error, ModelRefused)
            # The library's own errors carry what was sent and what came back.
            raise failure.error from None
        _log.info("model asked again", extra={"model": self.name, "tries": tries, "wait": wait})
        if self.notice is not None:
            self.notice(f"{failure.error.message}; asking again in {wait:.1f} s")
        return wait

    async def _ask(
        self, request: ModelRequest, attempt: _Attempt
    ) -> AsyncGenerator[ModelEvent, None]:
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        messages = Translation(self.place, sees=self.settings.assistant_images).translate(
            request.messages
        )
        _log.debug(
            "model asked",
            extra={"model": self.name, "messages": len(messages), "tools": len(request.tools)},
        )
        async with (
            open_backend(self.place, self._access, self.settings) as backend,
            model_request_stream(
                backend,
                messages,
                model_settings=request_settings(self.place, self.settings),
                model_request_parameters=translate_tools(request.tools),
                instrument=False,
            ) as stream,
        ):
            async for event in stream:
                text = ""
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    text = event.part.content
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    text = event.delta.content_delta
                if text:
                    attempt.characters += len(text)
                    yield TextDelta(text)
            answer = stream.get()
        taken = {call.id for message in request.messages for call in message.calls}
        for last in read_end(answer, self.place, characters=attempt.characters, taken=taken):
            yield last


@asynccontextmanager
async def open_backend(
    place: ModelEndpoint, access: Credentials, settings: Settings
) -> AsyncIterator[Model]:
    """The model, ready to be asked; leaving closes its connections."""
    import httpx2

    timeout = httpx2.Timeout(
        settings.assistant_timeout, connect=min(_CONNECT_TIMEOUT, settings.assistant_timeout)
    )
    async with httpx2.AsyncClient(
        timeout=timeout,
        verify=_certificates(),
        # A proxy cannot reach this machine, and must not see what is said here.
        trust_env=not place.is_loopback,
        # The key would go wherever a redirect points to.
        follow_redirects=False,
        event_hooks={"request": [access.check]},
    ) as client:
        make = _open_anthropic if place.dialect == "anthropic" else _open_openai
        yield make(place, access.key or _NO_KEY, client, timeout)


def load_libraries(dialect: Dialect) -> None:
    """Import what the first call would, which takes about a second."""
    from importlib import import_module

    import_module("pydantic_ai.direct")
    import_module(f"pydantic_ai.models.{dialect}")
    _certificates()


def request_settings(place: ModelEndpoint, settings: Settings) -> ModelSettings:
    """The settings of a call.

    Anthropic caches what it is told to: the tools, the system prompt, and, for the calls of one
    turn, which share it, all up to the newest message. Others cache by themselves.
    """
    most = settings.assistant_max_tokens
    asked: dict[str, Any] = {"max_tokens": most}
    if place.dialect == "openai" and not place.needs_key and most == ASSISTANT_MAX_TOKENS:
        asked = {}  # a small model may refuse so many
    if place.dialect == "anthropic":
        asked |= {
            "anthropic_cache_tool_definitions": True,
            "anthropic_cache_instructions": True,
            "anthropic_cache_messages": True,
        }
    return asked  # type: ignore[return-value]  # it has the settings of all providers


def _open_anthropic(
    place: ModelEndpoint, key: str, client: httpx2.AsyncClient, timeout: httpx2.Timeout
) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    # We retry ourselves, with messages for the person who waits.
    sdk = AsyncAnthropic(
        api_key=key, base_url=place.base_url, http_client=client, timeout=timeout, max_retries=0
    )
    provider = AnthropicProvider(anthropic_client=sdk)
    return AnthropicModel(place.model, provider=provider, profile=_keep_schemas)


def _open_openai(
    place: ModelEndpoint, key: str, client: httpx2.AsyncClient, timeout: httpx2.Timeout
) -> Model:
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
        place.model, provider=provider, profile=lambda known: _keep_schemas({**known, **more})
    )


def _keep_schemas(profile: Any) -> Any:
    """The profile of a model, with schemas of tools sent as they are."""
    return {**profile, "json_schema_transformer": None}


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than all else here."""
    import httpx2

    return httpx2.create_ssl_context()
