"""The models that a person can choose from, and what each of them still needs."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cellwright.assistant.models.keys import key_hint, look_up_key, read_key_variable
from cellwright.assistant.models.providers import DIRECT, EXTRA, PROVIDERS, find_endpoint
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cellwright.config.settings import Settings

_TITLES = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
}


async def list_models(settings: Settings, used: Iterable[str] = ()) -> list[dict[str, Any]]:
    """List the built-in model, that of the settings and those that were used, each with its needs.

    Args:
        settings: `assistant_model` and the address of its server.
        used: names of models that chats have.
    """
    names = dict.fromkeys([settings.assistant_model, *used])
    rows = [_describe(name, settings) for name in names if name and name != DIRECT]
    built_in = {
        "name": DIRECT,
        "title": "Built in, without a language model",
        "provider": None,
        "ready": True,
        "needs": None,
        "hint": None,
        "takes_key": False,
    }
    return [built_in, *await asyncio.gather(*rows)]


async def list_providers(settings: Settings) -> list[dict[str, Any]]:
    """List the providers, each with what its models need."""
    rows = await asyncio.gather(*(_describe(f"{name}:NAME", settings) for name in PROVIDERS))
    return [
        {**row, "name": row["provider"], "title": _TITLES.get(row["provider"], row["provider"])}
        for row in rows
    ]


async def _describe(name: str, settings: Settings) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "title": name, "provider": name.partition(":")[0]}
    row["takes_key"], environ = False, os.environ
    try:
        place = find_endpoint(name, settings, environ)
        if find_spec("pydantic_ai") is None:
            return {**row, "ready": False, "needs": "extra", "hint": EXTRA}
        # The key of a variable counts first: one in the keyring would not be used.
        row["takes_key"] = place.needs_key and not read_key_variable(place, environ)
        if place.needs_key and not await look_up_key(place, environ):
            return {**row, "ready": False, "needs": "key", "hint": key_hint(place, environ)}
    except CellwrightError as error:
        return {**row, "ready": False, "needs": None, "hint": error.hint or error.message}
    return {**row, "ready": True, "needs": None, "hint": None}
