"""Where a notebook lives: the seam `NotebookHost`, a file (`FileHost`), memory (`MemoryHost`).

A host reads, changes and stores one notebook. It does not know the journal, undo, modes or runs:
those are above it and the same for every host.
"""
