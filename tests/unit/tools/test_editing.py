"""`notebook_edit` and `notebook_history`: edits, conflicts, and the way back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli import samples
from tests.unit.tools.support import book, outside, within

if TYPE_CHECKING:
    from pathlib import Path

    from tests.memory_kernel import MemoryKernel
    from tests.unit.tools.conftest import Call

REPLACE = [{"op": "replace", "cell": "load", "source": "total = 43"}]


def cells(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "nb.ipynb").read_bytes())["cells"]
    return found


async def test_an_edit_says_what_happened_and_shows_it(call: Call, folder: Path) -> None:
    answer = await call("notebook_edit", path="nb.ipynb", edits=REPLACE)
    revision, change = answer.data["revision"], answer.data["change"]
    assert outside(answer.text) == [
        f"Edited nb.ipynb, saved and read back. Revision {revision}, change {change}.",
        "edited: cell 1 · id load · code",
    ]
    assert "-total = 42" in within(answer.text)
    assert "+total = 43" in within(answer.text)
    assert cells(folder)[1]["source"] == ["total = 43"]
    assert cells(folder)[1]["outputs"]  # kept


@pytest.mark.parametrize(
    ("edit", "sources"),
    [
        ({"op": "replace", "cell": 1, "source": "z"}, ["a", "z", "c"]),
        ({"op": "replace_text", "cell": "c0", "old": "a", "new": "b"}, ["b", "b", "c"]),
        ({"op": "insert", "source": "z"}, ["a", "b", "c", "z"]),
        ({"op": "insert", "source": "z", "after": "c0"}, ["a", "z", "b", "c"]),
        ({"op": "insert", "source": "z", "before": 0, "type": "markdown"}, ["z", "a", "b", "c"]),
        ({"op": "insert", "source": "z", "at": 1, "id": "mine"}, ["a", "z", "b", "c"]),
        ({"op": "delete", "cell": "c1"}, ["a", "c"]),
        ({"op": "move", "cell": "c2", "at": 0}, ["c", "a", "b"]),
        ({"op": "merge", "cells": ["c0", "c1"]}, ["a\nb", "c"]),
        ({"op": "set_type", "cell": 0, "type": "raw"}, ["a", "b", "c"]),
        ({"op": "set_metadata", "metadata": {"k": 1}}, ["a", "b", "c"]),
        ({"op": "clear_outputs"}, ["a", "b", "c"]),
        ({"op": "splice", "start": 0, "delete_count": 2, "cells": []}, ["c"]),
    ],
)
async def test_every_kind_of_edit(
    edit: dict[str, Any], sources: list[str], call: Call, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book("a", "b", "c"))
    answer = await call("notebook_edit", path="nb.ipynb", edits=[edit])
    assert not answer.is_error, answer.text
    assert ["".join(cell["source"]) for cell in cells(folder)] == sources


async def test_a_split_is_before_its_line(call: Call, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("a\nb"))
    answer = await call(
        "notebook_edit", path="nb.ipynb", edits=[{"op": "split", "cell": 0, "line": 1}]
    )
    assert not answer.is_error, answer.text
    assert len(cells(folder)) == 2


async def test_null_in_metadata_removes_a_field(call: Call, folder: Path) -> None:
    edits = [{"op": "set_metadata", "metadata": {"kernelspec": None, "mine": 1}}]
    await call("notebook_edit", path="nb.ipynb", edits=edits)
    assert json.loads((folder / "nb.ipynb").read_bytes())["metadata"] == {"mine": 1}


async def test_a_dry_run_shows_the_diff_and_changes_nothing(call: Call, folder: Path) -> None:
    answer = await call(
        "notebook_edit", path="nb.ipynb", edits=REPLACE, dry_run=True, run="changed"
    )
    assert outside(answer.text)[0] == "DRY RUN: nothing was changed in nb.ipynb."
    assert "+total = 43" in within(answer.text)
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_a_diff_that_is_cut_is_had_by_the_call_that_is_named(call: Call) -> None:
    source = "\n".join(f"x{number} = {number}" for number in range(2000))
    edits = [{"op": "replace", "cell": "load", "source": source}]
    for words, more in (({"dry_run": True}, "a larger max_tokens"), ({}, "notebook_history with")):
        answer = await call("notebook_edit", path="nb.ipynb", edits=edits, max_tokens=900, **words)
        assert f" characters of the diff; {more} " in outside(answer.text)[-1]
    answer = await call("notebook_history", path="nb.ipynb", action="diff", max_tokens=20_000)
    assert "+x999 = 999" in within(answer.text)


async def test_an_edit_that_changes_nothing_says_so(call: Call) -> None:
    edits = [{"op": "replace", "cell": "sum", "source": "total"}]
    answer = await call("notebook_edit", path="nb.ipynb", edits=edits)
    assert outside(answer.text)[0].startswith(
        "Nothing changed in nb.ipynb: it has that content already."
    )
    assert answer.data["change"] is None


async def test_edits_are_all_or_nothing(call: Call, folder: Path) -> None:
    answer = await call(
        "notebook_edit", path="nb.ipynb", edits=[*REPLACE, {"op": "delete", "cell": "x"}]
    )
    assert answer.data["code"] == "CELL_NOT_FOUND"
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_a_missing_notebook_is_made_if_asked(call: Call, folder: Path) -> None:
    edits = [{"op": "insert", "source": "1"}]
    answer = await call("notebook_edit", path="sub/new.ipynb", edits=edits)
    assert answer.data["code"] == "NOTEBOOK_NOT_FOUND"
    (folder / "sub").mkdir()
    answer = await call("notebook_edit", path="sub/new.ipynb", edits=edits, create=True)
    assert not answer.is_error, answer.text
    made = json.loads((folder / "sub" / "new.ipynb").read_bytes())
    assert [cell["source"] for cell in made["cells"]] == [["1"]]


async def test_a_base_that_others_have_overtaken_is_a_conflict_that_shows_both_sides(
    call: Call, folder: Path
) -> None:
    base = (await call("notebook_read", path="nb.ipynb")).data["revision"]
    await call("notebook_edit", path="nb.ipynb", edits=[{**REPLACE[0], "source": "total = 1"}])
    before = (folder / "nb.ipynb").read_bytes()
    answer = await call("notebook_edit", path="nb.ipynb", edits=REPLACE, base=base)
    assert answer.is_error
    assert answer.data["code"] == "CONFLICT"
    assert any(line.startswith("cell load (index 1): ") for line in outside(answer.text))
    assert "total = 1" in within(answer.text)
    assert "total = 43" in within(answer.text)
    assert (folder / "nb.ipynb").read_bytes() == before


async def test_with_a_base_changes_elsewhere_are_merged_and_indices_mean_the_base(
    call: Call, folder: Path
) -> None:
    base = (await call("notebook_read", path="nb.ipynb")).data["revision"]
    await call("notebook_edit", path="nb.ipynb", edits=[{"op": "insert", "source": "new", "at": 0}])
    edits = [{"op": "replace", "cell": 1, "source": "mine"}]
    answer = await call("notebook_edit", path="nb.ipynb", edits=edits, base=base)
    assert not answer.is_error, answer.text
    assert [cell["source"] for cell in cells(folder) if cell["id"] == "load"] == [["mine"]]


async def test_an_unknown_base_is_refused(call: Call) -> None:
    answer = await call("notebook_edit", path="nb.ipynb", edits=REPLACE, base="abcdefabcdef")
    assert answer.data["code"] == "UNKNOWN_REVISION"


async def test_a_hash_that_does_not_hold_is_a_conflict(call: Call) -> None:
    read = await call("notebook_read", path="nb.ipynb", cells=["load"])
    edits = [{**REPLACE[0], "expect": read.data["cells"][0]["hash"]}]
    assert not (await call("notebook_edit", path="nb.ipynb", edits=edits)).is_error
    assert (await call("notebook_edit", path="nb.ipynb", edits=edits)).data["code"] == "CONFLICT"


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"edits": []},
        {"edits": [{"op": "explode"}]},
        {"edits": [{"op": "delete", "cel": 1}]},
        {"edits": REPLACE, "run": "sometimes"},
        {"edits": REPLACE, "runn": "none"},
        {"edits": REPLACE, "max_tokens": 5},
        {"edits": REPLACE, "dry_run": "perhaps"},
    ],
)
async def test_parameters_it_cannot_take_are_named_and_nothing_is_done(
    words: dict[str, Any], call: Call, folder: Path
) -> None:
    answer = await call("notebook_edit", path="nb.ipynb", **words)
    assert answer.data["code"] == "INVALID_PARAMETERS"
    assert "nothing was done" in answer.text
    assert answer.text.splitlines()[-1].startswith("hint: It takes path, edits, run")
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ({"op": "delete"}, "INVALID_EDIT"),
        ({"op": "replace", "cell": 0}, "INVALID_EDIT"),
        ({"op": "replace_text", "cell": "load", "old": "nothing", "new": ""}, "TEXT_MISMATCH"),
        ({"op": "replace_text", "cell": "load", "old": "total", "new": ""}, "TEXT_MISMATCH"),
        ({"op": "insert", "source": "x", "after": "lod"}, "CELL_NOT_FOUND"),
    ],
)
async def test_an_edit_that_makes_no_sense_is_an_error(
    edit: dict[str, Any], code: str, call: Call, folder: Path
) -> None:
    answer = await call("notebook_edit", path="nb.ipynb", edits=[edit])
    assert answer.data["code"] == code
    assert answer.text.startswith(f"error: {code}: ")
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


# --- Edit and run --------------------------------------------------------------------------------


async def test_the_changed_cells_are_run_in_the_same_call(
    call: Call, folder: Path, kernels: list[MemoryKernel]
) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one", "print two"))
    edits = [{"op": "replace", "cell": "c1", "source": "print three"}]
    answer = await call("notebook_edit", path="nb.ipynb", edits=edits, run="changed")
    assert not answer.is_error
    assert outside(answer.text)[1] == "Ran 1 cell: 1 ok."
    assert "three" in within(answer.text)
    assert [row["cell"] for row in answer.data["executions"]] == ["c1"]
    assert cells(folder)[1]["outputs"]
    assert not cells(folder)[0]["outputs"]
    assert len(kernels) == 1


async def test_without_run_no_kernel_is_started(call: Call, kernels: list[MemoryKernel]) -> None:
    await call("notebook_edit", path="nb.ipynb", edits=REPLACE)
    assert kernels == []


async def test_all_stale_cells_are_run_and_what_is_stale_still_is_told(
    call: Call, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one", "raise Oops no", "print two"))
    edits = [{"op": "replace", "cell": "c0", "source": "print 1"}]
    answer = await call("notebook_edit", path="nb.ipynb", edits=edits, run="stale")
    assert answer.is_error  # a cell failed; the edit stands
    assert outside(answer.text)[0].startswith("Edited nb.ipynb")
    assert outside(answer.text)[1] == "FAILED at cell 1 (c1): 1 ok, 1 error, 1 pending."
    assert any(line.startswith("still stale: cell 1 (c1)") for line in outside(answer.text))
    assert cells(folder)[0]["source"] == ["print 1"]


# --- notebook_history ----------------------------------------------------------------------------


async def test_a_change_is_on_record_and_can_be_undone_and_done_again(
    call: Call, folder: Path
) -> None:
    done = await call("notebook_edit", path="nb.ipynb", edits=REPLACE)
    after = (folder / "nb.ipynb").read_bytes()
    log = await call("notebook_history", path="nb.ipynb")
    assert log.data["changes"][0]["id"] == done.data["change"]
    assert log.data["changes"][0]["actor"] == "test:ada"
    assert "edit replace" in within(log.text)
    undone = await call("notebook_history", path="nb.ipynb", action="undo")
    assert undone.text.startswith("Undone: revision ")
    assert outside(undone.text)[1] == "edited: cell 1 · id load · code"
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES
    again = await call("notebook_history", path="nb.ipynb", action="redo")
    assert again.text.startswith("Redone: ")
    assert (folder / "nb.ipynb").read_bytes() == after
    back = await call("notebook_history", path="nb.ipynb", action="restore", change="first")
    assert back.text.startswith("Restored: ")
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_a_diff_of_the_history(call: Call) -> None:
    done = await call("notebook_edit", path="nb.ipynb", edits=REPLACE)
    change = f"{done.data['change']}^"
    answer = await call("notebook_history", path="nb.ipynb", action="diff", change=change)
    assert outside(answer.text) == ["1 changed cell.", "edited: cell 1 · id load · code"]
    assert "+total = 43" in within(answer.text)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"action": "undo"}, "NOTHING_TO_UNDO"),
        ({"action": "redo"}, "NOTHING_TO_UNDO"),
        ({"action": "undo", "change": "abcdef12"}, "CHANGE_NOT_FOUND"),
        ({"action": "restore"}, "INVALID_PARAMETERS"),
        ({"action": "restore", "change": "abcdef12"}, "CHANGE_NOT_FOUND"),
    ],
)
async def test_history_that_is_not_there(words: dict[str, Any], code: str, call: Call) -> None:
    answer = await call("notebook_history", path="nb.ipynb", **words)
    assert answer.data["code"] == code


async def test_a_long_log_says_that_there_is_more(call: Call) -> None:
    for at in range(5):
        edits = [{"op": "replace", "cell": "load", "source": f"{at}"}]
        await call("notebook_edit", path="nb.ipynb", edits=edits)
    answer = await call("notebook_history", path="nb.ipynb", limit=3)
    assert len(answer.data["changes"]) == 3
    assert outside(answer.text)[-1] == "LEFT OUT: perhaps older changes; raise limit"
