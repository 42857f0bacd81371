"""`cellwright write NB`."""

from __future__ import annotations

import click

from cellwright.cli.changes import report
from cellwright.cli.options import Call, common
from cellwright.cli.output import read_input


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.option("--from", "source", metavar="FILE", help="Read the text from here; - is stdin.")
@click.option("--base", metavar="REVISION", help="The revision that the text was made from.")
@click.option("--backup", is_flag=True, help="Also write a copy of the file as it was.")
@click.option("--dry-run", is_flag=True, help="Change nothing, show the diff.")
@common
def command(
    call: Call,
    notebook: str,
    *,
    source: str | None,
    base: str | None,
    backup: bool,
    dry_run: bool,
) -> None:
    """Make a notebook say what an edited text says; a missing one is created.

    The text is the whole notebook: a cell that it leaves out is deleted.
    Cells that the text did not change keep every byte. With --base, what others changed since
    is merged, and a cell that both changed is a conflict.

    \b
    cellwright read nb.ipynb | sed 's/foo/bar/' | cellwright write nb.ipynb
    """
    from cellwright.text.view import drop_last_newline

    text = drop_last_newline(read_input(source))
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        answer = book.write(text, base=base, backup=backup, dry_run=dry_run, label="write")
        report(call.output, answer, "Notebook written", show_diff=dry_run)
