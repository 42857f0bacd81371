"""Memory that goes back to the system: for a process of its own that passes floods of output on."""

from __future__ import annotations

import sys

_M_MMAP_THRESHOLD = -3
_LARGE = 256 * 2**10


def return_large_blocks() -> bool:
    """Have blocks of 256 KiB and more returned to the system when they are freed.

    Otherwise the C library of Linux keeps those it has seen come and go, and the messages of a
    flood leave several times their size behind. It concerns the whole process, so it is for an
    engine to call, not for a library. Returns whether that is possible here.
    """
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE))
    except AttributeError:  # another C library
        return False
