"""`Card`: one tool call of a chat, from the moment that it is made until its result is shown."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from cellwright.cli.render.cards.answers import is_failure
from cellwright.cli.render.cards.cache import RenderCache, lay_out
from cellwright.cli.render.cards.headline import find_cells, headline
from cellwright.cli.render.cards.statuses import word_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rich.console import Console

    from cellwright.assistant.models.model.model import ToolCall
    from cellwright.cli.render.cards.cache import Drawn
    from cellwright.cli.render.cards.headline import Headline
    from cellwright.cli.render.cards.statuses import CardStatus
    from cellwright.cli.render.images import Graphic
    from cellwright.cli.render.limits import View
    from cellwright.document.notebook import Notebook
    from cellwright.tools.tool import ToolResult

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
        return headline(self.call, self.before, self.path, self.title)

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

    def end(self, answer: ToolResult, after: Notebook | None = None) -> None:
        """The tool has answered; `after` is the notebook as it is now."""
        self.answer, self.after = answer, after
        if answer.data.get("code") in _REFUSALS:
            self.status = "refused"
        else:
            self.status = "error" if is_failure(answer) else "complete"
        for handle, row in _rows(answer):
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

    def draw(self, console: Console, view: View, *, expanded: bool) -> list[Drawn | Graphic]:
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


def _rows(answer: ToolResult) -> list[tuple[str, Mapping[str, Any]]]:
    """The cells that an answer tells of, by what progress calls them: a handle, or their place."""
    ran = [(str(row["cell"]), row) for row in answer.data.get("executions") or ()]
    code = answer.data.get("cells") if "session" in answer.data else None
    return ran + [(str(place), {"index": place, **row}) for place, row in enumerate(code or ())]
