"""The command line: parses, calls the workspace, prints.

Knows terminals, options and exit codes. Decides nothing about notebooks.
"""

# Most commands make fewer objects than this, and end.
_COLLECT_AFTER = (50_000, 20, 20)


def entry() -> None:
    """The console script."""
    import gc
    import sys

    # Importing makes thousands of objects that last: to look for garbage among them, now and at
    # the end of the process, takes a fifth of a command's time.
    gc.set_threshold(*_COLLECT_AFTER)
    from cellwright.cli.main import main

    code = main()
    gc.freeze()
    sys.exit(code)
