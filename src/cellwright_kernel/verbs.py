"""`notebook`: the notebook that this kernel runs.

Each verb is a generator that yields requests, gets their results, and returns the verb's value;
three classes wait for the answers in three ways.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, Callable, NamedTuple

from cellwright_kernel.client import Client, get_client
from cellwright_kernel.errors import OutOfRange
from cellwright_kernel.views import Cell, CellLike, Cells, Metadata, markdown, raw, to_shape

TIMEOUT = 30.0
"""Seconds until a request is given up."""


class NotebookRequest(NamedTuple):
    """One request to the frontend."""

    method: str
    params: Mapping[str, Any] = MappingProxyType({})


Steps = Generator[NotebookRequest, "dict[str, Any]", Any]


def ask_cell_count() -> Steps:
    """Count the cells."""
    result = yield NotebookRequest("get_cell_count")
    return int(result["count"])


def ask_cell_range(start: int, end: int | None) -> Steps:
    """Get some cells."""
    start, end = yield from _resolve_range(start, end)
    result = yield NotebookRequest("get_cell_range", {"start": start, "end": end})
    return [Cell.of(shape, start + i) for i, shape in enumerate(result["cells"])]


def ask_splice(start: int, delete_count: int, cells: CellLike | Iterable[CellLike]) -> Steps:
    """Replace cells."""
    start = yield from _resolve_index(start)
    given = [cells] if isinstance(cells, (str, dict, Cell)) else cells
    shapes = [to_shape(cell) for cell in given]
    result = yield NotebookRequest(
        "splice_cell_range", {"start": start, "delete_count": delete_count, "cells": shapes}
    )
    where = result.get("affected_range") or {}
    return range(int(where.get("start", start)), int(where.get("end", start + len(shapes))))


def ask_insert(cell: CellLike, at: int | None) -> Steps:
    """Insert a cell; returns its index."""
    place = (yield from ask_cell_count()) if at is None else at
    affected = yield from ask_splice(place, 0, [cell])
    return affected.start


def ask_metadata() -> Steps:
    """Get the notebook's metadata."""
    result = yield NotebookRequest("get_notebook_metadata")
    return result["metadata"]


def ask_set_metadata(metadata: dict[str, Any], *, merge: bool) -> Steps:
    """Change the notebook's metadata."""
    yield NotebookRequest("set_notebook_metadata", {"metadata": metadata, "merge": merge})


def ask_run(start: int, end: int | None) -> Steps:
    """Run cells."""
    start, end = yield from _resolve_range(start, end)
    yield NotebookRequest("execute_cell_range", {"start": start, "end": end})


def ask_index(cell_id: str | None) -> Steps:
    """Find the index of the cell with an id."""
    if cell_id is not None:
        for cell in (yield from ask_cell_range(0, (yield from ask_cell_count()))):
            if cell.id == cell_id:
                return cell.index
    raise OutOfRange("It is not known which cell this is", "OUT_OF_BOUNDS")


def _resolve_range(start: int, end: int | None) -> Steps:
    """Resolve a range: one cell if there is no end; negative numbers count from the end."""
    if start < 0 or (end is not None and end < 0):
        count = yield from ask_cell_count()
        start = start + count if start < 0 else start
        end = end + count if end is not None and end < 0 else end
    return start, start + 1 if end is None else end


def _resolve_index(start: int) -> Steps:
    if start < 0:
        start += yield from ask_cell_count()
    return start


class Verbs:
    """What can be asked of a notebook. Indices count from 0, negative ones from the end."""

    timeout: float | None = TIMEOUT

    def cell_count(self) -> Any:
        """How many cells there are."""
        return self._do(ask_cell_count())

    def cell_range(self, start: int, end: int | None = None) -> Any:
        """The cells from `start` to before `end`, as a list; without `end` only one."""
        return self._do(ask_cell_range(start, end))

    def splice(
        self, start: int, delete_count: int = 0, cells: CellLike | Iterable[CellLike] = ()
    ) -> Any:
        """Replace `delete_count` cells at `start` with others; a plain string is a code cell.

        Returns the range of indices that the new cells have.
        """
        return self._do(ask_splice(start, delete_count, cells))

    def insert_code(self, source: str, at: int | None = None) -> Any:
        """Insert a code cell before the one at an index, or at the end; returns its index."""
        return self._do(ask_insert(source, at))

    def insert_markdown(self, source: str, at: int | None = None) -> Any:
        """Insert a Markdown cell before the one at an index, or at the end; returns its index."""
        return self._do(ask_insert(markdown(source), at))

    def insert_raw(self, source: str, at: int | None = None) -> Any:
        """Insert a raw cell before the one at an index, or at the end; returns its index."""
        return self._do(ask_insert(raw(source), at))

    def delete(self, start: int, count: int = 1) -> Any:
        """Delete cells."""
        return self._do(ask_splice(start, count, ()))

    def get_metadata(self) -> Any:
        """The notebook's metadata, as a dictionary of the caller's own."""
        return self._do(ask_metadata())

    def set_metadata(self, metadata: dict[str, Any], *, merge: bool = True) -> Any:
        """Merge into the notebook's metadata, where None removes a field, or replace them."""
        return self._do(ask_set_metadata(metadata, merge=merge))

    def here(self) -> Any:
        """The index of the running cell, if its frontend says which that is."""
        return self._do(ask_index(_find_running_cell()))

    def run(self, start: int, end: int | None = None, *, timeout: float | None = None) -> Any:
        """Run the cells from `start` to before `end`, or only one, and wait until they are done.

        From a running cell they run at once, inside it. `timeout` is for all of them; by default
        there is no limit.

        Raises:
            CellFailed: a cell did not end well; those after it were not run.
        """
        return self._do(ask_run(start, end), timeout)

    def _do(self, steps: Steps, timeout: float | None = None) -> Any:
        raise NotImplementedError


class Notebook(Verbs):
    """The notebook that this kernel runs; every call waits for its answer.

    `aio` has the same verbs to await, `futures` the same verbs that return at once with a
    `concurrent.futures.Future`, to be looked at in a later cell.
    """

    def __init__(self) -> None:
        self.aio = AsyncVerbs()
        self.futures = FutureVerbs()

    @property
    def cells(self) -> Cells:
        """The cells: `notebook.cells[2:5]`, `notebook.cells[-1]`, `len(notebook.cells)`."""
        return Cells(self)

    @property
    def metadata(self) -> Metadata:
        """The metadata, as a dictionary whose changes are made at once."""
        return Metadata(self)

    @metadata.setter
    def metadata(self, value: dict[str, Any]) -> None:
        self.set_metadata(dict(value), merge=False)

    def _do(self, steps: Steps, timeout: float | None = None) -> Any:
        client, result = get_client(), None
        while True:
            try:
                ask = steps.send(result)  # type: ignore[arg-type]  # None begins it
            except StopIteration as end:
                return end.value
            is_run = ask.method == "execute_cell_range"
            client.require_nesting() if is_run else client.require_waiting()
            nests = is_run and client.may_nest()
            call = client.submit(ask.method, ask.params, nests=nests)
            result = client.wait(call, _limit(ask, timeout, self.timeout, nests=nests))

    def __repr__(self) -> str:
        return "<the notebook of this kernel>"


class AsyncVerbs(Verbs):
    """The verbs, to be awaited."""

    async def _do(self, steps: Steps, timeout: float | None = None) -> Any:
        client, result = get_client(), None
        while True:
            try:
                ask = steps.send(result)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value
            is_run = ask.method == "execute_cell_range"
            if is_run:
                client.require_nesting()
            nests = is_run and client.may_nest()
            call = client.submit(ask.method, ask.params, nests=nests)
            result = await client.wait_async(call, _limit(ask, timeout, self.timeout, nests=nests))


class Pending(Future):  # type: ignore[type-arg]  # of whatever the verb returns
    """A future whose result can be waited for in a cell, too."""

    def result(self, timeout: float | None = None) -> Any:
        """What the verb returns; see `concurrent.futures.Future`."""
        get_client().pump(self, timeout)
        return super().result(0 if timeout is not None and self.done() else timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the verb raises; see `concurrent.futures.Future`."""
        get_client().pump(self, timeout)
        return super().exception(0 if timeout is not None and self.done() else timeout)


class FutureVerbs(Verbs):
    """The verbs, each of which returns a future at once; cells are run when the kernel is free."""

    def _do(self, steps: Steps, timeout: float | None = None) -> Future[Any]:  # noqa: ARG002
        outcome = Pending()
        _proceed(get_client(), steps, outcome, lambda: steps.send(None))  # type: ignore[arg-type]
        return outcome


def _proceed(
    client: Client, steps: Steps, outcome: Future[Any], step: Callable[[], NotebookRequest]
) -> None:
    """Take the next step of a verb whose last answer has come."""
    try:
        ask = step()
    except StopIteration as end:
        outcome.set_result(end.value)
        return
    except BaseException as error:  # noqa: BLE001  # it is raised where the result is asked for
        outcome.set_exception(error)
        return

    def proceed(future: Future[dict[str, Any]]) -> None:
        error = future.exception()
        if error is None:
            _proceed(client, steps, outcome, lambda: steps.send(future.result()))
        else:
            _proceed(client, steps, outcome, lambda: steps.throw(error))

    try:
        client.submit(ask.method, ask.params).future.add_done_callback(proceed)
    except Exception as error:  # noqa: BLE001
        outcome.set_exception(error)


def _limit(
    ask: NotebookRequest, own: float | None, usual: float | None, *, nests: bool
) -> float | None:
    """How long to wait: for cells as long as given; if they run here, only for the frontend."""
    if ask.method != "execute_cell_range":
        return usual
    return own if own is not None or not nests else usual


def _find_running_cell() -> str | None:
    """The id of the running cell, if the frontend put it into its request."""
    kernel = get_client().kernel
    parent = kernel.get_parent() if hasattr(kernel, "get_parent") else {}
    found = (parent.get("metadata") or {}).get("cellId")
    return found if isinstance(found, str) else None


notebook = Notebook()
"""The notebook that this kernel runs."""

__all__ = ["TIMEOUT", "AsyncVerbs", "FutureVerbs", "Notebook", "Verbs", "notebook"]
