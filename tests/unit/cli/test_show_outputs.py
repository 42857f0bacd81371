"""What is shown of cells and outputs, and how much of it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from rich.cells import cell_len

from cellwright.cli.render.colors import highlight, language_of
from cellwright.cli.render.outputs import format_size
from cellwright.cli.render.screen import COLLAPSED, COLLAPSED_LINES, EXPANDED
from tests.unit.cli import show_samples as make
from tests.unit.cli.show_rendering import body, outputs, render


def display(**data: Any) -> Any:
    """A display by short names: `plain`, `html`, `markdown`, `latex`, `json`."""
    names = {"json": "application/json"}
    return make.display({names.get(name, f"text/{name}"): value for name, value in data.items()})


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, count + 1))


# -- heads --------------------------------------------------------------------------------------


def head(cell: Any, width: int = 60) -> str:
    return render(make.notebook([cell]), width).splitlines()[2]


@pytest.mark.parametrize(
    ("cell", "begins"),
    [
        (make.code("x", count=7), " 0  cell00  code [7]  ✓ ok ──"),
        (make.code("x", count=None), " 0  cell00  code [ ]  ○ never ──"),
        (make.code("x", [make.error("E", "v", [])], 2), " 0  cell00  code [2]  ✗ error ──"),
        (make.markdown("x"), " 0  cell00  markdown ──"),
        ({"cell_type": "raw", "metadata": {}, "source": ""}, " 0  cell00  raw ──"),
        ({"cell_type": "code", "metadata": {}}, " 0  cell00  code  ✗ broken ──"),
        (make.code("x", metadata={"tags": ["a", 3, "b"]}), " 0  cell00  code [1]  ✓ ok  #a  #b ──"),
        (make.code("x", metadata={"tags": "a"}), " 0  cell00  code [1]  ✓ ok ──"),
        ("not a cell", " 0  cell-0  unknown  ✗ broken ──"),
    ],
)
def test_a_head_says_everything_in_words(cell: Any, begins: str) -> None:
    line = head(cell)
    assert line.startswith(begins)
    assert len(line) == 60


def test_a_long_id_is_cut_and_the_head_stays_on_its_line() -> None:
    line = head(make.code("x", id="x" * 64))
    assert "x…  code [1]  ✓ ok" in line
    assert len(line) == 60


def test_two_cells_of_one_id_are_told_apart() -> None:
    data = make.notebook([make.code("1", id="same"), make.code("2", id="same")])
    heads = [line[4:17] for line in render(data).splitlines() if line.endswith("──")]
    assert heads == ["cell-0 (same)", "cell-1 (same)"]


def test_a_broken_cell_says_where_it_stands_and_why() -> None:
    data = make.notebook([make.code("x"), {"cell_type": "code", "metadata": {}}])
    assert "  │ cell 1 is not valid: it has no source\n" in render(data)


def test_indexes_of_many_cells_are_aligned() -> None:
    text = render(make.notebook([make.code("x")] * 101))
    heads = [line for line in text.splitlines() if line.endswith("──")]
    assert heads[0].startswith("  0  cell00  ")
    assert heads[100].startswith("100  cell100  ")
    assert "\n     x\n" in text


def test_the_heading_names_cells_kernel_and_format() -> None:
    about = {"kernelspec": {"name": "ir", "display_name": "R 4.4"}}
    text = render(make.notebook([make.code("x")], about), name="a/b.ipynb")
    assert text.startswith("a/b.ipynb  1 cell · R 4.4 · nbformat 4.5\n")
    assert render(make.notebook([], {"kernelspec": 3})).startswith("nb.ipynb  0 cells · nbformat")


def test_a_long_name_has_a_line_of_its_own() -> None:
    lines = render(make.notebook([]), 40, name="folder/" * 4 + "nb.ipynb").splitlines()
    assert lines[0] == "folder/" * 4 + "nb.ipynb"
    assert lines[1].startswith("0 cells · x · nbformat 4.5")


# -- sources ------------------------------------------------------------------------------------


def test_a_collapsed_source_has_twice_the_lines_of_an_output() -> None:
    assert COLLAPSED.source_lines == 2 * COLLAPSED_LINES == 2 * COLLAPSED.output_lines


@pytest.mark.parametrize("make_cell", [make.code, lambda text: make.markdown(f"```\n{text}\n```")])
def test_a_long_source_says_how_much_is_hidden(make_cell: Any) -> None:
    lines = body(make_cell(numbered(100)))
    hidden = int(lines[-1].split()[1])
    assert lines[-1] == f"… {hidden} more lines (--expanded shows them)"
    assert 70 <= hidden <= 72
    assert "  line 100" in [
        line.rstrip().replace("    ", "  ")
        for line in body(make_cell(numbered(100)), expanded=True)
    ]


def test_a_source_that_is_one_line_too_long_is_shown_whole() -> None:
    assert len(body(make.code(numbered(2 * COLLAPSED_LINES + 1)))) == 2 * COLLAPSED_LINES + 1
    assert body(make.code(numbered(2 * COLLAPSED_LINES + 2)))[-1].startswith("… 2 more lines")


def test_a_long_line_goes_on_below_under_its_own_indent() -> None:
    assert body(make.code("if x:\n    " + "word " * 12), 40) == [
        "  if x:",
        "      word word word word word word",
        "      ↪ word word word word word word",
    ]


@pytest.mark.parametrize("text", ["x" * 99, "東" * 50, "e\u0301" * 99, "a b " * 30])
def test_a_line_without_words_is_broken_where_it_must(text: str) -> None:
    lines = body(make.code(text), 40)
    assert len(lines) > 1
    assert all(cell_len(line) <= 38 for line in lines)
    joined = "".join(line[2:].removeprefix("↪ ") for line in lines)
    assert joined.replace(" ", "") == text.replace(" ", "")


def test_an_endless_line_is_cut() -> None:
    lines = body(make.code("x" * 1_000_000), 100)
    assert lines[-1].endswith(f"… {1_000_000 - COLLAPSED.line_characters:,} more characters")
    assert len(lines) < 15


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({}, "python"),
        ({"language_info": {"name": "R"}}, "r"),
        ({"language_info": {"name": "python", "pygments_lexer": "ipython3"}}, "python"),
        ({"language_info": {"name": "c++", "pygments_lexer": "cpp"}}, "cpp"),
        ({"kernelspec": {"language": "julia"}}, "julia"),
        ({"language_info": 3, "kernelspec": None}, "python"),
        ({"language_info": {"name": 3}}, "python"),
    ],
)
def test_the_language_is_the_notebooks(metadata: dict[str, Any], language: str) -> None:
    assert language_of(metadata) == language


def styles(source: str, language: str) -> list[list[tuple[str, str]]]:
    """The styled parts of each line."""
    return [
        [(line.plain[span.start : span.end], str(span.style)) for span in line.spans]
        for line in highlight(source, language)
    ]


@pytest.mark.parametrize(
    ("source", "language", "word", "style"),
    [
        ("def f(): pass", "python", "def", "magenta"),
        ("%%bash\nif true; then x; fi", "python", "if", "magenta"),
        ("%%html\n<b>x</b>", "python", "b", "blue"),
        ("%%javascript\nvar x = 1", "python", "var", "magenta"),
        ("%%sql\nSELECT 1", "python", "SELECT", "magenta"),
        ("%%time\ndef f(): pass", "python", "def", "magenta"),
        ("%%bash", "python", "%%bash", "yellow"),
        ("!ls -l", "python", "!ls -l", "yellow"),
        ("f <- function(x) x", "r", "function", "magenta"),
    ],
)
def test_sources_are_coloured_by_their_language(
    source: str, language: str, word: str, style: str
) -> None:
    assert (word, style) in [part for line in styles(source, language) for part in line]


def test_an_unknown_language_is_shown_without_colours() -> None:
    assert [line.plain for line in highlight("def f():\n  x", "no such thing")] == [
        "def f():",
        "  x",
    ]


# -- which of several types ---------------------------------------------------------------------

TABLE = "<table><tr><td>cell</td></tr></table>"


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (display(markdown="**m**", plain="p", html="<p>h</p>"), ["m"]),
        (display(plain="p", html="<p>h</p>"), ["p"]),
        (display(html="<p>h</p>"), ["h"]),
        (display(html=TABLE, plain="p", markdown="m"), ["cell"]),
        (display(plain="<IPython.core.display.HTML object>", html="<p>h</p>"), ["h"]),
        (
            display(plain="<IPython.core.display.HTML object>"),
            ["<IPython.core.display.HTML object>"],
        ),
        (display(plain="x²", latex="$x^2$"), ["x²"]),
        (display(plain="<IPython.core.display.Latex object>", latex="$x^2$"), ["$x^2$"]),
        (display(latex="$x^2$"), ["$x^2$"]),
        (display(json={"a": 1}, plain="p"), ["{} 1 key", "└─ a: 1"]),
        (make.display({"image/svg+xml": "x" * 12_345}), ["image/svg+xml, 12 kB"]),
        (
            make.display({"image/svg+xml": "<svg/>", "text/plain": "<IPython.SVG object>"}),
            ["image/svg+xml, 6 B"],
        ),
        (make.display({"application/pdf": "A" * 4000}), ["application/pdf, 3.0 kB"]),
        (
            make.display({"application/javascript": "x()", "text/plain": "p"}),
            ["p", "application/javascript, 3 B"],
        ),
        (
            make.display({"application/vnd.plotly.v1+json": {"data": []}}),
            ["application/vnd.plotly.v1+json, 12 B"],
        ),
        (make.display({"text/x-odd": "odd"}), ["odd"]),
        (make.display({"text/html": "<script>1</script>"}), ["text/html, 18 B"]),
        (make.display({"text/plain": 3}), ["text/plain, 1 B"]),
        (
            make.display({"application/x-cellwright-status": {"op": "read"}}),
            ['status: {"op": "read"}'],
        ),
        (make.display({"application/x-omp-status": {"op": "read"}}), ['status: {"op": "read"}']),
        (make.display({}), []),
        ({"output_type": "update"}, ["unknown output: update"]),
        ("nonsense", ["unknown output: str"]),
    ],
)
def test_the_best_type_is_shown(output: Any, lines: list[str]) -> None:
    assert outputs(output) == [f"│ {line}" for line in lines]


def test_several_outputs_stand_apart_beside_one_rule() -> None:
    assert outputs(make.stream("a\n"), display(plain="b")) == ["│ a", "│", "│ b"]


def test_what_was_printed_in_pieces_is_one_output() -> None:
    pieces = [make.stream("a"), make.stream("b\n"), make.stream("e\n", "stderr"), make.stream("c")]
    assert outputs(*pieces) == ["│ ab", "│", "│ stderr", "│ e", "│", "│ c"]


# -- how much -----------------------------------------------------------------------------------


def test_a_long_output_shows_its_first_and_its_last_lines() -> None:
    lines = outputs(make.stream(numbered(100) + "\n"))
    assert lines[0] == "│ line 1"
    assert lines[-1] == "│ line 100"
    assert f"… {100 - COLLAPSED_LINES} more lines (--expanded shows them)" in lines
    assert len(lines) == COLLAPSED_LINES + 1
    assert len(outputs(make.stream(numbered(100)), expanded=True)) == 100


def test_a_long_traceback_shows_what_was_raised() -> None:
    lines = outputs(make.error("E", "v", [numbered(100), "E: v"]))
    assert lines[-1] == "│ E: v"
    assert lines[:2] == ["│ line 1", "│ line 2"]
    assert len(lines) == COLLAPSED_LINES + 1


def test_a_traceback_without_lines_says_what_was_raised() -> None:
    assert outputs(make.error("KeyError", "'x'", [])) == ["│ KeyError: 'x'"]


def test_many_outputs_are_counted() -> None:
    lines = outputs(*[display(plain=str(number)) for number in range(50)])
    assert lines[-1] == "… 40 more outputs (--expanded shows them)"
    assert len(outputs(*[display(plain="x")] * 50, expanded=True)) == 99


def test_a_notice_cannot_be_imitated() -> None:
    """No line of a notebook has our sign in the margin."""
    fake = "… 5 more lines (--expanded shows them)"
    lines = [*outputs(make.stream(fake)), *body(make.code(fake)), *body(make.markdown(fake))]
    assert not [line for line in lines if line.startswith("…")]


def test_a_huge_output_is_shown_at_once() -> None:
    outputs_ = [
        make.stream("some line of a log\n" * 500_000),
        make.stream("x" * 5_000_000, "stderr"),
    ]
    data = make.notebook([make.code("", outputs_)])
    start = time.process_time()
    assert "499,985 more lines" in render(data)
    assert time.process_time() - start < 5


def test_outputs_too_deep_to_read_are_told() -> None:
    deep = "[" * 10_000 + "]" * 10_000
    data = make.notebook([make.code("x", [display(json=7)])]).replace(b": 7", f": {deep}".encode())
    assert "nested too deeply" in render(data).lower()


# -- JSON ---------------------------------------------------------------------------------------


def nest(depth: int) -> Any:
    return {"a": nest(depth - 1)} if depth else 1


def tree(value: Any, **options: bool) -> list[str]:
    return [line[2:] for line in outputs(display(json=value), **options)]


def test_a_tree_has_two_levels_of_five_items() -> None:
    assert (COLLAPSED.json_depth, COLLAPSED.json_items) == (2, 5)
    assert tree(nest(4)) == ["{} 1 key", "└─ a: {} 1 key", "   └─ a: {} 1 key"]
    assert tree(list(range(9)))[5:] == ["├─ 4", "└─ … 4 more"]
    assert len(tree(list(range(6)))) == 7  # one more is no longer than the notice


def test_an_expanded_tree_has_six_levels_of_twenty_items() -> None:
    assert (EXPANDED.json_depth, EXPANDED.json_items) == (6, 20)
    assert len(tree(nest(9), expanded=True)) == 7
    assert tree(list(range(99)), expanded=True)[20:] == ["├─ 19", "└─ … 79 more"]


def test_values_are_written_as_json() -> None:
    assert tree({"s": 'a"b', "n": None, "t": True, "f": -1.5e300, "e": {}}) == [
        "{} 5 keys",
        '├─ s: "a\\"b"',
        "├─ n: null",
        "├─ t: true",
        "├─ f: -1.5e+300",
        "└─ e: {} 0 keys",
    ]
    assert tree("just text") == ['"just text"']
    assert tree(["x" * 500])[-1].endswith('x…"')


# -- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "words"),
    [
        *((0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_345, "12 kB"), (999_999, "1000 kB")),
        *((2_500_000, "2.5 MB"), (7_000_000_000, "7.0 GB"), (7_000_000_000_000, "7,000 GB")),
    ],
)
def test_sizes_read_as_people_say_them(size: int, words: str) -> None:
    assert format_size(size) == words
