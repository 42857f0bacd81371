"""`notebook`: the notebook that this kernel runs."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Callable

from cellwright_kernel import asking
from cellwright_kernel.client import Client, client
from cellwright_kernel.views import CellLike, Cells, Metadata, markdown, raw

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cellwright_kernel.asking import Ask, Steps

TIMEOUT = 30.0
"""Seconds until a request is given up."""


class Verbs:
    """What can be asked of a notebook. Indices count from 0, negative ones from the end."""

    timeout: float | None = TIMEOUT

    def cell_count(self) -> Any:
        """How many cells there are."""
        return self._do(asking.cell_count())

    def cell_range(self, start: int, end: int | None = None) -> Any:
        """The cells from `start` to before `end`, as a list; without `end` only one."""
        return self._do(asking.cell_range(start, end))

    def splice(
        self, start: int, delete_count: int = 0, cells: CellLike | Iterable[CellLike] = ()
    ) -> Any:
        """Replace `delete_count` cells at `start` with others; a plain string is a code cell.

        Returns the range of indices that the new cells have.
        """
        return self._do(asking.splice(start, delete_count, cells))

    def insert_code(self, source: str, at: int | None = None) -> Any:
        """Insert a code cell before the one at an index, or at the end; returns its index."""
        return self._do(asking.insert(source, at))

    def insert_markdown(self, source: str, at: int | None = None) -> Any:
        """Insert a cell of text before the one at an index, or at the end; returns its index."""
        return self._do(asking.insert(markdown(source), at))

    def insert_raw(self, source: str, at: int | None = None) -> Any:
        """Insert a raw cell before the one at an index, or at the end; returns its index."""
        return self._do(asking.insert(raw(source), at))

    def delete(self, start: int, count: int = 1) -> Any:
        """Delete cells."""
        return self._do(asking.splice(start, count, ()))

    def get_metadata(self) -> Any:
        """The notebook's metadata, as a dictionary of the caller's own."""
        return self._do(asking.get_metadata())

    def set_metadata(self, metadata: dict[str, Any], *, merge: bool = True) -> Any:
        """Merge into the notebook's metadata, where None removes a field, or replace them."""
        return self._do(asking.set_metadata(metadata, merge=merge))

    def here(self) -> Any:
        """The index of the cell that runs now, if its frontend tells which that is."""
        return self._do(asking.find(_running_cell()))

    def run(self, start: int, end: int | None = None, *, timeout: float | None = None) -> Any:
        """Run the cells from `start` to before `end`, or only one, and wait until they are done.

        From a running cell they run at once, inside it. `timeout` is for all of them; by default
        they may take as long as they like.

        Raises:
            CellFailed: a cell did not end well; those after it were not run.
        """
        return self._do(asking.run(start, end), timeout)

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
        it, result = client(), None
        while True:
            try:
                ask = steps.send(result)  # type: ignore[arg-type]  # None begins it
            except StopIteration as end:
                return end.value
            is_run = ask.method == "execute_cell_range"
            it.require_nesting() if is_run else it.require_waiting()
            nests = is_run and it.may_nest()
            call = it.submit(ask.method, ask.params, nests=nests)
            result = it.wait(call, _limit(ask, timeout, self.timeout, nests=nests))

    def __repr__(self) -> str:
        return "<the notebook of this kernel>"


class AsyncVerbs(Verbs):
    """The verbs, to be awaited."""

    async def _do(self, steps: Steps, timeout: float | None = None) -> Any:
        it, result = client(), None
        while True:
            try:
                ask = steps.send(result)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value
            is_run = ask.method == "execute_cell_range"
            if is_run:
                it.require_nesting()
            nests = is_run and it.may_nest()
            call = it.submit(ask.method, ask.params, nests=nests)
            result = await it.wait_async(call, _limit(ask, timeout, self.timeout, nests=nests))


class Pending(Future):  # type: ignore[type-arg]  # of whatever the verb returns
    """A future whose result can be waited for in a cell, too."""

    def result(self, timeout: float | None = None) -> Any:
        """What the verb returns; see `concurrent.futures.Future`."""
        client().pump(self, timeout)
        return super().result(0 if timeout is not None and self.done() else timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the verb raises; see `concurrent.futures.Future`."""
        client().pump(self, timeout)
        return super().exception(0 if timeout is not None and self.done() else timeout)


class FutureVerbs(Verbs):
    """The verbs, each of which returns a future at once; cells are run when the kernel is free."""

    def _do(self, steps: Steps, timeout: float | None = None) -> Future[Any]:  # noqa: ARG002
        outcome = Pending()
        _proceed(client(), steps, outcome, lambda: steps.send(None))  # type: ignore[arg-type]
        return outcome


def _proceed(it: Client, steps: Steps, outcome: Future[Any], step: Callable[[], Ask]) -> None:
    """Take the next step of a verb whose last answer has come."""
    try:
        ask = step()
    except StopIteration as end:
        outcome.set_result(end.value)
        return
    except BaseException as error:  # noqa: BLE001  # it belongs to whoever asks for the result
        outcome.set_exception(error)
        return

    def answered(future: Future[dict[str, Any]]) -> None:
        error = future.exception()
        if error is None:
            _proceed(it, steps, outcome, lambda: steps.send(future.result()))
        else:
            _proceed(it, steps, outcome, lambda: steps.throw(error))

    try:
        it.submit(ask.method, ask.params).future.add_done_callback(answered)
    except Exception as error:  # noqa: BLE001
        outcome.set_exception(error)


def _limit(ask: Ask, own: float | None, usual: float | None, *, nests: bool) -> float | None:
    """How long to wait: for cells as long as told; if they run here, only for the frontend."""
    if ask.method != "execute_cell_range":
        return usual
    return own if own is not None or not nests else usual


def _running_cell() -> str | None:
    """The id of the cell that runs, if the frontend put it into its request."""
    kernel = client().kernel
    parent = kernel.get_parent() if hasattr(kernel, "get_parent") else {}
    found = (parent.get("metadata") or {}).get("cellId")
    return found if isinstance(found, str) else None


notebook = Notebook()
"""The notebook that this kernel runs."""

__all__ = ["TIMEOUT", "AsyncVerbs", "FutureVerbs", "Notebook", "Verbs", "notebook"]
