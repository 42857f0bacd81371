"""Take over the process: hide the wire, catch descriptors 1 and 2, continue below a keeper."""

# Why not: see the package's docstring.
# ruff: noqa: FBT003

from __future__ import annotations

import os
import select
from time import monotonic

from . import keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HIGH = 250  # where few programs look, so that a stray close(3) does not cut the wire
LEFTOVER_LIMIT = 2.0  # seconds to pass on what a dead runner has left
PIPE_BYTES = 1 << 20  # more than a pipe holds
CLOSED = 70  # the exit code of a runner whose wire is gone

control = -1  # requests come in here
frames = -1  # frames go out here
pipes: Sequence[int] = ()  # what is written to descriptors 1 and 2 comes out of these


def prepare() -> None:
    """Move stdin and stdout out of reach.

    After this, nothing that a cell, a library or a child process writes can pass for a frame:
    descriptors 1 and 2 are pipes of ours, 0 is empty, and the wire is closed in children.
    """
    global control, frames, pipes  # noqa: PLW0603
    control = move(0, HIGH)
    frames = move(1, HIGH + 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    pipes = (_catch(1, HIGH + 2), _catch(2, HIGH + 3))


def continue_below(channel: int, owner: int) -> bool:
    """Continue below a keeper; returns whether it watches over this process.

    As late as possible: after a fork, every page that is written to is copied first.
    """
    os.set_inheritable(channel, False)
    is_kept = keeper.fork_below(channel, owner, _prepare_keeper)
    os.close(channel)
    return is_kept


def _prepare_keeper() -> Callable[[], None]:
    """In the keeper: let go of what only the runner may hold."""
    os.close(control)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    return _pass_leftovers_on


def _pass_leftovers_on() -> None:
    """Send what was written before the runner died: it is output, and only the keeper has it."""
    from .wire import make_stream_frame

    os.set_blocking(frames, False)
    room = select.poll()
    room.register(frames, select.POLLOUT)
    end = monotonic() + LEFTOVER_LIMIT
    for name, pipe in (("stdout", pipes[0]), ("stderr", pipes[1])):
        try:
            text = os.read(pipe, PIPE_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        # The line break ends a frame that the runner could not finish.
        data = b"\n" + make_stream_frame(name, "", text) if text else b""
        while data and monotonic() < end:
            try:
                if room.poll(100):
                    data = data[os.write(frames, data) :]
            except BlockingIOError:
                continue
            except OSError:
                return


def _catch(number: int, place: int) -> int:
    """Replace a descriptor by a pipe, and give the pipe's other end."""
    out, into = os.pipe()
    os.dup2(into, number)
    os.close(into)
    end = move(out, place)
    os.close(out)
    os.set_blocking(end, False)  # the writers have a description of their own, and may block
    return end


def move(old: int, new: int) -> int:
    """Copy a descriptor to a place where few programs look; children do not get it."""
    try:
        return os.dup2(old, new, inheritable=False)
    except OSError:  # fewer descriptors are allowed than that
        return os.dup(old)
