"""What a hash and a revision stand for: the order, ids, types and sources of cells, no more."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import msgspec
import pytest

from cellwright import Notebook, Snapshot
from cellwright.document._bytes.slots import Slot
from tests.unit.document.samples import (
    IMAGE,
    MINIFIED,
    PRETTY,
    RESULT,
    STREAM,
    book,
    code,
    markdown,
    raw,
    write,
)


def hash_of(cell: Any) -> str:
    return book(cell).cells[0].hash


def test_a_hash_is_twelve_hex_digits() -> None:
    assert re.fullmatch("[0-9a-f]{12}", hash_of(code("x", "aa")))
    assert re.fullmatch("[0-9a-f]{12}", book(code("x", "aa")).revision)


@pytest.mark.parametrize(
    "same",
    [
        code("a\nb", "other"),
        code("a\nb"),
        code("a\nb", "aa", execution_count=7, outputs=[STREAM, RESULT]),
        code("a\nb", "aa", metadata={"tags": ["t"], "k": 1}),
        {**code("", "aa"), "source": "a\nb"},
        {**code("", "aa"), "source": ["a", "\n", "", "b"]},
        {"cell_type": "code", "source": "a\nb"},
        {"x_own": 1, "source": ["a\nb"], "cell_type": "code", "metadata": {}},
    ],
)
def test_a_hash_depends_on_nothing_but_type_and_source(same: dict[str, Any]) -> None:
    assert hash_of(same) == hash_of(code("a\nb", "aa"))


def test_a_hash_tells_types_and_sources_apart() -> None:
    texts = ["", "\n", "a", "a\n", "a ", "A", "a\r\n", "a\0", "\0a", "é", "e\u0301", "\ud800"]
    cells = [make(text, "aa") for make in (code, markdown, raw) for text in texts]
    cells += [{"cell_type": "other", "source": "a"}, {"cell_type": "other", "source": "b"}]
    cells += [5, 6, None, [], {}, {"cell_type": "code"}, {"cell_type": "code", "source": 1}]
    cells.append(code('{"cell_type": "code"}', "aa"))  # says what a broken cell is
    data = json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}).encode()
    hashes = [cell.hash for cell in Notebook(data).cells]
    assert len(set(hashes)) == len(cells)


def test_a_broken_cell_has_a_hash_of_its_bytes() -> None:
    data = (
        b'{"cells":[{"cell_type":"\\ud800","source":[]},[1],[ 1]],"nbformat":4,"nbformat_minor":5}'
    )
    hashes = [cell.hash for cell in Notebook(data).cells]
    assert len(set(hashes)) == 3
    assert Notebook(data).revision == Notebook(data).revision


# --- Revisions -----------------------------------------------------------------------------------

CELLS = (code("1", "aa"), markdown("2", "bb"), code("3", "cc"))


def test_the_revision_changes_with_ids_order_types_and_sources() -> None:
    revisions = [
        book(*CELLS).revision,
        book().revision,
        book(*CELLS[:2]).revision,
        book(CELLS[1], CELLS[0], CELLS[2]).revision,
        book(code("1", "ab"), *CELLS[1:]).revision,
        book(code("1", "bb"), markdown("2", "aa"), CELLS[2]).revision,  # ids swapped
        book(code("1"), *CELLS[1:]).revision,
        book(code("1x", "aa"), *CELLS[1:]).revision,
        book(raw("1", "aa"), *CELLS[1:]).revision,
        book(code("2", "aa"), markdown("1", "bb"), CELLS[2]).revision,  # sources swapped
        book(*CELLS, code("", "dd")).revision,
        book(*CELLS, code("")).revision,
        book(*CELLS, {}).revision,
        book(*CELLS, {"cell_type": "code"}).revision,
        book(*CELLS, None).revision,
    ]
    assert len(set(revisions)) == len(revisions)


def test_the_revision_knows_where_one_text_ends_and_the_next_begins() -> None:
    pairs = [
        [(code("", "a"), code("", "bc")), (code("", "ab"), code("", "c"))],
        [(code("x", "a"), code("y", "b")), (code("xy", "a"), code("", "b"))],
        [
            (code("x", "a"), code("ycode\0z", "b")),
            (code("xcode\0y", "a"), code("z", "b")),
        ],
        [(code("x", "a"), code("y")), (code("x"), code("y", "a"))],
    ]
    for one, two in pairs:
        assert book(*one).revision != book(*two).revision


@pytest.mark.parametrize(
    "same",
    [
        write(*CELLS, style=MINIFIED),
        write(*CELLS, metadata={"k": 1}),
        write(*CELLS, minor=4),
        write(code("1", "aa", execution_count=3, outputs=[STREAM]), *CELLS[1:]),
        write(code("1", "aa", metadata={"tags": []}), *CELLS[1:]),
        write(CELLS[0], markdown("2", "bb", attachments=IMAGE), CELLS[2]),
        b"\xef\xbb\xbf" + write(*CELLS, style=PRETTY),
    ],
)
def test_the_revision_does_not_change_with_anything_else(same: bytes) -> None:
    assert Notebook(same).revision == book(*CELLS).revision


def test_edits_of_outputs_and_metadata_leave_the_revision_and_the_hashes() -> None:
    notebook = book(code("1", "aa", execution_count=3, outputs=[STREAM]), *CELLS[1:])
    revision, snapshot = notebook.revision, notebook.snapshot()

    notebook.apply(
        [
            {"op": "clear_outputs"},
            {"op": "set_metadata", "cell": "bb", "metadata": {"k": 1}},
            {"op": "set_metadata", "metadata": {"k": 1}},
        ]
    )

    assert notebook.revision == revision
    assert list(notebook.snapshot().hashes) == list(snapshot.hashes)


@pytest.mark.parametrize(
    "edit",
    [
        {"op": "replace", "cell": "aa", "source": "x"},
        {"op": "set_type", "cell": "aa", "type": "raw"},
        {"op": "insert"},
        {"op": "delete", "cell": "aa"},
        {"op": "move", "cell": "aa", "at": 3},
        {"op": "merge", "cells": ["aa", "bb"]},
        {"op": "splice", "start": 0, "delete_count": 1},
    ],
    ids=lambda edit: edit["op"],
)
def test_an_edit_of_cells_changes_the_revision_and_its_inverse_brings_it_back(
    edit: dict[str, Any],
) -> None:
    notebook = book(*CELLS)
    revision = notebook.revision
    change = notebook.apply(edit)
    assert notebook.revision != revision
    notebook.apply(change.inverse())
    assert notebook.revision == revision


def test_large_files_have_the_same_revision_as_small_pieces_say() -> None:
    """A large file is read by another parser than a small one."""
    big = [code("x = 1\n" * 2000, f"id-{i}") for i in range(30)]
    large = book(*big, markdown("é \U0001f600", "last"))
    assert len(large.to_bytes()) > 200_000
    small = [book(cell).cells[0].hash for cell in big]
    assert [cell.hash for cell in large.cells][:-1] == small
    change = large.apply({"op": "replace", "cell": 3, "source": "y"})
    assert large.revision == Notebook(large.to_bytes()).revision
    assert large.apply(change.inverse())
    assert large.revision == Notebook(large.to_bytes()).revision


def escaped(*cells: Any) -> Notebook:
    """All in ASCII, so that lone surrogates can be written."""
    return Notebook(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}).encode())


def test_the_revision_does_not_depend_on_which_library_spells_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000, 3), 0x1F600, 0x10FFFF]))
    cells = [code(every, "aa"), markdown("\ud800 alone", "bb"), raw("", None), {"source": 1}]
    for part in (cells, cells[:1], cells[1:2], cells[2:3]):
        fast = escaped(*part).revision
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, msgspec.__name__)
            assert escaped(*part).revision == fast


def many(*odd: Any, count: int = 1300) -> list[Any]:
    """More cells than are hashed together, some of them odd ones, far apart."""
    cells: list[Any] = [code(f"x = {i}\nprint(x)", f"id-{i}") for i in range(count)]
    for place, cell in zip((3, 600, 1299, 511, 512), odd, strict=False):
        cells[place] = cell
    return cells


@pytest.mark.parametrize(
    "odd",
    [
        (),
        ({**code("", "aa"), "source": "one\nstring"}, {**code("", "bb"), "source": ""}),
        ({**code("", "aa"), "source": ["a", "\n", "", "b"]}, markdown("é\0\U0001f600"), raw("")),
        ({**code("", "aa"), "source": 1},),
        (code("x"), {**code("", "aa"), "source": ["a", None]}),
        (code("x"), code("x", "aa"), {"cell_type": "code"}),
        ({**code("", "aa"), "cell_type": "other"},),
        ({**code("", "aa"), "cell_type": None}, 5, None, [], {}),
        (code("\ud800", "aa"), code("x", "id-7")),
        ({**code("x"), "id": 7}, {**code("y"), "id": None}),
    ],
    ids=repr,
)
def test_many_cells_are_seen_as_each_of_them_is(odd: tuple[Any, ...]) -> None:
    notebook = escaped(*many(*odd))
    slots = notebook.state.layout.slots
    one_by_one = Snapshot.of([Slot.of(slot.raw) for slot in slots])
    seen = notebook.snapshot()
    assert (seen.revision, list(seen.ids), list(seen.hashes)) == (
        one_by_one.revision,
        list(one_by_one.ids),
        list(one_by_one.hashes),
    )
    assert [cell.source for cell in notebook.cells] == [
        Slot.of(slot.raw).facts.source for slot in slots
    ]


def test_edits_far_apart_in_many_cells_give_the_revision_of_the_file() -> None:
    notebook = escaped(*many())
    before = notebook.snapshot()
    first = before.revision
    for places in ((0, 511, 512), (512, 1299), (1024,)):
        notebook.apply(
            [{"op": "replace", "cell": i, "source": f"new {places} {i}"} for i in places]
        )
        again = Notebook(notebook.to_bytes())
        assert notebook.revision == again.revision != first
        assert list(notebook.snapshot().hashes) == list(again.snapshot().hashes)
    assert before.revision == first == escaped(*many()).revision


# --- Snapshots -----------------------------------------------------------------------------------


def test_a_snapshot_is_what_was_seen_then() -> None:
    notebook = book(*CELLS)
    seen = notebook.snapshot()
    expected = (notebook.revision, ["aa", "bb", "cc"], [cell.hash for cell in notebook.cells])

    notebook.apply([{"op": "delete", "cell": "aa"}, {"op": "insert", "id": "new"}])

    assert (seen.revision, list(seen.ids), list(seen.hashes)) == expected
    assert notebook.snapshot().revision == notebook.revision != seen.revision


def test_a_remembered_snapshot_is_as_good_as_the_one_that_was_seen() -> None:
    notebook = book(*CELLS)
    seen = notebook.snapshot()
    remembered = Snapshot(seen.revision, list(seen.ids), list(seen.hashes))
    notebook.apply({"op": "insert", "source": "new", "at": 0})

    notebook.apply({"op": "replace", "cell": 0, "source": "one"}, base=remembered)

    assert [cell.source for cell in notebook.cells] == ["new", "one", "2", "3"]
    assert remembered.revision == seen.revision
