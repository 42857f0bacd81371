"""What a selector means, before there is anything to select from."""

from __future__ import annotations

import pytest

from cellwright.errors import InvalidSelector
from cellwright.text.selectors import parse_selector, split_path


@pytest.mark.parametrize(
    ("selector", "ranges"),
    [
        ("7", [(7, 7)]),
        ("7-", [(7, None)]),
        ("5-16", [(5, 16)]),
        ("5-5", [(5, 5)]),
        ("5+3", [(5, 7)]),
        ("20+1", [(20, 20)]),
        ("5-16,960-973", [(5, 16), (960, 973)]),
        ("960-973,5-16", [(5, 16), (960, 973)]),
        ("5-16, 10-20", [(5, 20)]),
        ("5-16,17-20", [(5, 20)]),
        ("5-16,18-20", [(5, 16), (18, 20)]),
        ("5-20,7-9", [(5, 20)]),
        ("30-,5,40-50", [(5, 5), (30, None)]),
        ("40-50,30-", [(30, None)]),
        ("40-50,45-", [(40, None)]),
        ("3,1,2", [(1, 3)]),
        ("007", [(7, 7)]),
    ],
)
@pytest.mark.parametrize("form", ["{}", "{}:raw", "raw:{}"])
def test_ranges_are_sorted_and_merged(
    selector: str, ranges: list[tuple[int, int | None]], form: str
) -> None:
    found = parse_selector(form.format(selector))
    assert (found.kind, list(found.ranges), found.raw) == ("lines", ranges, form != "{}")


def test_only_a_single_bounded_range_has_context() -> None:
    with_context = ["7", "5-16", "5+3", "5-16:raw"]
    without = ["7-", "5-16,20-30", "5-6,7-8", "cell=a", "section=a", "outline", "raw"]
    assert all(parse_selector(text).has_context for text in with_context)
    assert not any(parse_selector(text).has_context for text in without)


@pytest.mark.parametrize(
    ("selector", "kind", "name", "raw"),
    [
        ("raw", "all", "", True),
        ("outline", "outline", "", False),
        ("cell=ab12", "cell", "ab12", False),
        ("cell=cell-3", "cell", "cell-3", False),
        ("cell=-1", "cell", "-1", False),
        ("section=Data", "section", "Data", False),
        ("section= 1. Load: a = b, c:raw ", "section", "1. Load: a = b, c:raw", False),
    ],
)
def test_a_selector_by_name(selector: str, kind: str, name: str, raw: bool) -> None:
    found = parse_selector(selector)
    assert (found.kind, found.name, found.raw, list(found.ranges)) == (kind, name, raw, [])


@pytest.mark.parametrize(
    "selector",
    [
        "",
        " ",
        "0",
        "0-5",
        "0+5",
        "5-4",
        "5+0",
        "5+",
        "-5",
        "+5",
        "5--6",
        "5-6-7",
        "a",
        "5-b",
        "1.5",
        "5,",
        ",5",
        "5,,6",
        "5-6,0",
        "\u0663",
        "9" * 30,
        "raw:",
        ":raw",
        "raw:raw",
        "raw:outline",
        "outline:raw",
        "5:raw:raw",
        "5:6",
        "5:RAW",
        "cell",
        "cell=",
        "section= ",
        "Outline",
        "lines=5",
    ],
)
def test_a_selector_that_makes_no_sense_is_refused(selector: str) -> None:
    with pytest.raises(InvalidSelector) as raised:
        parse_selector(selector)
    assert (raised.value.code, raised.value.selector) == ("INVALID_SELECTOR", selector)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("given", "files", "path", "selector"),
    [
        ("nb.ipynb", ["nb.ipynb"], "nb.ipynb", None),
        ("nb.ipynb", [], "nb.ipynb", None),
        ("nb.ipynb:5-16", ["nb.ipynb"], "nb.ipynb", "5-16"),
        ("nb.ipynb:5-16", ["nb.ipynb", "nb.ipynb:5-16"], "nb.ipynb:5-16", None),
        ("nb.ipynb:5-16:raw", ["nb.ipynb"], "nb.ipynb", "5-16:raw"),
        ("nb.ipynb:5-16:raw", ["nb.ipynb", "nb.ipynb:5-16"], "nb.ipynb:5-16", "raw"),
        ("nb.ipynb:section=a:b", ["nb.ipynb"], "nb.ipynb", "section=a:b"),
        ("nb.ipynb:section=a:5", ["nb.ipynb"], "nb.ipynb", "section=a:5"),
        ("nb.ipynb:nonsense", ["nb.ipynb"], "nb.ipynb", "nonsense"),
        ("nb.ipynb:", ["nb.ipynb"], "nb.ipynb", ""),
        ("a:b/nb.ipynb:raw", ["a:b/nb.ipynb"], "a:b/nb.ipynb", "raw"),
        ("missing.ipynb:5-16:raw", [], "missing.ipynb", "5-16:raw"),
        ("missing.ipynb:section=a:5", [], "missing.ipynb", "section=a:5"),
        ("missing:cell=x", [], "missing", "cell=x"),
        ("missing.ipynb:nonsense", [], "missing.ipynb", "nonsense"),
        ("C:nb.ipynb", [], "C:nb.ipynb", None),
        (":5", [], ":5", None),
        ("-", [], "-", None),
    ],
)
def test_a_path_ends_where_its_selector_begins_and_a_real_file_wins(
    given: str, files: list[str], path: str, selector: str | None
) -> None:
    assert split_path(given, files.__contains__) == (path, selector)
