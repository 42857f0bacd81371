"""What every command answers with `--json`: the whole object, compared with a golden file.

The field names are part of the public interface. See golden.py for how to write the files anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.cli.main import COMMANDS
from tests.unit.cli import golden
from tests.unit.cli.stories import PROCESS_STORIES, STORIES, check_story, files, words_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["files"]  # a fixture


@pytest.mark.parametrize("name", STORIES)
def test_every_answer_in_json_is_as_it_is_written_down(
    name: str, files: Path, places: Path
) -> None:
    check_story(name, files, places)


def test_every_command_has_a_golden_file() -> None:
    """Except those whose answer is no object, many lines or a long table, or differs by machine."""
    stories = STORIES | PROCESS_STORIES
    shown = {words_of(step)[0] for story in stories.values() for step in story if step != "-"}
    assert set(COMMANDS) - shown == {
        "acp",
        "batch",
        "demo",
        "show",
        "doctor",
        "completion",
        "lab",
        "mcp",
        "conformance",
        "chat",
        "key",
    }


def test_every_golden_file_is_used() -> None:
    assert {path.stem for path in golden.FOLDER.iterdir()} == set(STORIES | PROCESS_STORIES)
