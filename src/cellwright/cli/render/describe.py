"""What `show --json` answers: cells with a compact list of their outputs."""

from __future__ import annotations

from io import StringIO

from rich.text import Text

from cellwright.cli.render.layout import Gate, Notice
from cellwright.cli.render.limits import View
from cellwright.cli.render.outputs import joined_streams, show_output
from cellwright.cli.render.screen import make_screen
from cellwright.document.outputs import Display, Error, Result, Stream
from cellwright.errors import CellwrightError
from cellwright.workspace.status import describe_cell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.document.outputs import Output

_WIDTH = 10_000  # a program that reads this wants no folded lines


def describe_shown(
    notebook: Notebook, path: str, indexes: Sequence[int], *, expanded: bool, outputs: bool
) -> dict[str, Any]:
    """A notebook's cells, sources whole, outputs in short."""
    view = View(width=_WIDTH, expanded=expanded, outputs=outputs)
    return {
        "path": path,
        "revision": notebook.revision,
        "cells": [_cell(notebook.cells[index], view) for index in indexes],
    }


def _cell(cell: Cell, view: View) -> dict[str, Any]:
    described = describe_cell(cell)
    described.pop("hash")
    shown: list[Output] = []
    if view.outputs and cell.type == "code" and not cell.problem:
        try:
            shown = joined_streams(cell.outputs)
        except CellwrightError as error:
            described["problem"] = error.message
    most = view.limits.outputs
    described["outputs"] = [_output(output, view) for output in shown[:most]]
    described["hidden_outputs"] = max(0, len(shown) - most)
    return described


def _output(output: Output, view: View) -> dict[str, Any]:
    shown = show_output(output, view)
    screen = make_screen(StringIO(), _WIDTH, colored=False)
    hidden: dict[str, int] = {}
    with screen.capture() as text:
        for part in shown.parts:
            if isinstance(part, Notice):
                hidden[part.things] = hidden.get(part.things, 0) + part.hidden
                screen.print(Text("…"))
            else:
                screen.print(Gate(part), crop=False)
    return {
        "kind": _kind(output),
        "mime_types": list(output.data) if isinstance(output, Display) else [],
        "text": "\n".join(line.rstrip() for line in text.get().rstrip("\n").split("\n")),
        "hidden": hidden,
    }


def _kind(output: Output) -> str:
    """`stdout`, `stderr`, `result`, `display`, `error` or `unknown`."""
    if isinstance(output, Stream):
        return output.name if output.name in {"stdout", "stderr"} else "stream"
    if isinstance(output, Result):
        return "result"
    if isinstance(output, Display):
        return "display"
    return "error" if isinstance(output, Error) else "unknown"
