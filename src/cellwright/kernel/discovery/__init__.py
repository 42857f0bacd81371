"""Which kernel, and which Python, a notebook means on this machine.

Looks at folders and small files; it starts an interpreter only when those leave a doubt, and
imports nothing of Jupyter's.
"""

from cellwright.kernel.discovery.choice import KernelChoice, choose_kernel, choose_python
from cellwright.kernel.discovery.specs import KernelSpec, find_spec, list_specs, python_spec

__all__ = [
    "KernelChoice",
    "KernelSpec",
    "choose_kernel",
    "choose_python",
    "find_spec",
    "list_specs",
    "python_spec",
]
