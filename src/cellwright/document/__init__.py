"""The notebook document: read, edited and saved without losing a byte.

Knows the file format, edits, merges and durable files. Knows no kernels and no event loop.
"""
