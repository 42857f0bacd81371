"""Widgets of a kernel without a page: their state is saved, and Output widgets catch outputs."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Notebook
from cellwright.kernel.events import CommMessage
from cellwright.outputs.events import StreamEvent
from cellwright.workspace.runs import widgets
from cellwright.workspace.runs.widgets import STATE, VIEW, WidgetModels
from tests.unit.workspace.memory import MemoryKernels, cells_of, make_notebook, run

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import Book, Workspace

SLIDER = {"_model_module": "@jupyter-widgets/controls", "_model_name": "IntSliderModel"}
OUTPUT = {"_model_module": "@jupyter-widgets/output", "_model_name": "OutputModel"}


def comm(name: str, **state: Any) -> str:
    return f"comm {name} {json.dumps({'method': 'update', 'state': state})}"


def view(name: str) -> str:
    return f"show {VIEW} " + name


def states(book: Book) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(book.raw())["metadata"]
    bundle = found.get("widgets", {}).get(STATE)
    return {} if bundle is None else bundle["state"]


def show(name: str) -> dict[str, Any]:
    data = {VIEW: {"model_id": name, "version_major": 2}, "text/plain": [name]}
    return {"output_type": "display_data", "metadata": {}, "data": data}


async def test_the_state_of_widgets_is_saved_as_nbclient_saves_it(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, comm("a", **SLIDER, value=3, tooltip=None), comm("a", value=7))
    book = runner.open("m.ipynb")
    await run(book)
    state = {**SLIDER, "value": 7, "tooltip": None}
    assert states(book)["a"] == {
        "model_name": "IntSliderModel",
        "model_module": "@jupyter-widgets/controls",
        "model_module_version": None,
        "state": state,
    }


async def test_models_of_earlier_kernels_stay_while_an_output_shows_them(
    folder: Path, runner: Workspace
) -> None:
    box = {"_model_name": "HBoxModel", "children": ["IPY_MODEL_child"]}
    make_notebook(
        folder,
        *("print a", comm("new", **SLIDER)),
        c0={"outputs": [show("box")], "execution_count": 1},
        c1={"outputs": [show("gone")], "execution_count": 2},
    )
    book = runner.open("m.ipynb")
    stored = {"box": {"state": box}, "child": {"state": {"value": None}}, "gone": {"state": {}}}
    text = json.loads(book.raw())
    text["metadata"]["widgets"] = {STATE: {"state": stored, "version_major": 2}}
    (folder / "m.ipynb").write_text(json.dumps(text, indent=1))
    await run(book, "c1")
    assert states(book).keys() == {"box", "child", "new"}
    assert states(book)["child"] == stored["child"]
    await run(book, "c0")  # it shows no widget any more
    assert states(book).keys() == {"new"}


async def test_an_output_widget_takes_the_outputs_of_the_cell_that_is_in_it(
    folder: Path, runner: Workspace, kernels: MemoryKernels
) -> None:
    inside = [comm("o", msg_id="m"), "print in", "warn in", comm("o", msg_id=""), "print out"]
    make_notebook(folder, comm("o", **OUTPUT, outputs=[]), "\n".join(inside), "print next")
    book = runner.open("m.ipynb")
    done = await run(book)
    texts = [[each["text"] for each in cell["outputs"]] for cell in cells_of(book)]
    assert texts == [[], [["out\n"]], [["next\n"]]]
    caught = [
        {"output_type": "stream", "name": "stdout", "text": "in\n"},
        {"output_type": "stream", "name": "stderr", "text": "in\n"},
    ]
    assert states(book)["o"]["state"]["outputs"] == caught
    (told,) = kernels.made[0].sent  # the kernel's own widget knows it too
    assert (told.comm_id, told.data["state"]) == ("o", {"outputs": caught})
    assert "does not show" in " ".join(done[1].notes)


async def test_an_output_widget_that_is_never_left_ends_with_its_cell(
    folder: Path, runner: Workspace
) -> None:
    make_notebook(folder, comm("o", **OUTPUT, msg_id="m") + "\nprint in\nraise E x", "print next")
    book = runner.open("m.ipynb")
    await run(book, keep_going=True)
    assert cells_of(book)[1]["outputs"][0]["text"] == ["next\n"]


def test_what_the_kernel_adds_to_an_output_widget_stays() -> None:
    found = WidgetModels()
    found.feed(CommMessage("open", "o", data={"state": {**OUTPUT, "msg_id": "m"}}), "c")
    assert found.catch(StreamEvent("stdout", "a"), "c")
    assert not found.catch(StreamEvent("stdout", "a"), "another cell")
    found.end_cell("c")
    added = [{"output_type": "stream", "name": "stdout", "text": "ab"}]
    found.feed(CommMessage("msg", "o", data={"state": {"outputs": added, "msg_id": "n"}}), "d")
    found.catch(StreamEvent("stdout", "c"), "d")
    assert found.end_cell("d")["o"] == [{**added[0], "text": "abc"}]


def test_binary_values_are_kept_beside_the_state() -> None:
    found = WidgetModels()
    data = {"state": {**SLIDER}, "buffer_paths": [["value"]]}
    found.feed(CommMessage("open", "i", data=data, buffers=(b"\x00png",)))
    assert found.snapshot()["i"]["buffers"] == [
        {"data": base64.b64encode(b"\x00png").decode(), "encoding": "base64", "path": ["value"]}
    ]


@pytest.mark.parametrize(
    "data",
    [{}, {"state": None}, {"state": [1]}, {"state": {"value": 1}}, {"state": {"_model_name": 7}}],
)
def test_what_is_no_widget_is_not_kept(data: dict[str, Any]) -> None:
    found = WidgetModels()
    found.feed(CommMessage("open", "x", data=data))
    found.feed(CommMessage("close", "x"))
    assert found.snapshot() == {}


def test_a_state_that_is_too_big_is_not_saved_and_its_view_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(widgets, "MOST_BYTES", 300)
    found = WidgetModels()
    found.feed(CommMessage("open", "a", data={"state": {**SLIDER, "value": "x" * 100}}))
    found.feed(CommMessage("open", "b", data={"state": {**SLIDER, "value": "x" * 1000}}))
    models = found.snapshot()
    assert models.keys() == {"a"}
    kept, bare = widgets.drop_dangling_views([show("a"), show("b")], models)
    assert kept == show("a")
    assert bare["data"] == {"text/plain": ["b"]}


def test_saving_widgets_changes_no_other_byte_of_the_metadata() -> None:
    text = (
        '{"cells": [], "metadata": {"b" :  [1,2],\n "widgets": {"old": 1}, "a": "\\u00e9"},'
        ' "nbformat": 4, "nbformat_minor": 5}'
    )
    notebook = Notebook(text.encode())
    notebook.apply(widgets.make_widget_edits(notebook, {"m": {"state": {"x": None}}}, {}))
    after = notebook.to_bytes().decode()
    before, _, rest = text.partition('{"old": 1}')
    assert after.startswith(before)
    assert after.endswith(rest)
    assert notebook.metadata["widgets"][STATE]["state"] == {"m": {"state": {"x": None}}}
    assert widgets.make_widget_edits(notebook, {"m": {"state": {"x": None}}}, {}) == []
