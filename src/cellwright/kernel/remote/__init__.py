"""Kernels on a Jupyter Server or a Kernel Gateway, over REST and one WebSocket each.

Knows how such servers speak and fail; nothing of sessions, notebooks or the people behind them.
"""

from __future__ import annotations

from cellwright.kernel.remote.kernel import RemoteKernel
from cellwright.kernel.remote.rest import Timeouts
from cellwright.kernel.remote.server import (
    KernelSpecs,
    RemoteServer,
    RunningKernel,
    RunningSession,
)

__all__ = [
    "KernelSpecs",
    "RemoteKernel",
    "RemoteServer",
    "RunningKernel",
    "RunningSession",
    "Timeouts",
]
