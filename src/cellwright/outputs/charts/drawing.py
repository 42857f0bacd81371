"""`draw_chart` and `draw_svg`: pictures of charts, by vl-convert, which the extra `charts` installs.

vl-convert has Vega and a renderer of SVG inside and downloads nothing. It runs in a copy of this
process, with limits of time, processor and memory, because what it draws was written by a kernel;
no program is started, since reading starts none. What refers to anything outside itself is not
drawn, so that drawing reads no file and asks no server.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import select
import signal
import threading
import time
from collections import OrderedDict
from contextlib import suppress

from cellwright.document.costs import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, NoReturn

    from cellwright.outputs.charts.reading import Chart, Series

SECONDS = 10.0
"""How long one picture may take."""
MOST_BYTES = 4_000_000
"""The longest chart or SVG that is drawn."""
_MOST_PICTURE = 20_000_000
_MOST_POINTS = 5_000
_KEPT = 16
_DEEPEST = 40
_MOST_VALUES = 400_000
_WIDTH, _HEIGHT = 480, 300
_MARKS = {
    "line": {"type": "line", "point": False},
    "points": "point",
    "bar": "bar",
    "horizontal bar": "bar",
    "histogram": "bar",
    "box": "boxplot",
    "violin": "boxplot",
    "pie": "arc",
}
_BUCKETS = ("histogram", "box", "violin")
_REFERENCES = frozenset({"url", "href", "src"})
_find_hrefs = re.compile(r"href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|(\S))", re.IGNORECASE).findall
_find_urls = re.compile(r"url\s*\(\s*(.)", re.IGNORECASE | re.DOTALL).findall
_forbidden = re.compile(r"<!|<\?xml-stylesheet|@import|\bxml:base", re.IGNORECASE).search
_is_picture = re.compile(r"data:image/(?:png|jpe?g|gif);base64,", re.IGNORECASE).match

_LIMITS = {
    resource.RLIMIT_CPU: 20,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_DATA: 2**32,
    resource.RLIMIT_FSIZE: 0,
}
_PNG_END = b"IEND\xaeB`\x82"
_drawn: OrderedDict[bytes, bytes | None] = OrderedDict()
_one_at_a_time = threading.Lock()


class DrawingTime:
    """How long the pictures of one answer may take together."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.left = seconds


def can_draw() -> bool:
    """Whether charts can be drawn here."""
    from importlib.util import find_spec

    return find_spec("vl_convert") is not None


def draw_chart(chart: Chart, limit: DrawingTime | None = None) -> bytes | None:
    """Draw a chart as PNG; None if it cannot be drawn, or not here."""
    spec = chart.spec if chart.spec is not None else make_spec(chart)
    if spec is None or not can_draw() or not _is_closed(spec):
        return None
    try:
        source = json.dumps(spec)
    except (TypeError, ValueError, RecursionError):
        return None
    return _draw("vega" if chart.kind == "Vega" else "vegalite", source, limit)


def draw_svg(source: str, limit: DrawingTime | None = None) -> bytes | None:
    """Draw an SVG as PNG; None if it cannot be drawn, or not here."""
    return _draw("svg", source, limit) if can_draw() and is_closed_svg(source) else None


def is_closed_svg(source: str) -> bool:
    """Whether an SVG refers to nothing outside itself."""
    if len(source) > MOST_BYTES or _forbidden(source):
        return False
    for found in _find_hrefs(source):
        target = next(filter(None, found), "")
        if not target.startswith("#") and not _is_picture(target):
            return False
    return all(first in "#\"'&" and first != "&" for first in _find_urls(source)) and not re.search(
        r"url\s*\(\s*[\"'](?!#)", source, re.IGNORECASE
    )


def _is_closed(spec: Any) -> bool:
    """Whether a specification refers to nothing outside itself, and is of a bearable size."""
    waiting: list[tuple[Any, int]] = [(spec, 0)]
    seen = 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if depth > _DEEPEST or seen > _MOST_VALUES:
            return False
        if isinstance(value, dict):
            if any(key in _REFERENCES for key in value):
                return False
            waiting += [
                (each, depth + 1) for each in value.values() if isinstance(each, dict | list)
            ]
        elif isinstance(value, list):
            seen += len(value)
            waiting += [(each, depth + 1) for each in value if isinstance(each, dict | list)]
    return True


def _draw(kind: str, source: str, limit: DrawingTime | None) -> bytes | None:
    """Draw apart from this process; a picture that was drawn lately is not drawn again."""
    raw = source.encode("utf-8", "surrogatepass")
    if len(raw) > MOST_BYTES:
        return None
    key = blake2b(raw, key=kind.encode(), digest_size=16).digest()
    with _one_at_a_time:
        if key in _drawn:
            _drawn.move_to_end(key)
            return _drawn[key]
        seconds = SECONDS if limit is None else min(SECONDS, limit.left)
        if seconds <= 0:
            return None
        began = time.monotonic()
        picture = _draw_apart(kind, source, seconds)
        if limit is not None:
            limit.left -= time.monotonic() - began
        if picture is not None and not picture.startswith(b"\x89PNG"):
            picture = None
        if picture is not None and len(picture) > _MOST_PICTURE:
            picture = None
        _drawn[key] = picture
        while len(_drawn) > _KEPT:
            _drawn.popitem(last=False)
        return picture


def _draw_apart(kind: str, source: str, seconds: float) -> bytes | None:
    """Draw in a copy of this process, which is ended after so many seconds."""
    try:
        reading, writing = os.pipe()
    except OSError:
        return None
    try:
        pid = _fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    if pid == 0:
        _be_child(kind, source, writing)
    os.close(writing)
    picture = bytearray()
    end = time.monotonic() + seconds
    try:
        poller = select.poll()
        poller.register(reading, select.POLLIN)
        while len(picture) <= _MOST_PICTURE:
            left = max(0.0, end - time.monotonic())
            part = os.read(reading, 2**16) if poller.poll(left * 1000) else b""
            if not part:
                break
            picture += part
    except OSError:
        picture.clear()
    finally:
        os.close(reading)
        # Killed in any case: it has said what it had to say, or is late.
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(pid, 0)
    return bytes(picture) if picture.endswith(_PNG_END) else None


def _fork() -> int:
    import warnings

    with warnings.catch_warnings():
        # Newer Pythons warn of threads: the child uses nothing that another thread may hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_child(kind: str, source: str, writing: int) -> NoReturn:
    """Draw, write the picture, and end without a word."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        os.closerange(3, writing)
        os.closerange(writing + 1, min(most, 2**20))
        os.environ.clear()
        for limit, value in _LIMITS.items():
            _, hard = resource.getrlimit(limit)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)  # noqa: PLW2901
            resource.setrlimit(limit, (value, value))
        with suppress(Exception):
            import ctypes

            ctypes.CDLL(None).unshare(0x10000000 | 0x40000000)  # a network without anything in it
        import vl_convert

        if kind == "svg":
            picture = vl_convert.svg_to_png(source, scale=1)
        elif kind == "vega":
            picture = vl_convert.vega_to_png(source, scale=1, allowed_base_urls=[])
        else:
            picture = vl_convert.vegalite_to_png(source, scale=1, allowed_base_urls=[])
        rest = memoryview(picture)
        while rest:
            rest = rest[os.write(writing, rest) :]
    finally:
        os._exit(0)


# -- a chart of another library as Vega-Lite ----------------------------------------------------------


def make_spec(chart: Chart) -> dict[str, Any] | None:
    """A chart as Vega-Lite, so that it can be drawn; None if it has nothing that can be."""
    layers = [
        layer
        for number, series in enumerate(chart.series)
        if (layer := _make_layer(series, number, chart.axes)) is not None
    ]
    if not layers:
        return None
    spec: dict[str, Any] = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": layers,
    }
    return {**spec, "title": chart.title} if chart.title else spec


def _make_layer(series: Series, number: int, axes: Mapping[str, str]) -> dict[str, Any] | None:
    mark = _MARKS.get(series.kind)
    if mark is None:
        return None
    name = series.name or f"series {number + 1}"
    if series.kind == "pie":
        labels, sizes = series.values.get("labels", ()), series.values.get("values", ())
        rows = [{"x": str(label), "y": size} for label, size in zip(labels, sizes, strict=False)]
        encoding: dict[str, Any] = {
            "theta": {"field": "y", "type": "quantitative"},
            "color": {"field": "x", "type": "nominal", "title": None},
        }
        return {"data": {"values": rows[:_MOST_POINTS]}, "mark": mark, "encoding": encoding}
    x, y = series.values.get("x", ()), series.values.get("y", ())
    if series.kind not in _BUCKETS and not x:
        x = range(len(y))
    rows = [*_make_rows(x, y, name)]
    if not rows:
        return None
    encoding = {"color": {"field": "s", "type": "nominal", "title": None}}
    for axis, values in (("x", x), ("y", y)):
        if values:
            kind = "quantitative" if _are_numbers(values) else _find_type(values)
            encoding[axis] = {"field": axis, "type": kind, "title": axes.get(axis) or None}
            if kind == "nominal":
                encoding[axis]["sort"] = None
    if series.kind == "histogram":
        axis, other = ("x", "y") if x else ("y", "x")
        encoding[axis]["bin"] = True
        encoding[other] = {"aggregate": "count", "type": "quantitative"}
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def _make_rows(x: Sequence[Any], y: Sequence[Any], name: str) -> Iterator[dict[str, Any]]:
    count = max(len(x), len(y)) if not (x and y) else min(len(x), len(y))
    step = max(1, math.ceil(count / _MOST_POINTS))
    for at in range(0, count, step):
        row: dict[str, Any] = {"s": name}
        for axis, values in (("x", x), ("y", y)):
            if values and (isinstance(values[at], str | int | float) or values[at] is None):
                value = values[at]
                bad = isinstance(value, float) and not math.isfinite(value)
                row[axis] = None if bad else value
        yield row


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(each, int | float) or each is None for each in values)


def _find_type(values: Sequence[Any]) -> str:
    """Dates if all look like one, otherwise categories."""
    texts = [each for each in values if isinstance(each, str)]
    return "temporal" if texts and all(map(_is_date, texts)) else "nominal"


def _is_date(text: str) -> bool:
    return re.match(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)", text) is not None
