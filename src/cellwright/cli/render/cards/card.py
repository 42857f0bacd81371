"""`Card`: one tool call of a chat, from the moment that it is made until its result is shown."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from rich.segment import Segment
from rich.style import Style

from cellwright.cli.render.cards.headline import find_cells, make_headline
from cellwright.cli.render.cards.results import is_failure
from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import DIM, Gate, Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import Any, Literal

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from cellwright.assistant.models import ToolCall
    from cellwright.cli.render.cards.headline import Headline
    from cellwright.cli.render.images import Graphic
    from cellwright.cli.render.view import View
    from cellwright.document.notebook import Notebook
    from cellwright.tools.tool import Answer

    CardStatus = Literal["pending", "running", "complete", "error", "refused"]


_REFUSALS = frozenset({"DECLINED", "NOT_CONFIRMED", "MODE_FORBIDS", "TOOL_UNAVAILABLE"})
_TEXT_KEPT = 16_384
_RUNS = frozenset({"RunNotebookCells"})


@dataclass(slots=True)
class CellRow:
    """One cell of a run: how it stands, and the end of what it has said so far."""

    handle: str
    index: int | None
    status: str = "pending"
    seconds: float | None = None
    text: str = ""
    title: str = ""
    began: float | None = None


@dataclass(slots=True, kw_only=True)
class Card:
    """A tool call and what came of it.

    Args:
        number: which one it is in its chat; `/expand` takes it.
        call: the call.
        title: what its tool is called.
        path: the notebook that it is about, if any.
        before: that notebook as it was before the call.
        language: of its code.
    """

    number: int
    call: ToolCall
    title: str = ""
    path: str = ""
    before: Notebook | None = None
    language: str = "python"
    status: CardStatus = "pending"
    answer: Answer | None = None
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

    def begin(self) -> None:
        """It has been allowed, and is being carried out."""
        self.status, self._began = "running", time.monotonic()
        self._changed()

    def wait(self) -> None:
        """Somebody has to say yes first."""
        self.status = "pending"
        self._changed()

    def tick(self) -> None:
        """Tell for how long it has been going on."""
        seconds = time.monotonic() - self._began
        if self.seconds is None or int(self.seconds) != int(seconds):
            self.seconds = seconds
            self._changed()

    def progress(self, report: Mapping[str, Any]) -> None:
        """Something happened to one of its cells."""
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
        self._changed()

    def end(self, answer: Answer, after: Notebook | None = None) -> None:
        """The tool has answered; `after` is the notebook as it is now."""
        self.answer, self.after = answer, after
        if answer.data.get("code") in _REFUSALS:
            self.status = "refused"
        else:
            self.status = "error" if is_failure(answer) else "complete"
        for handle, row in _rows_of(answer):
            known = self.rows.setdefault(handle, CellRow(handle, row.get("index")))
            known.status, known.seconds = word_of(row["status"]), row.get("seconds")
            known.title = str(row.get("title", ""))
        for each in self.rows.values():
            if each.status in ("pending", "running"):
                each.status = "not run"
        took = [row.seconds for row in self.rows.values() if row.seconds is not None]
        self.seconds = sum(took) if took and self.status != "refused" else None
        self._changed()

    def stop(self) -> None:
        """The turn was ended before the tool has answered."""
        for row in self.rows.values():
            if row.status in ("pending", "running"):
                row.status = "cancelled" if row.status == "running" else "not run"
        self.status = "error"
        self._changed()

    def draw(
        self, console: Console, view: View, *, expanded: bool
    ) -> list[RenderedLines | Graphic]:
        """The card as lines, which are made once for each width and expansion."""
        from cellwright.cli.render.cards.results import card_parts

        key = (view.width, expanded, view.colors, view.images, view.screen_rows, self._version)
        wanted = replace(view, expanded=expanded)
        return self._cache.get(
            key, lambda: lay_out(console, card_parts(self, wanted), wanted.width)
        )

    @property
    def layouts(self) -> int:
        """How often it was laid out."""
        return self._cache.made

    def _changed(self) -> None:
        self._version += 1


def _rows_of(answer: Answer) -> list[tuple[str, Mapping[str, Any]]]:
    """The cells that an answer tells of, by what progress calls them: a handle, or their place."""
    ran = [(str(row["cell"]), row) for row in answer.data.get("executions") or ()]
    code = answer.data.get("cells") if "session" in answer.data else None
    return ran + [(str(place), {"index": place, **row}) for place, row in enumerate(code or ())]


_MOST = 8


class RenderedLines:
    """Lines that have been laid out and have passed the gate."""

    def __init__(self, lines: Sequence[list[Segment]]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give them out as they are."""
        for line in self.lines:
            yield from line
            yield Segment.line()


class RenderCache:
    """The last few layouts of one thing; `made` counts how often one had to be made."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, list[RenderedLines | Graphic]] = OrderedDict()
        self.made = 0

    def get(
        self, key: Hashable, make: Callable[[], list[RenderedLines | Graphic]]
    ) -> list[RenderedLines | Graphic]:
        """The layout for a key, made if it is not there."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        self.made += 1
        self._kept[key] = made = make()
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return made


def lay_out(
    console: Console, parts: Iterable[RenderableType], width: int
) -> list[RenderedLines | Graphic]:
    """Parts as lines of a width; pictures that the terminal draws itself stay as they are."""
    found: list[RenderedLines | Graphic] = []
    texts: list[RenderableType] = []

    def draw() -> None:
        if texts:
            options = console.options.update(width=width, height=None)
            lines = console.render_lines(Gate(Stack(list(texts), gap=0)), options, pad=False)
            found.append(RenderedLines(lines))
            texts.clear()

    for part in parts:
        if isinstance(part, Graphic):
            draw()
            found.append(part)
        else:
            texts.append(part)
    draw()
    return found


_OK_STYLE = Style(color="green")
_BUSY_STYLE = Style(color="cyan")
_BAD_STYLE = Style(color="red", bold=True)
_SIGNS = {
    "pending": ("○", DIM),
    "running": ("●", _BUSY_STYLE),
    "complete": ("✓", _OK_STYLE),
    "error": ("✗", _BAD_STYLE),
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


def format_seconds(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 0.01:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "under 1 ms"
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
