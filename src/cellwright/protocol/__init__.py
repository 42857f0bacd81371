"""The Notebook Manipulator Protocol v1: kernels that read, edit and run their own notebook.

Knows the messages, the codes and what each method asks of a `NotebookAccess`. Knows neither kernels
nor files: the owner of the kernel carries the messages, and gives access to the notebook.
"""
