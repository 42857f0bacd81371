"""A copy of a notebook as it was, beside it."""

from __future__ import annotations

import os

from cellwright.document import files
from cellwright.document.reached import Reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.notebook import Notebook


def write_backup(path: str, notebook: Notebook, reached: Reached | None = None) -> str:
    """Write it under the first free name of `x.backup.ipynb`, `x.backup-2.ipynb` and so on.

    `reached` is the notebook itself, for callers who must not be led out of its folder.
    """
    stem, suffix = os.path.splitext(path)  # noqa: PTH122  # hot path: no pathlib
    number = 1
    while True:
        name = f"{stem}.backup{f'-{number}' if number > 1 else ''}{suffix}"
        place = None
        if reached is not None:
            folder = os.path.dirname(reached)  # noqa: PTH120
            place = Reached(os.path.join(folder, os.path.basename(name)), name)  # noqa: PTH118, PTH119
        if not os.path.lexists(place or name):
            files.write(notebook, name, reached=place)
            return name
        number += 1
