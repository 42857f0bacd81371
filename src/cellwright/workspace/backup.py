"""A copy of a notebook as it was, beside it."""

from __future__ import annotations

import os

from cellwright.document import files
from cellwright.workspace.paths import reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.notebook import Notebook


def write_backup(path: str, notebook: Notebook, root: str | None = None) -> str:
    """Write it under the first free name of `x.backup.ipynb`, `x.backup-2.ipynb` and so on."""
    stem, suffix = os.path.splitext(path)  # noqa: PTH122  # hot path: no pathlib
    number = 1
    while True:
        name = f"{stem}.backup{f'-{number}' if number > 1 else ''}{suffix}"
        with reached(name, root, name) as place:
            if not os.path.lexists(place or name):
                files.write(notebook, name, reached=place)
                return name
        number += 1
