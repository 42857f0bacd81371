"""docs/tools.md says what the tools are."""

from __future__ import annotations

import re

import pytest

from cellwright.outputs.describe import CHARACTERS_PER_TOKEN
from cellwright.tools.page import IMAGES, SLACK
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import allowed_effects
from tests.unit.tools.reference import PAGE, page

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_reference_is_that_of_the_tools() -> None:
    """To make it anew: `python tests/unit/tools/reference.py`, from the root of the project."""
    assert page(TEXT) == TEXT


def test_every_profile_and_every_tool_is_on_the_page() -> None:
    for profile, tools in PROFILES.items():
        assert f"| `{profile}` |" in TEXT
        for tool in tools:
            assert f"**`{tool.name}`**" in TEXT


def test_what_the_examples_of_all_pages_import_is_there() -> None:
    pages = [*PAGE.parent.glob("*.md"), PAGE.parents[1] / "README.md"]
    pattern = re.compile(r"^from cellwright.* import .+$", re.MULTILINE)
    lines = [line for page in pages for line in pattern.findall(page.read_text(encoding="utf-8"))]
    assert len(lines) > 5
    for line in lines:
        exec(line, {})  # noqa: S102


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"and {SLACK // CHARACTERS_PER_TOKEN:,} more" in " ".join(TEXT.split())
    assert IMAGES == 4
    assert "four at most" in TEXT


@pytest.mark.parametrize("effect", ["read", "edit", "run"])
def test_the_table_of_modes_is_that_of_the_code(effect: str) -> None:
    found = re.search(rf"^\| {effect}s \| (\w+) \| (\w+).* \| (\w+) \|$", TEXT, re.MULTILINE)
    assert found
    for mode, word in zip(("ask", "edit", "agent"), found.groups(), strict=True):
        assert (word == "yes") == (effect in allowed_effects(mode))  # type: ignore[arg-type]
