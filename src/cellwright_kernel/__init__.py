"""A notebook as its own code sees it: read, edited and run from a cell.

    from cellwright_kernel import notebook

    notebook.insert_markdown("# Results")
    notebook.run(0, 3)

For Python from 3.9 on, with the standard library and `comm`, which every Jupyter kernel of Python
has. It speaks the Notebook Manipulator Protocol v1 with whatever frontend runs the cell.
"""

from __future__ import annotations

from cellwright_kernel.errors import (
    CannotWait,
    CellFailed,
    NoFrontend,
    NotebookError,
    NotebookTimeout,
    OutOfRange,
)
from cellwright_kernel.magics import load_ipython_extension, unload_ipython_extension
from cellwright_kernel.verbs import Notebook, notebook
from cellwright_kernel.views import Cell, code, markdown, raw

__all__ = [
    "CannotWait",
    "Cell",
    "CellFailed",
    "NoFrontend",
    "Notebook",
    "NotebookError",
    "NotebookTimeout",
    "OutOfRange",
    "code",
    "load_ipython_extension",
    "markdown",
    "notebook",
    "raw",
    "unload_ipython_extension",
]
