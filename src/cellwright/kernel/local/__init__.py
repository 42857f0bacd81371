"""Jupyter kernels on this machine: started under a keeper, reached over private sockets.

Speaks the Jupyter messaging protocol over ZeroMQ itself, without `jupyter_client`, which takes
longer to load than a cell to run. It knows nothing of sessions or of queues of cells.
"""

from cellwright.kernel.local.channels import return_large_blocks
from cellwright.kernel.local.kernel import LocalKernel
from cellwright.kernel.local.process import sweep_leftovers

__all__ = ["LocalKernel", "return_large_blocks", "sweep_leftovers"]
