"""Jupyter kernels on this machine: started under a keeper, spoken to over private sockets.

Speaks the Jupyter messaging protocol over ZeroMQ itself; it knows neither sessions nor queues of
cells, and does not import `jupyter_client`, which takes longer to load than a cell to run.
"""

from cellwright.kernel.aside import Aside
from cellwright.kernel.local.allocation import return_large_blocks
from cellwright.kernel.local.kernel import LocalKernel
from cellwright.kernel.local.starting import sweep_leftovers

__all__ = ["Aside", "LocalKernel", "return_large_blocks", "sweep_leftovers"]
