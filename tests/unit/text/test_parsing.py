"""From text to the cells that it describes."""

from __future__ import annotations

import pytest

from cellwright.errors import InvalidText
from cellwright.text.view import TextCell, parse_text
from tests.unit.text.samples import text


def test_a_marker_has_a_type_and_perhaps_a_number() -> None:
    """S3: `# %% [code|markdown|raw]` with optional `cell:N`."""
    found = parse_text(
        text("# %% [code]", "a", "# %% [markdown] cell:7", "# %% [raw] cell:0", "b", "")
    )
    assert found == [
        TextCell("code", None, "a", 1),
        TextCell("markdown", 7, "", 3),
        TextCell("raw", 0, "b\n", 4),
    ]


def test_an_empty_text_has_no_cells() -> None:
    assert parse_text("") == []


@pytest.mark.parametrize(
    "start",
    [
        "",
        " ",
        "x = 1",
        "# Title",
        "# %%",
        "# %% [python]",
        "# %% [code] cell:x",
        "# %%% [code]",
        "\ufeff# %% [code]",
        "{",
        "x" * 1000,
    ],
)
def test_text_before_the_first_marker_is_refused_with_its_line(start: str) -> None:
    """S3: even a blank line is."""
    with pytest.raises(InvalidText) as raised:
        parse_text(text(start, "# %% [code] cell:0", "x"))
    assert (raised.value.code, raised.value.line) == ("INVALID_TEXT", 1)
    assert raised.value.message.startswith("Line 1: ")
    assert len(raised.value.message) < 240


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("print(1)\r", "it is `print(1)`"),  # carriage returns are forgiven
        ("  \r", "it is blank"),
        ("\ufeff# %% [code]", "there is a byte order mark before it"),
        ('{"cells": []}', "this looks like the JSON of a notebook"),
    ],
)
def test_what_stands_in_place_of_the_first_marker_is_said(line: str, said: str) -> None:
    with pytest.raises(InvalidText) as raised:
        parse_text(text(line, "# %% [code] cell:0", "x"))
    assert raised.value.message.endswith(said)


def test_a_text_without_any_marker_is_refused() -> None:
    with pytest.raises(InvalidText):
        parse_text("\n")
    with pytest.raises(InvalidText):
        parse_text("print(1)")


@pytest.mark.parametrize(
    "line",
    [
        "#%% [code]",
        " # %% [code]",
        "# %%",
        "# %% title",
        "\x0c# %% [code]",
        "x\u2028# %% [code]",
        "x\r# %% [code]",
    ],
)
def test_a_line_that_does_not_begin_like_a_marker_is_part_of_the_source(line: str) -> None:
    [found] = parse_text(text("# %% [code] cell:0", "a", line, "b"))
    assert found.source == text("a", line, "b")


@pytest.mark.parametrize(
    "line",
    [
        "# %% [python]",
        "# %% [Code]",
        "# %% [code]cell:1",
        "# %% [code]  cell:1",
        "# %% [code] cell:",
        "# %% [code] cell:x",
        "# %% [code] title",
        "# %% [code",
        "# %% [",
        "# %% [code]\x0c",
        "# %% [code]\r\r",
    ],
)
def test_a_line_that_begins_like_a_marker_and_is_none_is_an_error_with_its_line(line: str) -> None:
    with pytest.raises(InvalidText) as raised:
        parse_text(text("# %% [code] cell:0", "a", "", line, "b"))
    assert (raised.value.code, raised.value.line) == ("INVALID_TEXT", 4)
    assert "# %%% [" in raised.value.message  # how to write it as part of a source


@pytest.mark.parametrize("end", [" ", "\t ", "\r", "  \r"])
def test_blanks_and_a_carriage_return_after_a_marker_are_forgiven(end: str) -> None:
    first, second = parse_text(text(f"# %% [code] cell:0{end}", "a", f"# %% [raw]{end}", "b"))
    assert (first.type, first.number, first.source) == ("code", 0, "a")
    assert (second.type, second.number, second.source) == ("raw", None, "b")


def test_an_escaped_line_loses_one_percent_sign() -> None:
    [found] = parse_text(
        text("# %% [code]", "# %%% [code]", "x", "# %%%%%% [raw] cell:9", "# %%% x")
    )
    assert found.source == text("# %% [code]", "x", "# %%%%% [raw] cell:9", "# %%% x")


def test_a_blank_line_between_two_markers_is_an_empty_source() -> None:
    found = parse_text(text("# %% [code]", "", "# %% [code]", "# %% [code]", "", ""))
    assert [cell.source for cell in found] == ["", "", "\n"]
    assert [cell.line for cell in found] == [1, 3, 4]


@pytest.mark.parametrize(
    ("digits", "number"),
    [("0", 0), ("007", 7), ("000", 0), ("0" * 5000 + "12", 12), ("123456789012", 123456789012)],
)
def test_the_number_of_a_marker_is_read_as_a_number(digits: str, number: int) -> None:
    assert parse_text(f"# %% [code] cell:{digits}")[0].number == number


def test_a_number_of_ten_thousand_digits_is_only_too_large() -> None:
    number = parse_text(f"# %% [code] cell:{'9' * 10_000}")[0].number
    assert number is not None
    assert number > 10**15
