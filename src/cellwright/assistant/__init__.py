"""Notebook mode: from what a person asked in a chat to a model's work on their notebook.

It detects which notebook a request is about, tells a model what there is in it, gives the model
the prompts and the tools of the mode, and carries out what the model calls. It knows no network,
no terminal and no JupyterLab: models are behind a seam, and doors are above.
"""
