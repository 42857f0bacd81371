"""The page about the assistant shows a program that works, and names that are there."""

from __future__ import annotations

from cellwright.assistant.prompt_files import OURS
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "assistant.md").read_text(encoding="utf-8")


def test_every_prompt_file_is_on_the_page() -> None:
    assert [path.name for path in OURS.glob("*.md") if f"`{path.name}`" not in PAGE] == []
