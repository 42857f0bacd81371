"""The end of an answer: the calls in it, what it took, and whether it is one at all."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from cellwright.assistant.models import Native, TextDelta, ToolCall, Usage
from cellwright.errors import ModelRejected, ModelUnavailable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pydantic_ai.messages import ModelResponse, ModelResponsePart, ToolCallPart

    from cellwright.assistant.models import ModelEvent
    from cellwright.assistant.providers.names import Place

CUT_OFF = "\n\n[The answer was cut off at its greatest length; see assistant_max_tokens.]"
_RAW_SHOWN = 200


def finish(
    answer: ModelResponse, place: Place, *, characters: int, taken: Collection[str]
) -> list[ModelEvent]:
    """What follows the text: calls, what it took, and the answer as the provider knows it.

    Args:
        answer: all of it.
        place: who gave it.
        characters: how much of it was given out already.
        taken: ids that earlier calls have.

    Raises:
        ModelUnavailable: it has no end.
        ModelRejected: the provider withholds it.
    """
    from pydantic_ai.messages import ToolCallPart

    answer = replace(answer, parts=_told_apart(answer.parts, taken))
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
    found += [_call(part, is_cut=is_cut) for part in calls]
    return [*found, usage_of(answer, place), Native(place.name, answer)]


def usage_of(answer: ModelResponse, place: Place) -> Usage:
    """What a call took, and what it cost at the provider itself; other prices nobody knows."""
    counted = answer.usage
    cost = _price(answer) if place.needs_key else None
    return Usage(counted.input_tokens, counted.output_tokens, counted.cache_read_tokens, cost)


def _price(answer: ModelResponse) -> float | None:
    try:
        return float(answer.cost().total_price)
    except (LookupError, ValueError):  # a model newer than the price list; nothing was counted
        return None


def _told_apart(
    parts: Sequence[ModelResponsePart], taken: Collection[str]
) -> list[ModelResponsePart]:
    """The parts, with ids of calls that are used but once; some servers count from 0 each time."""
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


def _call(part: ToolCallPart, *, is_cut: bool) -> ToolCall:
    """A call; one whose arguments are no JSON object says so, and is answered instead of made."""
    try:
        arguments = part.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        raw = str(part.args)
        why = "The answer was cut off in the middle" if is_cut else "They are no JSON object"
        shown = raw if len(raw) <= _RAW_SHOWN else f"{raw[:_RAW_SHOWN]}…"
        return ToolCall(part.tool_call_id, part.tool_name, {}, f"{why}: {shown!r}")
    return ToolCall(part.tool_call_id, part.tool_name, arguments)
