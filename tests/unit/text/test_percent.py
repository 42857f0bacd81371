"""Scripts in the percent format, as editors and people write them."""

from __future__ import annotations

from typing import Any

import pytest

from cellwright.document.notebook import Notebook
from cellwright.errors import InvalidText
from cellwright.text.percent import find_comment, number_cells, parse_percent, to_percent
from tests.unit.cli import samples

SCRIPT = """\
# ---
# jupyter:
#   cellwright:
#     revision: 0123456789ab
#   kernelspec:
#     display_name: "Python 3"
#     name: python3
# ---

import os

# %% Load the data [markdown] id="a1" tags=["x", "y"]
# # Title
#
# text

# %% id="b2"
# %time x = 1
# # %% no marker
y = 2

# %%

# %% [raw]
# raw
"""


def cells(text: str, comment: str = "#") -> list[tuple[Any, ...]]:
    found = parse_percent(text, comment).cells
    return [(cell.type, cell.id, cell.metadata, cell.source, cell.line) for cell in found]


def test_a_script_is_cells_with_type_id_title_tags_source_and_line() -> None:
    assert cells(SCRIPT) == [
        ("code", None, {}, "import os", 10),
        ("markdown", "a1", {"tags": ["x", "y"], "title": "Load the data"}, "# Title\n\ntext", 12),
        ("code", "b2", {}, "%time x = 1\n# %% no marker\ny = 2", 17),
        ("code", None, {}, "", 22),
        ("raw", None, {}, "raw", 24),
    ]


def test_the_head_names_the_revision_and_the_kernel() -> None:
    script = parse_percent(SCRIPT)
    assert script.revision == "0123456789ab"
    assert script.head["kernelspec"] == {"display_name": "Python 3", "name": "python3"}
    assert parse_percent("x = 1").revision is None


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("", []),
        ("\n\n", []),
        ("x = 1", ["x = 1"]),
        ("x = 1\n\n", ["x = 1\n"]),
        ("# %%", [""]),
        ("# %%\n\n# %%\n", ["", ""]),
        ("# %%\r\nx\r\ny\r\n", ["x\ny"]),
        ("# %%\nx\n\n\n# %%\ny\n", ["x\n", "y"]),
        ("# %%%x\n# %% a\nb\n", ["# %%%x", "b"]),
        ("# ---\nno end\n", ["# ---\nno end"]),
        ('# %% [md]\n"""\na\n"""\n', ["a"]),
    ],
)
def test_lines_belong_to_the_cell_above_them(text: str, sources: list[str]) -> None:
    assert [cell.source for cell in parse_percent(text).cells] == sources


@pytest.mark.parametrize("options", ['tags=[x id="a"', 'id="a" tags=["b"] more'])
def test_an_option_that_is_not_json_is_refused_with_its_line(options: str) -> None:
    with pytest.raises(InvalidText) as refused:
        parse_percent(f"x\n\n# %% {options}\ny\n")
    assert refused.value.line == 3


@pytest.mark.parametrize(
    ("language", "path", "sign"),
    [("Rust", "", "//"), ("", "a.SQL", "--"), ("python", "a.py", "#"), ("", "", "#")],
)
def test_a_comment_is_that_of_the_language_or_the_file(language: str, path: str, sign: str) -> None:
    assert find_comment(language, path) == sign


def test_a_notebook_is_rendered_with_markers_comments_and_magics() -> None:
    cells = [
        {**samples.code("b", "%run x\n# %% y\nz = 1"), "metadata": {"tags": ["t"], "title": "T"}},
        samples.code("c", ""),
    ]
    notebook = Notebook(samples.write(*cells))
    script = to_percent(notebook)
    assert script.endswith('\n# %% T id="b" tags=["t"]\n# %run x\n# # %% y\nz = 1\n\n# %% id="c"\n')
    assert [cell.source for cell in parse_percent(script).cells] == ["%run x\n# %% y\nz = 1", ""]


def test_cells_without_an_id_are_those_with_their_source_or_between_their_neighbours() -> None:
    base = Notebook(
        samples.write(*(samples.code(name, f"{name} = 1") for name in "abcd"))
    ).snapshot()
    script = parse_percent('# %% id="d"\nd\n\n# %%\na = 1\n\n# %%\nb = 2\n\n# %% id="new"\ne\n')
    found = number_cells(script.cells, base)
    assert [cell.number for cell in found] == [3, 0, None, None]
    script = parse_percent("# %%\na = 1\n\n# %%\nchanged\n\n# %%\nc = 1\n\n\n# %%\nd = 1\n")
    found = number_cells(script.cells, base)
    assert [(cell.number, cell.source) for cell in found] == [
        (0, "a = 1"),
        (1, "changed"),
        (2, "c = 1"),
        (3, "d = 1"),
    ]
