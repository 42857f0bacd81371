"""`choose_model`: the model that a person has named, or the built-in one."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cellwright.assistant.direct.model import DirectModel
from cellwright.assistant.providers.names import DIRECT, find_place, without_library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.assistant.models import Model
    from cellwright.config.settings import Settings


def choose_model(
    name: str | None, settings: Settings, environ: Mapping[str, str] | None = None
) -> Model:
    """The model to ask.

    Nothing is asked or imported yet: whether the key is good, only a call can tell. A
    `LanguageModel` can `prepare()`, to find out early whether it has one.

    Args:
        name: as `provider:name`, or `direct`; None for what the settings say, which is `direct`
            unless they were changed.
        settings: `assistant_model`, `assistant_base_url` and the other settings of the assistant.
        environ: where keys and addresses of providers are looked for; this process's by default.

    Raises:
        UnknownModel: there is no such provider.
        InvalidSetting: the address of its server is none.
        ModelNotConfigured: the library for language models is not installed.
    """
    wanted = name or settings.assistant_model or DIRECT
    if wanted == DIRECT:
        return DirectModel()
    environ = os.environ if environ is None else environ
    place = find_place(wanted, settings, environ)
    if find_spec("pydantic_ai") is None:
        raise without_library(wanted)
    from cellwright.assistant.providers.language_model import LanguageModel

    return LanguageModel(place, settings, environ)
