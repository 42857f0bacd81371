"""The page about models names what there is."""

from __future__ import annotations

import re

from cellwright.assistant.models.language_model import Backoff, LanguageModel
from cellwright.assistant.models.providers import EXTRA, PROVIDERS, choose_model
from cellwright.config.settings import SPECS, Settings
from cellwright.errors import ModelError
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def test_every_provider_is_on_the_page_with_its_key_or_its_address() -> None:
    named = re.findall(r"CELLWRIGHT_ASSISTANT_MODEL=(\S+)", PAGE)
    assert {name.partition(":")[0] for name in named} == set(PROVIDERS)
    for name in named:
        model = choose_model(name, Settings(), {})
        assert isinstance(model, LanguageModel)
        provider = PROVIDERS[model.place.provider]
        assert f"{provider.key_variable}=" in PAGE or provider.base_url in PAGE


def test_every_setting_and_error_of_models_is_on_the_page() -> None:
    settings = [name for name in SPECS if name.startswith("assistant_")]
    assert len(settings) == 10
    pages = [PAGE, *((ROOT / "docs" / f"{name}.md").read_text() for name in ("assistant", "chat"))]
    for name in settings:
        assert any(f"`{name}`" in page or f"CELLWRIGHT_{name.upper()}" in page for page in pages)
    codes = [kind.code for kind in ModelError.__subclasses__()]
    assert [code for code in codes if f"`{code}`" not in PAGE] == []


def test_the_numbers_on_the_page_are_those_that_hold() -> None:
    settings, backoff = Settings(), Backoff()
    assert f"{settings.assistant_retries} times (`assistant_retries`)" in PAGE
    assert f"{settings.assistant_timeout:g} seconds (`assistant_timeout`)" in PAGE
    assert f"after {backoff.first} to {backoff.most:g} seconds" in PAGE
    assert backoff.patience == 60
    assert "up to a minute" in PAGE
    assert EXTRA in PAGE
