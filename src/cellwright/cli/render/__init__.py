"""How a notebook looks in a terminal: cells, outputs, tables, trees and pictures.

Knows rich and terminals, and is imported on demand; so is Pillow, when there is a picture. All text
of a notebook is sanitised, and nothing here changes a notebook.
"""
