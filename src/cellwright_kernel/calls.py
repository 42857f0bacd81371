"""Requests on their way: who waits for which answer."""

from __future__ import annotations

import queue
import threading
import uuid
from concurrent.futures import Future, InvalidStateError
from typing import Any, Callable

from cellwright_kernel.errors import NotebookError, error_of


class Call:
    """One request that was sent.

    `nests` says that cells which the frontend sends for it are run by whoever waits for it. Such
    cells come as `jobs`, in order; `news` is called for each, and for the answer.
    """

    def __init__(self, method: str, *, nests: bool = False) -> None:
        self.id = uuid.uuid4().hex
        self.method = method
        self.nests = nests
        self.future: Future[dict[str, Any]] = Future()
        self.news: Callable[[], object] | None = None
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_left = False

    def add_job(self, frames: Any) -> bool:
        """Take a cell to run; false if nobody waits any longer who could run it."""
        with self._lock:
            if self._is_left:
                return False
            self._jobs.put(frames)
        self._tell()
        return True

    def leave(self) -> list[Any]:
        """Wait no longer; returns the cells that were not run."""
        with self._lock:
            self._is_left = True
        self.news = None
        left = []
        while not self._jobs.empty():
            left.append(self._jobs.get_nowait())
        return [job for job in left if job is not None]

    def next_job(self, within: float = 0) -> Any:
        """The next cell to run; None if the answer is there, or nothing came in time."""
        try:
            return self._jobs.get(timeout=within) if within > 0 else self._jobs.get_nowait()
        except queue.Empty:
            return None

    def answer(self, data: dict[str, Any]) -> None:
        """Take the answer; only the first counts."""
        error: NotebookError | None = None
        result = data.get("result")
        if data.get("status") != "ok":
            error = error_of(data.get("error"))
        elif not isinstance(result, dict):
            error = NotebookError("The frontend answered without a result", "INVALID_RESPONSE")
        self.end(error, result)

    def end(self, error: NotebookError | None, result: Any = None) -> None:
        """Be over, in one way or the other, unless it is already."""
        try:
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(result)
        except InvalidStateError:
            return
        self._jobs.put(None)
        self._tell()

    def _tell(self) -> None:
        news = self.news
        if news is not None:
            news()


class Calls:
    """The requests that wait for an answer, by their id."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._lock = threading.Lock()

    def add(self, call: Call) -> None:
        """Expect an answer."""
        with self._lock:
            self._calls[call.id] = call
        call.future.add_done_callback(lambda _: self.drop(call))

    def drop(self, call: Call) -> None:
        """Expect it no longer."""
        with self._lock:
            self._calls.pop(call.id, None)

    def get(self, request_id: object) -> Call | None:
        """The request with that id, if it waits."""
        return self._calls.get(request_id) if isinstance(request_id, str) else None

    def deliver(self, data: object) -> bool:
        """Give an answer to whoever waits for it; false if nobody does."""
        call = self.get(data.get("request_id")) if isinstance(data, dict) else None
        if call is None or not isinstance(data, dict):
            return False
        call.answer(data)
        return True

    def fail_all(self, error: NotebookError) -> None:
        """Let nobody wait any longer."""
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            call.end(error)
