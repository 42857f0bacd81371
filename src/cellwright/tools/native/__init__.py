"""The eight native tools: small on purpose, each naming its notebook by path."""

from __future__ import annotations

from cellwright.tools.native.editing import EDIT, HISTORY
from cellwright.tools.native.kernels import KERNEL
from cellwright.tools.native.reading import LIST, OUTPUTS, READ
from cellwright.tools.native.running import EVAL, RUN

NATIVE = (LIST, READ, EDIT, RUN, OUTPUTS, HISTORY, KERNEL, EVAL)
"""In the order in which a model meets them."""
