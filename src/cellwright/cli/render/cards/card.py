"""`Card`: one tool call of a chat, from the call until its result is shown."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from rich.segment import Segment
from rich.style import Style

from cellwright.cli.render.cards.frame import find_cells, make_headline
from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import DIM, Gate, Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import Any, Literal

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from cellwright.assistant.models.model import ToolCall
    from cellwright.cli.render.cards.frame import Headline
    from cellwright.cli.render.screen import ScreenView
    from cellwright.document.notebook import Notebook
    from cellwright.tools.tool import ToolResult

    CardStatus = Literal["pending", "running", "complete", "error", "refused"]

_REFUSALS = frozenset({"DECLINED", "NOT_CONFIRMED", "MODE_FORBIDS", "TOOL_UNAVAILABLE"})
_ERRORS = ("error:", "Error:")
_TEXT_KEPT = 16_384
_RUNS = frozenset({"RunNotebookCells"})
_MOST_LAYOUTS = 8

# -- the status of a call and of its cells: a word and a sign; the colour only repeats them ------

_BAD = Style(color="red", bold=True)
_SIGNS = {
    "pending": ("○", DIM),
    "running": ("●", Style(color="cyan")),
    "complete": ("✓", Style(color="green")),
    "error": ("✗", _BAD),
    "refused": ("✗", Style(color="yellow")),
    "not run": ("○", DIM),
}
# Cards have their own words for some statuses of a cell.
_WORDS = {"ok": "complete", "timed_out": "timed out", "never": "pending"}
FAILED = frozenset({"error", "timed out", "cancelled", "died"})


def word_of(status: str) -> str:
    """The word for a status on a card."""
    return _WORDS.get(status, status)


def sign_of(word: str) -> tuple[str, Style]:
    """The sign for a word, and its style."""
    return _SIGNS.get(word, _SIGNS["error"])


def format_seconds(seconds: float) -> str:
    """A duration in words."""
    if seconds < 0.01:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "under 1 ms"
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


# -- laid out once for each width and expansion --------------------------------------------------


class RenderedLines:
    """Lines that are laid out and have passed the gate."""

    def __init__(self, lines: Sequence[list[Segment]]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render them unchanged."""
        for line in self.lines:
            yield from line
            yield Segment.line()


class RenderCache:
    """The last few layouts of a card; `count` is how many were made."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, list[RenderedLines | Graphic]] = OrderedDict()
        self.count = 0

    def get(
        self, key: Hashable, make: Callable[[], list[RenderedLines | Graphic]]
    ) -> list[RenderedLines | Graphic]:
        """The layout for a key; made if it is missing."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        self.count += 1
        self._kept[key] = layout = make()
        while len(self._kept) > _MOST_LAYOUTS:
            self._kept.popitem(last=False)
        return layout


def lay_out(
    console: Console, parts: Iterable[RenderableType], width: int
) -> list[RenderedLines | Graphic]:
    """Lay out parts as lines; pictures that the terminal draws itself are left unchanged."""
    found: list[RenderedLines | Graphic] = []
    texts: list[RenderableType] = []

    def render_texts() -> None:
        if texts:
            options = console.options.update(width=width, height=None)
            lines = console.render_lines(Gate(Stack(list(texts), gap=0)), options, pad=False)
            found.append(RenderedLines(lines))
            texts.clear()

    for part in parts:
        if isinstance(part, Graphic):
            render_texts()
            found.append(part)
        else:
            texts.append(part)
    render_texts()
    return found


# -- the card ------------------------------------------------------------------------------------


@dataclass(slots=True)
class CellRow:
    """One cell of a run: its status, and the end of the text that it has printed so far."""

    handle: str
    index: int | None
    status: str = "pending"
    seconds: float | None = None
    text: str = ""
    title: str = ""
    began: float | None = None


@dataclass(slots=True, kw_only=True)
class Card:
    """A tool call and its result.

    Args:
        number: the number of the card in its chat; `/expand` takes it.
        call: the call.
        title: the title of the tool.
        path: the notebook of the call, if it has one.
        before: that notebook before the call.
        language: the language of its code.
    """

    number: int
    call: ToolCall
    title: str = ""
    path: str = ""
    before: Notebook | None = None
    language: str = "python"
    status: CardStatus = "pending"
    answer: ToolResult | None = None
    after: Notebook | None = None
    rows: dict[str, CellRow] = field(default_factory=dict)
    seconds: float | None = None
    _began: float = field(default_factory=time.monotonic)
    _version: int = 0
    _cache: RenderCache = field(default_factory=RenderCache)

    def __post_init__(self) -> None:
        if self.call.name in _RUNS:
            for cell in find_cells(self.call.arguments.get("cellIds"), self.before):
                if cell.type == "code":
                    self.rows[cell.handle] = CellRow(cell.handle, cell.index)

    @property
    def headline(self) -> Headline:
        """The call in words."""
        return make_headline(self.call, self.before, self.path, self.title)

    @property
    def layouts(self) -> int:
        """How many times it was laid out."""
        return self._cache.count

    def begin(self) -> None:
        """Mark the call as running."""
        self.status, self._began = "running", time.monotonic()
        self._version += 1

    def wait(self) -> None:
        """Mark the call as waiting for the person."""
        self.status = "pending"
        self._version += 1

    def tick(self) -> None:
        """Update how long the call has been running."""
        seconds = time.monotonic() - self._began
        if self.seconds is None or int(self.seconds) != int(seconds):
            self.seconds = seconds
            self._version += 1

    def progress(self, report: Mapping[str, Any]) -> None:
        """Update a cell of the call from a report of the run."""
        if "cell" not in report:
            return
        handle = str(report.get("handle", report["cell"]))
        row = self.rows.get(handle)
        if row is None:
            index = report["cell"] if isinstance(report["cell"], int) else None
            row = self.rows[handle] = CellRow(handle, index)
        if "status" in report:
            row.status = word_of(str(report["status"]))
            now = time.monotonic()
            if row.status == "running":
                row.began = now
            elif row.began is not None:
                row.seconds = now - row.began
        if "text" in report:
            row.text = (row.text + str(report["text"]))[-_TEXT_KEPT:]
        self.status = "running"
        self._version += 1

    def end(self, answer: ToolResult, after: Notebook | None = None) -> None:
        """Take the answer of the tool; `after` is the notebook after the call."""
        self.answer, self.after = answer, after
        if answer.data.get("code") in _REFUSALS:
            self.status = "refused"
        else:
            # Some profiles answer with an error in words, without the flag.
            failed = answer.is_error or answer.text.startswith(_ERRORS)
            self.status = "error" if failed else "complete"
        for handle, row in _rows_of(answer):
            known = self.rows.setdefault(handle, CellRow(handle, row.get("index")))
            known.status, known.seconds = word_of(row["status"]), row.get("seconds")
            known.title = str(row.get("title", ""))
        for each in self.rows.values():
            if each.status in ("pending", "running"):
                each.status = "not run"
        times = [row.seconds for row in self.rows.values() if row.seconds is not None]
        self.seconds = sum(times) if times and self.status != "refused" else None
        self._version += 1

    def stop(self) -> None:
        """Mark the call as stopped: the turn ended before the tool answered."""
        for row in self.rows.values():
            if row.status in ("pending", "running"):
                row.status = "cancelled" if row.status == "running" else "not run"
        self.status = "error"
        self._version += 1

    def draw(
        self, console: Console, view: ScreenView, *, expanded: bool
    ) -> list[RenderedLines | Graphic]:
        """Lay out the card, once for each width and expansion."""
        from cellwright.cli.render.cards.results import card_parts

        key = (view.width, expanded, view.colors, view.images, view.screen_rows, self._version)
        wanted = replace(view, expanded=expanded)
        return self._cache.get(
            key, lambda: lay_out(console, card_parts(self, wanted), wanted.width)
        )


def _rows_of(answer: ToolResult) -> list[tuple[str, Mapping[str, Any]]]:
    """The cells of an answer, each with its key in reports of progress: a handle, or a number."""
    ran = [(str(row["cell"]), row) for row in answer.data.get("executions") or ()]
    code = answer.data.get("cells") if "session" in answer.data else None
    return ran + [(str(place), {"index": place, **row}) for place, row in enumerate(code or ())]
