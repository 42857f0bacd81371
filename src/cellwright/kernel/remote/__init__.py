"""Kernels on a Jupyter Server or a Kernel Gateway, over REST and one WebSocket each.

Knows how such servers speak and fail, and nothing of sessions or notebooks.
"""

from __future__ import annotations

from cellwright.kernel.remote.kernel import RemoteKernel
from cellwright.kernel.remote.server import RemoteServer, RunningKernel, Timeouts

__all__ = ["RemoteKernel", "RemoteServer", "RunningKernel", "Timeouts"]
