"""Take over the process: hide the wire, catch descriptors 1 and 2, go on below a keeper."""

# Why not: see the package's docstring.
# ruff: noqa: FBT003

from __future__ import annotations

import os

from . import keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HIGH = 250  # where few programs look, so that a stray close(3) does not cut the wire

control = -1  # requests come in here
frames = -1  # frames go out here
pipes: Sequence[int] = ()  # what anybody writes to descriptors 1 and 2 comes out of these
is_kept = False  # whether a keeper watches over this process


def prepare(channel: int | None = None, owner: int = 0) -> None:
    """Move stdin and stdout out of reach and, with a channel to the owner, go on below a keeper.

    From here on nothing that a cell, a library or a child process writes can pass for a frame:
    descriptors 1 and 2 are pipes of ours, 0 is empty, and the wire is closed in children.
    """
    global control, frames, pipes, is_kept  # noqa: PLW0603
    control = _move(0, HIGH)
    frames = _move(1, HIGH + 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    pipes = (_catch(1, HIGH + 2), _catch(2, HIGH + 3))
    if channel is not None:
        os.set_inheritable(channel, False)
        is_kept = keeper.go_below(channel, owner, control, frames, pipes)
        os.close(channel)


def _catch(number: int, place: int) -> int:
    """Make a pipe of a descriptor that everybody writes to; give its other end."""
    out, into = os.pipe()
    os.dup2(into, number)
    os.close(into)
    end = _move(out, place)
    os.close(out)
    os.set_blocking(end, False)  # the writers have a description of their own, and may block
    return end


def _move(old: int, new: int) -> int:
    try:
        return os.dup2(old, new, inheritable=False)
    except OSError:  # fewer descriptors are allowed than that
        return os.dup(old)
