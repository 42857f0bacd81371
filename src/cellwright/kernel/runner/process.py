"""One process of a runner: its start, the pipes to it, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path

from cellwright.errors import KernelMissing, KernelStartFailed
from cellwright.kernel.environment import MARK_VARIABLE
from cellwright.kernel.jupyter import MOST_CONTENT, read_beginnings
from cellwright.kernel.processes import make_mark, spawn_keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

    from cellwright.kernel.processes import KeptProcess
    from cellwright.kernel.transport import Launch

INSIDE = Path(__file__).with_name("inside")
NAME = "runner"
GONE_WITHIN = 5.0
LAST_OUTPUT_BYTES = 600
READ_BYTES = 1 << 18
PAUSE_BYTES = 1 << 20  # no more is read while this much waits, and the runner waits too
RESUME_BYTES = 1 << 18


class RunnerProcess:
    """A runner's process, from its start to its end; every start makes a new one."""

    def __init__(
        self, kept: KeptProcess, inbox: RunnerInbox, outbox: RunnerOutbox, last_output: IO[bytes]
    ) -> None:
        self.kept = kept
        self.inbox = inbox
        self.outbox = outbox
        self.hello: dict[str, Any] = {}
        self._last_output = last_output
        self._ended = asyncio.Event()
        self._pongs: dict[str, asyncio.Future[None]] = {}
        kept.on_exit(self._on_exit)

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
            raise KernelStartFailed(NAME, self._with_last_output(reason)) from None
        finally:
            self.inbox.release()
        await self._ended.wait()
        raise KernelStartFailed(NAME, self._with_last_output(str(self.kept.exit)))

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
        """Take the answer to a ping; a late one is ignored."""
        pong = self._pongs.get(number)
        if pong is not None and not pong.done():
            pong.set_result(None)

    async def end(self, *, polite: float, firm: float) -> None:
        """Ask the runner to exit, then send SIGTERM, then kill it and everything it started.

        Zero seconds skip a step.
        """
        if polite > 0:
            self.outbox.send({"type": "exit"})
            await self._wait_ended(polite)
        if firm > 0 and not self._ended.is_set():
            self.kept.send_signal(signal.SIGTERM)
            await self._wait_ended(firm)
        if self.kept.pid is not None:
            self.kept.kill()
            if await self.kept.wait_gone(GONE_WITHIN):
                return
        # The keeper did not start, or is stuck: then it is killed itself, and the rest is swept.
        with contextlib.suppress(OSError):
            os.killpg(self.kept.keeper_pid, signal.SIGKILL)
        await self.kept.wait_gone(GONE_WITHIN)

    def close(self) -> None:
        """Let go of everything; the keeper kills what still runs. May be called twice."""
        self.kept.close()
        self.outbox.close()
        self.inbox.close()
        self._last_output.close()

    async def _wait_ended(self, within: float) -> bool:
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

    def _with_last_output(self, reason: str) -> str:
        """Add the end of what the process itself wrote to its stderr, on one line."""
        with self._last_output as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_OUTPUT_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        said = " / ".join(line.strip() for line in lines if line.strip())
        return f"{reason}: {said}" if said else reason


def spawn_runner(launch: Launch, on_unclaimed: Callable[[dict[str, Any]], None]) -> RunnerProcess:
    """Start the process; it is not ready yet.

    Raises:
        KernelMissing: there is no such interpreter.
        KernelStartFailed: the system refused to start it.
    """
    python = launch.python or sys.executable
    mark = make_mark()
    last_output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `RunnerProcess`
    try:
        kept, child = spawn_keeper(
            lambda channel: [
                *(python, str(INSIDE / "start.py"), str(channel), str(os.getpid())),
                *_bytecode_folder(),
            ],
            mark,
            cwd=launch.cwd,
            env={**launch.env, MARK_VARIABLE: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=last_output,
            bufsize=0,
        )
    except BaseException as error:
        last_output.close()
        if isinstance(error, OSError):
            raise _explain_refusal(error, python, launch.cwd) from error
        raise
    outbox = RunnerOutbox(_take_over(child.stdin))
    inbox = RunnerInbox(_take_over(child.stdout), on_unclaimed)
    return RunnerProcess(kept, inbox, outbox, last_output)


def _take_over(file: Any) -> int:
    """Make a descriptor of our own from a file of `Popen`, which would close its own at any time."""
    with file:
        return os.dup(file.fileno())


def _bytecode_folder() -> list[str]:
    """Give a folder for bytecode if it cannot be beside the source."""
    if os.access(INSIDE, os.W_OK):
        return []
    from cellwright.config.directories import cache_directory

    try:
        return [str(cache_directory() / "bytecode")]
    except OSError:  # no home folder; it only starts slower
        return []


def _explain_refusal(error: OSError, python: str, cwd: str) -> KernelMissing | KernelStartFailed:
    if not Path(cwd).is_dir():
        return KernelStartFailed(NAME, f"no folder {cwd}", hint="Create it, or run elsewhere")
    if isinstance(error, FileNotFoundError):
        return KernelMissing(f"No Python at {python}", hint="Choose another kernel")
    return KernelStartFailed(NAME, f"{error.strerror or error} ({python})")


class RunnerInbox:
    """Reads lines of JSON from a descriptor on the event loop, and limits how many may wait.

    Until it is claimed, frames go to `on_unclaimed`. A frame may be of any size. Lines that are
    not JSON are left out: a runner may be killed in the middle of one.
    """

    def __init__(self, descriptor: int, on_unclaimed: Callable[[dict[str, Any]], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._on_unclaimed = on_unclaimed
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._begun: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_claimed = False
        self._is_reading = False
        self._writers_are_gone = False
        self._is_over = False
        self._resume()

    def claim(self) -> None:
        """Let frames wait for `next` from now on."""
        self._is_claimed = True

    def release(self) -> None:
        """Give waiting and later frames to `on_unclaimed`."""
        self._is_claimed = False
        self._hand_out()
        self._resume()

    async def next(self) -> dict[str, Any] | None:
        """Wait for the next frame; None when there will be none."""
        while True:
            while self._lines:
                if len(self._lines[0]) > MOST_CONTENT:
                    return await self._take_large()
                frame = self._take()
                if frame is not None:
                    return frame
            if self._is_over:
                return None
            self._resume()
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def end(self) -> None:
        """Read what is left in the pipe, to which nothing is written any more, and finish."""
        self._writers_are_gone = True
        self._read_rest()  # if too much waits, `next` continues

    def close(self) -> None:
        """Stop reading; what waits can still be taken."""
        self._finish()

    def _resume(self) -> None:
        if self._is_over or self._waiting_bytes > RESUME_BYTES:
            return
        if self._writers_are_gone:
            self._read_rest()
        elif not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._descriptor, self._read)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._descriptor)

    def _read_rest(self) -> None:
        while not self._is_over and self._waiting_bytes <= PAUSE_BYTES:
            if not self._read():
                self._finish()

    def _read(self) -> bool:
        """Read once; false when there was nothing."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            # The process has closed the pipe and is about to end; then `end` is called.
            self._pause()
            return False
        first, *rest = data.split(b"\n")
        self._begun.append(first)
        if rest:
            self._add(b"".join(self._begun))
            for line in rest[:-1]:
                self._add(line)
            self._begun = [rest[-1]]
            if not self._is_claimed:
                self._hand_out()
            if self._waiting_bytes > PAUSE_BYTES:
                self._pause()
            self._wake()
        return True

    def _add(self, line: bytes) -> None:
        if line:
            self._lines.append(line)
            self._waiting_bytes += len(line)

    def _take(self) -> dict[str, Any] | None:
        line = self._lines.popleft()
        self._waiting_bytes -= len(line)
        try:
            frame = json.loads(line)
        except ValueError:
            return None
        return frame if isinstance(frame, dict) else None

    async def _take_large(self) -> dict[str, Any]:
        """Take a frame that is too large to be decoded: how its texts begin, and its line."""
        line = self._lines.popleft()
        self._waiting_bytes -= len(line)
        found = await asyncio.to_thread(read_beginnings, line)
        return {**found, "bundle": found["data"], "raw": line}

    def _hand_out(self) -> None:
        while self._lines and not self._is_claimed:
            frame = self._take()
            if frame is not None:
                self._on_unclaimed(frame)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self) -> None:
        self._pause()
        if not self._is_over:
            self._is_over = True
            os.close(self._descriptor)
        self._wake()


class RunnerOutbox:
    """Writes lines of JSON to a descriptor without blocking the event loop."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._rest = bytearray()
        self._is_open = True

    def send(self, request: dict[str, Any]) -> None:
        """Send a request, or queue it; it is dropped if the runner is gone."""
        if self._is_open:
            is_waiting = bool(self._rest)
            self._rest += json.dumps(request).encode() + b"\n"
            if not is_waiting:
                self._write()
                self._wait_for_room()

    def close(self) -> None:
        """Close the descriptor; what was not sent is lost."""
        if self._is_open:
            self._is_open = False
            if self._rest:
                self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)

    def _wait_for_room(self) -> None:
        if self._is_open and self._rest:
            self._loop.add_writer(self._descriptor, self._write)

    def _write(self) -> None:
        try:
            done = os.write(self._descriptor, self._rest)
        except BlockingIOError:
            return
        except OSError:  # the runner is gone, which is noticed elsewhere
            self.close()
            return
        del self._rest[:done]
        if not self._rest:
            self._loop.remove_writer(self._descriptor)
