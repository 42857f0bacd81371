"""The notebook as text that people and agents edit with any tool, and the way back.

Knows markers, lines and which lines belong to which cell. Knows no files and no kernels.
"""
