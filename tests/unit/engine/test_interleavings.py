"""A person, an agent and another program change one notebook in random order: nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright.engine import editors
from tests.unit.engine.interleavings import ScriptedStory

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.all) for seed in range(4, 150))]


@pytest.mark.parametrize("pages", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_interleavings_lose_nothing_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, pages: int
) -> None:
    monkeypatch.setattr(editors, "_LOOK_EVERY", 1000.0)  # it looks when the story says so
    story = ScriptedStory(tmp_path, seed, pages)
    try:
        story.play(40)
        story.finish()
    finally:
        for page in list(story.pages):
            story.close(page)
        story.workspace.close()
        story.hub.close()
