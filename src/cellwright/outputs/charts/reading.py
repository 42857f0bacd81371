"""`read_chart`: what a chart shows, from the data that a page would draw it from.

A kernel can send anything. Nothing here raises, and everything is bounded: how deep and how many
objects are looked at, how many values are read, how long a name may be.
"""

from __future__ import annotations

import binascii
import json
import math
import re
import struct
import zlib
from base64 import b64decode
from dataclasses import dataclass, field

from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

MOST_VALUES = 20_000
"""How many values of one series are read."""
_MOST_SERIES = 40
_MOST_NAMED = 12
_MOST_OBJECTS = 20_000
_LONGEST = 60
_MOST_SCRIPT = 20_000_000
_DEEPEST = 12
_MOST_CATEGORIES = 6
_vega = re.compile(r"application/vnd\.(vegalite|vega)\.v\d+(?:\.\d+)*(?:\+json|\.json)").fullmatch
_find_document = re.compile(r"docs_json\s*=\s*(?=\{)").search
# The codes of numpy, Plotly and Bokeh for the types of values in binary.
_CODES = {
    "i1": "b",
    "u1": "B",
    "i2": "h",
    "u2": "H",
    "i4": "i",
    "u4": "I",
    "f4": "f",
    "f8": "d",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}


@dataclass(frozen=True, slots=True)
class Series:
    """One line, one set of points or bars; `values` are its data by what they are for."""

    kind: str
    name: str = ""
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    count: int = 0

    def __str__(self) -> str:
        name = f" {_quote(self.name)}" if self.name else ""
        points = f", {self.count:,} points" if self.count else ""
        ranges = "".join(f", {key} {_describe_values(each)}" for key, each in self.values.items())
        return f"{self.kind}{name}{points}{ranges}"


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows; `spec` is its own Vega-Lite or Vega, if it has one."""

    kind: str
    title: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)
    series: Sequence[Series] = ()
    more: int = 0
    spec: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        title = f" {_quote(self.title)}" if self.title else ""
        axes = ", ".join(f"{name}: {_quote(label)}" for name, label in self.axes.items() if label)
        lines = [f"{self.kind} chart{title}" + (f"; {axes}" if axes else "")]
        lines += [f"- {each}" for each in self.series[:_MOST_NAMED]]
        more = self.more + max(0, len(self.series) - _MOST_NAMED)
        return "\n".join([*lines, *([f"- and {more} more series"] if more else [])])


def read_chart(data: Mapping[str, Any]) -> Chart | None:
    """Read the chart in a display; None if there is none."""
    try:
        return _read_chart(data)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None
    except (ArithmeticError, struct.error, zlib.error):
        return None


def _read_chart(data: Mapping[str, Any]) -> Chart | None:
    for mime, value in data.items():
        if mime == "application/vnd.plotly.v1+json" and isinstance(value, dict):
            return _read_plotly(value)
        kind = _vega(mime)
        if kind and isinstance(value, dict):
            return _read_vega(value, "Vega-Lite" if kind[1] == "vegalite" else "Vega")
    if any(mime.startswith("application/vnd.bokehjs") for mime in data):
        script = _join(data.get("application/javascript") or data.get("text/html"))
        found = _find_document(script) if len(script) <= _MOST_SCRIPT else None
        if found:
            document, _ = json.JSONDecoder().raw_decode(script, found.end())
            return _read_bokeh(document)
    return None


# -- values -----------------------------------------------------------------------------------------


def _read_values(value: Any) -> list[Any]:
    """A list of plain values, also from the binary forms of Plotly and Bokeh."""
    if isinstance(value, list):
        return value[:MOST_VALUES]
    if not isinstance(value, dict):
        return []
    encoded, dtype = value.get("bdata"), value.get("dtype")
    if encoded is None and value.get("type") == "ndarray":
        held = value.get("array")
        encoded = held.get("data") if isinstance(held, dict) else held
        if isinstance(encoded, list):
            return encoded[:MOST_VALUES]
    code = _CODES.get(str(dtype))
    if code is None or not isinstance(encoded, str):
        return []
    size = struct.calcsize(code)
    try:
        raw = b64decode(encoded[: MOST_VALUES * 16])
    except binascii.Error:
        return []
    if raw[:2] == b"\x1f\x8b":
        raw = zlib.decompressobj(31).decompress(raw, MOST_VALUES * size)
    count = min(len(raw) // size, MOST_VALUES)
    return list(struct.unpack(f"<{count}{code}", raw[: count * size]))


def _count(value: Any) -> int:
    """How many values there are, also beyond those that are read."""
    if isinstance(value, list):
        return len(value)
    if isinstance(value, dict):
        shape = value.get("shape")
        if isinstance(shape, list) and shape and isinstance(shape[0], int):
            return shape[0]
        encoded, code = value.get("bdata"), _CODES.get(str(value.get("dtype")))
        if isinstance(encoded, str) and code:
            return len(encoded.rstrip("=")) * 3 // 4 // struct.calcsize(code)
    return 0


def _describe_values(values: Sequence[Any]) -> str:
    """The range of numbers, or some of the categories."""
    plain = [each for each in values if not isinstance(each, list | dict)]
    numbers = [
        each
        for each in plain
        if isinstance(each, int | float) and not isinstance(each, bool) and math.isfinite(each)
    ]
    if numbers and len(numbers) * 2 >= len(plain):
        low, high = min(numbers), max(numbers)
        ends = f", ends {_number(numbers[0])} → {_number(numbers[-1])}" if len(numbers) > 1 else ""
        return f"{_number(low)} to {_number(high)}{ends}"
    names = list(dict.fromkeys(_name(each) for each in plain if each is not None))
    if len(names) > _MOST_CATEGORIES:
        return f"{_quote(names[0])} to {_quote(names[-1])} ({len(names):,} different)"
    return ", ".join(map(_quote, names)) or "no values"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _quote(text: str) -> str:
    return json.dumps(_name(text), ensure_ascii=False)


def _name(value: Any) -> str:
    """A text from a kernel as a short name."""
    text = one_line(str(value)[: 4 * _LONGEST]).strip() if value is not None else ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _join(value: Any) -> str:
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _text_of(value: Any) -> str:
    """A title: a text, a list of lines, or an object with a text."""
    if isinstance(value, dict):
        value = value.get("text")
    if isinstance(value, list):
        value = " ".join(str(line) for line in value[:10])
    return _name(value) if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# -- Plotly -----------------------------------------------------------------------------------------


def _read_plotly(figure: Mapping[str, Any]) -> Chart:
    layout = _object(figure.get("layout"))
    traces = _objects(figure.get("data"))
    axes = {name: _text_of(_object(layout.get(f"{name}axis")).get("title")) for name in "xy"}
    return Chart(
        "Plotly",
        _text_of(layout.get("title")),
        axes,
        [_read_trace(trace) for trace in traces[:_MOST_SERIES]],
        max(0, len(traces) - _MOST_SERIES),
    )


def _read_trace(trace: Mapping[str, Any]) -> Series:
    kind = _name(trace.get("type") or "scatter")
    keys = [key for key in ("x", "y", "z", "labels", "values") if key in trace]
    if kind in ("scatter", "scattergl"):
        mode = str(trace.get("mode") or "lines")
        kind = "line" if "lines" in mode else "points"
    elif kind == "bar" and trace.get("orientation") == "h":
        kind = "horizontal bar"
    values = {key: _flatten(_read_values(trace[key])) for key in keys}
    count = max((_count(trace[key]) for key in keys), default=0)
    return Series(kind, _name(trace.get("name") or ""), values, count)


def _flatten(values: list[Any]) -> list[Any]:
    """Rows of a matrix one after the other."""
    if not any(isinstance(each, list) for each in values[:1]):
        return values
    return [value for row in values if isinstance(row, list) for value in row][:MOST_VALUES]


# -- Vega and Vega-Lite -------------------------------------------------------------------------------


def _read_vega(spec: Mapping[str, Any], kind: str) -> Chart:
    axes: dict[str, str] = {}
    series: list[Series] = []
    for view, rows in _walk_views(spec, [], _object(spec.get("datasets")), 0):
        encoding = _object(view.get("encoding"))
        values: dict[str, list[Any]] = {}
        for channel, given in encoding.items():
            used = _object(given)
            label = used.get("title") or _object(used.get("axis")).get("title")
            label = _text_of(label) or _name(used.get("field") or used.get("aggregate") or "")
            if channel in ("x", "y"):
                axes.setdefault(channel, label)
            column = used.get("field")
            if isinstance(column, str) and rows and len(values) < _MOST_CATEGORIES:
                values[_name(channel)] = [row.get(column) for row in rows[:MOST_VALUES]]
        mark = view.get("mark")
        mark = _object(mark).get("type") if isinstance(mark, dict) else mark
        series.append(Series(_name(mark or "chart"), "", values, len(rows)))
    if kind == "Vega":
        marks = [_name(mark.get("type")) for mark in _objects(spec.get("marks"))[:_MOST_SERIES]]
        for axis in _objects(spec.get("axes"))[:_MOST_SERIES]:
            axes.setdefault(
                _name(axis.get("scale") or axis.get("orient")), _text_of(axis.get("title"))
            )
        rows = [row for each in _objects(spec.get("data")) for row in _objects(each.get("values"))]
        columns = list(rows[0])[:_MOST_CATEGORIES] if rows else []
        values = {_name(key): [row.get(key) for row in rows[:MOST_VALUES]] for key in columns}
        series = [Series(" and ".join(marks) or "chart", "", values, len(rows))]
    more = max(0, len(series) - _MOST_SERIES)
    title = _text_of(spec.get("title"))
    return Chart(kind, title, axes, series[:_MOST_SERIES], more, spec)


def _walk_views(
    view: Mapping[str, Any], rows: list[Mapping[str, Any]], datasets: Mapping[str, Any], depth: int
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Yield the views that have a mark, each with the rows of its data."""
    if depth > _DEEPEST:
        return
    data = _object(view.get("data"))
    values = data.get("values")
    if values is None and isinstance(data.get("name"), str):
        values = datasets.get(data["name"])
    rows = _objects(values) if isinstance(values, list) else rows
    if "mark" in view:
        yield view, rows
    shared = {name: view[name] for name in ("encoding",) if name in view}
    for key in ("layer", "hconcat", "vconcat", "concat"):
        for part in _objects(view.get(key))[:_MOST_SERIES]:
            merged = {**part}
            if key == "layer" and shared:
                merged["encoding"] = {
                    **_object(shared["encoding"]),
                    **_object(part.get("encoding")),
                }
            yield from _walk_views(merged, rows, datasets, depth + 1)
    if isinstance(view.get("spec"), dict):
        yield from _walk_views(view["spec"], rows, datasets, depth + 1)


# -- Bokeh ------------------------------------------------------------------------------------------

_BOKEH_VALUES = ("x", "y", "top", "right", "width", "height", "bottom", "left", "x0", "y0")


def _read_bokeh(documents: Mapping[str, Any]) -> Chart | None:
    models: dict[str, Mapping[str, Any]] = {}
    waiting: list[Any] = [documents]
    figures: list[Mapping[str, Any]] = []
    seen = 0
    while waiting and seen < _MOST_OBJECTS:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            if isinstance(value.get("id"), str) and "name" in value:
                models[value["id"]] = value
                if value["name"] in ("Figure", "Plot"):
                    figures.append(value)
            if value.get("type") != "ndarray":
                waiting += [each for each in value.values() if isinstance(each, dict | list)]
        elif isinstance(value, list) and (not value or isinstance(value[0], dict | list)):
            waiting += [each for each in value[:_MOST_OBJECTS] if isinstance(each, dict | list)]
    if not figures:
        return None

    def follow(value: Any) -> Mapping[str, Any]:
        held = _object(value)
        return _object(models.get(str(held.get("id")), held).get("attributes"))

    about = follow(figures[0])
    axes = {
        name: _name(follow((about.get(place) or [{}])[0]).get("axis_label") or "")
        for name, place in (("x", "below"), ("y", "left"))
    }
    series = [
        _read_renderer(follow(each), follow, models)
        for figure in figures
        for each in _objects(follow(figure).get("renderers"))
    ]
    title = _text_of(follow(about.get("title")))
    return Chart("Bokeh", title, axes, series[:_MOST_SERIES], max(0, len(series) - _MOST_SERIES))


def _read_renderer(
    renderer: Mapping[str, Any], follow: Any, models: Mapping[str, Mapping[str, Any]]
) -> Series:
    glyph = _object(renderer.get("glyph"))
    kind = _name(models.get(str(glyph.get("id")), glyph).get("name") or "glyph")
    columns = follow(renderer.get("data_source")).get("data")
    entries = _object(columns).get("entries") if isinstance(columns, dict) else None
    pairs = entries if isinstance(entries, list) else list(_object(columns).items())
    known = {
        str(pair[0]): pair[1] for pair in pairs if isinstance(pair, list | tuple) and len(pair) == 2
    }
    values: dict[str, list[Any]] = {}
    count = 0
    for key, given in follow(glyph).items():
        column = _object(given).get("field")
        if key in _BOKEH_VALUES and isinstance(column, str) and column in known:
            values[key] = _read_values(known[column])
            count = max(count, _count(known[column]))
    kinds = {"Line": "line", "Scatter": "points", "Circle": "points", "VBar": "bar"}
    kind = kinds.get(kind, "horizontal bar" if kind == "HBar" else kind)
    if "top" in values and "y" not in values:
        values["y"] = values.pop("top")
    if "right" in values and "x" not in values:
        values["x"] = values.pop("right")
    return Series(kind, "", values, count)


# -- SVG --------------------------------------------------------------------------------------------

_find_svg_text = re.compile(r"<(?:title|desc|text|tspan)\b[^>]{0,2000}>([^<]{1,400})<").findall
_find_shapes = re.compile(r"<(path|rect|circle|ellipse|line|polyline|polygon|image|use)\b").findall
_MOST_SVG = 1_000_000


def describe_svg(source: str) -> str:
    """Say what words an SVG has, and of what it is made."""
    from html import unescape

    source = source[:_MOST_SVG]
    words = dict.fromkeys(_name(unescape(each)) for each in _find_svg_text(source))
    words.pop("", None)
    shapes: dict[str, int] = {}
    for shape in _find_shapes(source):
        shapes[shape] = shapes.get(shape, 0) + 1
    made = ", ".join(f"{count:,} {name}" for name, count in shapes.items()) or "no shapes"
    shown = list(words)[:_MOST_SERIES]
    said = f"; text: {', '.join(map(_quote, shown))}" if shown else ""
    more = f" and {len(words) - len(shown)} more" if len(words) > len(shown) else ""
    return f"SVG drawing of {made}{said}{more}"
