"""Errors of a provider's library as errors of ours: what happened, and what to do.

Whatever looks like a key is removed from what a provider sends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellwright.assistant.models.keys import key_hint
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
    from collections.abc import Mapping

    from cellwright.assistant.models.providers import ModelEndpoint


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
