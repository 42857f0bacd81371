"""nbclient, in its own environment: runs all cells of a notebook for every line it reads.

It says hello when its kernel is there, and then how many milliseconds each round took.
"""

from __future__ import annotations

import sys
import time


def main(path: str) -> None:
    """Serve until standard input ends."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, kernel_name="python3")
    with client.setup_kernel():
        client.execute_cell(notebook.cells[0], 0)
        print("ready", flush=True)
        for _ in sys.stdin:
            began = time.perf_counter()
            for place, cell in enumerate(notebook.cells):
                client.execute_cell(cell, place)
            print((time.perf_counter() - began) * 1000, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
