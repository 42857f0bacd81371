"""Translation between us and the library that calls providers: messages, tools and errors.

Whatever looks like a key is removed from what a provider says in an error.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from cellwright.assistant.models.keys import key_hint
from cellwright.assistant.models.model import NativeReply, TextDelta, ToolCall, Usage
from cellwright.errors import (
    ConversationTooLong,
    ModelError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    UnknownModel,
)
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestParameters

    from cellwright.assistant.models.model import ChatMessage, ModelEvent
    from cellwright.assistant.models.providers import ModelEndpoint
    from cellwright.outputs.images import ModelImage


FAILED = "[This call failed.]"
_PICTURES = "Pictures in the result of {}:"
CUT_OFF = "\n\n[The answer was cut off at its greatest length; see assistant_max_tokens.]"
_RAW_SHOWN = 200


def translate_tools(tools: Sequence[Mapping[str, Any]]) -> ModelRequestParameters:
    """The tools, each with its schema as it is."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool["name"],
                description=tool["description"],
                parameters_json_schema=dict(tool["inputSchema"]),
                strict=False,  # a provider's strict mode would need schemas rewritten
            )
            for tool in tools
        ]
    )


class Translation:
    """Translates the messages of one request.

    Args:
        place: which model they are for.
        sees: whether it gets pictures.
    """

    def __init__(self, place: ModelEndpoint, *, sees: bool) -> None:
        self._place = place
        self._sees = sees
        self._found: list[ModelMessage] = []
        self._parts: list[ModelRequestPart] = []
        self._names: dict[str, str] = {}
        self._pictures: list[UserContent] = []

    def translate(self, messages: Sequence[ChatMessage]) -> list[ModelMessage]:
        """All of them, in order; adjacent messages to the model are one request."""
        for message in messages:
            if message.role == "assistant":
                self._end_request()
                self._found.append(self._answer(message))
            elif message.role == "tool":
                self._parts.append(self._result(message))
            else:
                self._end_results()
                self._parts.append(self._make_request_part(message))
        self._end_request()
        return self._found

    def _end_request(self) -> None:
        from pydantic_ai.messages import ModelRequest

        self._end_results()
        if self._parts:
            self._found.append(ModelRequest(parts=self._parts))
            self._parts = []

    def _end_results(self) -> None:
        """Show pictures after the last result: between results, a provider takes nothing else."""
        from pydantic_ai.messages import UserPromptPart

        if self._pictures:
            self._parts.append(UserPromptPart(content=self._pictures))
            self._pictures = []

    def _answer(self, message: ChatMessage) -> ModelResponse:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        self._names.update({call.id: call.name for call in message.calls})
        native = message.native
        if native is not None and native.by == self._place.name:
            return native.answer  # type: ignore[return-value]  # we made it
        return ModelResponse(
            parts=[
                *([TextPart(content=_make_sendable(message.text))] if message.text else []),
                *(
                    ToolCallPart(
                        tool_name=call.name, args=_translate_arguments(call), tool_call_id=call.id
                    )
                    for call in message.calls
                ),
            ]
        )

    def _make_request_part(self, message: ChatMessage) -> ModelRequestPart:
        from pydantic_ai.messages import SystemPromptPart

        if message.role == "system":
            return SystemPromptPart(content=_make_sendable(message.text))
        return self._prompt(message)

    def _prompt(self, message: ChatMessage) -> UserPromptPart:
        from pydantic_ai.messages import UserPromptPart

        if not message.images:
            return UserPromptPart(content=_make_sendable(message.text))
        if not self._sees:
            return UserPromptPart(content=_describe_images(message))
        return UserPromptPart(
            content=[_make_sendable(message.text), *map(_translate_picture, message.images)]
        )

    def _result(self, message: ChatMessage) -> ToolReturnPart:
        from pydantic_ai.messages import ToolReturnPart

        call = message.call_id or ""
        name = self._names.get(call, "tool")
        text = _make_sendable(message.text) if self._sees else _describe_images(message)
        images = [_translate_picture(each) for each in message.images] if self._sees else []
        content: Any = text
        if self._place.dialect == "anthropic":
            content = [text, *images] if images else text
        else:  # there is no flag for errors there, and no place for pictures
            content = f"{FAILED}\n{text}" if message.is_error else text
            if images:
                self._pictures += [_PICTURES.format(name), *images]
        return ToolReturnPart(
            tool_name=name,
            content=content,
            tool_call_id=call,
            outcome="failed"
            if message.is_error and self._place.dialect == "anthropic"
            else "success",
        )


def _translate_picture(picture: ModelImage) -> UserContent:
    from pydantic_ai.messages import BinaryContent

    return BinaryContent(data=picture.data, media_type=picture.mime)


def _describe_images(message: ChatMessage) -> str:
    text = _make_sendable(message.text)
    return "\n".join([text, *(f"[not shown: {each}]" for each in message.images)])


def _make_sendable(text: str) -> str:
    """Text that UTF-8 can carry: lone surrogates, which notebooks may hold, are escaped."""
    return text.encode(errors="backslashreplace").decode()


def _translate_arguments(call: ToolCall) -> Any:
    written = json.dumps(dict(call.arguments), ensure_ascii=False)
    return json.loads(written.encode(errors="replace"))  # escaped, it would be read back


def read_end(
    answer: ModelResponse, place: ModelEndpoint, *, characters: int, taken: Collection[str]
) -> list[ModelEvent]:
    """The events after the text: calls, usage, and the answer in the provider's form.

    Args:
        answer: all of it.
        place: the model that gave it.
        characters: how much of it was given out already.
        taken: ids that earlier calls have.

    Raises:
        ModelUnavailable: it is incomplete.
        ModelRejected: the provider withholds it.
    """
    from pydantic_ai.messages import ToolCallPart

    answer = replace(answer, parts=_make_ids_unique(answer.parts, taken))
    calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
    reason = answer.finish_reason
    details = answer.provider_details or {}
    if not answer.parts and "finish_reason" not in details and "refusal" not in details:
        # Some servers leave out the end of their answers, but none its middle as well.
        why = f"{place.origin} sent no answer; is {place.base_url} the right address?"
        raise ModelUnavailable(place.name, why)
    if reason is None:
        raise ModelUnavailable(place.name, "the answer has no end", characters=characters)
    if reason == "content_filter" and not calls and not characters:
        refusal = details.get("refusal")
        why = f"it gives no answer to this: {refusal}" if refusal else "it gives no answer to this"
        raise ModelRejected(place.name, why, hint="Ask in another way")
    found: list[ModelEvent] = []
    is_cut = reason == "length"
    if is_cut:
        found.append(TextDelta(CUT_OFF))
    found += [_read_call(part, is_cut=is_cut) for part in calls]
    return [*found, read_usage(answer, place), NativeReply(place.name, answer)]


def read_usage(answer: ModelResponse, place: ModelEndpoint) -> Usage:
    """The tokens of a call, and its cost at the provider itself; other prices are not known."""
    counted = answer.usage
    cost = _find_price(answer) if place.needs_key else None
    return Usage(counted.input_tokens, counted.output_tokens, counted.cache_read_tokens, cost)


def _find_price(answer: ModelResponse) -> float | None:
    try:
        return float(answer.cost().total_price)
    except (LookupError, ValueError):  # a model newer than the price list; nothing was counted
        return None


def _make_ids_unique(
    parts: Sequence[ModelResponsePart], taken: Collection[str]
) -> list[ModelResponsePart]:
    """The parts, with unique ids of calls; some servers count from 0 each time."""
    from pydantic_ai.messages import ToolCallPart

    used = set(taken)
    found: list[ModelResponsePart] = []
    for part in parts:
        if isinstance(part, ToolCallPart):
            names = (f"{part.tool_call_id or 'call'}_{number}" for number in count(2))
            free = part.tool_call_id not in {*used, ""}
            own = part.tool_call_id if free else next(n for n in names if n not in used)
            used.add(own)
            found.append(part if free else replace(part, tool_call_id=own))
        else:
            found.append(part)
    return found


def _read_call(part: ToolCallPart, *, is_cut: bool) -> ToolCall:
    """A call; one whose arguments are not a JSON object has a `problem`."""
    try:
        arguments = part.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        raw = str(part.args)
        why = "The answer was cut off in the middle" if is_cut else "They are no JSON object"
        shown = raw if len(raw) <= _RAW_SHOWN else f"{raw[:_RAW_SHOWN]}…"
        return ToolCall(part.tool_call_id, part.tool_name, {}, f"{why}: {shown!r}")
    return ToolCall(part.tool_call_id, part.tool_name, arguments)


_LONGEST = 300
_TOO_MANY_REQUESTS = 429
_MOVED, _CLIENT_ERRORS, _SERVER_ERRORS = 300, 400, 500
_AGAIN = (408, 409, 425, _TOO_MANY_REQUESTS)
_too_long = re.compile(
    r"context.{0,20}(length|window|size)|too (long|large|many tokens)|maximum.{0,20}tokens",
    re.IGNORECASE,
).search
# What servers say when they reject a request, and what a person can do about it.
LESS = "Set assistant_max_tokens to less"
_HINTS = (
    (r"max_(completion_)?tokens|output tokens", LESS),
    (r"image|vision|multi-?modal", "Set assistant_images to false, or choose a model that can see"),
    (r"support\w*.{0,20}\btool|\btool.{0,30}support", "Choose a model that can call tools"),
)
_like_a_key = re.compile(r"\b(sk|pk)-[\w*.-]{6,}|\bBearer [\w*.-]{6,}").sub


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """A call that failed; `may_retry` if the next one could do better, after `wait` if it says."""

    error: ModelError
    may_retry: bool = False
    wait: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCall:
    """A call that failed, and what is known of it."""

    place: ModelEndpoint
    key: str | None
    environ: Mapping[str, str]
    characters: int = 0
    tries: int = 1


def explain_failure(error: Exception, known: FailedCall) -> ModelFailure | None:
    """What an exception means; None if it does not come from a provider."""
    from pydantic_ai import exceptions

    if isinstance(error, ModelError):
        return ModelFailure(error, may_retry=error.retryable)
    name = known.place.name
    reason = _find_reason(error, known)
    status = getattr(error.__cause__, "status_code", None)
    if isinstance(status, int) and _MOVED <= status < _CLIENT_ERRORS:
        elsewhere = f"{known.place.origin} points elsewhere (HTTP {status}), where nothing is sent"
        return ModelFailure(ModelRejected(name, elsewhere, hint="Check the address of the server"))
    if isinstance(error, exceptions.ModelQuotaExceededError):
        hint: str | None = "The account has used up what it may: see the provider's page on billing"
        return ModelFailure(ModelRefused(name, reason, hint=hint))
    if isinstance(error, exceptions.ModelAuthenticationError):
        return ModelFailure(ModelRefused(name, reason, hint=key_hint(known.place, known.environ)))
    if isinstance(error, exceptions.ModelNotFoundError):
        meant = getattr(error, "suggested_model_id", None)
        return ModelFailure(UnknownModel(name, reason, suggestion=meant))
    if isinstance(error, exceptions.ModelRequestRejectedError) or _is_final(error):
        hint = _find_hint(reason)
        is_long = isinstance(error, exceptions.ModelContextWindowExceededError)
        if (is_long or _too_long(reason)) and hint != LESS:
            return ModelFailure(ConversationTooLong(name, reason))
        return ModelFailure(ModelRejected(name, reason, hint=hint))
    if isinstance(error, (exceptions.ModelAPIError, exceptions.UnexpectedModelBehavior)):
        unavailable = ModelUnavailable(name, reason, characters=known.characters, tries=known.tries)
        return ModelFailure(unavailable, may_retry=True, wait=getattr(error, "retry_after", None))
    if isinstance(error, exceptions.UserError):
        return ModelFailure(ModelRejected(name, reason))
    return None


def _find_hint(reason: str) -> str | None:
    return next((hint for said, hint in _HINTS if re.search(said, reason, re.IGNORECASE)), None)


def _is_final(error: Exception) -> bool:
    """Whether a status says that asking again would not help."""
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and status < _SERVER_ERRORS and status not in _AGAIN


def _find_reason(error: Exception, known: FailedCall) -> str:
    """What the provider says, in one line, without keys."""
    from pydantic_ai import exceptions

    text = (
        _find_message(getattr(error, "body", None)) or getattr(error, "message", "") or str(error)
    )
    if isinstance(error, exceptions.ModelTimeoutError):
        text = "it was silent for too long"
    elif isinstance(error, exceptions.ModelConnectionError) and error.phase == "connect":
        text = f"nothing answers at {known.place.origin}"
        text += "; is the server running?" if known.place.is_loopback else ""
    elif isinstance(error, exceptions.ModelConnectionError):
        text = f"{known.place.origin} cannot be reached, or hung up ({shorten(text, 100)})"
    elif isinstance(error, exceptions.ModelHTTPError):
        text = f"{text} (HTTP {error.status_code})"
    if known.key:
        text = text.replace(known.key, "…")
    return shorten(_like_a_key("…", text), _LONGEST)


def _find_message(body: Any) -> str:
    """The sentence in the body of an error; every server puts it elsewhere."""
    for _ in range(3):
        if not isinstance(body, dict):
            break
        body = next((body[key] for key in ("error", "message", "detail") if body.get(key)), None)
    return body if isinstance(body, str) else ""
