"""Charts that only a page can draw are described by what they show, whatever a kernel sends."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import time
from typing import Any

import pytest

from cellwright.outputs.charts import drawing, reading
from cellwright.outputs.charts.drawing import DrawingTime, is_closed_svg, make_spec
from cellwright.outputs.charts.reading import Chart, Series, read_chart
from cellwright.outputs.describe import describe
from cellwright.outputs.mime import choose_parts

PLOTLY = "application/vnd.plotly.v1+json"
VEGA_LITE = "application/vnd.vegalite.v5+json"
BOKEH = "application/vnd.bokehjs_exec.v0+json"


def display(**data: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {}, "data": data}


def packed(code: str, *values: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}{code}", *values)).decode()


def plotly() -> dict[str, Any]:
    line = {"name": "heights", "mode": "lines", "x": [1, 2, 3], "y": {"dtype": "f8"}}
    line["y"] = {"dtype": "f8", "bdata": packed("d", 2.5, 9.0, 4.0)}
    bars = {"type": "bar", "x": ["a", "b"], "y": [3, None]}
    layout = {"title": {"text": "Waves"}, "xaxis": {"title": {"text": "time"}}}
    return {PLOTLY: {"data": [line, bars], "layout": layout}, "text/html": "<div>" + "x" * 9000}


def vega_lite() -> dict[str, Any]:
    spec = {
        "title": "Sizes",
        "data": {"name": "d"},
        "datasets": {"d": [{"u": 1, "v": "x"}, {"u": 4, "v": "y"}]},
        "mark": {"type": "bar"},
        "encoding": {"x": {"field": "v"}, "y": {"field": "u", "title": "Units"}},
    }
    note = "<VegaLite 5 object>\n\nIf you see this message, the renderer is not enabled."
    return {VEGA_LITE: spec, "text/plain": note}


def bokeh() -> dict[str, Any]:
    packed_x = base64.b64encode(gzip.compress(struct.pack("<2d", 0.5, 8.0))).decode()
    array = {"type": "ndarray", "array": {"type": "bytes", "data": packed_x}}
    columns = [["x", {**array, "shape": [2], "dtype": "float64"}], ["y", [3, 1]]]
    source = {"id": "s", "name": "ColumnDataSource"}
    source["attributes"] = {"data": {"type": "map", "entries": columns}}  # type: ignore[assignment]
    glyph = {"x": {"type": "field", "field": "x"}, "y": {"type": "field", "field": "y"}}
    renderer = {
        "id": "r",
        "name": "GlyphRenderer",
        "attributes": {
            "data_source": source,
            "glyph": {"id": "g", "name": "Line", "attributes": glyph},
        },
    }
    figure = {
        "id": "f",
        "name": "Figure",
        "attributes": {
            "title": {"id": "t", "name": "Title", "attributes": {"text": "Bok"}},
            "below": [{"id": "a", "name": "LinearAxis", "attributes": {"axis_label": "across"}}],
            "left": [{"id": "b", "name": "LinearAxis"}],
            "renderers": [renderer],
        },
    }
    script = (
        f"const docs_json = {json.dumps({'1': {'roots': [figure]}})};\nconst render_items = [];"
    )
    return {BOKEH: "", "application/javascript": script, "text/html": "<div></div>"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            plotly(),
            (
                'Plotly chart "Waves"; x: "time"\n'
                '- line "heights", 3 points, x 1 to 3, ends 1 → 3, y 2.5 to 9, ends 2.5 → 4\n'
                '- bar, 2 points, x "a", "b", y 3 to 3'
            ),
        ),
        (
            vega_lite(),
            (
                'Vega-Lite chart "Sizes"; x: "v", y: "Units"\n'
                '- bar, 2 points, x "x", "y", y 1 to 4, ends 1 → 4'
            ),
        ),
        (
            bokeh(),
            (
                'Bokeh chart "Bok"; x: "across"\n'
                "- line, 2 points, x 0.5 to 8, ends 0.5 → 8, y 1 to 3, ends 3 → 1"
            ),
        ),
    ],
    ids=["plotly", "vega-lite", "bokeh"],
)
def test_a_chart_is_described_by_title_axes_series_and_ranges(
    data: dict[str, Any], expected: str
) -> None:
    assert str(read_chart(data)) == expected
    found = describe([display(**data)])
    assert expected in found.text
    assert "<div" not in found.text
    assert "If you see this" not in found.text


def test_layers_share_their_encoding_and_data() -> None:
    view = {
        "data": {"values": [{"a": 1, "b": 2}]},
        "encoding": {"x": {"field": "a"}},
        "layer": [{"mark": "line", "encoding": {"y": {"field": "b"}}}, {"mark": "rule"}],
    }
    chart = read_chart({VEGA_LITE: {"hconcat": [view]}})
    assert chart is not None
    assert [(each.kind, list(each.values)) for each in chart.series] == [
        ("line", ["x", "y"]),
        ("rule", ["x"]),
    ]


def test_a_vega_chart_names_its_marks_axes_and_columns() -> None:
    spec = {
        "data": [{"name": "t", "values": [{"k": 1}, {"k": 5}]}],
        "axes": [{"scale": "x", "title": "Keys"}],
        "marks": [{"type": "rect"}, {"type": "text"}],
    }
    chart = read_chart({"application/vnd.vega.v5+json": spec})
    assert str(chart) == ('Vega chart; x: "Keys"\n- rect and text, 2 points, k 1 to 5, ends 1 → 5')


def deep(levels: int) -> Any:
    value: Any = {"mark": "bar"}
    for _ in range(levels):
        value = {"layer": [value]}
    return value


@pytest.mark.parametrize(
    "data",
    [
        {PLOTLY: {"data": 7, "layout": []}},
        {PLOTLY: {"data": [{"x": {"dtype": "f8", "bdata": "!"}, "type": ["bar"], "name": {}}]}},
        {PLOTLY: {"data": [{"x": [float("nan"), float("inf"), None, [1]]}] * 500}},
        {PLOTLY: "text"},
        {VEGA_LITE: deep(400)},
        {VEGA_LITE: {"mark": None, "encoding": [], "data": {"values": [1, 2]}}},
        {VEGA_LITE: {"title": ["a"] * 10_000, "mark": "x" * 10_000}},
        {BOKEH: "", "application/javascript": "docs_json = {" + '"a":{' * 500},
        {BOKEH: "", "application/javascript": "docs_json = {}"},
        {BOKEH: "", "application/javascript": ["docs", 7]},
    ],
)
def test_what_is_no_chart_or_a_hostile_one_raises_nothing_and_stays_short(
    data: dict[str, Any],
) -> None:
    chart = read_chart(data)
    assert chart is None or len(str(chart)) < 10_000
    if chart is not None:
        make_spec(chart)
    describe([display(**data)])


def test_a_bomb_in_a_chart_is_not_unpacked() -> None:
    bomb = base64.b64encode(gzip.compress(b"\0" * 50_000_000)).decode()
    array = {"type": "ndarray", "array": {"type": "bytes", "data": bomb}, "dtype": "float64"}
    assert len(reading._read_values(array)) <= reading.MOST_VALUES


def test_reading_a_large_chart_is_quick() -> None:
    rows = [{"u": each, "v": str(each)} for each in range(200_000)]
    spec = {"data": {"values": rows}, "mark": "bar", "encoding": {"x": {"field": "u"}}}
    began = time.thread_time()
    assert "200,000 points" in str(read_chart({VEGA_LITE: spec}))
    assert time.thread_time() - began < 5


@pytest.mark.parametrize(
    ("inside", "is_closed"),
    [
        ('<use href="#a"/><rect fill="url(#g)"/>', True),
        ('<image href="data:image/png;base64,AA=="/>', True),
        ('<image href="file:///etc/passwd"/>', False),
        ('<image x:href = "/etc/passwd"/>', False),
        ("<image xlink:href='http://a/b.png'/>", False),
        ('<image href="data:image/svg+xml;base64,AA=="/>', False),
        ('<image href="&#102;ile:///etc/passwd"/>', False),
        ("<image href=/etc/passwd />", False),
        ('<rect fill="url(http://a/b)"/>', False),
        ("<rect fill=\"url('http://a/b')\"/>", False),
        ('<style>@import "http://a"</style>', False),
        ('<g xml:base="http://a"/>', False),
        ('<!DOCTYPE svg [<!ENTITY e SYSTEM "file:///etc/passwd">]>', False),
    ],
)
def test_an_svg_that_refers_to_anything_outside_is_not_drawn(inside: str, is_closed: bool) -> None:
    assert is_closed_svg(f"<svg xmlns='http://www.w3.org/2000/svg'>{inside}</svg>") is is_closed


def test_a_chart_that_refers_to_anything_outside_is_not_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(drawing, "can_draw", lambda: True)
    monkeypatch.setattr(drawing, "_draw", lambda kind, *_: drawn.append(kind))
    for data in ({"url": "file:///etc/passwd"}, {"values": [{"href": "http://a"}]}):
        drawing.draw_chart(Chart("Vega-Lite", spec={"mark": "bar", "data": data}))
    drawing.draw_chart(Chart("Vega-Lite", spec=deep(100)))
    assert drawn == []
    drawing.draw_chart(Chart("Vega-Lite", spec={"mark": "bar", "data": {"values": [1]}}))
    assert drawn == ["vegalite"]


def test_other_libraries_charts_become_vega_lite() -> None:
    chart = read_chart(plotly())
    assert chart is not None
    spec = make_spec(chart)
    assert spec is not None
    line, bars = spec["layer"]
    assert line["encoding"]["y"]["type"] == "quantitative"
    assert line["data"]["values"][0] == {"s": "heights", "x": 1, "y": 2.5}
    assert (bars["mark"], bars["encoding"]["x"]["type"]) == ("bar", "nominal")
    assert make_spec(Chart("Plotly", series=[Series("surface", values={"z": [1]})])) is None


def test_pictures_take_the_place_of_charts_where_they_can_be_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    monkeypatch.setattr(drawing, "draw_chart", lambda *_: png)
    monkeypatch.setattr(drawing, "draw_svg", lambda *_: png)
    outputs = [display(**plotly()), display(**{"image/svg+xml": "<svg><text>Hi</text></svg>"})]
    found = describe(outputs, drawing=DrawingTime())
    assert [each.data for each in found.images] == [png, png]
    assert "drawn from its data" in found.text
    assert 'Plotly chart "Waves"' in found.text
    assert describe(outputs).images == ()


def test_an_svg_is_described_by_its_words_and_shapes() -> None:
    svg = "<svg><title>Sales &amp; more</title><path d=''/><path d=''/><text x='1'>Jan</text></svg>"
    found = describe([display(**{"image/svg+xml": svg})]).text
    assert 'SVG drawing of 2 path; text: "Sales & more", "Jan"' in found


def test_eval_says_what_a_chart_shows() -> None:
    (chart,) = choose_parts(plotly()).parts
    assert str(chart).startswith('Plotly chart "Waves"')
