"""One life of a runner: its process, the pipes to it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from cellwright.errors import KernelMissing, KernelStartFailed
from cellwright.kernel.keeper import MARK_VARIABLE, KeptProcess, new_mark
from cellwright.kernel.keeper.marks import adopt_orphans
from cellwright.kernel.runner.inbox import Inbox
from cellwright.kernel.runner.outbox import Outbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

    from cellwright.kernel.transport import Launch

INSIDE = Path(__file__).with_name("inside")
NAME = "runner"
GONE_WITHIN = 5.0
LAST_WORDS_BYTES = 600


class Life:
    """A runner's process, from its start to its end; a restart is another one."""

    def __init__(
        self, process: KeptProcess, inbox: Inbox, outbox: Outbox, last_words: IO[bytes]
    ) -> None:
        self.process = process
        self.inbox = inbox
        self.outbox = outbox
        self.hello: dict[str, Any] = {}
        self._last_words = last_words
        self._ended = asyncio.Event()
        self._pongs: dict[str, asyncio.Future[None]] = {}
        process.on_exit(self._on_exit)

    async def wait_ready(self, within: float) -> None:
        """Wait until the runner says hello.

        Raises:
            KernelStartFailed: it ended, or said nothing in time.
        """
        self.inbox.claim()
        try:
            async with asyncio.timeout(within):
                while (frame := await self.inbox.next()) is not None:
                    if frame.get("type") == "hello":
                        self.hello = frame
                        return
        except TimeoutError:
            reason = f"not ready within {within:g} s"
            raise KernelStartFailed(NAME, self._with_last_words(reason)) from None
        finally:
            self.inbox.release()
        await self._ended.wait()
        raise KernelStartFailed(NAME, self._with_last_words(str(self.process.exit)))

    async def ping(self, number: str, within: float) -> bool:
        """Ask an idle runner whether it is there."""
        pong = self._pongs[number] = asyncio.get_running_loop().create_future()
        self.outbox.send({"type": "ping", "id": number})
        try:
            await asyncio.wait({pong}, timeout=within)
        finally:
            del self._pongs[number]
        return pong.done() and not pong.cancelled()

    def take_pong(self, number: str) -> None:
        """Take the answer to a ping; a late one is nobody's."""
        pong = self._pongs.get(number)
        if pong is not None and not pong.done():
            pong.set_result(None)

    async def end(self, *, polite: float, firm: float) -> None:
        """Ask the runner to leave, then tell it to, then kill it and everything it started.

        Zero seconds skip a step.
        """
        if polite > 0:
            self.outbox.send({"type": "exit"})
            await self._has_ended(polite)
        if firm > 0 and not self._ended.is_set():
            self.process.send_signal(signal.SIGTERM)
            await self._has_ended(firm)
        if self.process.pid is not None:
            self.process.kill()
            if await self.process.wait_gone(GONE_WITHIN):
                return
        # It never came to be a keeper, or is stuck: then it is killed itself, and swept behind.
        with contextlib.suppress(OSError):
            os.killpg(self.process.keeper_pid, signal.SIGKILL)
        await self.process.wait_gone(GONE_WITHIN)

    def close(self) -> None:
        """Let go of everything; what still runs is killed by its keeper. May be called twice."""
        self.process.close()
        self.outbox.close()
        self.inbox.close()
        self._last_words.close()

    async def _has_ended(self, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def _on_exit(self) -> None:
        self._ended.set()
        self.inbox.end()
        for pong in self._pongs.values():
            pong.cancel()

    def _with_last_words(self, reason: str) -> str:
        """Add the end of what the process itself wrote to its stderr, on one line."""
        with self._last_words as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        said = " / ".join(line.strip() for line in lines if line.strip())
        return f"{reason}: {said}" if said else reason


def spawn(launch: Launch, on_unclaimed: Callable[[dict[str, Any]], None]) -> Life:
    """Start the process; it is not ready yet.

    Raises:
        KernelMissing: there is no such interpreter.
        KernelStartFailed: the system refused to start it.
    """
    adopt_orphans()
    python = launch.python or sys.executable
    mark = new_mark()
    last_words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `Life`
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            ours.settimeout(0)
            channel = theirs.fileno()
            child = subprocess.Popen(  # noqa: S603 - the interpreter that the caller chose
                [
                    *(python, str(INSIDE / "start.py"), str(channel), str(os.getpid())),
                    *_bytecode_folder(),
                ],
                cwd=launch.cwd,
                env={**launch.env, MARK_VARIABLE: mark},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=last_words,
                bufsize=0,
                pass_fds=(channel,),
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        last_words.close()
        raise _refused(error, python, launch.cwd) from error
    except BaseException:
        ours.close()
        last_words.close()
        raise
    assert child.stdin is not None  # noqa: S101
    assert child.stdout is not None  # noqa: S101
    outbox = Outbox(_take_over(child.stdin))
    inbox = Inbox(_take_over(child.stdout), on_unclaimed)
    return Life(KeptProcess(mark, ours, child), inbox, outbox, last_words)


def _take_over(file: Any) -> int:
    """Make a descriptor of our own from a file of `Popen`'s, which would close it when it likes."""
    with file:
        return os.dup(file.fileno())


def _bytecode_folder() -> list[str]:
    """Name a place for bytecode when there can be none beside the source."""
    if os.access(INSIDE, os.W_OK):
        return []
    from cellwright.config.directories import cache_directory

    try:
        return [str(cache_directory() / "bytecode")]
    except OSError:  # no home; it starts all the same, only slower
        return []


def _refused(error: OSError, python: str, cwd: str) -> KernelMissing | KernelStartFailed:
    if not Path(cwd).is_dir():
        return KernelStartFailed(NAME, f"no folder {cwd}", hint="Create it, or run elsewhere")
    if isinstance(error, FileNotFoundError):
        return KernelMissing(f"No Python at {python}", hint="Name another with --kernel")
    return KernelStartFailed(NAME, f"{error.strerror or error} ({python})")
