"""Cells that run inside another: in the thread of the cell that waits for them.

The kernel's own handler runs them, so that outputs, replies and history are as always. What it
assumes of an ordinary cell is corrected here: whose output it is, which number it has, where it
awaits, and what an interrupt stops.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

_own_loops: list[asyncio.AbstractEventLoop] = []
_POLLOUT = 2
_KEPT = ("_allow_stdin", "_sys_raw_input", "_save_getpass")


class Nesting:
    """Runs execute requests inside the one that runs; one for each kernel process.

    A nested cell has the next number. The cell around it keeps its own, and the next one comes
    after all of them.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._execute = kernel.shell_handlers["execute_request"]
        self._highest = 0
        kernel.shell_handlers["execute_request"] = self._execute_next

    def run(self, frames: Any) -> bool:
        """Run a cell now; returns whether it was interrupted."""
        idents, message = self._read(frames)
        interrupts: list[int] = []
        before = getattr(self._kernel.shell, "last_execution_result", None)
        with self._inside(idents, message, interrupts):
            work = self._execute(self._replies(), idents, message)
            if not inspect.iscoroutine(work):
                pass
            elif self._awaits(message["content"].get("code", "")):
                with self._cancel_on_interrupts(interrupts):
                    run_in_own_loop(work)
            else:
                run_without_waiting(work)
        last = getattr(self._kernel.shell, "last_execution_result", None)
        if isinstance(getattr(last, "error_in_exec", None), KeyboardInterrupt):
            return True
        # A second interrupt may hit the kernel while it reports the first: then there is no
        # result. A cell that caught an interrupt and ended well was not ended by it.
        ended_well = last is not before and bool(getattr(last, "success", False))
        return bool(interrupts) and not ended_well

    async def run_async(self, frames: Any) -> None:
        """The same for a cell that awaits the others."""
        idents, message = self._read(frames)
        with self._inside(idents, message):
            work = self._execute(self._replies(), idents, message)
            if inspect.isawaitable(work):
                await work

    async def _execute_next(self, stream: Any, ident: Any, parent: Any) -> None:
        """Handle an ordinary execute request: its number comes after those of nested cells."""
        if threading.current_thread() is threading.main_thread():
            shell = self._kernel.shell
            if shell.execution_count <= self._highest:
                shell.execution_count = self._highest + 1
            self._highest = 0
        work = self._execute(stream, ident, parent)
        if inspect.isawaitable(work):
            await work

    def _next_number(self) -> int:
        """The number after that of the cell that runs.

        Not from the counter, which goes up when a cell begins, or, before IPython 9, when it ends.
        """
        history = getattr(self._kernel.shell, "history_manager", None)
        stored = getattr(history, "input_hist_parsed", None)
        return len(stored) if stored else int(self._kernel.shell.execution_count) + 1

    def _read(self, frames: Any) -> tuple[Any, dict[str, Any]]:
        session = self._kernel.session
        idents, parts = session.feed_identities(frames, copy=False)
        message = session.deserialize(parts, content=True, copy=False)
        # The frontend stops at a failure; cells that wait in the kernel are not part of this.
        message["content"]["stop_on_error"] = False
        return idents, message

    def _awaits(self, source: str) -> bool:
        shell = self._kernel.shell
        try:
            transformed = shell.transform_cell(source)
        except Exception:  # noqa: BLE001  # it will fail again where the user can see it
            return False
        return bool(shell.should_run_async(source, transformed_cell=transformed))

    def _replies(self) -> Any:
        """Where replies are sent: a kernel with a thread for the channel has a socket to it."""
        thread = getattr(self._kernel, "shell_channel_thread", None)
        if thread is None:
            return self._kernel.shell_stream
        return thread.manager.get_subshell_to_shell_channel_socket(None)

    @contextmanager
    def _inside(
        self, idents: Any, message: Any, interrupts: list[int] | None = None
    ) -> Iterator[None]:
        """Make the kernel handle another request for a while; interrupts meanwhile are noted."""
        kernel, shell = self._kernel, self._kernel.shell
        parent, ident = kernel.get_parent("shell"), kernel._parent_ident["shell"]  # noqa: SLF001
        kept = {name: getattr(kernel, name) for name in _KEPT if hasattr(kernel, name)}
        count = shell.execution_count
        late: list[int] = []
        _flush()

        def note(number: int, frame: Any) -> None:
            if interrupts is not None:
                interrupts.append(number)
            signal.default_int_handler(number, frame)

        handler = signal.signal(signal.SIGINT, note)
        kernel.set_parent(idents, message, channel="shell")
        kernel._publish_status("busy", "shell")  # noqa: SLF001
        shell.execution_count = self._highest = max(self._highest + 1, self._next_number())
        try:
            yield
        except KeyboardInterrupt as interrupt:  # not in the cell, but in what is around it
            self._reply_error(idents, message, interrupt)
            raise
        except Exception as error:  # noqa: BLE001  # of the kernel's handler, not of the cell
            self._reply_error(idents, message, error)
        finally:
            # An interrupt must not leave this half done; the outer cell gets it afterwards.
            signal.signal(signal.SIGINT, lambda number, _: late.append(number))
            self._highest = max(self._highest, shell.execution_count - 1)
            shell.execution_count = count
            _flush()
            kernel._publish_status("idle", "shell")  # noqa: SLF001
            replies = self._replies()
            if hasattr(replies, "flush"):
                replies.flush(_POLLOUT)  # the loop that would send it is held up
            kernel.set_parent(ident, parent, channel="shell")
            for name, value in kept.items():
                setattr(kernel, name, value)
            signal.signal(signal.SIGINT, handler)
            if late:
                signal.raise_signal(signal.SIGINT)

    def _reply_error(self, idents: Any, message: Any, error: BaseException) -> None:
        """Send the reply that the kernel's handler did not send."""
        content: dict[str, Any] = {"status": "error", "ename": type(error).__name__}
        content.update(evalue=str(error), traceback=[], execution_count=self._highest)
        self._kernel.session.send(
            self._replies(), "execute_reply", content, parent=message, ident=idents
        )

    @contextmanager
    def _cancel_on_interrupts(self, interrupts: list[int]) -> Iterator[None]:
        """Let an interrupt cancel what a cell awaits in its own loop."""

        @contextmanager
        def cancel(future: Any) -> Iterator[None]:
            def interrupt(number: int, _: Any) -> None:
                interrupts.append(number)
                future.get_loop().call_soon_threadsafe(future.cancel)

            before = signal.signal(signal.SIGINT, interrupt)
            try:
                yield
            finally:
                signal.signal(signal.SIGINT, before)

        own = vars(self._kernel)  # it hides what the class has
        outer = own.get("_cancel_on_sigint")
        own["_cancel_on_sigint"] = cancel
        try:
            yield
        finally:
            del own["_cancel_on_sigint"]
            if outer is not None:
                own["_cancel_on_sigint"] = outer


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def run_without_waiting(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for nothing; the loop that runs stays the current one."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a cell that was to run at once waits for something")


def _get_free_loop() -> asyncio.AbstractEventLoop:
    """Get a loop for cells that await something while the kernel's own loop is blocked.

    All of them share it, so that what one cell makes with it works in the next; there is another
    one only if it is blocked itself.
    """
    for loop in _own_loops:
        if not loop.is_running():
            return loop
    _own_loops.append(asyncio.new_event_loop())
    atexit.register(_own_loops[-1].close)
    return _own_loops[-1]


def run_in_own_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a loop of its own, in this thread, inside a task of another loop."""
    loop = _get_free_loop()
    outer = asyncio._get_running_loop()  # noqa: SLF001  # public would refuse to nest
    task = asyncio.current_task(outer) if outer is not None else None
    if task is not None and outer is not None:
        asyncio.tasks._leave_task(outer, task)  # noqa: SLF001
    asyncio._set_running_loop(None)  # noqa: SLF001
    try:
        loop.run_until_complete(work)
    finally:
        asyncio._set_running_loop(outer)  # noqa: SLF001
        if task is not None and outer is not None:
            asyncio.tasks._enter_task(outer, task)  # noqa: SLF001
