"""Files: read with bounds, locked, and replaced durably.

Knows bytes, paths and what the system promises about them. Knows nothing of notebooks.
"""
