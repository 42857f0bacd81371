"""Renders for tests of `show`, without a command line around them."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from rich.color import ColorSystem

from cellwright.cli.render.notebook import render_notebook
from cellwright.cli.render.screen import ScreenView, make_screen
from cellwright.document.notebook import Notebook
from tests.unit.cli import show_samples as make

if TYPE_CHECKING:
    from typing import Any

    from rich.console import RenderableType

# Colours and other looks of text: the only sequences that a view without pictures consists of.
SGR = re.compile(r"\x1b\[[0-9;]*m")
_GUTTER = re.compile(r"^((?:\x1b\[[0-9;]*m)*)  ")


def render(data: bytes, width: int = 80, name: str = "nb.ipynb", **options: Any) -> str:
    """A whole notebook, as `show` prints it; `colors=True` for a terminal of all colours."""
    view = ScreenView(width=width, **options)
    return _printed(list(render_notebook(Notebook(data), name, view)), width, colors=view.colors)


def draw(part: RenderableType, width: int = 80, *, colors: bool = False) -> str:
    """One part, as it is printed."""
    return _printed([part], width, colors=colors)


def _printed(parts: list[RenderableType], width: int, *, colors: bool) -> str:
    file = io.StringIO()
    screen = make_screen(file, width, colored=colors)
    if colors:
        screen._color_system = ColorSystem.TRUECOLOR
    for part in parts:
        screen.show(part)
    return file.getvalue()


def body(cell: Any, width: int = 80, **options: Any) -> list[str]:
    """The lines below the head of a notebook's only cell, without their gutter."""
    lines = render(make.notebook([cell]), width, **options).splitlines()[3:]
    return [_GUTTER.sub(r"\1", line) for line in lines]


def outputs(*shown: Any, width: int = 80, **options: Any) -> list[str]:
    """The lines of the outputs of a cell, each with its rule or the sign of a notice."""
    return body(make.code("", list(shown)), width, **options)
