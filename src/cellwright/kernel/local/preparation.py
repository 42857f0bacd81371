"""What an ipykernel is told once, before its first cell, so that floods stay bearable.

It drops output when 1,000 messages wait for a reader that has no turn, as on a busy machine: it
is told not to, since a backlog of ours stops it soon enough. And it gathers all that a cell
prints in a fifth of a second, however much that is, into one message, which has to be held whole
at both ends: it is made to send what has gathered whenever that is long.
"""

from __future__ import annotations

LONGEST_TEXT = 1 << 18
"""Characters that a kernel may gather before it sends them."""

# IPython gives the streams another `write` for the length of every cell, so that only what lies
# below it can be changed. Each step stands alone: a version that has no such part goes without.
PREPARATION = f"""
def prepare(longest):
    from IPython import get_ipython
    thread = get_ipython().kernel.iopub_thread
    thread.schedule(lambda: thread.socket.set_hwm(0))

    from ipykernel.iostream import OutStream
    schedule, take = OutStream._schedule_flush, OutStream._flush_buffers

    def schedule_or_flush(self):
        schedule(self)
        with self._buffer_lock:
            gathered = sum(buffer.tell() for buffer in self._buffers.values())
        if gathered >= longest:
            self.flush()

    def take_in_pieces(self):
        for parent, text in take(self):
            for start in range(0, len(text), longest):
                yield parent, text[start : start + longest]

    OutStream._flush_buffers = take_in_pieces
    OutStream._schedule_flush = schedule_or_flush

try:
    prepare({LONGEST_TEXT})
except Exception:
    pass
"""
