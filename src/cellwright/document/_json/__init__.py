"""JSON as bytes: where values stand, what they look like, how to change one and no other.

Knows JSON and the style a file is written in. Knows nothing of cells, edits or files.
"""
