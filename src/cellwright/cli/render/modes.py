"""Which way to draw pictures: what was asked for, what the terminal can, what is installed."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.cli.render.limits import ImageMode


def choose_mode(
    asked: str, environ: Mapping[str, str], *, is_terminal: bool, colors: bool
) -> ImageMode:
    """How to draw pictures: as asked, or by what the environment tells about the terminal.

    Without colours there are none; `auto` takes a protocol only on a terminal that is known to
    have it, and not inside tmux or screen, which swallow it.
    """
    if not colors or asked == "none":
        return "none"
    if asked != "auto":
        return asked  # type: ignore[return-value]  # the choices of the option
    terminal = environ.get("TERM", "")
    program = environ.get("TERM_PROGRAM", "")
    if not is_terminal or environ.get("TMUX") or terminal.startswith(("screen", "tmux")):
        return "blocks"
    if environ.get("KITTY_WINDOW_ID") or "kitty" in terminal or "ghostty" in (program + terminal):
        return "kitty"
    if program == "iTerm.app" or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    if program == "WezTerm" or any(name.startswith("WEZTERM_") for name in environ):
        return "iterm"
    return "sixel" if re.match("foot|mlterm|yaft", terminal) else "blocks"


def possible(mode: ImageMode) -> ImageMode:
    """The same way, or the next best one for want of a library.

    Imports what draws, and so is asked only when there is a picture.
    """
    from cellwright.outputs.images import has_pillow

    if mode == "none" or not has_pillow():
        return "none"
    if mode in {"kitty", "sixel"}:
        from cellwright.cli.render.protocols import has_library

        return mode if has_library() else "blocks"
    return mode


def want_of(mode: ImageMode) -> str:
    """What would draw pictures, or draw them better; for a mode that is not possible."""
    from cellwright.outputs.images import EXTRA

    better = "" if possible(mode) == "none" else " as sharp as this terminal can"
    return f"to draw pictures{better}: {EXTRA}"
