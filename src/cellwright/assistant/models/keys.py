"""Keys of providers: from the environment or the keyring, and nowhere else.

A key goes only to the address it belongs to: that of its provider, or the one that a variable of
the provider names beside it (`OPENAI_BASE_URL` beside `OPENAI_API_KEY`), or the one that it was
stored for in the keyring.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cellwright.assistant.models.providers import PROVIDERS
from cellwright.errors import ModelNotConfigured, UnknownModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from cellwright.assistant.models.providers import ModelEndpoint


_log = logging.getLogger("cellwright.assistant.providers")

SERVICE = "cellwright"
"""The name under which the keyring has our keys."""

KEYRING_TIMEOUT = 60.0
"""How long the keyring may take; a person may be typing a password."""


def account_of(provider: str, address: str = "") -> str:
    """What a key is called in the keyring: the provider, and the host unless it is its own.

    Raises:
        UnknownModel: there is no such provider.
    """
    if provider not in PROVIDERS:
        raise UnknownModel(provider, "no provider is called so")
    own = urlsplit(PROVIDERS[provider].base_url).netloc
    host = urlsplit(address).netloc if "//" in address else address
    return provider if host in ("", own) else f"{provider}@{host}"


def find_key(place: ModelEndpoint, environ: Mapping[str, str]) -> str | None:
    """The key for a model where it is asked; None if there is none.

    Looking into the keyring may take a while, or ask the person to unlock it.

    Raises:
        ModelNotConfigured: what was found cannot be a key.
    """
    found = read_key_variable(place, environ) or _from_keyring(place)
    if found is None:
        return None
    found = found.strip()
    if found and not is_key(found):
        raise ModelNotConfigured(
            place.name, "its key has characters that no key has", hint=key_hint(place, environ)
        )
    return found or None


def is_key(text: str) -> bool:
    """Whether a text can be a key.

    Where it is sent, other characters would begin another header, or fail with the key in the
    message.
    """
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def check_key(provider: str, text: str) -> str:
    """The key that a person typed.

    Raises:
        ModelNotConfigured: it cannot be one.
    """
    key = text.strip()
    if not is_key(key):
        missing = "this is not a key: it is empty or has invalid characters"
        raise ModelNotConfigured(provider, missing, hint="Copy the key from its provider again")
    return key


async def look_up_key(place: ModelEndpoint, environ: Mapping[str, str]) -> str | None:
    """`find_key` beside the event loop.

    A keyring that waits to be unlocked is given up after a minute.

    Raises:
        ModelNotConfigured: what was found cannot be a key.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[str | None] = loop.create_future()

    def settle(key: str | None, error: Exception | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(key)
        else:
            found.set_exception(error)

    def look() -> None:
        key, failed = None, None
        try:
            key = find_key(place, environ)
        except Exception as error:  # noqa: BLE001  # raised in the task that waits
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, key, failed)

    # Not a thread of the pool: the process would wait for its end.
    threading.Thread(target=look, name="cellwright-keyring", daemon=True).start()
    try:
        async with asyncio.timeout(KEYRING_TIMEOUT):
            return await found
    except TimeoutError:
        _log.warning("the keyring does not answer")
        return None


def store_key(provider: str, key: str, address: str = "") -> None:
    """Keep a key in the keyring.

    Raises:
        UnknownModel: there is no such provider.
        ModelNotConfigured: there is no keyring, or it does not take the key.
    """
    account = account_of(provider, address)
    keyring = _load_keyring(provider)
    try:
        keyring.set_password(SERVICE, account, key)
    except Exception as error:  # noqa: BLE001  # every backend has errors of its own
        raise _no_keyring(provider, error) from None


def forget_key(provider: str, address: str = "") -> bool:
    """Remove a key from the keyring; tells whether there was one.

    Raises:
        UnknownModel: there is no such provider.
        ModelNotConfigured: there is no keyring.
    """
    account = account_of(provider, address)
    keyring = _load_keyring(provider)
    try:
        if keyring.get_password(SERVICE, account) is None:
            return False
        keyring.delete_password(SERVICE, account)
    except Exception as error:  # noqa: BLE001  # every backend has errors of its own
        raise _no_keyring(provider, error) from None
    return True


def belongs_to_environment(place: ModelEndpoint, environ: Mapping[str, str]) -> bool:
    """Whether what the environment holds for a provider is meant for this address."""
    provider = PROVIDERS[place.provider]
    meant = (provider.url_variable and environ.get(provider.url_variable)) or provider.base_url
    there, here = urlsplit(meant), urlsplit(place.base_url)
    return (there.scheme, there.netloc) == (here.scheme, here.netloc)


def key_hint(place: ModelEndpoint, environ: Mapping[str, str]) -> str:
    """How a person can provide the key; where a variable has one, the keyring is not asked."""
    if read_key_variable(place, environ):
        return (
            f"Correct {PROVIDERS[place.provider].key_variable}, which has the key, and start again"
        )
    own = account_of(place.provider, place.base_url) == place.provider
    address = "" if own else f" --address {place.base_url}"
    command = f"cellwright key {place.provider}{address}"
    variable = PROVIDERS[place.provider].key_variable
    return f"Set {variable}, or run: {command}" if place.is_own and variable else f"Run: {command}"


def read_key_variable(place: ModelEndpoint, environ: Mapping[str, str]) -> str | None:
    """The key that the environment has for a model where it is asked."""
    variable = PROVIDERS[place.provider].key_variable
    if variable is None or not belongs_to_environment(place, environ):
        return None
    return environ.get(variable) or None


def _from_keyring(place: ModelEndpoint) -> str | None:
    if place.is_own and not place.needs_key:
        return None  # there it needs none; and a keyring may want to be unlocked
    try:
        import keyring
    except ImportError:
        return None
    account = account_of(place.provider, place.base_url)
    try:
        return keyring.get_password(SERVICE, account) or None
    except Exception as error:  # noqa: BLE001  # many machines have no keyring
        _log.debug("no keyring", extra={"reason": type(error).__name__})
        return None


def _load_keyring(provider: str) -> ModuleType:
    try:
        import keyring
    except ImportError as error:
        raise _no_keyring(provider, error) from None
    return keyring


def _no_keyring(provider: str, error: Exception) -> ModelNotConfigured:
    variable = PROVIDERS[provider].key_variable
    # Only the kind of the error: its text is the backend's, and could hold what was stored.
    missing = f"the keyring cannot be used ({type(error).__name__})"
    hint = f"Set {variable} instead" if variable else "Set up a keyring: pip install keyring"
    return ModelNotConfigured(provider, missing, hint=hint)
