"""Of a display the right types are taken, and nothing a kernel sends is too odd."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from cellwright.outputs.mime import (
    MimeChoice,
    MimeImage,
    MimeJson,
    MimeText,
    StatusReport,
    UnreadPart,
    choose_parts,
    latest_statuses,
    part_size,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 20


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text/plain": "p", "text/markdown": "m", "text/html": "<b>h</b>"}, "m"),
        ({"text/html": "<b>h</b>", "text/plain": "p"}, "p"),
        ({"text/html": "<p>one</p><p>two</p>"}, "one\n\ntwo"),
        ({"text/plain": ["a\n", "b"]}, "a\nb"),
        ({"text/plain": ""}, ""),
        ({"text/plain": "<pandas.Styler at 0x7f>", "text/html": "<p>x</p>"}, "x"),
        ({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<p>x</p>"}, "x"),
        ({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<script/>"}, None),
        ({"text/plain": "<Foo object at 0x7f>"}, "<Foo object at 0x7f>"),
        ({"text/plain": "<b>", "text/html": "<p>x</p>"}, "<b>"),
        ({"text/plain": 5, "text/html": "<p>x</p>"}, "x"),
        ({"text/markdown": None, "text/plain": "p"}, "p"),
        ({"text/latex": "$x$"}, "$x$"),
        ({"text/latex": "$x$", "text/plain": "x"}, "x"),
        ({"text/latex": "$x$", "text/plain": "<M object at 0x7f>"}, "$x$"),
    ],
)
def test_text_is_markdown_then_plain_then_html(data: dict[str, Any], text: str | None) -> None:
    chosen = choose_parts(data)
    if text is None:
        text = data["text/plain"]
    assert chosen.text is not None
    assert chosen.text.text == text


def test_the_type_that_a_text_came_from_is_told() -> None:
    assert choose_parts({"text/html": "x"}).text == MimeText("x", "text/html")


def test_structured_parts_come_beside_the_text() -> None:
    assert choose_parts(
        {
            "application/json": {"a": [1]},
            "image/png": b64encode(PNG).decode(),
            "image/jpeg": [b64encode(b"jp").decode()[:2], b64encode(b"jp").decode()[2:] + "\n"],
            "image/svg+xml": "<svg/>",
            "text/plain": "p",
            "application/x-odd": "y",
        }
    ) == MimeChoice(
        MimeText("p"),
        (
            MimeJson({"a": [1]}),
            MimeImage("image/png", PNG),
            MimeImage("image/jpeg", b"jp"),
            MimeImage("image/svg+xml", b"<svg/>"),
        ),
    )


def test_a_list_of_texts_in_json_is_a_list() -> None:
    assert choose_parts({"application/json": ["a", "b"]}).parts == (MimeJson(["a", "b"]),)


def test_a_figure_is_its_image_and_not_its_repr() -> None:
    image = b64encode(PNG).decode()
    plain = "<Figure size 640x480 with 1 Axes>"
    assert choose_parts({"image/png": image, "text/plain": plain}).text is None


@pytest.mark.parametrize("mime", ["application/x-cellwright-status", "application/x-omp-status"])
def test_a_status_is_no_text(mime: str) -> None:
    chosen = choose_parts({mime: {"op": "pip", "done": 1}, "text/plain": "x"})
    assert chosen == MimeChoice(None, (StatusReport({"op": "pip", "done": 1}),))
    assert choose_parts({mime: '{"op": "cd"}'}).parts == (StatusReport({"op": "cd"}),)
    assert choose_parts({mime: "no json"}).parts == (UnreadPart(mime, 7, "not readable"),)
    assert choose_parts({mime: [1]}).parts == (UnreadPart(mime, 3, "not readable"),)


def test_a_later_status_of_the_same_key_replaces_the_earlier() -> None:
    first, other = StatusReport({"op": "pip", "done": 1}), StatusReport({"op": "pip", "id": 2})
    last = StatusReport({"op": "pip", "done": 2})
    assert latest_statuses([first, other, last]) == [last, other]
    assert StatusReport({"op": "x", "key": "k"}).key == ("x", "k")
    assert StatusReport({}).key == ("", "")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"image/tiff": "A" * 16_000}, "<image/tiff, 12 kB>"),
        ({"image/png": "no base64!"}, "<image/png, 7 B, not readable>"),
        ({"image/png": {"a": 1}}, "<image/png, 8 B, not readable>"),
        ({"image/png": ""}, "<image/png, 0 B, not readable>"),
        ({"image/png": None}, "<image/png, 4 B, not readable>"),
        ({"application/pdf": "A" * 4}, "<application/pdf, 3 B>"),
        ({"audio/wav": 5}, "<audio/wav, 1 B>"),
        ({"x/\x1b[2J\n": "y"}, "<x/␛[2J␊, 1 B>"),
        ({"image/svg+xml": 5}, "<image/svg+xml, 1 B>"),
        ({"application/x-odd": {1, 2}}, "<application/x-odd, 0 B>"),
    ],
)
def test_what_cannot_be_read_is_named(data: dict[str, Any], said: str) -> None:
    (part,) = choose_parts(data).parts
    assert str(part) == said


def test_an_image_that_is_too_large_is_named() -> None:
    (part,) = choose_parts({"image/png": "A" * 100_000_001}).parts
    assert "too large" in str(part)


def test_sizes_are_those_of_the_content() -> None:
    assert part_size("text/plain", "é") == 2
    assert part_size("image/png", b64encode(b"x" * 100).decode() + "\n") == 100
    assert part_size("image/svg+xml", "<svg/>") == 6
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert part_size("application/json", deep) == 0


def test_nothing_gives_nothing() -> None:
    assert choose_parts({}) == MimeChoice()
