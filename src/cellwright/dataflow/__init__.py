"""Which cell defines and uses what, which results are stale, and why.

Pure: knows sources and records of runs; no files, no kernels, no event loop. `analyse` looks at one
cell, `staleness` at a notebook and what ran in which order, `replay` and `stale_closure` say which
cells to run.
"""
