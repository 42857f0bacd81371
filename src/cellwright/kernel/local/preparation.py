"""What an ipykernel is told once, before its first cell, so that floods stay bearable.

It drops output when 1,000 messages wait for a reader that has no turn, as on a busy machine: it
is told not to, since a backlog of ours stops it soon enough. And it gathers all that a cell
prints in a fifth of a second, however much that is, into one message, which has to be held whole
at our end: it is made to send that in pieces, of which only a few wait here. While it does, the
thread that sends gets its turns from the one that prints sooner than usual: with every piece it
loses some, and with the usual 5 ms each most of a flood would only leave when the cell has ended.
"""

from __future__ import annotations

LONGEST_TEXT = 3 << 17
"""Characters that a kernel sends in one message of printed text, unless there are very many."""
TURN_SECONDS = 0.0005
"""How long a thread that prints may make the one that sends wait."""

# A version that has no such part goes without what it would have been for.
PREPARATION = f"""
def prepare(longest, turn):
    from IPython import get_ipython
    thread = get_ipython().kernel.iopub_thread
    thread.schedule(lambda: thread.socket.set_hwm(0))

    from sys import getswitchinterval, setswitchinterval
    from ipykernel.iostream import OutStream
    take = OutStream._flush_buffers

    def take_in_pieces(self):
        for parent, text in take(self):
            # It waits for itself for ever if it is to send a thousand messages at once.
            size = max(longest, len(text) // 400 + 1)
            if len(text) <= size:
                yield parent, text
                continue
            before = getswitchinterval()
            setswitchinterval(min(before, turn))
            ours = getswitchinterval()
            try:
                for start in range(0, len(text), size):
                    yield parent, text[start : start + size]
            finally:
                if getswitchinterval() == ours:
                    setswitchinterval(before)

    OutStream._flush_buffers = take_in_pieces

try:
    prepare({LONGEST_TEXT}, {TURN_SECONDS})
except Exception:
    pass
"""
