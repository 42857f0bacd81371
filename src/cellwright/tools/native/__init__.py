"""The eight native tools: small on purpose, each naming its notebook by path."""

from __future__ import annotations

from cellwright.tools.native.editing import EDIT
from cellwright.tools.native.evaluating import EVAL
from cellwright.tools.native.history import HISTORY
from cellwright.tools.native.kernels import KERNEL
from cellwright.tools.native.listing import LIST
from cellwright.tools.native.outputs import OUTPUTS
from cellwright.tools.native.reading import READ
from cellwright.tools.native.running import RUN

NATIVE = (LIST, READ, EDIT, RUN, OUTPUTS, HISTORY, KERNEL, EVAL)
"""In the order in which a model meets them."""
