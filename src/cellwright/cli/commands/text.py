"""A notebook as text: `cellwright read` and `cellwright write`."""

from __future__ import annotations

import os
import sys

import click

from cellwright.cli.changes import report_change
from cellwright.cli.options import CommandCall, common
from cellwright.cli.output import is_terminal, one_line, read_input, write_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.workspace.api.answers import OutlineRow, ReadAnswer, SelectAnswer


@click.command()
@click.argument("notebook", metavar="NB[:SELECTOR]", type=click.Path())
@click.option("--stale", is_flag=True, help="With --json: say which results are stale, and why.")
@common
def read_command(call: CommandCall, notebook: str, *, stale: bool) -> None:
    """Print a notebook as text: a marker line for each cell, then its source.

    The text can be edited and given back to `cellwright write`.

    \b
    cellwright read analysis.ipynb                  all of it
    cellwright read analysis.ipynb:20-40            some lines
    cellwright read analysis.ipynb:outline          headings and cells, with their lines
    cellwright read analysis.ipynb:section=Results  the part under a heading
    cellwright read analysis.ipynb:cell=ab12        one cell
    cellwright read analysis.ipynb:raw              the bytes of the file
    """
    from cellwright.text.selectors import split_path
    from cellwright.text.view import end_with_newline

    path, selector = split_path(notebook, os.path.exists)
    with call.workspace() as workspace:
        book = workspace.open(path)
        if selector == "raw" and not call.output.as_json and not is_terminal(sys.stdout):
            write_bytes(book.raw())
            return
        found: ReadAnswer | SelectAnswer
        if selector is None:
            found = book.read(stale=stale)
            text = end_with_newline(found.text or "") if found.cells else ""
        else:
            found = book.select(selector)
            lines = [line.text + "\n" for line in found.lines if not line.context]
            text = render_outline(found.outline) if found.outline else "".join(lines)
            count = "" if found.total_cells is None else f", {found.total_cells} cells"
            call.output.say(f"{found.total_lines} lines{count} in total")
        warnings = book.warnings()
        # Only `--json` needs the answer as data, which takes long for a large notebook.
        data = {**found.to_json(), "warnings": warnings} if call.output.as_json else None
        call.output.data(data, text)
        call.output.warn(warnings)


def render_outline(outline: Sequence[OutlineRow]) -> str:
    """Render an outline: a row for each heading and cell, with its lines."""
    rows = []
    for entry in outline:
        lines = f"{entry.first}-{entry.last}"
        name = "#" * entry.level if entry.kind == "heading" else f"  {entry.type}"
        mark = " *" if entry.has_outputs and entry.kind == "cell" else ""
        title = one_line(entry.title)[:80]
        rows.append(f"{lines:>12}  {one_line(entry.handle):12}  {name} {title}{mark}\n")
    return "".join(rows)


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.option("--from", "source", metavar="FILE", help="Read the text from this file; - is stdin.")
@click.option("--base", metavar="REVISION", help="The revision that the text was made from.")
@click.option("--backup", is_flag=True, help="Also write a copy of the old file.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show the diff.")
@common
def write_command(
    call: CommandCall,
    notebook: str,
    *,
    source: str | None,
    base: str | None,
    backup: bool,
    dry_run: bool,
) -> None:
    """Write edited text into a notebook; create the notebook if it is missing.

    The text is the whole notebook: cells that are missing in it are deleted.
    Cells that the text did not change keep every byte. With --base, changes that others made since
    are merged, and a cell that both sides changed is a conflict.

    \b
    cellwright read nb.ipynb | sed 's/foo/bar/' | cellwright write nb.ipynb
    """
    # Now: after a save nothing is opened.
    from cellwright.outputs import sanitize as _sanitize  # noqa: F401
    from cellwright.text.view import drop_last_newline

    text = drop_last_newline(read_input(source))
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        answer = book.write(text, base=base, backup=backup, dry_run=dry_run, label="write")
        report_change(call.output, answer, "Notebook written", show_diff=dry_run)
