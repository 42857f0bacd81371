"""Cells while they run: on a terminal of glass, and in a pipe."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.cli import live as live_module
from cellwright.cli.commands import batch as batch_module
from cellwright.cli.commands.batch import LiveJobs
from cellwright.cli.live import LiveCells
from cellwright.cli.output import CommandOutput
from tests.unit.cli.glass import Glass

if TYPE_CHECKING:
    from collections.abc import Callable

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP8z8DAwMDAxMDAwMDAAAANHQEDasKb6QAA"
    "AABJRU5ErkJggg=="
)


class Sent(io.BytesIO):
    """Bytes that are shown on glass."""

    def __init__(self, glass: Glass) -> None:
        super().__init__()
        self.glass = glass

    def write(self, data: Any) -> int:
        self.glass.write(bytes(data).decode())
        return len(data)


class Terminal(io.TextIOWrapper):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time, which passes when a test says so."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(live_module, "time", SimpleNamespace(time=lambda: now.seconds))
    return now


@pytest.fixture
def glass(monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> Glass:
    """A terminal, 80 columns wide."""
    del clock
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return Glass(80, 40)


@pytest.fixture
def on_glass(glass: Glass, monkeypatch: pytest.MonkeyPatch) -> Callable[[], LiveCells]:
    """Makes the live cells of a command on that terminal; pytest takes stdout before a test."""

    def make() -> LiveCells:
        terminal = Terminal(Sent(glass), "utf-8", write_through=True)
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setattr(sys, "stderr", terminal)
        return LiveCells(CommandOutput(as_json=False))

    return make


def begin(live: LiveCells, *titles: str) -> None:
    for index, title in enumerate(titles):
        live({"cell": index, "handle": f"id{index}", "status": "pending", "title": title})


def report(live: LiveCells, index: int, **facts: Any) -> None:
    live({"cell": index, "handle": f"id{index}", **facts})


def test_the_running_cell_has_its_place_its_first_line_live_seconds_and_a_bar(
    glass: Glass, on_glass: Callable[[], LiveCells], clock: SimpleNamespace
) -> None:
    live = on_glass()
    live({"run": "r1"})
    clock.seconds = 101.5
    live.tick()
    assert glass.text == ["○ 1.5 s  waiting for the kernel"]
    begin(live, "load = 1", "plot()")
    report(live, 0, status="running", began=101.5)
    clock.seconds = 103.0
    live.tick()
    assert glass.text == ["● ──────────── 0/2  1.5 s  0  id0  load = 1"]
    report(live, 0, status="ok", seconds=2.0)
    report(live, 1, status="running", began=103.0)
    assert glass.text == ["✓  2.0 s  0  id0  load = 1", "● ━━━━━━────── 1/2  0.0 s  1  id1  plot()"]
    report(live, 1, status="timed_out", seconds=9.0)
    live.__exit__()
    assert glass.text[1:] == ["✗ timed out  9.0 s  1  id1  plot()"]


def test_a_progress_bar_is_drawn_in_one_place_and_lines_above_it_stay(
    glass: Glass, on_glass: Callable[[], LiveCells]
) -> None:
    live = on_glass()
    begin(live, "train()")
    report(live, 0, status="running", began=100.0)
    report(live, 0, text="begins\n")
    for step in (b"\r 1%", b"\r\x1b[31m50", b"%\x1b[0m", b"\r"):
        report(live, 0, text=step.decode())
    row = "● ──────────── 0/1  0.0 s  0  id0  train()"
    assert glass.text == ["── 0  id0  train()", "begins", "50%", row]
    report(live, 0, text="\r100%\nends\n")
    assert glass.text == ["── 0  id0  train()", "begins", "100%", "ends", row]


def test_colours_stay_and_nothing_else_is_obeyed(
    glass: Glass, on_glass: Callable[[], LiveCells]
) -> None:
    live = on_glass()
    begin(live, "x")
    report(live, 0, text="\x1b[31mred\nstill\x1b[0m\x1b]0;title\x07 plain\x1b[2J\n")
    sent = "".join(glass.writes)
    assert "\x1b[31mred\x1b[0m" in sent
    assert "\x1b[31mstill\x1b[0m" in sent
    assert "title" not in sent
    assert "\x1b[2J" not in sent
    report(live, 0, text="careful\n", stream="stderr")
    assert "\x1b[33mcareful\x1b[0m" in "".join(glass.writes)


def test_displays_are_drawn_as_show_draws_them(
    glass: Glass, on_glass: Callable[[], LiveCells]
) -> None:
    live = on_glass()
    begin(live, "x")
    table = "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"
    for data in ({"text/html": table, "text/plain": "a 1"}, {"application/json": {"k": [1]}}):
        report(live, 0, text="not this", output={"output_type": "display_data", "data": data})
    live.__exit__()
    assert glass.text[1:] == ["│ a", "│ ─", "│ 1", "│ {} 1 key", "│ └─ k: [] 1 item", "│    └─ 1"]
    picture = {"output_type": "display_data", "data": {"image/png": PNG}}
    report(live, 0, text="not this", output=picture)
    assert any("▀" in line or "image/png" in line for line in glass.text)


def test_the_table_of_a_batch_counts_the_cells_of_an_attempt_and_guesses_what_is_left(
    glass: Glass, on_glass: Callable[[], LiveCells], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_glass()
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(batch_module, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    live = LiveJobs(CommandOutput(as_json=False), 5)

    def tell(job: str, event: str, **facts: Any) -> None:
        live({"event": event, "job": job, **facts})

    def end(job: str, status: str, message: str = "") -> None:
        ok = status in ("ok", "skipped")
        facts = {"ok": ok, "status": status, "seconds": 1.0, "cell": "c1", "message": message}
        tell(job, "end", **facts)

    def draw() -> list[str]:
        live._draw()
        return glass.text

    end("done.ipynb", "skipped")
    assert draw()[-1] == "1 of 5 done, 0 failed"  # how long others take is not known yet
    tell("a.ipynb", "start")
    assert draw()[-1] == "  a.ipynb  starts, 0 s"
    for _ in range(2):  # two attempts
        for number in (1, 2, 3):
            tell("a.ipynb", "cell", status="pending", of=number)
        tell("a.ipynb", "cell", status="ok", of=3)
        tell("a.ipynb", "cell", status="error", of=3)
    now.seconds = 110.0
    assert draw()[-1] == "  a.ipynb  cell 3/3, 10 s"
    end("a.ipynb", "error", "ValueError: no")
    assert glass.text[-3:] == [
        "✗ a.ipynb  error, 1.0 s",
        "  cell c1: ValueError: no",
        "2 of 5 done, 1 failed, about 30 s left",
    ]


def test_a_question_has_the_terminal_for_itself(
    glass: Glass, on_glass: Callable[[], LiveCells]
) -> None:
    live = on_glass()
    begin(live, "input()")
    report(live, 0, status="running", began=100.0)
    seen = []

    async def ask(_: object) -> str:
        live.tick()
        seen.extend(glass.text)
        return "x"

    with pytest.raises(StopIteration):
        live.wrap(ask)(None).send(None)
    assert seen == []
    live.tick()
    assert glass.text


def test_in_a_pipe_there_is_only_what_cells_print(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    live = LiveCells(CommandOutput(as_json=False))
    with live:
        begin(live, "x")
        report(live, 0, status="running", began=100.0)
        report(live, 0, text="\x1b[31m1\x1b[0m\n", output={"data": {}})
        report(live, 0, status="ok", seconds=1.0)
    assert live.wants_all
    assert capfdbinary.readouterr() == (b"1\n", b"")
