"""Every odd file is taken exactly as it is, or refused by name; the table is in `malformed`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Notebook
from cellwright.document._json import index
from cellwright.errors import CellwrightError, TooDeep
from tests.cases import for_each
from tests.property.malformed import CASES, GOOD, OLD_PLAIN, PLAIN, Accepted, Old, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 5  # of work, far more than any of them takes


@pytest.fixture(params=["msgspec", "standard library"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two parsers, whatever the size of the file."""
    if request.param == "msgspec":
        monkeypatch.setattr(index, "MSGSPEC_FROM_BYTES", 0)
    else:
        monkeypatch.setitem(sys.modules, "cellwright.document._json.fast", None)
    return str(request.param)


def of(kind: type) -> Callable[[Callable[..., None]], Any]:
    chosen = [case for case in CASES.values() if isinstance(case, kind)]
    names = {id(case): name for name, case in CASES.items()}
    return for_each("case", chosen, name=lambda case: names[id(case)], parts=2)


def look_at_everything(notebook: Notebook) -> None:
    """Whatever can be asked of a notebook is answered, or refused by name."""
    questions: list[Callable[[], Any]] = [
        lambda: notebook.metadata,
        lambda: notebook.revision,
        lambda: notebook.version,
        lambda: repr(notebook),
    ]
    for cell in notebook.cells[:5]:
        questions += [
            lambda cell=cell: [cell.id, cell.type, cell.source, cell.hash, cell.handle, repr(cell)],  # type: ignore[misc]
            lambda cell=cell: cell.metadata,  # type: ignore[misc]
            lambda cell=cell: cell.outputs,  # type: ignore[misc]
            lambda cell=cell: cell.execution_count,  # type: ignore[misc]
            lambda cell=cell: cell.attachments,  # type: ignore[misc]
            lambda cell=cell: cell.to_dict(),  # type: ignore[misc]
            lambda cell=cell: notebook.cell(cell.handle),  # type: ignore[misc]
        ]
    for question in questions:
        try:
            question()
        except CellwrightError as error:
            assert_is_one_line(error)


def assert_is_one_line(error: CellwrightError) -> None:
    for text in (str(error), error.hint or "-"):
        assert len(text.splitlines()) == 1
        assert text.encode()
        assert len(text) < 1000


def plain_of(data: bytes) -> tuple[bytes, bytes]:
    """What stands before and after the cell that nothing is wrong with."""
    for plain in (PLAIN, OLD_PLAIN):
        before, found, after = data.rpartition(plain)
        if found:
            return before, after
    raise AssertionError("no plain cell")


def edit_own(data: bytes) -> str:
    notebook = Notebook(data)
    try:
        notebook.apply([{"op": "replace", "cell": 0, "source": "another source"}])
    except CellwrightError as error:
        assert_is_one_line(error)
        assert notebook.to_bytes() == data
        return error.code
    assert Notebook(notebook.to_bytes()).cells[0].source == "another source"
    return "ok"


@of(Accepted)
@pytest.mark.usefixtures("parser")
def test_an_odd_file_is_taken_as_it_is(case: Accepted) -> None:
    start = time.process_time()
    notebook = Notebook(case.data)
    assert len(notebook.cells) == case.cells
    assert notebook.to_bytes() == case.data
    broken = tuple(cell.index for cell in notebook.cells if cell.problem)
    assert broken == case.broken
    look_at_everything(notebook)
    if case.own:
        assert edit_own(case.data) == case.own
    assert time.process_time() - start < SECONDS


@of(Accepted)
@pytest.mark.usefixtures("parser")
def test_an_edit_beside_something_odd_leaves_it_as_it_is(case: Accepted) -> None:
    if not case.cells:
        notebook = Notebook(case.data)
        notebook.apply([{"op": "insert", "source": "first"}])
        assert Notebook(notebook.to_bytes()).cells[0].source == "first"
        return
    if PLAIN not in case.data and OLD_PLAIN not in case.data:  # written in another style
        notebook = Notebook(case.data)
        untouched = notebook.cells[0].raw
        notebook.apply([{"op": "replace", "cell": -1, "source": "other"}])
        assert notebook.cells[0].raw == untouched
        assert notebook.to_bytes().startswith(case.data[: case.data.index(untouched)] + untouched)
        return
    before, after = plain_of(case.data)
    notebook = Notebook(case.data)
    notebook.apply([{"op": "replace", "cell": -1, "source": "other"}])
    data = notebook.to_bytes()
    assert data.startswith(before)
    assert data.endswith(after)
    again = Notebook(data)
    assert len(again.cells) == case.cells
    assert again.cells[-1].source == "other"
    notebook.apply([{"op": "delete", "cell": -1}, {"op": "insert", "at": 0, "source": "new"}])
    again = Notebook(notebook.to_bytes())
    assert [cell.raw for cell in again.cells[1:]] == [
        cell.raw for cell in Notebook(case.data).cells[:-1]
    ]


@of(Accepted)
def test_a_look_at_the_schema_gives_an_answer_in_one_line(case: Accepted) -> None:
    try:
        problem = Notebook(case.data).validate() or "valid"
    except TooDeep as error:
        problem = str(error)
    assert len(problem.splitlines()) == 1


@of(Refused)
@pytest.mark.usefixtures("parser")
def test_what_is_no_notebook_is_refused_by_name(case: Refused) -> None:
    start = time.process_time()
    with pytest.raises(CellwrightError) as caught:
        Notebook(case.data)
    assert caught.value.code == case.code, caught.value
    assert_is_one_line(caught.value)
    assert time.process_time() - start < SECONDS


@of(Old)
@pytest.mark.usefixtures("parser")
def test_an_old_notebook_is_read_and_kept_until_it_is_upgraded(case: Old) -> None:
    notebook = Notebook(case.data)
    assert notebook.needs_upgrade
    assert notebook.to_bytes() == case.data
    assert len(notebook.cells) == case.cells
    look_at_everything(notebook)
    with pytest.raises(CellwrightError) as caught:
        notebook.apply([{"op": "insert", "source": "x"}])
    assert caught.value.code == "NEEDS_UPGRADE"
    assert_is_one_line(caught.value)
    assert notebook.to_bytes() == case.data
    notebook.upgrade()
    assert notebook.version == "4.5"
    assert len(Notebook(notebook.to_bytes()).cells) == case.cells


@pytest.mark.usefixtures("parser")
def test_a_file_that_was_cut_off_anywhere_is_refused_by_name() -> None:
    for length in range(len(GOOD) - 1):
        with pytest.raises(CellwrightError) as caught:
            Notebook(GOOD[:length])
        assert caught.value.code in {"INVALID_JSON", "NOT_UTF8"}, length
        assert_is_one_line(caught.value)


@pytest.mark.usefixtures("parser")
def test_a_file_with_a_hole_or_a_stray_byte_anywhere_is_taken_or_refused_by_name() -> None:
    """Random damage; what is still a notebook keeps its bytes."""
    for place in range(len(GOOD)):
        for data in (
            GOOD[:place] + GOOD[place + 1 :],
            GOOD[:place] + b"\0" + GOOD[place + 1 :],
            GOOD[:place] + b'"' + GOOD[place:],
            GOOD[:place] + b"\xff" + GOOD[place:],
        ):
            try:
                notebook = Notebook(data)
            except CellwrightError as error:
                assert_is_one_line(error)
            else:
                assert notebook.to_bytes() == data
                assert len(notebook.cells) == 2


def test_both_parsers_take_and_refuse_the_same_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(data: bytes) -> tuple[Any, ...]:
        try:
            notebook = Notebook(data)
        except CellwrightError as error:
            return (error.code, str(error))
        facts = [
            (cell.raw, cell.id, cell.type, cell.source, cell.problem) for cell in notebook.cells
        ]
        return (facts, notebook.revision)

    files = {name: case.data for name, case in CASES.items() if len(case.data) < 100_000}
    with monkeypatch.context() as patch:
        patch.setattr(index, "MSGSPEC_FROM_BYTES", 0)
        fast = {name: verdict(data) for name, data in files.items()}
    monkeypatch.setitem(sys.modules, "cellwright.document._json.fast", None)
    careful = {name: verdict(data) for name, data in files.items()}
    assert [name for name in files if fast[name] != careful[name]] == []


def test_the_place_of_the_first_error_is_told() -> None:
    good = b'{\n "cells": [],\n "x": 1\n}'
    places = {
        good.replace(b"1", b"?"): (3, 7),
        good.replace(b"[]", b"[}"): (2, 12),
        good + b"\n x": (5, 2),
        b"": (1, 1),
        good[:-1]: (4, 1),
        '{"é": ?}'.encode(): (1, 7),
    }
    for data, place in places.items():
        with pytest.raises(CellwrightError) as caught:
            Notebook(data)
        assert (vars(caught.value)["line"], vars(caught.value)["column"]) == place, data


def test_the_offset_of_the_first_bad_byte_is_told() -> None:
    for data in (b'{"\xff"', b'{"' + "é".encode() * 20_000 + b"\xff", b" " * 40_000 + b"\x80"):
        with pytest.raises(CellwrightError) as caught:
            Notebook(data)
        assert vars(caught.value)["offset"] == min(
            data.find(b"\xff") % 10**6, data.find(b"\x80") % 10**6
        )


def test_the_table_is_long_enough_and_covers_both_outcomes() -> None:
    kinds = [type(case) for case in CASES.values()]
    assert kinds.count(Accepted) >= 100
    assert kinds.count(Refused) >= 100
    assert kinds.count(Old) >= 5
