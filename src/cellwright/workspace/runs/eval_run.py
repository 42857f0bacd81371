"""A run of `eval`: code that belongs to no notebook, in sessions that keep their state."""

from __future__ import annotations

import contextlib
import time
from functools import partial

from cellwright.errors import InvalidEdit
from cellwright.workspace.api.answers import EvalAnswer
from cellwright.workspace.runs.execution import Execution
from cellwright.workspace.runs.recorder import EvalRecorder
from cellwright.workspace.runs.run import Run, RunOptions
from cellwright.workspace.runs.sessions import EvalCell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from cellwright.workspace.api.requests import EvalRequest
    from cellwright.workspace.caller import Caller


class EvalRun(Run):
    """One call of `eval`; what its cells print is only in the answer."""

    KIND = "eval"

    def __init__(self, caller: Caller, request: EvalRequest) -> None:
        self._caller = caller
        self._request = request
        self._code = [EvalCell.parse(cell, place) for place, cell in enumerate(request.cells)]
        pending = [Execution("pending", title=cell.title) for cell in self._code]
        super().__init__(request.session, caller.actor, pending, RunOptions.of(request))
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
        self.report_cell(place, status="running")
        timeout = self._find_timeout(cell)
        async with sessions.open_eval(cell, request, caller) as (session, withheld):
            recorder = EvalRecorder(
                sessions.settings,
                sessions.store,
                lambda text: self.report_cell(place, text=text),
                withheld,
            )
            ran = await session.run(
                partial(sessions.make_eval_code, cell, session, caller),
                timeout=timeout,
                reset=cell.reset and not request.per_call,
                on_event=recorder.feed,
                on_retry=recorder.begin_again,
                answers=request.answers,
                ask=None if request.ask is None else self.ask,
                stop=self.stop.event,
            )
            self._running = None
            return recorder.finish(ran, cell.title, sessions.take_notes(session))

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
