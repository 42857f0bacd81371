"""Widgets of a kernel without a page: their state for the notebook, and what Output widgets catch.

A widget is a model in the kernel whose state is sent over a comm. Its view in an output only has
the model's id. A notebook is complete if its metadata has the state of every model that a view
shows, as nbclient and JupyterLab save it.
"""

from __future__ import annotations

import base64
import json
import re

from cellwright.document.edits import SetWidgets
from cellwright.outputs.collector import Collector
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.kernel.events import CommMessage
    from cellwright.outputs.events import OutputEvent

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
MOST_BYTES = 64 * 2**20
"""How much state is kept for the widgets of one kernel; models that come later are not saved."""
_OUTPUT_MODEL = ("@jupyter-widgets/output", "OutputModel")
_CAPTURED_BYTES = 2**20
_find_views = re.compile(rb'"model_id"\s*:\s*"([^"\\]{1,200})"').findall
_find_models = re.compile(r'"IPY_MODEL_([^"\\]{1,200})"').findall


class WidgetModels:
    """The models of one kernel, from its messages.

    An Output widget that a cell enters (`with out:`) takes the outputs of that cell, instead of
    the cell itself, until it is left. Cells are named by their handles.
    """

    def __init__(self) -> None:
        self._models: dict[str, WidgetModel] = {}
        self._outputs: dict[str, OutputCapture] = {}
        self._catching: dict[str, list[str]] = {}  # a cell, and the Output widgets it is in
        self._bytes = 0

    def forget(self) -> None:
        """The kernel was restarted: its widgets are gone."""
        for kept in (self._models, self._outputs, self._catching):
            kept.clear()
        self._bytes = 0

    def feed(self, message: CommMessage, caller: str | None = None) -> None:
        """Take a message of the kernel; `caller` is the cell whose run it is part of."""
        state = message.data.get("state")
        if message.kind == "close" or not isinstance(state, dict):
            return
        model = self._models.get(message.comm_id)
        if model is None:
            # Without a name it is something else that has a state.
            if not isinstance(state.get("_model_name"), str):
                return
            model = self._models[message.comm_id] = WidgetModel()
        self._bytes += model.update(state, message, room=MOST_BYTES - self._bytes)
        if model.kind == _OUTPUT_MODEL:
            self._feed_output(message.comm_id, state, caller)

    def catch(self, event: OutputEvent, caller: str) -> bool:
        """Give an output of a cell to the Output widget that the cell is in, if it is in one."""
        inside = self._catching.get(caller)
        if not inside:
            return False
        capture = self._outputs[inside[-1]]
        capture.collector.feed(event)
        capture.is_news = True
        return True

    def end_cell(self, caller: str) -> dict[str, list[dict[str, Any]]]:
        """A cell is over: return what Output widgets caught, by model, for the kernel to know."""
        self._catching.pop(caller, None)
        found = {name: each for name, each in self._outputs.items() if each.is_news}
        for name, capture in found.items():
            capture.is_news = False
            self._models[name].state["outputs"] = capture.collector.outputs()
        return {name: self._models[name].state["outputs"] for name in found}

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """Return the models as a notebook has them; empty if there are none."""
        for name, capture in self._outputs.items():
            if capture.is_news:
                self._models[name].state["outputs"] = capture.collector.outputs()
        return {name: each.to_json() for name, each in self._models.items() if not each.is_too_big}

    def _feed_output(self, name: str, state: Mapping[str, Any], caller: str | None) -> None:
        capture = self._outputs.setdefault(name, OutputCapture())
        outputs = state.get("outputs")
        if isinstance(outputs, list):
            capture.begin_with(outputs)
        if "msg_id" not in state:
            return
        for inside in self._catching.values():
            if name in inside:
                inside.remove(name)
        # Between cells it is for a cell that is over, whose outputs go nowhere.
        if state["msg_id"] and caller is not None:
            self._catching.setdefault(caller, []).append(name)


class WidgetModel:
    """The last known state of one widget; values are replaced and never changed in place."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.buffers: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.is_too_big = False

    @property
    def kind(self) -> tuple[Any, Any]:
        """The module and the name of its class."""
        return self.state.get("_model_module"), self.state.get("_model_name")

    def update(self, state: Mapping[str, Any], message: CommMessage, *, room: int) -> int:
        """Take new values, and return by about how many bytes it grew; too much is not kept."""
        size = len(json.dumps(state)) + sum(map(len, message.buffers))
        old = sum(len(json.dumps(self.state[key])) for key in state if key in self.state)
        if size - old > room:
            self.is_too_big = True  # an old state would be shown as if it were the last
            return 0
        self.state.update(state)
        paths = message.data.get("buffer_paths")
        for path, buffer in zip(
            paths if isinstance(paths, list) else (), message.buffers, strict=False
        ):
            if isinstance(path, list):
                data = base64.b64encode(buffer).decode("ascii")
                key = tuple(map(str, path))
                self.buffers[key] = {"data": data, "encoding": "base64", "path": path}
        return size - old

    def to_json(self) -> dict[str, Any]:
        """Return it in the shape of the notebook's metadata."""
        shape: dict[str, Any] = {
            "model_name": self.state.get("_model_name"),
            "model_module": self.state.get("_model_module"),
            "model_module_version": self.state.get("_model_module_version"),
            "state": dict(self.state),
        }
        if self.buffers:
            shape["buffers"] = list(self.buffers.values())
        return shape


class OutputCapture:
    """What one Output widget holds; `is_news` until its kernel knows it."""

    def __init__(self) -> None:
        self.collector = Collector(limit_bytes=_CAPTURED_BYTES)
        self.is_news = False

    def begin_with(self, outputs: Iterable[object]) -> None:
        """Hold what the kernel says that it holds."""
        self.collector = Collector(limit_bytes=_CAPTURED_BYTES)
        for output in outputs:
            if isinstance(output, dict):
                for event in _read_output(output):
                    self.collector.feed(event)


def _read_output(output: Mapping[str, Any]) -> Iterator[OutputEvent]:
    """Read an output in nbformat's shape as the event that makes it."""
    kind = output.get("output_type")
    if kind == "stream":
        yield StreamEvent(str(output.get("name")), str(output.get("text")))
    elif kind == "error":
        traceback = output.get("traceback")
        lines = traceback if isinstance(traceback, list) else ()
        yield ErrorEvent(
            str(output.get("ename")), str(output.get("evalue")), tuple(map(str, lines))
        )
    elif isinstance(output.get("data"), dict):
        metadata = output.get("metadata")
        yield DisplayEvent(output["data"], metadata if isinstance(metadata, dict) else {})
    else:
        yield ClearEvent()


# -- in the notebook --------------------------------------------------------------------------------


def make_widget_edits(
    notebook: Notebook, models: Mapping[str, dict[str, Any]], shown: Mapping[int, Any]
) -> list[SetWidgets]:
    """Return the edit that saves models, beside those that other outputs still show.

    `shown` is what lands now, by the index of its cell. A notebook in which no kernel of ours has
    widgets stays as it is.
    """
    if not models:
        return []
    stored = _read_stored(notebook)
    kept: dict[str, Any] = {}
    if not stored.keys() <= models.keys():
        views = {
            view.decode("utf-8", "replace")
            for cell in notebook.cells
            if cell.index not in shown and b"model_id" in cell.raw
            for view in _find_views(cell.raw)
        }
        kept = dict(_follow_models(stored, views - models.keys()))
    whole = {**kept, **models}
    if whole == stored:
        return []
    return [SetWidgets({STATE: {"state": whole, "version_major": 2, "version_minor": 0}})]


def _read_stored(notebook: Notebook) -> dict[str, Any]:
    widgets = notebook.metadata.get("widgets")
    bundle = widgets.get(STATE) if isinstance(widgets, dict) else None
    state = bundle.get("state") if isinstance(bundle, dict) else None
    return state if isinstance(state, dict) else {}


def _follow_models(stored: Mapping[str, Any], views: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the models that are shown, and those that they consist of."""
    waiting, seen = list(views), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in stored:
            continue
        seen.add(name)
        yield name, stored[name]
        waiting += _find_models(json.dumps(stored[name]))


def drop_dangling_views(
    outputs: Sequence[dict[str, Any]], models: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Leave out views of models that are not saved, where an output has something else to show."""
    return [_drop_view(output, models) for output in outputs]


def _drop_view(output: dict[str, Any], models: Mapping[str, Any]) -> dict[str, Any]:
    data = output.get("data")
    if not isinstance(data, dict) or len(data) == 1:
        return output
    view = data.get(VIEW)
    if not isinstance(view, dict) or view.get("model_id") in models:
        return output
    return {**output, "data": {mime: value for mime, value in data.items() if mime != VIEW}}
