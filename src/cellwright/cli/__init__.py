"""The command line: parses, calls the workspace, prints.

Knows terminals, options and exit codes. Decides nothing about notebooks.
"""
