"""`docs/security.md` says what the tests do: its numbers, its tests and its settings are real."""

from __future__ import annotations

import re
from collections import Counter

from cellwright.config.settings import SPECS
from tests.browser.test_chat_hostile import TEXTS
from tests.browser.test_chat_route import MESSAGES
from tests.conftest import ROOT
from tests.integration.assistant.test_acp import HOSTILE
from tests.integration.hostile import doors
from tests.integration.hostile.repository import KINDS
from tests.integration.hostile.test_forgery import PLACES

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
_LINKS = ("fifo", "folder", "socket")


def test_the_counts_of_the_attacks_are_those_of_the_tests() -> None:
    planted = Counter("special" if name in _LINKS else name.split()[0] for name in KINDS)
    rows = re.findall(r"^\| (\w+): .* \| (\d+) \|", PAGE, re.MULTILINE)
    assert {name: int(count) for name, count in rows} == planted
    assert f"plant {len(KINDS)} kinds" in PAGE
    assert f"each of {len(PLACES)} strings" in PAGE
    assert f"| {len(TEXTS)} hostile texts" in PAGE
    assert f"| {len(MESSAGES)} messages that no page sends" in PAGE
    assert f"| {len(HOSTILE)} lines that no editor sends" in PAGE
    commands, calls = list(doors.reading_commands("x")), list(doors.reading_calls("x"))
    assert f"through {len(commands)} commands and {len(calls)} calls of tools" in PAGE


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)
    assert len(named) >= 26
    for file, test in named:
        assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE), test


def test_every_setting_that_is_named_exists_and_is_not_for_projects() -> None:
    for name in ("pass_variables", "kernel", "assistant_prompts", "assistant_base_url"):
        assert not SPECS[name].project_may_set
    assert "`pass_variables`" in PAGE


def test_everything_that_is_kept_in_the_state_folder_is_listed() -> None:
    kept = re.compile(r"state_(?:directory|folder)\(\)(?: /|,) f?\"([\w.-]+)")
    code = "".join(path.read_text() for path in (ROOT / "src" / "cellwright").rglob("*.py"))
    names = {*kept.findall(code)} - {"engine-", "runtime-folder"}  # locks and links, said as such
    assert names >= {"assistant", "artifacts", "batches", "engine.log", "mcp-token-"}
    assert [name for name in sorted(names) if f"`{name}" not in PAGE] == []
    assert "`journal.sqlite3`" in PAGE
