"""The bytes of a notebook: where its cells are, and how one is changed without the others.

Knows the file format and its rules. Knows no edits, no merges and no files.
"""
