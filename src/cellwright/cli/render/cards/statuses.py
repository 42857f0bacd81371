"""How a call and its cells stand: a word and a sign for each; the colour only repeats them."""

from __future__ import annotations

from rich.style import Style

from cellwright.cli.render.layout import DIM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    CardStatus = Literal["pending", "running", "complete", "error", "refused"]

_OK = Style(color="green")
_BUSY = Style(color="cyan")
_BAD = Style(color="red", bold=True)
_SIGNS = {
    "pending": ("○", DIM),
    "running": ("●", _BUSY),
    "complete": ("✓", _OK),
    "error": ("✗", _BAD),
    "refused": ("✗", Style(color="yellow")),
    "not run": ("○", DIM),
}
# The house has one set of words for the status of a cell; people and cards know fewer.
_WORDS = {"ok": "complete", "timed_out": "timed out", "never": "pending"}
FAILED = frozenset({"error", "timed out", "cancelled", "died"})


def word_of(status: str) -> str:
    """What a status is called on a card."""
    return _WORDS.get(status, status)


def sign_of(word: str) -> tuple[str, Style]:
    """The sign of a word, and its style."""
    return _SIGNS.get(word, _SIGNS["error"])


def human_seconds(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 0.01:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "under 1 ms"
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
