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
    import_click()
    from cellwright.cli.main import main

    code = main()
    gc.freeze()
    sys.exit(code)


def import_click() -> None:
    """Import click, but not `inspect` with it, which takes as long as Python's own start.

    Click needs one function of it. Whoever needs another one gets the real module.
    """
    import sys
    from types import ModuleType

    if "inspect" in sys.modules:
        return
    stand_in = ModuleType("inspect")

    def step_aside() -> None:
        if sys.modules.get("inspect") is stand_in:
            del sys.modules["inspect"]

    def find_in_inspect(name: str) -> object:
        step_aside()
        import inspect

        return getattr(inspect, name)

    vars(stand_in).update(cleandoc=clean_text, __getattr__=find_in_inspect)
    sys.modules["inspect"] = stand_in
    try:
        import click  # noqa: F401
    finally:
        step_aside()


def clean_text(text: str) -> str:
    """Remove the indentation of a text and empty lines around it, as `inspect.cleandoc` does."""
    first, *rest = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in rest)]).strip("\n")
