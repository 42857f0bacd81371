"""The tap: answers taken off the kernel's shell channel while a cell runs.

ipykernel handles one message at a time, so that an answer to a running cell waits behind that
cell. The thread that reads the channel, its own one in ipykernel 7 and the main thread before,
hands us what is ours, and everything else to the kernel as usual. Every message is checked
against the kernel's key first. The tap uses private names: all are checked before any change.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from cellwright_kernel.client import PendingCalls

MARK = "nbmp_request"
"""In the metadata of an execute request: the request that it is run for."""

_INSTALL_WITHIN = 5.0
_POLLIN = 1
_MESSAGES = ("session", "shell_stream", "shell_handlers", "set_parent", "get_parent", "io_loop")


def find_missing_for_tap(kernel: Any) -> str | None:
    """Find what a kernel lacks that the tap needs; None if it has everything."""
    for name in (*_MESSAGES, "_parent_ident", "_publish_status", "shell"):
        if getattr(kernel, name, None) is None:
            return name
    if "execute_request" not in kernel.shell_handlers:
        return "shell_handlers"
    for name in ("on_recv", "flush", "poller", "socket", "_recv_callback"):
        if getattr(kernel.shell_stream, name, None) is None:
            return f"shell_stream.{name}"
    for name in ("feed_identities", "deserialize", "unpack"):
        if not hasattr(kernel.session, name):
            return f"session.{name}"
    thread = getattr(kernel, "shell_channel_thread", None)
    if thread is not None and not hasattr(thread, "io_loop"):
        return "shell_channel_thread.io_loop"
    if thread is not None and not hasattr(
        getattr(thread, "manager", None), "get_subshell_to_shell_channel_socket"
    ):
        return "shell_channel_thread.manager"
    return None


class Tap:
    """Stands before the kernel's own handler of the shell channel.

    `on_close` is called with the id of every comm that the frontend closes.
    """

    def __init__(
        self, kernel: Any, calls: PendingCalls, on_close: Callable[[object], None]
    ) -> None:
        self._kernel = kernel
        self._calls = calls
        self._on_close = on_close
        self._stream = kernel.shell_stream
        self._handle: Callable[[Any], Any] = self._stream._recv_callback  # noqa: SLF001
        self._thread = getattr(kernel, "shell_channel_thread", None)
        self._is_installed = threading.Event()

    @property
    def reads_here(self) -> bool:
        """Whether the thread that asks has to read the channel itself, by `turn`."""
        return self._thread is None and threading.current_thread() is threading.main_thread()

    def install(self) -> bool:
        """Install the tap; false if the thread that reads the channel did not do so in time."""
        if self.reads_here:
            self._install_here()
        elif self._thread is None:
            # As soon as the main thread is free, or waits for something itself.
            self._kernel.io_loop.add_callback(self._install_here)
            return True
        else:
            self._thread.io_loop.add_callback(self._install_here)
        return self._is_installed.wait(_INSTALL_WITHIN)

    def _install_here(self) -> None:
        if not self._is_installed.is_set():
            self._stream.on_recv(self._receive, copy=False)
            self._is_installed.set()

    def is_blocked(self) -> bool:
        """Whether the loop that reads the channel is blocked: another one runs in its thread."""
        return asyncio.get_running_loop() is not self._kernel.io_loop.asyncio_loop

    def turn(self, within: float) -> None:
        """Read one message, if one comes in so many seconds; for the thread that has to."""
        self._install_here()
        poller = self._stream.poller
        poller.register(self._stream.socket, _POLLIN)
        if poller.poll(within * 1000):
            self._stream.flush(_POLLIN, 1)

    def pass_on(self, frames: Any) -> None:
        """Give a message to the kernel after all."""
        loop = self._kernel.io_loop if self._thread is None else self._thread.io_loop
        loop.add_callback(self._handle, frames)

    def _receive(self, frames: Any) -> Any:
        if self._take(frames):
            return None
        return self._handle(frames)

    def _take(self, frames: Any) -> bool:
        """Take a message if a call waits for it; true if the kernel must not see it."""
        session = self._kernel.session
        try:
            _, parts = session.feed_identities(frames, copy=False)
            header = bytes(parts[1].bytes)
            # Nearly all messages are something else; these need not be checked twice.
            if b'"comm_msg"' in header or b'"comm_close"' in header:
                message = session.deserialize(parts, content=False, copy=False)
                content = session.unpack(message["content"])
                if message["header"]["msg_type"] == "comm_close":
                    self._on_close(content.get("comm_id"))
                    return False
                return self._calls.deliver(content.get("data"))
            if b'"execute_request"' in header and MARK.encode() in bytes(parts[3].bytes):
                message = session.deserialize(parts, content=False, copy=False)
                call = self._calls.get(message["metadata"].get(MARK))
                return call is not None and call.nests and call.add_job(frames)
        except Exception:  # noqa: BLE001  # the kernel reports what is wrong with it
            return False
        return False
