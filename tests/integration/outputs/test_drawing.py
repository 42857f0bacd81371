"""Charts are drawn in a process of their own, within limits, by what the extra `charts` installs."""

from __future__ import annotations

import http.server
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.outputs.charts import drawing
from cellwright.outputs.charts.drawing import DrawingTime, draw_chart, draw_svg
from cellwright.outputs.charts.reading import Chart, read_chart

if TYPE_CHECKING:
    from collections.abc import Iterator

PNG = b"\x89PNG"
SPEC = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "data": {"values": [{"a": 1, "b": 2}, {"a": 2, "b": 5}]},
    "mark": "line",
    "encoding": {"x": {"field": "a", "type": "quantitative"}, "y": {"field": "b"}},
}


@pytest.fixture(autouse=True)
def _forget_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing._drawn.clear()
    monkeypatch.setattr(drawing, "SECONDS", 40.0)  # the machine may be busy


def test_a_plotly_chart_becomes_a_picture_and_is_drawn_once() -> None:
    trace = {"type": "scatter", "mode": "lines+markers", "x": [1, 2, 3], "y": [1, 4, 2]}
    chart = read_chart({"application/vnd.plotly.v1+json": {"data": [trace], "layout": {}}})
    assert chart is not None
    first = draw_chart(chart, DrawingTime(40))
    assert first is not None
    assert first.startswith(PNG)
    assert draw_chart(chart, DrawingTime(0)) == first  # kept: no time is needed


def test_an_svg_becomes_a_picture() -> None:
    svg = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='5' height='5'/></svg>"
    assert (draw_svg(svg) or b"").startswith(PNG)
    assert draw_svg("<svg") is None


def test_a_chart_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def never_end(*_: object) -> None:
        signal.pause()

    monkeypatch.setattr(drawing, "_be_child", never_end)
    limit = DrawingTime(0.2)
    assert draw_chart(Chart("Vega-Lite", spec=SPEC), limit) is None
    assert limit.left < 0.05
    assert draw_chart(Chart("Vega-Lite", spec={**SPEC, "mark": "bar"}), limit) is None


def test_drawing_leaves_no_process_and_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, children = drawing._fork, []

    def fork_and_note() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(drawing, "_fork", fork_and_note)
    draw_svg("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for size in range(1, 4):
        draw_svg(f"<svg xmlns='http://www.w3.org/2000/svg' width='{size}' height='9'/>")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert len(children) == 4
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


@pytest.fixture
def asked() -> Iterator[tuple[int, list[str]]]:
    """A server, and what it was asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, paths
        server.shutdown()
        thread.join()


def test_drawing_asks_no_server_even_if_a_reference_gets_through(
    asked: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, paths = asked
    monkeypatch.setattr(drawing, "_is_closed", lambda _: True)
    draw_chart(Chart("Vega-Lite", spec={**SPEC, "data": {"url": f"http://127.0.0.1:{port}/a"}}))
    assert paths == []
