"""`LanguageModel`: one call of a provider's model, as a stream of our events."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cellwright.assistant.models import TextDelta
from cellwright.assistant.providers.answers import finish
from cellwright.assistant.providers.backends import (
    Access,
    load_libraries,
    open_backend,
    request_settings,
)
from cellwright.assistant.providers.failing import Circumstances, understand
from cellwright.assistant.providers.keys import (
    belongs_to_environment,
    how_to_give_a_key,
    look_up_key,
)
from cellwright.assistant.providers.names import without_library
from cellwright.assistant.providers.retrying import Backoff
from cellwright.assistant.providers.translating import Translation, translate_tools
from cellwright.errors import ModelNotConfigured

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from cellwright.assistant.models import ModelEvent, ModelRequest
    from cellwright.assistant.providers.names import Place
    from cellwright.config.settings import Settings

_log = logging.getLogger("cellwright.assistant.providers")


@dataclass(slots=True)
class _Attempt:
    """How far one try of a call has come; `characters` were given out, and cannot be taken back."""

    characters: int = 0


@dataclass(slots=True)
class LanguageModel:
    """A model of a provider, or of a server that speaks like one.

    A call that fails before its first word is made again, `assistant_retries` times at most. Tools
    are called only when the answer has come to its end, so that half an answer does nothing.
    Whoever leaves the stream, or is cancelled, closes the connection.

    Args:
        place: which model, and where.
        settings: those of the assistant.
        environ: where its key is looked for.
        backoff: how long to wait between tries.
        notice: gets a line for the person whenever it is about to wait for the next try.
    """

    place: Place
    settings: Settings
    environ: Mapping[str, str] = field(repr=False)
    backoff: Backoff = field(default_factory=Backoff)
    notice: Callable[[str], object] | None = field(default=None, repr=False)
    _access: Access = field(default_factory=Access, init=False, repr=False)
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
        # Both take a while, in which a door has other things to do.
        key = await look_up_key(self.place, self.environ)
        if key is None and self.place.needs_key:
            hint = how_to_give_a_key(self.place)
            raise ModelNotConfigured(self.name, "it needs a key, and there is none", hint=hint)
        try:
            await asyncio.to_thread(load_libraries, self.place.dialect)
        except ImportError:
            raise without_library(self.name) from None
        if key and not self.place.is_encrypted and not self.place.is_loopback:
            _log.warning("a key goes unencrypted", extra={"server": self.place.origin})
        is_trusted = belongs_to_environment(self.place, self.environ)
        self._access, self._is_prepared = Access(key=key, is_trusted=is_trusted), True

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
            except Exception as error:  # noqa: BLE001  # `_again` raises what is not a provider's
                wait = self._again(error, attempt, tries)
            else:
                return
            finally:
                await stream.aclose()
            await asyncio.sleep(wait)

    def _again(self, error: Exception, attempt: _Attempt, tries: int) -> float:
        """How long to wait before the next try; raises if there is to be none."""
        known = Circumstances(
            place=self.place, key=self._access.key, characters=attempt.characters, tries=tries
        )
        failure = understand(error, known)
        if failure is None:
            raise error
        wait = self.backoff.wait(tries, failure.wait)
        is_last = tries > self.settings.assistant_retries or attempt.characters
        if is_last or not failure.may_retry or wait is None:
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
        for last in finish(answer, self.place, characters=attempt.characters, taken=taken):
            yield last
