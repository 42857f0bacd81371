"""Those who write one notebook at the same time, each a process; see `test_many_writers`.

    python crowd.py writer PATH NAME COUNT    edits through Cellwright; prints what became of each
    python crowd.py outsider PATH             rewrites the file in its own way until stdin ends

Every edit brings a token that occurs nowhere else. The outsider knows nothing of our lock: it
loads the file, counts up a number in the metadata, dumps it in another style and puts it in the
place of the file. By exchanging the two it learns what it really replaced, and so which tokens it
lost because they came after it had read the file. And it sees its own number go back if somebody
replaced what it wrote without having read it.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import re
import select
import sys
from pathlib import Path
from typing import Any

AT_FDCWD = -100
RENAME_EXCHANGE = 2
EVERY = 12  # edits that come into the file before the outsider writes once more
LOOK = 0.002  # between two looks of the outsider at the file, in seconds
TOKEN = re.compile(rb"token-[a-z0-9]+-[0-9]+-")


def edit_of(name: str, number: int) -> dict[str, Any]:
    """An insertion or, three times of four, one more line in the writer's own cell."""
    token = f"token-{name}-{number}-"
    if number % 4:
        end = f"# end of {name}"
        return {"op": "replace_text", "cell": name, "old": end, "new": f"{token}\n{end}"}
    return {"op": "insert", "source": token}


def start(names: list[str]) -> bytes:
    """A notebook with a cell for every writer."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": name,
            "metadata": {},
            "outputs": [],
            "source": [f"# end of {name}"],
        }
        for name in names
    ]
    metadata = {"outsider": 0}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1).encode()


def write(path: str, name: str, count: int) -> dict[str, str]:
    """Make the edits; what became of each, by token."""
    import cellwright

    if int(name.strip("w")) % 2:
        import msgspec  # noqa: F401  # whoever has it loaded reads with the faster parser

    said = {}
    for number in range(count):
        try:
            cellwright.edit(path, edit_of(name, number), lock_timeout=300)
            said[f"token-{name}-{number}-"] = "ok"
        except cellwright.CellwrightError as error:
            said[f"token-{name}-{number}-"] = error.code
    return said


def rewrite(path: str) -> dict[str, Any]:
    """Rewrite the file again and again; how often, what it lost, and what it was robbed of."""
    own = Path(f"{path}.outside")
    file = Path(path)
    lost: set[str] = set()
    robbed: list[int] = []
    written = seen = 0
    styles = itertools.cycle((2, None, 4, 1))
    running = True
    while running:
        running = not select.select([sys.stdin], [], [], LOOK)[0]
        data = file.read_bytes()
        if running and len(tokens(data)) < seen + EVERY:
            continue
        notebook = json.loads(data)
        if notebook["metadata"]["outsider"] != written:
            robbed.append(written)
        written += 1
        notebook["metadata"]["outsider"] = written
        own.write_text(json.dumps(notebook, indent=next(styles)), encoding="utf-8")
        exchange(own, file)
        seen = len(tokens(data))
        lost |= tokens(own.read_bytes()) - tokens(data)
    own.unlink(missing_ok=True)
    return {"written": written, "lost": sorted(lost), "robbed": robbed}


def tokens(data: bytes) -> set[str]:
    return {found.decode() for found in TOKEN.findall(data)}


def exchange(one: Path, other: Path) -> None:
    """Let two files change places in one step."""
    names = [os.fsencode(one), os.fsencode(other)]
    if _rename(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_rename = ctypes.CDLL(None, use_errno=True).renameat2


if __name__ == "__main__":
    if sys.argv[1] == "writer":
        result: Any = write(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        result = rewrite(sys.argv[2])
    json.dump(result, sys.stdout)
