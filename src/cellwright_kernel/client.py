"""The one conversation of this kernel with its frontend: requests, and the calls that wait."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import sys
import threading
import time
import uuid
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, Callable

from cellwright_kernel.errors import (
    CannotWait,
    NoFrontend,
    NotebookError,
    NotebookTimeout,
    make_error,
)
from cellwright_kernel.nesting import Nesting
from cellwright_kernel.tap import Tap, find_missing_for_tap

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = "jupyter.notebook.manipulator.v1"
_SLICE = 0.05
_TURN = 0.002
_lock = threading.RLock()
_imported_in = contextvars.copy_context()  # most likely that of a cell
_clients: list[Client] = []


class PendingCall:
    """One request that was sent.

    `nests` says that the waiting caller runs cells which the frontend sends for it. Such cells
    come as jobs, in order; `on_change` is called for each, and for the answer.
    """

    def __init__(self, method: str, *, nests: bool = False) -> None:
        self.id = uuid.uuid4().hex
        self.method = method
        self.nests = nests
        self.future: Future[dict[str, Any]] = Future()
        self.on_change: Callable[[], object] | None = None
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_left = False

    def add_job(self, frames: Any) -> bool:
        """Add a cell to run; false if the caller does not wait any longer."""
        with self._lock:
            if self._is_left:
                return False
            self._jobs.put(frames)
        self._notify()
        return True

    def leave(self) -> list[Any]:
        """Stop waiting; returns the cells that were not run."""
        with self._lock:
            self._is_left = True
        self.on_change = None
        left = []
        while not self._jobs.empty():
            left.append(self._jobs.get_nowait())
        return [job for job in left if job is not None]

    def next_job(self, within: float = 0) -> Any:
        """Wait for the next cell to run; None if the answer is there, or nothing came in time."""
        try:
            return self._jobs.get(timeout=within) if within > 0 else self._jobs.get_nowait()
        except queue.Empty:
            return None

    def answer(self, data: dict[str, Any]) -> None:
        """Take the answer; only the first counts."""
        error: NotebookError | None = None
        result = data.get("result")
        if data.get("status") != "ok":
            error = make_error(data.get("error"))
        elif not isinstance(result, dict):
            error = NotebookError("The frontend answered without a result", "INVALID_RESPONSE")
        self.end(error, result)

    def end(self, error: NotebookError | None, result: Any = None) -> None:
        """End with an error or a result, unless it has ended already."""
        try:
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(result)
        except InvalidStateError:
            return
        self._jobs.put(None)
        self._notify()

    def _notify(self) -> None:
        on_change = self.on_change
        if on_change is not None:
            on_change()


class PendingCalls:
    """The requests that wait for an answer, by their id."""

    def __init__(self) -> None:
        self._calls: dict[str, PendingCall] = {}
        self._lock = threading.Lock()

    def add(self, call: PendingCall) -> None:
        """Expect an answer."""
        with self._lock:
            self._calls[call.id] = call
        call.future.add_done_callback(lambda _: self.drop(call))

    def drop(self, call: PendingCall) -> None:
        """Expect it no longer."""
        with self._lock:
            self._calls.pop(call.id, None)

    def get(self, request_id: object) -> PendingCall | None:
        """The request with that id, if it waits."""
        return self._calls.get(request_id) if isinstance(request_id, str) else None

    def deliver(self, data: object) -> bool:
        """Give an answer to the call that waits for it; false if there is none."""
        call = self.get(data.get("request_id")) if isinstance(data, dict) else None
        if call is None or not isinstance(data, dict):
            return False
        call.answer(data)
        return True

    def fail_all(self, error: NotebookError) -> None:
        """End all calls with an error."""
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            call.end(error)


def get_client() -> Client:
    """Get the client of this process; it is made when first needed."""
    with _lock:
        if not _clients:
            _clients.append(Client(_find_kernel()))
        return _clients[0]


def _find_kernel() -> Any:
    """Find the kernel that runs this code; None if it cannot be found."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)


class Client:
    """Sends requests over one comm, and waits for answers in any of three ways."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.tap: Tap | None = None
        self.nesting: Nesting | None = None
        self.missing: str | None = None
        self._calls = PendingCalls()
        self._comm: Any = None
        self._before: Any = None
        self._context = _imported_in
        # Whether it is built like ipykernel, and so handles one message at a time.
        self._is_queued = hasattr(kernel, "shell_handlers")
        if self._is_queued:
            self.missing = find_missing_for_tap(kernel)
        if self._is_queued and self.missing is None:
            tap = Tap(kernel, self._calls, self._on_close)
            if tap.install():
                self.tap, self.nesting = tap, Nesting(kernel)
            else:
                self.missing = "a thread that answers"

    # -- sending ----------------------------------------------------------------------------

    def submit(self, method: str, params: Mapping[str, Any], *, nests: bool = False) -> PendingCall:
        """Send a request."""
        call = PendingCall(method, nests=nests)
        message: dict[str, Any] = {"method": method, "request_id": call.id}
        if params:
            message["params"] = dict(params)
        if method == "execute_cell_range" and not nests:
            message["nested"] = False
        self._calls.add(call)
        try:
            with _lock:
                self._send(message)
        except BaseException:
            self._calls.drop(call)
            raise
        return call

    def _send(self, message: dict[str, Any]) -> None:
        if _in_main_thread():
            self._context = contextvars.copy_context()
        try:
            self._open().send(message)
        except LookupError:
            # In ipykernel 7.0 a user's thread does not know which request it is part of.
            self._context.copy().run(lambda: self._open().send(message))

    def _open(self) -> Any:
        if self._comm is None:
            try:
                import comm as comms
            except ImportError:
                raise NoFrontend(
                    "There is no Jupyter kernel here: the package `comm` is missing", "NO_FRONTEND"
                ) from None
            features = ["nested_execute"] if self.tap is not None else []
            if not self._is_queued:
                features = ["control_replies"]
            comm = comms.create_comm(target_name=TARGET, data={"features": features})
            if type(comm).__name__ == "DummyComm":  # what the package makes on its own
                raise NoFrontend(
                    "There is no Jupyter kernel here, and so no frontend to ask", "NO_FRONTEND"
                )
            comm.on_msg(self._on_message)
            comm.on_close(lambda _: self._on_close(comm.comm_id))
            self._comm = comm
        return self._comm

    def _on_message(self, message: dict[str, Any]) -> None:
        self._calls.deliver(message["content"].get("data"))

    def _on_close(self, comm_id: object) -> None:
        if self._comm is not None and comm_id == self._comm.comm_id:
            self._comm = None
            self._calls.fail_all(
                NoFrontend(
                    "The frontend closed the connection: it does not offer its notebook, or was "
                    "closed itself",
                    "NO_FRONTEND",
                )
            )

    # -- waiting ----------------------------------------------------------------------------

    def may_nest(self) -> bool:
        """Whether cells can be run in this thread while it waits."""
        return self.nesting is not None and _in_main_thread()

    def require_waiting(self) -> None:
        """Refuse to wait for an answer that could only come after this cell."""
        if self._is_queued and self.tap is None and _in_main_thread():
            raise CannotWait(
                "An answer cannot arrive while this cell runs, in this version of ipykernel (no "
                f"`{self.missing}`). Try `await notebook.aio.…`, or use `notebook.futures.…` here "
                "and `result()` in a later cell",
                "CANNOT_WAIT",
            )

    def require_nesting(self) -> None:
        """Refuse to wait for cells that could only run after this one."""
        if self.nesting is None and _in_main_thread():
            raise CannotWait(
                "This kernel cannot run cells while another one runs. Use "
                "`notebook.futures.run(...)` here and `result()` in a later cell",
                "CANNOT_WAIT",
            )

    def wait(self, call: PendingCall, timeout: float | None) -> dict[str, Any]:
        """Wait in this thread; cells that the frontend wants run for this are run here.

        The time that such cells take does not count.
        """
        tap = self.tap
        deadline = _after(timeout)
        try:
            while not call.future.done():
                left = _seconds_left(deadline)
                if left <= 0:
                    raise self._make_timeout(call, timeout)
                if tap is not None and tap.reads_here:
                    tap.turn(min(left, _SLICE))
                    job = call.next_job()
                else:
                    job = call.next_job(min(left, 3600))
                if job is not None and self.nesting is not None:
                    if self.nesting.run(job):
                        raise KeyboardInterrupt
                    deadline = _after(timeout)
            return call.future.result()
        finally:
            self._leave(call)

    def pump(self, future: Future[Any], timeout: float | None) -> None:
        """Read the channel until a future is done, if this thread has to."""
        deadline = _after(timeout)
        while self.tap is not None and self.tap.reads_here and not future.done():
            left = _seconds_left(deadline)
            if left <= 0:
                break
            self.tap.turn(min(left, _SLICE))

    async def wait_async(self, call: PendingCall, timeout: float | None) -> dict[str, Any]:
        """Wait as a coroutine; cells that the frontend wants run are run in its task."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        call.on_change = lambda: loop.call_soon_threadsafe(changed.set)
        deadline = _after(timeout)
        try:
            while True:
                changed.clear()
                job = call.next_job()
                if job is not None and self.nesting is not None:
                    await self.nesting.run_async(job)
                    deadline = _after(timeout)
                elif call.future.done():
                    return call.future.result()
                else:
                    if _seconds_left(deadline) <= 0:
                        raise self._make_timeout(call, timeout)
                    await self._wait_for_change(changed, _seconds_left(deadline))
        finally:
            self._leave(call)

    async def _wait_for_change(self, changed: asyncio.Event, within: float) -> None:
        """Wait for a change, and read the channel if no other thread does."""
        tap = self.tap
        pause = 3600.0
        if tap is not None and tap.reads_here and tap.is_blocked():
            tap.turn(0)
            pause = _TURN
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(changed.wait(), min(within, pause))

    def _leave(self, call: PendingCall) -> None:
        self._calls.drop(call)
        for job in call.leave():
            if self.tap is not None:
                self.tap.pass_on(job)

    def _make_timeout(self, call: PendingCall, timeout: float | None) -> NotebookError:
        # The frontend that had this comm may be gone. The next request opens another; answers on
        # this one are still taken.
        self._before, self._comm = self._comm, None
        reason = "the frontend may not offer its notebook to its kernel"
        if call.method == "execute_cell_range" and call.nests:
            reason = "the frontend may not be able to run cells while another one runs"
        return NotebookTimeout(
            f"No answer to `{call.method}` within {timeout:g} s; {reason}", "TIMEOUT"
        )


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _after(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _seconds_left(deadline: float | None) -> float:
    return 3600.0 if deadline is None else deadline - time.monotonic()
