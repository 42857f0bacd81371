"""Pillow and textual-image are an extra: what the command does where they are not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli import show_samples as make
from tests.unit.cli.show_rendering import SGR
from tests.unit.cli.terminal import sent_to_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

HINT = "pip install 'cellwright[images]'"
NAMED = "│ image/png, 160×80, 247 B"
SIZE = (40, 90, 0, 0)
BLOCK = """
import sys
sys.modules.update(dict.fromkeys({names!r}))  # whoever imports them gets an ImportError
from cellwright.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def without(names: tuple[str, ...], *words: str) -> list[str]:
    """The words that start the command where packages are missing."""
    return [sys.executable, "-c", BLOCK.format(names=names), *words]


def answer(names: tuple[str, ...], *words: str) -> str:
    done = subprocess.run(
        without(names, *words), capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def plots(folder: Path) -> str:
    picture = make.display({"image/png": make.CHART, "text/plain": "<Figure>"})
    cells = [make.code("plot()", [picture, make.stream("done\n"), picture])]
    (folder / "plots.ipynb").write_bytes(make.notebook(cells))
    return "plots.ipynb"


@pytest.mark.parametrize("terminal", ["xterm-256color", "xterm-kitty", "foot"])
def test_without_pillow_pictures_are_named_and_the_hint_comes_once(
    terminal: str, plots: str
) -> None:
    words = without(("PIL",), "show", plots, plots)
    sent = SGR.sub("", sent_to_a_terminal(words, SIZE, TERM=terminal))
    lines = [line.strip() for line in sent.splitlines()]
    assert lines.count(NAMED) == 4
    assert lines.count(f"│ to draw pictures: {HINT}") == 1
    assert lines.index(NAMED) + 1 == lines.index(f"│ to draw pictures: {HINT}")
    assert sent.count("pip install") == 1
    assert "\x1b" not in sent


@pytest.mark.parametrize("mode", ["kitty", "iterm", "sixel", "blocks"])
def test_without_pillow_a_way_that_is_asked_for_is_no_error(mode: str, plots: str) -> None:
    words = without(("PIL",), "show", plots, "--images", mode)
    assert SGR.sub("", sent_to_a_terminal(words, SIZE)).count(NAMED) == 2


def test_without_pillow_what_draws_no_pictures_needs_no_hint(plots: str) -> None:
    assert answer(("PIL",), "show", plots).count(NAMED) == 2
    assert HINT not in answer(("PIL",), "show", plots)
    told = json.loads(answer(("PIL",), "show", plots, "--json"))
    shown = [output["text"] for output in told["data"]["cells"][0]["outputs"]]
    assert shown == ["image/png, 160×80, 247 B", "done", "image/png, 160×80, 247 B"]
    quiet = sent_to_a_terminal(without(("PIL",), "show", plots, "--images", "none"), SIZE)
    assert HINT not in quiet


@pytest.mark.parametrize("terminal", ["xterm-kitty", "foot"])
def test_without_textual_image_pictures_are_half_blocks(terminal: str, plots: str) -> None:
    words = without(("textual_image",), "show", plots)
    sent = SGR.sub("", sent_to_a_terminal(words, SIZE, TERM=terminal))
    assert "▀" in sent
    assert "\x1b" not in sent
    assert sent.count(f"│ to draw pictures in full resolution: {HINT}") == 1
    blocks = sent_to_a_terminal(without(("textual_image",), "show", plots), SIZE)
    assert HINT not in blocks  # half-blocks are all that this terminal has


def test_iterm_needs_pillow_alone(plots: str) -> None:
    words = without(("textual_image",), "show", plots)
    sent = sent_to_a_terminal(words, SIZE, TERM_PROGRAM="iTerm.app")
    assert sent.count("\x1b]1337;File=inline=1;") == 2
    assert HINT not in sent


@pytest.mark.parametrize(
    ("names", "word"),
    [
        ((), "drawn and scaled (pillow "),
        (("PIL",), f"only named, because Pillow is missing; to draw and scale them: {HINT}"),
        (
            ("textual_image",),
            f"scaled, and drawn with half-blocks; for kitty and sixel graphics: {HINT}",
        ),
    ],
    ids=["both", "no pillow", "no textual-image"],
)
@pytest.mark.usefixtures("folder")
def test_the_doctor_tells_whether_pictures_can_be_drawn(names: tuple[str, ...], word: str) -> None:
    told = json.loads(answer(names, "doctor", "--json"))["data"]
    assert told["pictures"].startswith(word)
    assert told["problems"] == []
    assert f"pictures           {word}" in answer(names, "doctor")


def test_a_notebook_without_pictures_imports_neither(folder: Path) -> None:
    (folder / "plain.ipynb").write_bytes(make.notebook([make.code("1", [make.stream("1\n")])]))
    code = (
        "import sys; from cellwright.cli.main import main; main(['show', 'plain.ipynb',"
        "'--images', 'kitty']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    loaded = set(done.stderr.split())
    assert "cellwright.cli.render.images" in loaded
    assert not loaded & {"PIL", "textual_image"}
