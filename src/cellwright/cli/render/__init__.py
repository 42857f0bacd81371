"""How a notebook looks in a terminal: cells, outputs, tables, trees and pictures.

Knows rich, Pillow and terminals, and is imported on demand. Nothing that a notebook says gets
past `sanitize`, and nothing here changes a notebook.
"""
