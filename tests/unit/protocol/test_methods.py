"""Every method, every code and every edge of the protocol, over a notebook in memory."""

from __future__ import annotations

from typing import Any

import pytest

from cellwright.document.edits import Replace
from cellwright.errors import Locked, ModeForbids
from cellwright.protocol.conformance.reference import MemoryAccess
from cellwright.protocol.messages import MANIPULATOR, NOTEKIT, ErrorCode
from cellwright.protocol.methods import CellResult
from tests.unit.protocol.stage import KERNELSPEC, Stage, four_cells, notebook

both_dialects = pytest.mark.parametrize("target", [MANIPULATOR, NOTEKIT])


# --- Reading -------------------------------------------------------------------------------------


@both_dialects
async def test_the_count_is_the_number_of_all_cells(target: str) -> None:
    assert await Stage(target=target).done("get_cell_count") == {"count": 4}


@both_dialects
async def test_the_metadata_are_the_notebooks_own(target: str) -> None:
    result = await Stage(target=target).done("get_notebook_metadata")
    assert result == {"metadata": {"kernelspec": KERNELSPEC}}


@both_dialects
async def test_a_range_has_its_start_and_not_its_end(target: str) -> None:
    result = await Stage(target=target).done("get_cell_range", {"start": 0, "end": 2})
    code, text = result["cells"]
    assert code == {
        "cell_type": "code",
        "execution_count": 7,
        "id": "a",
        "metadata": {},
        "outputs": [],
        "source": "val x = 1\nx",
    }
    assert text == {
        "cell_type": "markdown",
        "id": "b",
        "metadata": {"tags": ["t"]},
        "source": "# Text",
    }


RANGES = [
    ({"start": 10, "end": 5}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=10, end=5"),
    ({"start": -1, "end": 2}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=-1, end=2"),
    ({"start": 0, "end": -2}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=0, end=-2"),
    ({"start": "2", "end": "1"}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=2, end=1"),
    ({"start": 0.5, "end": 1}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=0.5, end=1"),
    ({"start": True, "end": 1}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=true, end=1"),
    ({"start": "x", "end": 1}, ErrorCode.INVALID_RANGE, 'Invalid cell range: start="x", end=1'),
    ({"end": 1}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=null, end=1"),
    ({}, ErrorCode.INVALID_RANGE, "Invalid cell range: start=null, end=null"),
    (
        {"start": 0, "end": 100},
        ErrorCode.OUT_OF_BOUNDS,
        "Cell range out of bounds: end=100 exceeds cell count of 4",
    ),
    (
        {"start": 5, "end": 5},
        ErrorCode.OUT_OF_BOUNDS,
        "Cell range out of bounds: end=5 exceeds cell count of 4",
    ),
    ({"start": 10**30, "end": 10**31}, ErrorCode.INVALID_RANGE, None),
]


@pytest.mark.parametrize("method", ["get_cell_range", "execute_cell_range"])
@pytest.mark.parametrize(("params", "code", "message"), RANGES)
@both_dialects
async def test_bad_ranges_are_refused_in_the_words_of_the_protocol(
    target: str, method: str, params: dict[str, Any], code: str, message: str | None
) -> None:
    stage = Stage(target=target)
    found = await stage.refused(method, params)
    assert found[0] == code
    assert message is None or found[1] == message
    assert len(stage.cells) == 4


@pytest.mark.parametrize("place", [0, 2, 4])
async def test_an_empty_range_is_no_cells_wherever_it_is(place: int) -> None:
    stage = Stage()
    span = {"start": place, "end": place}
    assert await stage.done("get_cell_range", span) == {"cells": []}
    assert await stage.done("execute_cell_range", span) == {}


@pytest.mark.parametrize("span", [{"start": "1", "end": " 3 "}, {"start": 1.0, "end": 3}])
async def test_numbers_may_be_written_as_strings_or_without_a_fraction(
    span: dict[str, Any],
) -> None:
    result = await Stage().done("get_cell_range", span)
    assert [cell["id"] for cell in result["cells"]] == ["b", "c"]


async def test_only_the_second_dialect_tells_the_version_of_the_format() -> None:
    version = {"nbformat": 4, "nbformat_minor": 5}
    assert await Stage(target=NOTEKIT).done("get_nbformat_version") == version
    code, message = await Stage().refused("get_nbformat_version")
    assert (code, message) == ("UNKNOWN_METHOD", "Unknown method: get_nbformat_version")


async def test_either_dialect_understands_the_parameters_of_the_other() -> None:
    flat = Stage()
    assert (await flat.done("get_cell_range", None, start=0, end=1))["cells"][0]["id"] == "a"
    nested = Stage(target=NOTEKIT)
    result = await nested.done("get_cell_range", {"params": {"start": 0, "end": 1}})
    assert result["cells"][0]["id"] == "a"


# --- Splicing ------------------------------------------------------------------------------------


def new(source: Any, kind: str = "code", **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source, "metadata": {}, **more}


SPLICES = [
    ("delete", {"start": 1, "delete_count": 2, "cells": []}, (1, 1), "val x = 1\nx|raise"),
    (
        "insert at the start",
        {"start": 0, "delete_count": 0, "cells": [new("n")]},
        (0, 1),
        "n|val x = 1\nx|# Text|y|raise",
    ),
    (
        "replace",
        {"start": 1, "delete_count": 1, "cells": [new("n"), new("m", "markdown")]},
        (1, 3),
        "val x = 1\nx|n|m|y|raise",
    ),
    (
        "insert at the end",
        {"start": 4, "delete_count": 0, "cells": [new(["l\n", "m"], "raw")]},
        (4, 5),
        "val x = 1\nx|# Text|y|raise|l\nm",
    ),
    ("delete all", {"start": 0, "delete_count": 4, "cells": []}, (0, 0), ""),
    ("nothing", {"start": 2, "delete_count": 0, "cells": []}, (2, 2), None),
    ("parts left out", {"start": 2}, (2, 2), None),
    ("nulls", {"start": 2, "delete_count": None, "cells": None}, (2, 2), None),
    ("numbers as strings", {"start": "3", "delete_count": "1"}, (3, 3), "val x = 1\nx|# Text|y"),
]


@pytest.mark.parametrize(
    ("params", "affected", "sources"), [row[1:] for row in SPLICES], ids=[row[0] for row in SPLICES]
)
@both_dialects
async def test_a_splice_deletes_at_its_start_and_inserts_there(
    target: str, params: dict[str, Any], affected: tuple[int, int], sources: str | None
) -> None:
    stage = Stage(target=target)
    result = await stage.done("splice_cell_range", params)
    assert result == {"affected_range": {"start": affected[0], "end": affected[1]}}
    before = [cell.source for cell in four_cells().cells]
    assert stage.cells == (before if sources is None else sources.split("|") if sources else [])
    assert stage.host is not None
    assert stage.host.notebook.validate() is None


BAD_SPLICES = [
    ({"start": 10}, "INVALID_SPLICE_PARAMS", "start=10 is out of bounds"),
    ({"start": -1}, "INVALID_SPLICE_PARAMS", "start=-1 is out of bounds"),
    ({"start": None}, "INVALID_SPLICE_PARAMS", "start=null is not an integer"),
    ({"start": [1]}, "INVALID_SPLICE_PARAMS", "start=[1] is not an integer"),
    ({"start": 0, "delete_count": -1}, "INVALID_SPLICE_PARAMS", "delete_count=-1 is negative"),
    (
        {"start": 0, "delete_count": {}},
        "INVALID_SPLICE_PARAMS",
        "delete_count={} is not an integer",
    ),
    (
        {"start": 3, "delete_count": 2},
        "INVALID_SPLICE_PARAMS",
        "delete_count=2 is out of bounds: start=3 leaves 1 of 4 cells",
    ),
    ({"start": 0, "cells": {}}, "INVALID_CELL_DATA", "{} is not a list"),
    ({"start": 0, "cells": [new("x"), 3]}, "INVALID_CELL_DATA", "at index 1: not an object"),
    ({"start": 0, "cells": [{}]}, "INVALID_CELL_DATA", "cell_type must be"),
    ({"start": 0, "cells": [new("x", "heading")]}, "INVALID_CELL_DATA", "'heading'"),
    ({"start": 0, "cells": [new(3)]}, "INVALID_CELL_DATA", "source must be a string or a list"),
    ({"start": 0, "cells": [{"cell_type": "raw"}]}, "INVALID_CELL_DATA", "needs `source`"),
    ({"start": 0, "cells": [new("x", metadata=[])]}, "INVALID_CELL_DATA", "metadata must be"),
    ({"start": 0, "cells": [new("x", outputs=[{}])]}, "INVALID_CELL_DATA", "output_type"),
    ({"start": 0, "cells": [new("x", extra=1)]}, "INVALID_CELL_DATA", "cannot have `extra`"),
]


@pytest.mark.parametrize(("params", "code", "words"), BAD_SPLICES)
async def test_a_bad_splice_changes_nothing(params: dict[str, Any], code: str, words: str) -> None:
    stage = Stage()
    assert stage.host is not None
    before = stage.host.notebook.to_bytes()
    found = await stage.refused("splice_cell_range", {"delete_count": 0, "cells": [], **params})
    assert found[0] == code
    start = {"INVALID_SPLICE_PARAMS": "Invalid splice parameters: ", "INVALID_CELL_DATA": "Invalid"}
    assert found[1].startswith(start[code])
    assert words in found[1]
    assert stage.host.notebook.to_bytes() == before


async def test_cells_as_the_released_client_sends_them_are_taken_without_their_nulls() -> None:
    stage = Stage(target=NOTEKIT)
    nulls = dict.fromkeys(["name", "tags", "jupyter", "execution", "collapsed", "scrolled"])
    cells = [
        {**new(["val x = 42\n", "x"]), "metadata": nulls, "outputs": [], "execution_count": None},
        {"id": "keepme", **new(["# T"], "markdown"), "attachments": None},
    ]
    await stage.done("splice_cell_range", {"start": 0, "delete_count": 0, "cells": cells})
    assert stage.host is not None
    first, second = stage.host.notebook.cells[:2]
    assert (first.source, first.metadata, second.id) == ("val x = 42\nx", {}, "keepme")
    assert stage.host.notebook.validate() is None


async def test_an_id_is_kept_unless_another_cell_has_it_or_it_cannot_be_one() -> None:
    stage = Stage()
    cells = [new("1", id="a"), new("2", id="fresh"), new("3", id="fresh"), new("4", id="no id!")]
    await stage.done("splice_cell_range", {"start": 4, "delete_count": 0, "cells": cells})
    assert stage.host is not None
    ids = [cell.id for cell in stage.host.notebook.cells]
    assert ids[:4] == ["a", "b", "c", "d"]
    assert ids[5] == "fresh"
    assert len(set(ids)) == 8
    assert stage.host.notebook.validate() is None


async def test_a_cell_that_replaces_another_may_have_its_id() -> None:
    stage = Stage()
    params = {"start": 1, "delete_count": 1, "cells": [new("new", "markdown", id="b")]}
    await stage.done("splice_cell_range", params)
    assert stage.host is not None
    assert stage.host.notebook.cell("b").source == "new"


async def test_an_old_notebook_gets_cells_without_ids() -> None:
    stage = Stage(MemoryAccess(notebook(minor=4)))
    await stage.done("splice_cell_range", {"start": 0, "cells": [new("1", id="a")]})
    assert stage.host is not None
    assert stage.host.notebook.cells[0].id is None
    assert stage.host.notebook.validate() is None


async def test_the_count_of_a_cell_may_be_a_string() -> None:
    stage = Stage()
    await stage.done("splice_cell_range", {"start": 0, "cells": [new("1", execution_count="12")]})
    assert stage.host is not None
    assert stage.host.notebook.cells[0].execution_count == 12


# --- Metadata ------------------------------------------------------------------------------------

METADATA = [
    ({"metadata": {"k": 1}, "merge": True}, {"kernelspec": KERNELSPEC, "k": 1}),
    ({"metadata": {"k": 1}}, {"kernelspec": KERNELSPEC, "k": 1}),
    ({"metadata": {"k": 1}, "merge": None}, {"kernelspec": KERNELSPEC, "k": 1}),
    ({"metadata": {"k": 1}, "merge": False}, {"k": 1}),
    ({"metadata": {"k": 1, "n": None}, "merge": "false"}, {"k": 1}),
    ({"metadata": {"kernelspec": None}}, {}),
    (
        {"metadata": {"custom_field": "custom_value", "kernelspec": {"name": "k"}}, "merge": True},
        {"kernelspec": {**KERNELSPEC, "name": "k"}, "custom_field": "custom_value"},
    ),
    ({"metadata": {}, "merge": False}, {}),
]


@pytest.mark.parametrize(("params", "expected"), METADATA)
@both_dialects
async def test_metadata_are_merged_or_replaced(
    target: str, params: dict[str, Any], expected: dict[str, Any]
) -> None:
    stage = Stage(target=target)
    assert await stage.done("set_notebook_metadata", params) == {}
    assert await stage.done("get_notebook_metadata") == {"metadata": expected}


async def test_the_example_of_the_document_works_on_a_notebook_without_a_kernelspec() -> None:
    stage = Stage()
    await stage.done("set_notebook_metadata", {"metadata": {}, "merge": False})
    example = {"custom_field": "custom_value", "kernelspec": {"name": "kotlin"}}
    assert await stage.done("set_notebook_metadata", {"metadata": example, "merge": True}) == {}
    found = await stage.done("get_notebook_metadata")
    kernelspec = {"name": "kotlin", "display_name": "kotlin"}
    assert found == {"metadata": {"custom_field": "custom_value", "kernelspec": kernelspec}}


BAD_METADATA: list[dict[str, Any]] = [
    {},
    {"metadata": None},
    {"metadata": [1]},
    {"metadata": "x"},
    {"metadata": {"kernelspec": "python"}},
    {"metadata": {"kernelspec": {"name": "k"}}, "merge": False},
    {"metadata": {"language_info": {}}},
    {"metadata": {"k": 1}, "merge": "perhaps"},
]


@pytest.mark.parametrize("params", BAD_METADATA)
async def test_bad_metadata_change_nothing(params: dict[str, Any]) -> None:
    stage = Stage()
    code, message = await stage.refused("set_notebook_metadata", params)
    assert code == "INVALID_METADATA"
    assert message.startswith("Failed to update notebook metadata: ")
    assert await stage.done("get_notebook_metadata") == {"metadata": {"kernelspec": KERNELSPEC}}


# --- Executing -----------------------------------------------------------------------------------


class Runs(MemoryAccess):
    """Remembers what was run, and how."""

    def __init__(self, **how: CellResult) -> None:
        super().__init__(four_cells(), self._run)
        self.runs: list[tuple[str, str | None]] = []
        self.how = how

    async def _run(self, cell: Any, nested: str | None) -> CellResult:
        self.runs.append((cell.handle, nested))
        return self.how.get(cell.handle, CellResult(cell.handle, "ok"))


async def test_code_cells_of_a_range_are_run_in_order_and_text_is_skipped() -> None:
    host = Runs()
    assert await Stage(host).done("execute_cell_range", {"start": 0, "end": 3}) == {}
    assert host.runs == [("a", None), ("c", None)]


FAILURES = [
    (CellResult("c", "error", "SyntaxError"), "SyntaxError"),
    (CellResult("c", "error"), "error"),
    (CellResult("c", "timed_out"), "timed out"),
    (CellResult("c", "died", "the kernel died"), "the kernel died"),
    (CellResult("c", "cancelled"), "cancelled"),
]


@pytest.mark.parametrize(("ran", "words"), FAILURES)
async def test_the_first_failure_ends_the_run_and_is_named_by_index(
    ran: CellResult, words: str
) -> None:
    host = Runs(c=ran)
    code, message = await Stage(host).refused("execute_cell_range", {"start": 0, "end": 4})
    assert (code, message) == ("EXECUTION_FAILED", f"Cell execution failed at index 2: {words}")
    assert [cell for cell, _ in host.runs] == ["a", "c"]


async def test_a_range_with_the_cell_that_asks_is_refused_before_anything_runs() -> None:
    host = Runs()
    stage = Stage(host)
    span = {"start": 0, "end": 4}
    code, message = await stage.refused("execute_cell_range", span, caller="c")
    assert code == "EXECUTION_FAILED"
    assert message.startswith("Cell execution failed at index 2: it is the cell that asks")
    assert host.runs == []
    assert await stage.done("execute_cell_range", {"start": 0, "end": 1}, caller="c") == {}


async def test_cells_are_run_nested_if_the_kernel_offers_it() -> None:
    host = Runs()
    stage = Stage(host, features=("nested_execute",))
    request_id = stage.send("execute_cell_range", {"start": 0, "end": 1}, caller="c")
    await stage.bridge.settle()
    assert stage.answer_to(request_id)["status"] == "ok"
    await stage.done("execute_cell_range", {"start": 0, "end": 1}, nested=False)
    assert host.runs == [("a", request_id), ("a", None)]


# --- Refusals that concern any method ------------------------------------------------------------


def test_the_codes_are_the_nine_of_the_protocol_and_one_of_ours() -> None:
    nine = {
        *("INVALID_RANGE", "OUT_OF_BOUNDS", "INVALID_SPLICE_PARAMS", "INVALID_METADATA"),
        *("INVALID_CELL_DATA", "EXECUTION_FAILED", "UNKNOWN_METHOD", "INTERNAL_ERROR"),
        "NO_ACTIVE_NOTEBOOK",
    }
    assert set(ErrorCode) == {*nine, "MODE_FORBIDS"}
    assert all(code == code.name for code in ErrorCode)


@pytest.mark.parametrize("method", ["nope", "", "GET_CELL_COUNT", None, 3, ["get_cell_count"]])
async def test_an_unknown_method_is_named(method: Any) -> None:
    code, message = await Stage().refused(method)
    assert code == "UNKNOWN_METHOD"
    assert message.startswith("Unknown method: ")


@pytest.mark.parametrize(
    "method",
    [
        "get_cell_count",
        "get_notebook_metadata",
        "get_cell_range",
        "splice_cell_range",
        "set_notebook_metadata",
        "execute_cell_range",
    ],
)
async def test_without_a_notebook_every_method_says_so(method: str) -> None:
    found = await Stage(None).refused(method)
    assert found == ("NO_ACTIVE_NOTEBOOK", "No active notebook is available")


class Refusing(MemoryAccess):
    """A host whose notebook cannot be changed."""

    def __init__(self, error: Exception) -> None:
        super().__init__(four_cells())
        self.error = error

    async def apply(self, *_: Any, **__: Any) -> Any:
        raise self.error

    async def run(self, *_: Any, **__: Any) -> Any:
        raise self.error


EDITS = [
    ("splice_cell_range", {"start": 0, "delete_count": 1}),
    ("set_notebook_metadata", {"metadata": {}}),
    ("execute_cell_range", {"start": 0, "end": 1}),
]


@pytest.mark.parametrize(("method", "params"), EDITS)
async def test_a_mode_that_forbids_says_so_and_reading_still_works(
    method: str, params: dict[str, Any]
) -> None:
    stage = Stage(Refusing(ModeForbids("edit", "ask", "agent")))
    code, message = await stage.refused(method, params)
    assert code == "MODE_FORBIDS"
    assert "agent" in message
    assert await stage.done("get_cell_count") == {"count": 4}


@pytest.mark.parametrize(("method", "params"), EDITS)
@pytest.mark.parametrize("error", [Locked("book.ipynb", 5.0), ZeroDivisionError("1/0"), KeyError()])
async def test_trouble_of_our_own_is_an_internal_error_on_one_line(
    method: str, params: dict[str, Any], error: Exception
) -> None:
    code, message = await Stage(Refusing(error)).refused(method, params)
    assert code == "INTERNAL_ERROR"
    assert message
    assert message.isprintable()


async def test_a_notebook_that_somebody_else_edits_meanwhile_is_looked_at_again() -> None:
    class Contested(MemoryAccess):
        tries = 0

        async def apply(self, edits: Any, *, base: Any = None) -> Any:
            self.tries += 1
            if self.tries < 3:
                self.notebook.apply(Replace("a", f"theirs {self.tries}"))
            return await super().apply(edits, base=base)

    host = Contested(four_cells())
    stage = Stage(host)
    await stage.done("splice_cell_range", {"start": 0, "delete_count": 1, "cells": [new("ours")]})
    assert (host.tries, stage.cells[0]) == (3, "ours")
