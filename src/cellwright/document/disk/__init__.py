"""Files on disk: read within limits, locked, and replaced durably.

Knows bytes, paths and the guarantees of the system. Knows nothing of notebooks.
"""
