"""The reference pages say what the commands and settings themselves say."""

from __future__ import annotations

import re

import pytest

from cellwright.cli.main import COMMANDS
from cellwright.config.settings import SPECS
from tests.unit.cli import reference


@pytest.mark.parametrize("page", reference.PAGES)
def test_every_reference_page_is_current(page: str) -> None:
    """If this fails: `.venv/bin/python -m tests.unit.cli.reference` writes them anew."""
    written = (reference.FOLDER / page).read_text(encoding="utf-8")
    assert written == reference.PAGES[page]()


def test_every_command_is_documented() -> None:
    page = (reference.FOLDER / "cli.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### cellwright (\S+)$", page, re.MULTILINE)
    assert headings == list(COMMANDS)


def test_every_setting_is_documented_with_its_default_and_meaning() -> None:
    page = (reference.FOLDER / "settings.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    found = {row[0].strip("`"): (row[1].replace(",", ""), row[4]) for row in rows}
    said = {True: "true", False: "false", "": "none", (): "none"}
    assert found == {
        name: (
            str(said.get(spec.default, spec.default)) if not spec.is_number else str(spec.default),
            spec.about,
        )
        for name, spec in SPECS.items()
    }
    assert all(len(meaning.split()) >= 3 for _, meaning in found.values())
