"""JSON as bytes: find values, and change one without touching the others.

Knows JSON and the style a file is written in. Knows nothing of cells, edits or files.
"""
