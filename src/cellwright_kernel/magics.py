"""Magics for notebooks: `%load_ext cellwright`."""

from __future__ import annotations

from typing import Any, Callable

from cellwright_kernel.errors import NotebookError
from cellwright_kernel.verbs import notebook
from cellwright_kernel.views import Cell

_TYPES = ("code", "markdown", "raw")
_HELP = """%notebook                   list the cells
%notebook count             the number of cells
%notebook show 2 [5]        the source of some cells
%notebook run 2 [5]         run cells, inside this one
%notebook metadata          the notebook's metadata"""
_before: dict[str, Any] = {}


def load_ipython_extension(shell: Any) -> None:
    """Put `notebook`, `%notebook` and `%%cell_below` into an IPython shell."""
    known = shell.magics_manager.magics["line"].get("notebook")
    if known is not notebook_magic:
        _before["notebook"] = known
    shell.register_magic_function(notebook_magic, "line", "notebook")
    shell.register_magic_function(cell_below, "cell", "cell_below")
    shell.user_ns.setdefault("notebook", notebook)


def unload_ipython_extension(shell: Any) -> None:
    """Take them away again."""
    shell.magics_manager.magics["cell"].pop("cell_below", None)
    known = _before.pop("notebook", None)
    if known is not None:
        shell.register_magic_function(known, "line", "notebook")
    else:
        shell.magics_manager.magics["line"].pop("notebook", None)
    if shell.user_ns.get("notebook") is notebook:
        del shell.user_ns["notebook"]


def cell_below(line: str, cell: str) -> None:
    """Put the text of this cell into a new one below it: `%%cell_below [code|markdown|raw]`."""
    kind = line.strip() or "code"
    if kind not in _TYPES:
        raise NotebookError(f"%%cell_below makes {', '.join(_TYPES)}, not {kind!r}", "USAGE")
    notebook.splice(notebook.here() + 1, 0, Cell(kind, cell.rstrip("\n")))


def notebook_magic(line: str) -> Any:
    """List the cells, show or run some: see `%notebook help`.

    A file name goes to IPython's own `%notebook`, which exports what was typed.
    """
    words = line.split()
    verb = words[0] if words else "cells"
    verbs: dict[str, Callable[[], Any]] = {
        "cells": _list,
        "count": notebook.cell_count,
        "metadata": notebook.get_metadata,
        "help": lambda: print(_HELP),  # noqa: T201
        "show": lambda: _show(*_numbers(words)),
        "run": lambda: notebook.run(*_numbers(words)),
    }
    if verb in verbs:
        return verbs[verb]()
    if _before.get("notebook") is not None and line.endswith(".ipynb"):
        return _before["notebook"](line)
    raise NotebookError(f"%notebook knows no {verb!r}\n{_HELP}", "USAGE")


def _numbers(words: list[str]) -> list[int]:
    try:
        numbers = [int(word) for word in words[1:]]
    except ValueError:
        numbers = []
    if len(numbers) not in {1, 2}:
        raise NotebookError(f"%notebook {words[0]} takes one or two indices", "USAGE")
    return numbers


def _list() -> None:
    for cell in notebook.cells:
        number = "" if cell.execution_count is None else f"[{cell.execution_count}]"
        first = cell.source.strip().partition("\n")[0][:72]
        print(f"{cell.index:>4} {cell.type:8} {number:>6}  {first}")  # noqa: T201


def _show(start: int, end: int | None = None) -> None:
    for cell in notebook.cell_range(start, end):
        print(f"# {cell.index} {cell.type}\n{cell.source}\n")  # noqa: T201
