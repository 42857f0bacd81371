"""How a notebook looks in a terminal: cells, outputs, tables, trees and pictures.

Knows rich and terminals, and is imported on demand; so is Pillow, when there is a picture.
Nothing that a notebook says gets past `sanitize`, and nothing here changes a notebook.
"""
