"""What models send instead of the right shape, and what strict APIs make them send."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import read
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import allowed_effects
from tests.unit.tools.support import book

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.tools.conftest import Call


@pytest.fixture(autouse=True)
def _three_cells(folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("print one", "print two", "print three"))


def sources(folder: Path) -> list[str]:
    return [cell.source for cell in read(folder / "nb.ipynb").cells]


EDIT: dict[str, Any] = {"op": "replace", "cell": 1, "source": "x"}


@pytest.mark.parametrize(
    "edits",
    [EDIT, json.dumps([EDIT]), json.dumps(EDIT), [json.dumps(EDIT)], [{**EDIT, "cell": "1"}],
     [{**EDIT, "cell": 1.0}], [{**EDIT, "source": ["x"]}]],
)  # fmt: skip
async def test_edits_that_are_nearly_right_are_understood(
    edits: object, call: Call, folder: Path
) -> None:
    answer = await call("notebook_edit", path="nb.ipynb", edits=edits)
    assert not answer.is_error, answer.text
    assert sources(folder) == ["print one", "x", "print three"]


@pytest.mark.parametrize(
    ("given", "is_dry"), [("true", True), ("False", False), (None, False), ("", False)]
)
async def test_a_flag_may_be_a_word(given: object, is_dry: bool, call: Call, folder: Path) -> None:
    answer = await call("notebook_edit", path="nb.ipynb", edits=[EDIT], dry_run=given)
    assert not answer.is_error, answer.text
    assert (sources(folder)[1] == "print two") == is_dry


@pytest.mark.parametrize("cells", ["print 1", ["print 1"], {"code": "print 1"}])
async def test_code_may_be_a_text(cells: object, call: Call) -> None:
    answer = await call("eval", cells=cells)
    assert not answer.is_error, answer.text
    assert len(answer.data["cells"]) == 1


async def test_parameters_of_a_run_may_be_json(call: Call) -> None:
    answer = await call("notebook_run", path="nb.ipynb", cells=[0], parameters="[1]")
    assert answer.data["code"] == "INVALID_PARAMETERS"
    answer = await call("notebook_run", path="nb.ipynb", cells=[0], parameters="{}")
    assert not answer.is_error, answer.text


STRICT: dict[str, dict[str, Any]] = {
    "notebook_list": {},
    "notebook_read": {"path": "nb.ipynb"},
    "notebook_edit": {"path": "nb.ipynb", "edits": [EDIT]},
    "notebook_run": {"path": "nb.ipynb"},
    "notebook_outputs": {"path": "nb.ipynb"},
    "notebook_history": {"path": "nb.ipynb"},
    "kernel": {},
    "eval": {"cells": [{"code": "print 1"}]},
}


def fill(schema: dict[str, Any], given: Any, nothing: object) -> Any:
    """Arguments as a strict API sends them: all there are, the rest empty."""
    if schema["type"] == "array" and isinstance(given, list) and given:
        return [fill(schema["items"], item, nothing) for item in given]
    if schema["type"] != "object":
        return given
    empty = {"string": "", "array": [], "boolean": False, "integer": 0, "number": 0.0}
    made = {}
    for name, inner in schema["properties"].items():
        if name in given:
            made[name] = fill(inner, given[name], nothing)
        elif "enum" in inner:
            made[name] = inner["default"]
        elif name in ("wait", "timeout"):  # here 0 says something
            made[name] = None
        else:
            made[name] = None if nothing is None else empty[inner["type"]]
    return made


@pytest.mark.parametrize("nothing", [None, "empty"])
@pytest.mark.parametrize("name", STRICT)
async def test_empty_and_null_mean_not_given(name: str, nothing: object, call: Call) -> None:
    (tool,) = [tool for tool in PROFILES["native"] if tool.name == name]
    schema = tool.schema(allowed_effects("agent"))
    answer = await call(name, **fill(schema, STRICT[name], nothing))
    assert not answer.is_error, answer.text


@pytest.mark.parametrize("nothing", [None, "empty"])
@pytest.mark.parametrize(
    ("edit", "after"),
    [
        ({"op": "replace", "cell": "1", "source": ""}, ["a", "", "c"]),
        ({"op": "replace_text", "cell": "1", "old": "b", "new": ""}, ["a", "", "c"]),
        ({"op": "insert", "source": "x"}, ["a", "b", "c", "x"]),
        ({"op": "insert", "source": "x", "before": "0"}, ["x", "a", "b", "c"]),
        ({"op": "insert", "source": "x", "after": "0"}, ["a", "x", "b", "c"]),
        ({"op": "delete", "cell": "1"}, ["a", "c"]),
        ({"op": "move", "cell": "2", "before": "0"}, ["c", "a", "b"]),
        ({"op": "merge", "cells": ["0", "1"]}, ["a\nb", "c"]),
        ({"op": "clear_outputs"}, ["a", "b", "c"]),
        ({"op": "set_metadata", "metadata": '{"x": 1}'}, ["a", "b", "c"]),
        ({"op": "set_type", "cell": "1", "type": "markdown"}, ["a", "b", "c"]),
    ],
)
async def test_an_edit_with_every_field_does_what_its_op_says(
    edit: dict[str, Any], after: list[str], nothing: object, call: Call, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book("a", "b", "c"))
    (tool,) = [tool for tool in PROFILES["native"] if tool.name == "notebook_edit"]
    item = tool.schema(allowed_effects("agent"))["properties"]["edits"]["items"]
    answer = await call("notebook_edit", path="nb.ipynb", edits=[fill(item, edit, nothing)])
    assert not answer.is_error, answer.text
    assert sources(folder) == after
    if "metadata" in edit:
        assert read(folder / "nb.ipynb").metadata["x"] == 1


async def test_a_field_with_a_value_that_an_op_does_not_have_is_refused(call: Call) -> None:
    edit = {"op": "delete", "cell": "1", "source": "x"}
    answer = await call("notebook_edit", path="nb.ipynb", edits=[edit])
    assert answer.data["code"] == "INVALID_EDIT"


async def test_a_wrong_shape_is_answered_with_the_right_one(call: Call) -> None:
    answer = await call("notebook_read", path="nb.ipynb", cells={"first": 1}, view="all")
    assert answer.data["code"] == "INVALID_PARAMETERS"
    assert 'cells has the shape {"items": {"type": "string"}, "type": "array"' in answer.text
    assert 'view has the shape {"default": "cells"' in answer.text
    answer = await call("notebook_edit", path="nb.ipynb", edits=7)
    assert "- edits.0: Input should be an object\n" in answer.text


async def test_an_empty_source_of_a_profile_is_a_source(call: Call, folder: Path) -> None:
    done = await call("notebook", "notebook", action="edit", notebook_path="nb.ipynb",
                      cell_index=0, content="", cell_type=None)  # fmt: skip
    assert not done.is_error, done.text
    done = await call("NotebookEdit", "notebookedit", notebook_path="nb.ipynb",
                      cell_id="1", new_source="", cell_type="")  # fmt: skip
    assert not done.is_error, done.text
    assert sources(folder) == ["", "", "print three"]
