"""The text view is exact in both directions, whatever the notebook and whatever the edit."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellwright import Notebook
from cellwright.document.edits import Move
from cellwright.errors import Conflict
from cellwright.text.combine import edits_for, from_text
from cellwright.text.percent import number_cells, parse_percent, to_percent
from cellwright.text.view import (
    drop_last_newline,
    end_with_newline,
    parse_text,
    render_text,
    to_text,
)
from tests.conftest import RUN_ALL
from tests.property import checks, strategies

KINDS = ["code", "markdown", "raw"]
# Lines that are markers, look like escaped ones, or only look like them to somebody else.
MARKER_LIKE = [
    "# %% [code]",
    "# %% [markdown] cell:0",
    "# %% [raw] cell:12",
    "# %%% [code] cell:1",
    "# %%%% [markdown]",
    "# %%%%%%% [raw] cell:007",
    "# % [code]",
    "#%% [code]",
    "# %% [code] ",
    " # %% [code]",
    "# %% [code] cell:",
    "# %% [code] cell:-1",
    "# %% [code] cell:\u0663",
    "# %% [code] cell:1\r",
    "# %% [python] cell:1",
    "# %% code",
    "# %% [code]\x0c",
    "# %% [code]\u2028# %% [raw]",
    "\x0c# %% [code] cell:3",
]
lines = st.sampled_from(
    [*MARKER_LIKE, "", "", "x = 1", "form\x0cfeed", "\u2028", "a\rb", "\r", "\x85", "\x1e"]
)
marker_text = st.lists(lines, max_size=5).map("\n".join)
texts = st.one_of(strategies.text, marker_text)
# A whole notebook takes its time to draw.
some_notebooks = settings(max_examples=1500 if RUN_ALL else 40)


@st.composite
def notebooks(draw: st.DrawFn, *, valid: bool = False) -> bytes:
    """Any notebook in any style, with sources full of lines that look like markers."""
    value = draw(strategies.values(valid=valid))
    for cell in value["cells"]:
        if draw(st.booleans()):
            source = draw(marker_text)
            cell["source"] = source if draw(st.booleans()) else re.findall(r"[^\n]*\n|.+", source)
    return strategies.write(value, draw(strategies.styles))


def as_file(cells: list[dict[str, Any]], minor: int) -> bytes:
    value = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(value, indent=1).encode()


def told(notebook: Notebook) -> list[tuple[str, str]]:
    return [(cell.type, cell.source) for cell in notebook.cells]


# --- There and back ------------------------------------------------------------------------------


@pytest.mark.timeout(300)
@settings(max_examples=5000 if RUN_ALL else 80)
@given(notebooks())
def test_rendering_and_parsing_is_the_identity_for_every_notebook(data: bytes) -> None:
    notebook = Notebook(data)
    text = to_text(notebook)
    parsed = parse_text(text)
    assert [(cell.type, cell.source) for cell in parsed] == told(notebook)
    assert [cell.number for cell in parsed] == list(range(len(notebook.cells)))
    again = from_text(text, base=notebook)
    assert again.to_bytes() == data == notebook.to_bytes()
    assert again is not notebook
    assert to_text(again) == text
    assert drop_last_newline(end_with_newline(text)) == text


@pytest.mark.timeout(300)
@settings(max_examples=5000 if RUN_ALL else 150)
@given(st.lists(st.tuples(st.sampled_from(KINDS), texts), max_size=4))
def test_sources_full_of_markers_come_back_as_they_were(cells: list[tuple[str, str]]) -> None:
    """Small documents, and therefore many: the identity is about the sources."""
    extra = {"code": {"execution_count": None, "outputs": []}, "markdown": {}, "raw": {}}
    data = as_file(
        [
            {"cell_type": kind, "metadata": {"n": n}, "source": source, **extra[kind]}
            for n, (kind, source) in enumerate(cells)
        ],
        minor=4,
    )
    notebook = Notebook(data)
    text = to_text(notebook)
    assert from_text(text, base=notebook).to_bytes() == data
    assert told(from_text(text)) == cells
    assert to_text(from_text(text)) == text


@some_notebooks
@given(notebooks())
def test_the_lines_of_a_cell_hold_its_marker_and_its_source(data: bytes) -> None:
    view = render_text(Notebook(data))
    at = 1
    for place in view.cells:
        assert place.marker == at
        assert view.lines[at - 1] == f"# %% [{place.cell.type}] cell:{place.cell.index}"
        shown = "\n".join(view.lines[place.first - 1 : place.last])
        assert shown == "\n".join(map(escaped, place.cell.source.split("\n")))
        assert {view.cell_at(line) for line in range(at, place.last + 1)} == {place}
        at = place.last + 1
    assert len(view.lines) == at - 1
    assert view.cell_at(0) is None
    assert view.cell_at(at) is None


def escaped(line: str) -> str:
    """The escape of the specification, line by line."""
    if re.match(r"# %%+ \[", line):
        return "# %" + line[2:]
    return line


# --- Edited text, against a model ----------------------------------------------------------------


class Wanted(NamedTuple):
    """A cell that the text asks for; `origin` is the old cell that it keeps."""

    origin: int | None
    number: int | None
    type: str
    source: str


@st.composite
def edited(draw: st.DrawFn, notebook: Notebook) -> list[Wanted]:
    """Some of the cells in any order, some edited or retyped, and new ones between them."""
    count = len(notebook.cells)
    order = draw(st.permutations(range(count)))
    wanted: list[Wanted] = []
    for origin in order[: draw(st.integers(0, count))]:
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            used = [cell.origin for cell in wanted if cell.origin is not None]
            unusable = [None, count, count + 7, 10**30, *used]
            number = draw(st.sampled_from(unusable))
            wanted.append(Wanted(None, number, draw(st.sampled_from(KINDS)), draw(texts)))
        cell = notebook.cells[origin]
        what = draw(st.sampled_from(["keep", "keep", "source", "type", "both"]))
        source = draw(texts) if what in ("source", "both") else cell.source
        kind = draw(st.sampled_from(KINDS)) if what in ("type", "both") else cell.type
        wanted.append(Wanted(origin, origin, kind, source))
    return wanted


def as_text(wanted: list[Wanted]) -> str:
    """The text that asks for those cells, written without the code under test."""
    rows = []
    for cell in wanted:
        rows.append(f"# %% [{cell.type}]" + (f" cell:{cell.number}" * (cell.number is not None)))
        if cell.source:
            rows += map(escaped, cell.source.split("\n"))
    return "\n".join(rows)


@some_notebooks
@given(notebooks(), st.data())
def test_edited_text_makes_exactly_the_notebook_it_describes(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    wanted = draw.draw(edited(notebook))
    result = from_text(as_text(wanted), base=notebook)
    assert notebook.to_bytes() == data
    assert told(result) == [(cell.type, cell.source) for cell in wanted]
    after = result.to_bytes()
    old, new = checks.anatomy(data), checks.anatomy(after)
    assert old.frame == new.frame
    values = zip(checks.load(data)["cells"], notebook.cells, strict=True)
    before = [(value, cell.type, cell.source) for value, cell in values]
    cells = zip(wanted, new.cells, checks.load(after)["cells"], strict=True)
    for cell, raw, value in cells:
        if cell.origin is None:
            assert_new(value, cell, notebook.nbformat_minor)
        elif before[cell.origin][1:] == (cell.type, cell.source):
            assert raw == old.cells[cell.origin]
        else:
            assert_kept(before[cell.origin][0], value, cell)


def assert_new(value: dict[str, Any], cell: Wanted, minor: int) -> None:
    expected = {"cell_type": cell.type, "metadata": {}, "source": value["source"]}
    if cell.type == "code":
        expected |= {"execution_count": None, "outputs": []}
    if minor >= 5:
        expected["id"] = value["id"]
    assert value == expected
    assert checks.source_of(value) == cell.source


def assert_kept(old: dict[str, Any], new: dict[str, Any], cell: Wanted) -> None:
    """All but type and source is as it was, as far as the type may have it."""
    assert checks.source_of(new) == cell.source
    assert new["cell_type"] == cell.type
    assert new["metadata"] == old.get("metadata", {})
    theirs = {"code": {"outputs", "execution_count"}, "markdown": {"attachments"}}
    theirs["raw"] = theirs["markdown"]
    for key in old.keys() - {"cell_type", "source", "metadata"}:
        elsewhere = {"outputs", "execution_count", "attachments"} - theirs[cell.type]
        if key in elsewhere:
            assert key not in new
        else:
            assert new[key] == old[key]
    if cell.type == "code":
        assert {"outputs", "execution_count"} <= new.keys()


@some_notebooks
@given(notebooks(), st.data())
def test_no_cell_is_moved_that_need_not_be(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    wanted = draw.draw(edited(notebook))
    edits = edits_for(parse_text(as_text(wanted)), notebook)
    kept = [cell.origin for cell in wanted if cell.origin is not None]
    fewest = len(kept) - max(map(len, rising(kept)))
    assert sum(isinstance(edit, Move) for edit in edits) == fewest
    change = notebook.apply(edits)
    notebook.apply(change.inverse())
    assert notebook.to_bytes() == data


def rising(values: list[int]) -> list[tuple[int, ...]]:
    """All longest rising subsequences, by trying all subsequences."""
    for size in range(len(values), -1, -1):
        found = [
            some for some in itertools.combinations(values, size) if list(some) == sorted(some)
        ]
        if found:
            return found
    raise AssertionError


@some_notebooks
@given(notebooks(valid=True), st.data())
def test_a_valid_notebook_is_valid_after_its_text_was_edited(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    result = from_text(as_text(draw.draw(edited(notebook))), base=notebook)
    assert result.validate() is None


@some_notebooks
@given(notebooks(), st.data())
def test_changing_one_line_of_the_text_changes_only_that_cell(data: bytes, draw: Any) -> None:
    """What `sed` on the printed text does."""
    notebook = Notebook(data)
    view = render_text(notebook)
    with_source = [place for place in view.cells if place.cell.source]
    if not with_source:
        return
    place = draw.draw(st.sampled_from(with_source))
    number = draw.draw(st.integers(place.first, place.last))
    rows = end_with_newline(view.text).split("\n")
    rows[number - 1] += "  # changed"
    result = from_text(drop_last_newline("\n".join(rows)), base=notebook)
    checks.assert_only_cell_changed(data, result.to_bytes(), place.cell.index)
    assert result.cells[place.cell.index].source != place.cell.source


# --- A stale base, against a model ---------------------------------------------------------------


class Version(NamedTuple):
    """A cell on one side: the cell of the base that it is, and who made it what it is."""

    label: str
    by: str = "base"

    @property
    def source(self) -> str:
        return f"{self.label} by {self.by}"


Side = list[Version]


def merged(count: int, here: Side, there: Side) -> tuple[set[str], set[tuple[Version, ...]]]:
    """The cells in conflict; if there are none, the results that the rules allow.

    More than one result is allowed where an order can be explained by different moves.
    """
    base = [str(n) for n in range(count)]
    now, text = dict(here), dict(there)
    conflicts = {
        label
        for label in base
        if now.get(label, "gone") != text.get(label, "gone")
        and "base" not in (now.get(label, "gone"), text.get(label, "gone"))
    }
    gone = {label for label in base if label not in now or label not in text}
    content = {**text, **now, **{label: by for label, by in text.items() if by != "base"}}
    results = set()
    orders = ([int(cell.label) for cell in side if cell.label in base] for side in (here, there))
    for still_here, still_there in itertools.product(*map(rising, orders)):
        moved = {
            cell.label
            for cell in there
            if cell.label in base and int(cell.label) not in still_there
        } - {
            cell.label for cell in here if cell.label in base and int(cell.label) not in still_here
        }
        order = [cell.label for cell in here if cell.label not in gone | moved]
        before = None
        for cell in there:
            if cell.label in gone:
                continue
            if cell.label not in order:
                order.insert(order.index(before) + 1 if before else 0, cell.label)
            before = cell.label
        results.add(tuple(Version(label, content[label]) for label in order))
    return conflicts, results


def one_change(count: int, who: str) -> list[Side]:
    """All that one edit, deletion, move or insertion makes of the base; and nothing done."""
    base = [Version(str(n)) for n in range(count)]
    sides = [base]
    for n in range(count):
        sides.append([*base[:n], Version(str(n), who), *base[n + 1 :]])
        rest = base[:n] + base[n + 1 :]
        sides.append(rest)
        sides += [[*rest[:to], base[n], *rest[to:]] for to in range(count)]
        sides += [[*rest[:to], Version(str(n), who), *rest[to:]] for to in range(count)]
    sides += [[*base[:to], Version(f"new of {who}", who), *base[to:]] for to in range(count + 1)]
    return [list(side) for side in dict.fromkeys(map(tuple, sides))]


def book_of(count: int, *, ids: bool) -> Notebook:
    cells = []
    for n in range(count):
        named = {"id": f"id-{n}"} if ids else {}
        outputs = {"outputs": [], "execution_count": n}
        source = Version(str(n)).source
        metadata = {"n": n}
        cells.append(
            {"cell_type": "code", **named, "metadata": metadata, "source": source, **outputs}
        )
    return Notebook(as_file(cells, 5 if ids else 4))


def text_of(side: Side) -> str:
    rows = []
    for cell in side:
        rows.append("# %% [code]" + f" cell:{cell.label}" * cell.label.isdigit())
        rows.append(cell.source)
    return "\n".join(rows)


def assert_merges(count: int, here: Side, there: Side, *, ids: bool) -> None:
    """Change a notebook to be `here`, then write the text of `there` with the base as it was."""
    notebook = book_of(count, ids=ids)
    base = notebook.snapshot()
    notebook = from_text(text_of(here), base=notebook)
    now = notebook.to_bytes()
    raws = {cell.source: cell.raw for cell in notebook.cells}
    conflicts, allowed = merged(count, here, there)
    if conflicts:
        with pytest.raises(Conflict) as raised:
            edits_for(parse_text(text_of(there)), notebook, base)
        shown = {(cell.current, cell.other) for cell in raised.value.cells}
        sides = [{cell.label: cell.source for cell in side} for side in (here, there)]
        assert shown == {(sides[0].get(label), sides[1].get(label)) for label in conflicts}
        assert [cell.base for cell in raised.value.cells] == [None] * len(conflicts)
        for cell in raised.value.cells:
            assert (cell.index is None) == (cell.current is None)
            if cell.index is not None:
                assert notebook.cell(cell.handle).index == cell.index
        return
    notebook.apply(edits_for(parse_text(text_of(there)), notebook, base))
    sources = [cell.source for cell in notebook.cells]
    assert sources in [[cell.source for cell in result] for result in allowed]
    for cell in notebook.cells:
        assert raws.get(cell.source, cell.raw) == cell.raw
        label = cell.source.partition(" by ")[0]
        assert cell.metadata == ({"n": int(label)} if label.isdigit() else {})
    if here == [Version(str(n)) for n in range(count)]:
        assert sources == [cell.source for cell in there]
    if there == [Version(str(n)) for n in range(count)]:
        assert notebook.to_bytes() == now


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
def test_one_change_in_the_text_and_one_in_the_notebook_merge_by_the_rules(ids: bool) -> None:
    count = 4
    pairs = itertools.product(one_change(count, "notebook"), one_change(count, "text"))
    tried = 0
    for here, there in pairs:
        if not ids and moved_and_edited(here):
            continue  # nothing tells that this is the same cell
        assert_merges(count, here, there, ids=ids)
        tried += 1
    assert tried > 800


def moved_and_edited(side: Side) -> bool:
    order = [int(cell.label) for cell in side if cell.label.isdigit()]
    return order != sorted(order) and any(cell.by != "base" for cell in side)


@st.composite
def many_changes(draw: st.DrawFn, count: int, who: str) -> Side:
    order = draw(st.permutations(range(count)))
    side: Side = []
    for n in order[: draw(st.integers(0, count))]:
        if draw(st.sampled_from([False, False, True])):
            side.append(Version(f"new of {who} {len(side)}", who))
        side.append(Version(str(n), draw(st.sampled_from(["base", "base", who, "both"]))))
    return side


@given(st.data())
def test_any_changes_in_the_text_and_in_the_notebook_merge_by_the_rules(draw: Any) -> None:
    count = draw.draw(st.integers(0, 5))
    here = draw.draw(many_changes(count, "notebook"))
    there = draw.draw(many_changes(count, "text"))
    assert_merges(count, here, there, ids=True)


@some_notebooks
@given(notebooks(), st.data())
def test_a_base_that_is_not_stale_changes_nothing(data: bytes, draw: Any) -> None:
    notebook = Notebook(data)
    cells = parse_text(as_text(draw.draw(edited(notebook))))
    without = edits_for(cells, notebook)
    assert edits_for(cells, notebook, notebook.snapshot()) == without


# --- Scripts in the percent format -------------------------------------------------------------------

PERCENT_LIKE = [
    "# %%",
    "%%",
    "# %% [raw]",
    "%%time",
    "# %%time",
    "!ls",
    "# !ls",
    "?x",
    "# # %%",
    "# ---",
]
percent_text = st.lists(
    st.one_of(st.sampled_from([*PERCENT_LIKE, "", "#", "# ", " ", '"""']), st.text('#% !?a\r="[')),
    max_size=5,
).map("\n".join)


@settings(max_examples=2000 if RUN_ALL else 200)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), percent_text), max_size=5),
    st.sampled_from(["#", "//"]),
)
def test_a_script_gives_every_source_back(cells: list[tuple[str, str]], comment: str) -> None:
    notebook = Notebook()
    notebook.apply([{"op": "insert", "type": kind, "source": text} for kind, text in cells])
    script = parse_percent(to_percent(notebook, comment), comment)
    assert [(cell.type, cell.source, cell.id) for cell in script.cells] == [
        (cell.type, cell.source, cell.id) for cell in notebook.cells
    ]
    assert script.revision == notebook.revision
    assert edits_for(number_cells(script.cells, notebook.snapshot()), notebook) == []
