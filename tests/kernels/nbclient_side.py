"""Run a notebook with nbclient, in place; a script for the interpreter that has nbclient.

    python nbclient_side.py go-on|stop NOTEBOOK

The first argument says what an error does. No times are kept: they are none of the outputs.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SECONDS = 90


def main(after_an_error: str, path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        allow_errors=after_an_error == "go-on",
        record_timing=False,
        timeout=SECONDS,
        startup_timeout=SECONDS,
        iopub_timeout=SECONDS,  # by default it gives up early, and leaves outputs out
        raise_on_iopub_timeout=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    with contextlib.suppress(CellExecutionError):
        client.execute()
    nbformat.write(notebook, path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
