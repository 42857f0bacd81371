"""One started kernel: from the start of its process to the last trace of it.

It is made anew by every start; `LocalKernel` is what stays.
"""

from __future__ import annotations

import asyncio

from cellwright.errors import KernelStartFailed
from cellwright.kernel.keeper import start_kept
from cellwright.kernel.local.conversation import Conversation
from cellwright.kernel.local.starting import environment, make_place, require_descriptors
from cellwright.kernel.local.tail import Tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.kernel.aside import AsideQueue
    from cellwright.kernel.discovery import KernelSpec
    from cellwright.kernel.events import KernelExit
    from cellwright.kernel.keeper import KeptProcess
    from cellwright.kernel.local.starting import Carrier, Place
    from cellwright.kernel.transport import Launch

_LAST_WORDS_WITHIN = 0.5
_LEAVING_PATIENCE = 2.0
_SHUTDOWN_PATIENCE = 1.0
_KILL_PATIENCE = 10.0


class Connection:
    """A kernel's process, its files and the conversation with it.

    `open` it first, and `stop` it in the end.
    """

    def __init__(self, spec: KernelSpec, launch: Launch, asides: AsideQueue) -> None:
        self.spec = spec
        self.process: KeptProcess | None = None
        self.conversation: Conversation | None = None
        self.has_ended = False
        self.was_stopped = False
        self._launch = launch
        self._asides = asides
        self._loop = asyncio.get_running_loop()
        self._place: Place | None = None
        self._tail: Tail | None = None
        self._is_disconnected = False

    @property
    def exit(self) -> KernelExit | None:
        """How the process ended; None while it runs."""
        return None if self.process is None else self.process.exit

    @property
    def last_words(self) -> str:
        """The end of what the process itself wrote, on one line."""
        return "" if self._tail is None else self._tail.text()

    async def open(self, transport: Carrier, within: float) -> None:
        """Start the process and return when it is ready for a cell.

        Raises:
            KernelStartFailed: it ended, or was not ready in so many seconds.
            OSError: the system refused something that is needed.
        """
        self._tail = Tail()
        place = self._place = make_place(self.spec.name, transport)
        process = self.process = await start_kept(
            place.command(self.spec),
            cwd=self._launch.cwd,
            env=environment(self.spec, self._launch),
            output=self._tail.writer,
        )
        self._tail.close_writer()
        if self.was_stopped:
            raise self._failed("it was shut down meanwhile")
        require_descriptors()
        conversation = self.conversation = Conversation(
            self.spec,
            place,
            process,
            self._asides,
            on_leaving=self._expect_exit,
            on_disconnect=self._on_disconnect,
        )
        process.on_exit(self._on_exit)
        try:
            async with asyncio.timeout(within):
                is_ready = await conversation.until_ready()
        except TimeoutError:
            raise self._failed(f"it was not ready within {within:g} s") from None
        if not is_ready:
            raise self._failed(f"it {self.exit}")

    def _failed(self, reason: str) -> KernelStartFailed:
        words = self.last_words
        return KernelStartFailed(self.spec.name, f"{reason}; it said: {words}" if words else reason)

    def _on_exit(self) -> None:
        if self._is_disconnected:
            self._end()
        else:
            # What it had sent is still on its way through the sockets.
            self._loop.call_later(_LAST_WORDS_WITHIN, self._end)

    def _on_disconnect(self) -> None:
        self._is_disconnected = True
        if self.exit is not None:
            self._end()
        else:
            self._expect_exit()

    def _expect_exit(self) -> None:
        """A kernel that has left is none, even if a thread keeps its process from ending."""
        self._loop.call_later(_LEAVING_PATIENCE, self._kill)

    def _kill(self) -> None:
        if self.process is not None and self.exit is None:
            self.process.kill()

    def _end(self) -> None:
        if self.has_ended:
            return
        self.has_ended = True
        if self.conversation is not None:
            self.conversation.end()
        if self._place is not None:
            self._place.remove()

    async def stop(self, *, now: bool) -> None:
        """End the kernel and all that it started; `now` without asking it first."""
        self.was_stopped = True
        if self.process is not None:
            if not now and self.exit is None and self.conversation is not None:
                self.conversation.resume()
                self.conversation.send("control", "shutdown_request", {"restart": False})
                await self.process.wait_gone(_SHUTDOWN_PATIENCE)
            self.process.kill()
            await self.process.wait_gone(_KILL_PATIENCE)
        self._end()
        self.close()

    def close(self) -> None:
        """Let go of everything at once; whatever still runs is killed. May be called twice."""
        if self.conversation is not None:
            self.conversation.close()
        if self.process is not None:
            self.process.close()
        if self._tail is not None:
            self._tail.close()
        if self._place is not None:
            self._place.remove()
