"""Cells while they run: what they print, their status, live seconds and a bar over all of them.

In a pipe everything that cells print arrives, at the reader's pace. On a terminal the last rows are
ours: the line that a cell has not ended yet, so that its progress bar is drawn in one place, and the
cell that runs. Lines above them are never changed.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import click

from cellwright.cli.output import (
    STATUS_SIGNS,
    fit,
    is_terminal,
    one_line,
    talk,
    uses_colors,
    write_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, Self

    from cellwright.cli.output import CommandOutput

_EVERY = 0.1
_BAR = 12
_LONGEST_LINE = 2**16
_LONGEST_NAME = 20


class LiveCells:
    """Shows cells while they run; `progress` of a verb that runs cells.

    Used as a context manager, it also shows the seconds of the running cell; `ask` is wrapped so
    that a question of `input()` has the terminal for itself.

    Args:
        output: how the command prints.
        shows_text: whether what cells print and show is printed.
        shows_cells: whether the cells themselves are shown on a terminal.
    """

    def __init__(
        self, output: CommandOutput, *, shows_text: bool = True, shows_cells: bool = True
    ) -> None:
        self.output = output
        self.wants_all = not is_terminal(sys.stdout)
        self._shows_text = shows_text and not output.as_json
        self._shows_cells = (
            shows_cells and is_terminal(sys.stderr) and not (output.as_json or output.quiet)
        )
        self._cells: dict[Any, _LiveCell] = {}
        self._running: _LiveCell | None = None
        self._waits_since = 0.0
        self._is_asking = False
        self._area = LiveArea(shows_text=self._shows_text) if not self._is_plain() else None
        self._write_text = None if self._area and not self.wants_all else make_text_writer()
        self._guard = threading.RLock()
        self._ticker = Ticker(self.tick)

    def _is_plain(self) -> bool:
        return os.environ.get("TERM") == "dumb" or not (self._shows_cells or self._draws_text())

    def _draws_text(self) -> bool:
        return self._shows_text and not self.wants_all

    def __enter__(self) -> Self:
        """Begin to show the seconds of the running cell."""
        if self._area is not None and self._shows_cells:
            self._ticker.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave the terminal to others; a line without an end gets one."""
        self._ticker.close()
        with self._guard:
            if self._area is not None:
                self._area.close()

    def tick(self) -> None:
        """Show how long the running cell has been running."""
        with self._guard:
            if self._area is not None and not self._is_asking:
                self._area.draw(self._status_row())

    def wrap(self, ask: Callable[[Any], Awaitable[str | None]]) -> Callable[[Any], Any]:
        """Make an `ask` that clears our rows before it asks."""

        async def clear_and_ask(request: Any) -> str | None:
            with self._guard:
                self._is_asking = True
                if self._area is not None:
                    self._area.close()
            try:
                return await ask(request)
            finally:
                self._is_asking = False

        return clear_and_ask

    def __call__(self, report: dict[str, Any]) -> None:
        """Show one report of a run."""
        with self._guard:
            if "missed" in report:
                self._count_missed(report)
            elif "text" in report:
                self._show_text(report)
            elif "status" in report:
                self._note_status(report)
            elif "run" in report:
                self._waits_since = time.time()

    # -- what cells print ---------------------------------------------------------------------

    def _show_text(self, report: dict[str, Any]) -> None:
        if not self._shows_text:
            return
        if self._write_text is not None:
            self._write_text(report["text"])
            return
        assert self._area is not None  # noqa: S101  # or there were a writer
        cell = self._cells.get(report.get("handle", report.get("cell")))
        if self._shows_cells and cell is not None and cell.handle and not cell.has_head:
            cell.has_head = True
            self._area.add(click.style(f"── {cell.name()}", bold=True), self._status_row())
        if "output" in report:
            self._area.close()
            show_display(report["output"])
            self._area.draw(self._status_row())
        else:
            self._area.feed(report["text"], self._status_row(), is_error="stream" in report)

    def _count_missed(self, report: dict[str, Any]) -> None:
        size = report.get("missed_bytes")
        what = f"{report['missed']:,} events" if size is None else f"{size:,} bytes of output"
        if self._area is not None:
            self._area.close()
        self.output.warn([f"{what} were skipped here; nothing of the outputs is lost"])

    # -- how cells are ------------------------------------------------------------------------

    def _note_status(self, report: dict[str, Any]) -> None:
        key = report.get("handle", report["cell"])
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = _LiveCell(report["cell"], report.get("handle"))
        cell.title = report.get("title") or cell.title
        cell.status = report["status"]
        if cell.status == "running":
            cell.began = report.get("began", time.time())
            self._running = cell
        elif self._running is cell:
            self._running = None
        if cell.status not in ("pending", "running"):
            cell.seconds = report.get("seconds")
        if self._shows_cells:
            self.show_status(report)

    def show_status(self, report: dict[str, Any]) -> None:
        """Show that a cell began or ended."""
        cell = self._cells[report.get("handle", report["cell"])]
        if cell.status == "running" and self._area is not None:
            self._area.draw(self._status_row())
        elif cell.status not in ("pending", "running"):
            self.say(cell.describe(), STATUS_SIGNS[cell.status][1])

    def say(self, text: str, color: str | None) -> None:
        """Print a line that stays, above our rows."""
        if self._area is None:
            self.output.say(text, color=color)
        else:
            self._area.add(click.style(text, fg=color), self._status_row())

    def _status_row(self) -> str:
        """The running cell, its seconds, and a bar over all cells."""
        cell = self._running
        if not self._shows_cells or (cell is not None and cell.handle is None):
            return ""
        if cell is None:
            is_waiting = self._waits_since and not self._cells
            seconds = time.time() - self._waits_since
            return f"○ {seconds:.1f} s  waiting for the kernel" if is_waiting else ""
        done = sum(each.status not in ("pending", "running") for each in self._cells.values())
        total = len(self._cells)
        filled = _BAR * done // total
        bar = f"{'━' * filled}{'─' * (_BAR - filled)} {done}/{total}"
        seconds = max(0.0, time.time() - cell.began)
        return f"● {bar}  {seconds:.1f} s  {cell.name()}"


class Ticker:
    """Calls a function now and then, in a thread of its own, between `start` and `close`."""

    def __init__(self, tick: Callable[[], object]) -> None:
        self._tick = tick
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to call it."""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Call it no more, and wait for a call that is under way."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(_EVERY):
            self._tick()


class _LiveCell:
    """What is known of one cell of a run."""

    def __init__(self, index: int, handle: str | None) -> None:
        self.index = index
        self.handle = handle
        self.title = ""
        self.status = "pending"
        self.began = 0.0
        self.seconds: float | None = None
        self.has_head = False

    def name(self) -> str:
        """Its index, its id and its first line."""
        handle = "" if self.handle is None else one_line(self.handle[:_LONGEST_NAME])
        return "  ".join(part for part in (str(self.index), handle, one_line(self.title)) if part)

    def describe(self) -> str:
        """How it ended, after how many seconds."""
        word = "" if self.status == "ok" else f" {self.status.replace('_', ' ')}"
        seconds = "" if self.seconds is None else f"  {self.seconds:.1f} s"
        return f"{STATUS_SIGNS[self.status][0]}{word}{seconds}  {self.name()}"


class LiveArea:
    """The last rows of a terminal: a line that has not ended, and rows about what runs."""

    def __init__(self, *, shows_text: bool = False) -> None:
        # All in one place, or the rows would be drawn over each other's text.
        self._stream = sys.stdout if shows_text and is_terminal(sys.stdout) else sys.stderr
        self._colored = uses_colors(self._stream)
        self._line = ""
        self._is_error = False
        self._shown = ""
        self._colors: dict[str, Any] = {}

    def draw(self, row: str, above: str = "") -> None:
        """Draw our rows anew, below the lines `above`, which stay."""
        rows = []
        width = self._measure()
        if self._line:
            rows.append(self._render(self._line, width, keeps_colors=False))
        for line in row.split("\n") if row else ():
            shown = fit(line, width)
            rows.append(click.style(shown, fg="cyan") if self._colored else shown)
        shown = "\n".join(rows)
        if self._shown and "\n" not in self._shown and (above + shown).startswith(self._shown):
            self._write((above + shown)[len(self._shown) :])  # a line that has only grown
        elif above + shown != self._shown:
            self._write(self._erase() + above + shown)
        self._shown = shown

    def add(self, line: str, row: str) -> None:
        """Print a line that stays."""
        text = self._end_line() + (line if self._colored else click.unstyle(line)) + "\n"
        self.draw(row, _crop_colored(text, self._measure()) if line else text)

    def feed(self, text: str, row: str, *, is_error: bool = False) -> None:
        """Print what a cell prints; only its last line is still ours."""
        above = self._end_line() if is_error != self._is_error else ""
        self._is_error = is_error
        *whole, self._line = (self._line + text).split("\n")
        above += "".join(self._render(line) + "\n" for line in whole)
        if "\r" in self._line:  # what is overwritten is not needed again
            end = len(self._line.rstrip("\r"))
            self._line = self._line[:end].rpartition("\r")[2] + self._line[end:][:1]
        if len(self._line) > _LONGEST_LINE:
            above += self._end_line()
        self.draw(row, above)

    def close(self) -> None:
        """Remove our rows; a line that has not ended is ended."""
        self.draw("", self._end_line())

    def _end_line(self) -> str:
        line, self._line = self._line, ""
        return self._render(line) + "\n" if line else ""

    def _render(self, line: str, width: int = 0, *, keeps_colors: bool = True) -> str:
        """A printed line in its last state and in its colours, harmless; cropped to a width."""
        if "\x1b" not in line and "\r" not in line and "\b" not in line and not self._colors:
            from cellwright.outputs.sanitize import make_visible

            shown = make_visible(line)
            shown = fit(shown, width) if width else shown
            return click.style(shown, fg="yellow") if self._is_error and self._colored else shown
        from cellwright.cli.render.colors import style_printed

        colors = self._colors if keeps_colors else dict(self._colors)
        return style_printed(line, colors, width or None, colored=self._colored)

    def _erase(self) -> str:
        if not self._shown:
            return ""
        more = self._shown.count("\n")
        return "\r" + (f"\x1b[{more}A" if more else "") + "\x1b[J"

    def _measure(self) -> int:
        try:
            return max(20, os.get_terminal_size(self._stream.fileno()).columns - 1)
        except (OSError, ValueError):
            return 79

    def _write(self, text: str) -> None:
        if self._stream is sys.stdout:
            write_bytes(text.encode("utf-8", "backslashreplace"))
        else:
            talk(text, nl=False)


def _crop_colored(line: str, width: int) -> str:
    """A line in one colour that must fit on one row; what is above it may be longer."""
    *above, last = line.removesuffix("\n").split("\n")
    plain = click.unstyle(last)
    shown = fit(plain, width)
    return "".join(f"{each}\n" for each in above) + last.replace(plain, shown, 1) + "\n"


def show_display(output: dict[str, Any]) -> None:
    """Draw a display on the terminal of stdout, as `show` does."""
    from cellwright.cli.render.notebook import CellRenderer
    from cellwright.cli.render.screen import open_screen
    from cellwright.document.outputs import parse_output

    with open_screen(width=None, expanded=False, outputs=True, images="auto", pager=False) as (
        screen,
        view,
    ):
        for part in CellRenderer(view, "text", 0).output_parts(parse_output(output)):
            screen.show(part)


def make_text_writer() -> Callable[[str], None]:
    """Make a function that writes the text of running cells to stdout, piece by piece.

    It removes control sequences, also in a pipe: a terminal or a model may be at its other end.
    """
    from cellwright.outputs.sanitize import Sanitizer

    sanitizer = Sanitizer()
    return lambda text: write_bytes(sanitizer.feed(text).encode("utf-8", "backslashreplace"))
