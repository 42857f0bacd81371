"""`cellwright read NB[:SELECTOR]`."""

from __future__ import annotations

import os
import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import is_terminal, one_line, write_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def outline(data: dict[str, Any]) -> str:
    """An outline, a row for each heading and cell with its lines."""
    rows = []
    for entry in data["outline"]:
        lines = f"{entry['first']}-{entry['last']}"
        name = "#" * entry["level"] if entry["kind"] == "heading" else f"  {entry['type']}"
        mark = " *" if entry["has_outputs"] and entry["kind"] == "cell" else ""
        title = f"{one_line(entry['title'])[:80]}"
        rows.append(f"{lines:>12}  {one_line(entry['handle']):12}  {name} {title}{mark}\n")
    return "".join(rows)


@click.command()
@click.argument("notebook", metavar="NB[:SELECTOR]", type=click.Path())
@click.option("--stale", is_flag=True, help="With --json: which results do not stand, and why.")
@common
def command(call: Call, notebook: str, *, stale: bool) -> None:
    """Print a notebook as text: a marker line for each cell, then its source.

    The text can be edited and given back to `cellwright write`.

    \b
    cellwright read analysis.ipynb                  all of it
    cellwright read analysis.ipynb:20-40            some lines
    cellwright read analysis.ipynb:outline          headings and cells, with their lines
    cellwright read analysis.ipynb:section=Results  what stands under a heading
    cellwright read analysis.ipynb:cell=ab12        one cell
    cellwright read analysis.ipynb:raw              the file as it is
    """
    from cellwright.text.selectors import split_path
    from cellwright.text.view import end_with_newline

    path, selector = split_path(notebook, os.path.exists)
    with call.workspace() as workspace:
        book = workspace.open(path)
        if selector == "raw" and not call.output.as_json and not is_terminal(sys.stdout):
            write_bytes(book.raw())
            return
        if selector is None:
            data = book.read(stale=stale)
            text = end_with_newline(data["text"]) if data["cells"] else ""
        else:
            data = book.select(selector)
            lines = [line["text"] + "\n" for line in data["lines"] if not line["context"]]
            text = outline(data) if data["outline"] else "".join(lines)
            cells = data["total_cells"]
            count = "" if cells is None else f", {cells} cells"
            call.output.say(f"{data['total_lines']} lines{count} in all")
        warnings = book.warnings()
        call.output.data({**data, "warnings": warnings}, text)
        call.output.warn(warnings)
