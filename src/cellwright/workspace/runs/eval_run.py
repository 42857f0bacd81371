"""A run of `eval`: code that belongs to no notebook, in sessions that keep their state."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from functools import partial

from cellwright.errors import InvalidEdit
from cellwright.workspace.api.answers import EvalAnswer
from cellwright.workspace.runs.execution import Execution
from cellwright.workspace.runs.recorder import EvalRecorder, find_title
from cellwright.workspace.runs.run import Run, RunOptions
from cellwright.workspace.runs.sessions import EvalCell, find_kernel_name, is_per_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.kernel.session import Session
    from cellwright.kernel.transport import Code, KernelInfo
    from cellwright.workspace.api.requests import EvalRequest
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.notebook import OpenNotebook


class EvalRun(Run):
    """One call of `eval`; what its cells print is only in the answer.

    With a `book` its cells run in that notebook's kernel, between those of the notebook. They
    have no place in its history and do not count.
    """

    KIND = "eval"

    def __init__(
        self,
        caller: Caller,
        request: EvalRequest,
        book: OpenNotebook | None = None,
        notebook: Notebook | None = None,
    ) -> None:
        self._caller = caller
        self._book = book
        self._notebook = notebook
        self.origin = caller.origin if book is None else book.origin
        self._request = request
        self._code = [EvalCell.parse(cell, place) for place, cell in enumerate(request.cells)]
        pending = [Execution("pending", title=cell.title) for cell in self._code]
        subject = request.session if book is None else book.real
        super().__init__(subject, caller.actor, pending, RunOptions.of(request))
        self._running: tuple[int, float] | None = None  # which cell, and since when

    def answer(self) -> EvalAnswer:
        """Return what is known of the cells now."""
        cells = list(self.executions)
        if self._running is not None and not self.is_over:
            place, began = self._running
            said = [event["text"] for event in self._events if _is_text_of(event, place)]
            cells[place] = Execution(
                "running",
                title=cells[place].title,
                seconds=time.monotonic() - began,
                text="".join(said),
            )
        return EvalAnswer(self.subject, cells, self.id, self.is_over)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        self.state = "running"
        yield

    async def _run_cell(self, place: int) -> Execution:
        cell, request, caller = self._code[place], self._request, self._caller
        sessions = caller.hub.sessions
        self._running = place, time.monotonic()
        self.report_cell(
            place, status="running", began=time.time(), title=cell.title or find_title(cell.code)
        )
        timeout = self._find_timeout(cell)
        async with self._open_session(cell) as (session, withheld):
            recorder = EvalRecorder(
                sessions.settings,
                None if sessions.store is None else sessions.store.stamp(self.origin),
                partial(self.report_cell, place),
                withheld,
            )
            ran = await session.run(
                partial(self._make_code, cell, session),
                timeout=timeout,
                reset=cell.reset and not is_per_call(request, caller),
                on_event=recorder.feed,
                on_retry=recorder.begin_again,
                answers=request.answers,
                ask=None if request.ask is None else self.ask,
                stop=self.stop.event,
            )
            self._running = None
            execution = recorder.finish(ran, cell.title, sessions.take_notes(session))
            loss, session.loss = session.loss, None
        if loss is None or cell.reset:
            return execution
        return execution.replace(replaced=True, notes=[loss, *execution.notes])

    @contextlib.asynccontextmanager
    async def _open_session(self, cell: EvalCell) -> AsyncIterator[tuple[Session, tuple[str, ...]]]:
        request, caller, book = self._request, self._caller, self._book
        hub = caller.hub
        if book is None or self._notebook is None:
            async with hub.sessions.open_eval(cell, request, caller) as found:
                yield found
            return
        if not hub.leases.owns(book.real):
            await hub.in_file_thread(book.host.own)
        try:
            yield await hub.sessions.open_notebook(
                book.real,
                caller,
                kernel=request.kernel,
                notebook_kernel=find_kernel_name(self._notebook),
                address=book.host.kernel(),
                request=request,
            )
        finally:
            if hub.find_session(book.real) is None:
                book.host.release()

    def _make_code(self, cell: EvalCell, session: Session, info: KernelInfo) -> Code:
        sessions, book = self._caller.hub.sessions, self._book
        if book is None:
            return sessions.make_eval_code(cell, session, self._caller, info)
        has_input = bool(self._request.answers) or self._request.ask is not None
        code = sessions.make_notebook_code(
            cell.code, None, session, book.real, info, has_input=has_input
        )
        return replace(code, store_history=False)

    def _find_timeout(self, cell: EvalCell) -> float:
        settings = self._caller.hub.sessions.settings
        asked = cell.timeout if cell.timeout is not None else self._request.timeout
        if asked is None:
            return settings.eval_timeout
        most = settings.eval_timeout_max
        if asked < 0 or (most and asked > most):
            raise InvalidEdit(
                f"a timeout of {asked:g} s", hint=f"From 0, which is no limit, to {most:g} s"
            )
        return asked


def _is_text_of(event: Mapping[str, Any], place: int) -> bool:
    return event.get("cell") == place and "text" in event
