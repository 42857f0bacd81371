"""The providers of models, what `provider:name` means, and `choose_model`."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from cellwright.errors import InvalidSetting, ModelNotConfigured, UnknownModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.assistant.models.model import Model
    from cellwright.config.settings import Settings


Dialect: TypeAlias = Literal["anthropic", "openai"]

DIRECT = "direct"
"""The name of the model that is built in."""

EXTRA = "pip install 'cellwright[assistant]'"
"""What brings the libraries of the providers."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider of models.

    Args:
        dialect: the API that it speaks.
        base_url: its own address.
        key_variable: the variable of its key; None if it needs no key.
        url_variable: the variable that moves it, and its key with it, to another address.
        begins: how the names of its models begin, to guess what was meant.
    """

    dialect: Dialect
    base_url: str
    key_variable: str | None = None
    url_variable: str | None = None
    begins: tuple[str, ...] = ()


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        dialect="anthropic",
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        begins=("claude",),
    ),
    "openai": Provider(
        dialect="openai",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        url_variable="OPENAI_BASE_URL",
        begins=("gpt-", "chatgpt", "o1", "o3", "o4"),
    ),
    "ollama": Provider(dialect="openai", base_url="http://localhost:11434/v1"),
    "lmstudio": Provider(dialect="openai", base_url="http://localhost:1234/v1"),
    "vllm": Provider(dialect="openai", base_url="http://localhost:8000/v1"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """A model, and the address where it is asked.

    `is_own` says whether that is the provider's own address, where its key and its prices hold.
    """

    name: str
    model: str
    provider: str
    dialect: Dialect
    base_url: str
    is_own: bool

    @property
    def needs_key(self) -> bool:
        """Whether it cannot be asked without a key."""
        return self.is_own and PROVIDERS[self.provider].key_variable is not None

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        return urlsplit(self.base_url).hostname in _LOOPBACK

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is encrypted."""
        return self.base_url.startswith("https:")

    @property
    def origin(self) -> str:
        """Its host and port, which a key is good for."""
        return urlsplit(self.base_url).netloc


def find_endpoint(name: str, settings: Settings, environ: Mapping[str, str]) -> ModelEndpoint:
    """The endpoint of a name such as `anthropic:claude-sonnet-5-5`.

    Raises:
        UnknownModel: there is no such provider, or the name has none.
        InvalidSetting: the address is not valid.
    """
    prefix, colon, model = name.partition(":")
    provider = PROVIDERS.get(prefix)
    if not colon or provider is None or not model:
        raise UnknownModel(
            name, _explain_unknown(prefix, colon, model), suggestion=_suggest_name(name)
        )
    base_url, place = "", ""
    # The address is that of the model in the settings; another provider's is not there.
    if settings.assistant_model.partition(":")[0] in ("", prefix):
        base_url = settings.assistant_base_url
        place = settings.origin("assistant_base_url").place
    if not base_url and provider.url_variable and environ.get(provider.url_variable):
        base_url, place = environ[provider.url_variable], provider.url_variable
    if base_url:
        _check_address(base_url, place)
    return ModelEndpoint(
        name=name,
        model=model,
        provider=prefix,
        dialect=provider.dialect,
        base_url=(base_url or provider.base_url).rstrip("/"),
        is_own=not base_url or base_url.rstrip("/") == provider.base_url,
    )


def missing_library(name: str) -> ModelNotConfigured:
    """The error if the libraries of the providers are not installed."""
    missing = "the library for language models is not installed"
    return ModelNotConfigured(name, missing, hint=EXTRA)


def _check_address(base_url: str, place: str) -> None:
    try:
        parts = urlsplit(base_url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    else:
        # A password in an address would end up where addresses are shown.
        fits = fits and parts.username is None and not parts.query and not parts.fragment
    if not fits:
        expected = "an address such as http://localhost:11434/v1, without a name or a password"
        raise InvalidSetting("assistant_base_url", "no such address", place, expected)


def _explain_unknown(prefix: str, colon: str, model: str) -> str:
    if colon and prefix in PROVIDERS and not model:
        return "the name of the model is missing"
    return f"no provider is called `{prefix}`" if colon else "the provider is missing"


def _suggest_name(name: str) -> str | None:
    """The name that was probably meant."""
    prefix, colon, model = name.partition(":")
    if not colon:
        for provider, facts in PROVIDERS.items():
            if name.lower().startswith(facts.begins or ("\0",)):
                return f"{provider}:{name}"
        near = difflib.get_close_matches(name.lower(), [DIRECT, *PROVIDERS], n=1)
        return None if not near else near[0] if near[0] == DIRECT else f"{near[0]}:NAME"
    near = difflib.get_close_matches(prefix.lower(), list(PROVIDERS), n=1)
    return f"{near[0]}:{model}" if near and model else None


def choose_model(
    name: str | None,
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    *,
    repeats_outputs: bool = True,
) -> Model:
    """The model that a name means.

    Nothing is called or loaded yet: only a call can tell whether the key is valid. A
    `LanguageModel` can `prepare()`, to find out early whether it has one.

    Args:
        name: as `provider:name`, or `direct`; None for what the settings say, which is `direct`
            unless they were changed.
        settings: `assistant_model`, `assistant_base_url` and the other settings of the assistant.
        environ: where keys and addresses of providers are looked for; this process's by default.
        repeats_outputs: of the built-in model: whether it repeats the outputs of cells that ran.

    Raises:
        UnknownModel: there is no such provider.
        InvalidSetting: the address of its server is not valid.
        ModelNotConfigured: the library for language models is not installed.
    """
    wanted = name or settings.assistant_model or DIRECT
    if wanted == DIRECT:
        from cellwright.assistant.models.direct import DirectModel

        return DirectModel(repeats_outputs=repeats_outputs)
    environ = os.environ if environ is None else environ
    place = find_endpoint(wanted, settings, environ)
    if find_spec("pydantic_ai") is None:
        raise missing_library(wanted)
    from cellwright.assistant.models.language_model import LanguageModel

    return LanguageModel(place, settings, environ)
