"""How a caller points at a cell: an exact id, then `cell-N`, then an integer; never a guess."""

from __future__ import annotations

from typing import Any

import pytest

from cellwright.document.snapshot import Resolver
from cellwright.errors import AmbiguousCell, CellNotFound, CellwrightError
from tests.unit.document.samples import book, code, markdown, refusal


def find(ids: list[str | None], ref: Any) -> int | str:
    """The index found, or the code of the error."""
    try:
        return Resolver(ids).index(ref)
    except CellwrightError as error:
        return error.code


NO = "CELL_NOT_FOUND"
TWO = "AMBIGUOUS_CELL"


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        # ids
        ("ab12", 0),
        ("cd", 1),
        ("ef", 3),
        ("AB12", NO),
        ("ab1", NO),
        ("ab12 ", NO),
        ("", NO),
        # cell-N
        ("cell-0", 0),
        ("cell-2", 2),
        ("cell-3", 3),
        ("cell-4", NO),
        ("cell-999999999", NO),
        ("cell-99999999999999999999", NO),
        ("cell--1", NO),
        ("cell-", NO),
        ("cell-1 ", NO),
        ("cell-1\n", NO),
        ("Cell-1", NO),
        ("cell:1", NO),
        ("cell-01", 1),
        ("cell-٣", NO),  # digits of another script are no digits here
        # integers
        (0, 0),
        (3, 3),
        (4, NO),
        (-1, 3),
        (-4, 0),
        (-5, NO),
        (10**30, NO),
        (-(10**30), NO),
        ("0", 0),
        ("3", 3),
        ("4", NO),
        ("-1", 3),
        ("-4", 0),
        ("-5", NO),
        ("9" * 30, NO),
        ("+1", NO),
        (" 1", NO),
        ("1.0", NO),
        ("1e0", NO),
        ("0x1", NO),
        ("1_0", NO),
        ("²", NO),
        ("٣", NO),
        ("１", NO),  # noqa: RUF001
        # what is no reference at all
        (True, NO),
        (False, NO),
        (1.0, NO),
        (None, NO),
        (b"ab12", NO),
        ([], NO),
        (["ab12"], NO),
        ({}, NO),
    ],
    ids=repr,
)
def test_a_reference_finds_one_cell_or_none(ref: Any, found: int | str) -> None:
    assert find(["ab12", "cd", None, "ef"], ref) == found


@pytest.mark.parametrize(
    ("ids", "ref", "found"),
    [
        (["a", "b", "0"], "0", 2),  # an id wins over the index
        (["a", "b", "0"], 0, 0),  # but an integer is an index
        (["2", "1", "0"], "2", 0),
        (["2", "1", "0"], "1", 1),
        (["2", "1", "0"], "0", 2),
        (["a", "cell-0", "c"], "cell-0", 1),
        (["a", "cell-0", "c"], "cell-1", 1),
        (["a", "cell-0", "c"], "0", 0),
        (["-1", "b", "c"], "-1", 0),
        (["-1", "b", "c"], -1, 2),
        (["", "b"], "", 0),
    ],
)
def test_an_id_wins_over_what_it_looks_like(
    ids: list[str | None], ref: Any, found: int | str
) -> None:
    assert find(ids, ref) == found


def test_an_id_of_jupyter_s_without_a_letter_is_no_number() -> None:
    ids = ["8f3a09b1", "40716253", "00000007", "77c0ffee"]
    assert [find(ids, ref) for ref in ("0", "1", "-1", 2, "40716253")] == [0, 1, 3, 2, 1]
    assert find(ids, "7") == NO


def test_a_new_id_is_never_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["12345678", "00000000", "1234567e"])
    monkeypatch.setattr("os.urandom", lambda _: bytes.fromhex(next(drawn)))
    notebook = book()
    notebook.apply({"op": "insert", "source": "x"})
    assert notebook.cells[0].id == "1234567e"


@pytest.mark.parametrize("ids", [["12", "34", "56"], ["a", "b", "7"], [None, None, "0"]])
@pytest.mark.parametrize("ref", ["1", "2", "-1", "99"])
def test_where_an_id_is_a_number_a_number_that_is_no_id_finds_nothing(
    ids: list[str | None], ref: str
) -> None:
    assert find(ids, ref) == NO
    assert find(ids, int(ref)) == (int(ref) % 3 if ref != "99" else NO)


@pytest.mark.parametrize("ref", ["a", 0, -1, "cell-0", "0", None])
def test_a_notebook_without_cells_has_none_to_find(ref: Any) -> None:
    assert find([], ref) == NO


def test_an_id_that_several_cells_have_names_all_their_places() -> None:
    with pytest.raises(AmbiguousCell) as caught:
        Resolver(["a", "b", "a", None, "a"]).index("a")
    error = caught.value
    assert (error.code, error.ref, error.indices) == (TWO, "a", (0, 2, 4))
    assert isinstance(error, LookupError)
    assert "cell-0, cell-2, cell-4" in (error.hint or "")


def test_cells_that_share_an_id_are_found_by_their_places() -> None:
    ids = ["a", "b", "a"]
    assert [find(ids, ref) for ref in ("cell-0", 2, "-1", "b")] == [0, 2, 2, 1]
    assert [Resolver(ids).handle(i) for i in range(3)] == ["cell-0", "b", "cell-2"]


@pytest.mark.parametrize(
    ("ref", "near"),
    [
        ("ab1", ("ab12cd34",)),
        ("ab12cd35", ("ab12cd34",)),
        ("load-dat", ("load-data",)),
        ("load", ("load-data", "load-more")),
        ("nothing like it", ()),
        ("", ()),
        (99, ()),
        (None, ()),
    ],
)
def test_an_unknown_cell_comes_with_near_misses(ref: Any, near: tuple[str, ...]) -> None:
    with pytest.raises(CellNotFound) as caught:
        Resolver(["ab12cd34", "load-data", "load-more", "plot"]).index(ref)
    error = caught.value
    assert (error.code, error.ref, error.near[: len(near)]) == (NO, ref, near)
    assert isinstance(error, LookupError)
    assert all(name in (error.hint or "") for name in near)
    if not near:
        assert error.near == ()
        assert "4" in (error.hint or "")  # how many cells there are


def test_an_unknown_cell_never_comes_with_more_than_three_near_misses() -> None:
    with pytest.raises(CellNotFound) as caught:
        Resolver([f"cell-name-{i}" for i in range(50)]).index("cell-name")
    assert len(caught.value.near) == 3


@pytest.mark.parametrize("ref", ["zz", "cell-2", 2, -3, "2"])
def test_edits_and_lookups_refuse_an_unknown_cell_alike(ref: Any) -> None:
    notebook = book(code("1", "aa"), markdown("2", "bb"))
    assert refusal(notebook, {"op": "delete", "cell": ref}).code == NO
    with pytest.raises(CellNotFound):
        notebook.cell(ref)


@pytest.mark.parametrize("ref", [True, 1.0, None])
def test_a_lookup_takes_no_other_type_for_an_index(ref: Any) -> None:
    with pytest.raises(CellNotFound):
        book(code("1", "aa"), code("2", "bb")).cell(ref)


def test_an_ambiguous_cell_is_refused_by_every_edit() -> None:
    notebook = book(code("1", "same"), code("2", "same"), code("3", "other"))
    for edit in (
        {"op": "delete", "cell": "same"},
        {"op": "replace", "cell": "same", "source": ""},
        {"op": "insert", "after": "same"},
        {"op": "move", "cell": "other", "before": "same"},
        {"op": "clear_outputs", "cells": ["same"]},
        {"op": "merge", "cells": ["same", "other"]},
    ):
        error = refusal(notebook, edit)
        assert (error.code, error.indices) == (TWO, (0, 1))


def test_a_notebook_gives_every_cell_its_handle() -> None:
    notebook = book(code("1", "aa"), code("2"), code("3", "dup"), code("4", "dup"))
    assert [cell.handle for cell in notebook.cells] == ["aa", "cell-1", "cell-2", "cell-3"]
    assert [notebook.cell(cell.handle).source for cell in notebook.cells] == ["1", "2", "3", "4"]
    old = book(code("1"), code("2"), minor=4)
    assert [cell.handle for cell in old.cells] == ["cell-0", "cell-1"]
