"""`cellwright show NB…`."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import exit_code
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.workspace.workspace import Workspace

IMAGES = ("auto", "kitty", "iterm", "sixel", "blocks", "none")


@click.command()
@click.argument("notebooks", metavar="NB...", nargs=-1, required=True)
@click.option("--cells", metavar="CELL", multiple=True, help="Only these, by id, cell-N or index.")
@click.option("--width", type=click.IntRange(min=20), metavar="N", help="Columns to use.")
@click.option("--expanded", is_flag=True, help="Show long sources and outputs whole.")
@click.option("--no-outputs", is_flag=True, help="Show sources alone.")
@click.option(
    "--images",
    type=click.Choice(IMAGES),
    default="auto",
    help="How to draw pictures; auto, the default, goes by the terminal.",
)
@click.option("--pager/--no-pager", default=False, help="Page through it; off by default.")
@common
def command(
    call: Call,
    *,
    notebooks: tuple[str, ...],
    cells: tuple[str, ...],
    width: int | None,
    expanded: bool,
    no_outputs: bool,
    images: str,
    pager: bool,
) -> int:
    """Show notebooks with their outputs: text, tables, trees, tracebacks and pictures.

    Long sources and outputs are cut, and say by how much. Nothing in a notebook can drive the
    terminal.

    \b
    cellwright show analysis.ipynb
    cellwright show analysis.ipynb --cells 3,ab12cd34 --expanded
    cellwright show *.ipynb --no-outputs --pager
    git show HEAD~1:analysis.ipynb | cellwright show -
    """
    if call.output.as_json:
        return _answer(call, notebooks, cells, expanded=expanded, outputs=not no_outputs)
    from cellwright.cli.render.notebook import render_notebook
    from cellwright.cli.render.screen import open_screen
    from cellwright.outputs.sanitize import one_line

    code = 0
    with (
        call.here() as workspace,
        open_screen(
            width=width, expanded=expanded, outputs=not no_outputs, images=images, pager=pager
        ) as (screen, view),
    ):
        for number, path in enumerate(notebooks):
            try:
                notebook, warnings = _load(workspace, path)
                indexes = chosen(notebook, cells) if cells else None
            except CellwrightError as error:
                if len(notebooks) == 1:
                    raise
                call.output.say(f"{one_line(path)}:")
                call.output.fail(error)  # and go on: the others are asked for as well
                code = code or exit_code(error)
                continue
            if number:
                screen.line(2)
            for part in render_notebook(notebook, "stdin" if path == "-" else path, view, indexes):
                screen.show(part)
            call.output.warn(warnings)
    return code


def _load(workspace: Workspace, path: str) -> tuple[Notebook, list[str]]:
    """A notebook, and what went wrong beside it; `-` is read from stdin."""
    if path == "-":
        from cellwright.document.notebook import Notebook

        return Notebook(sys.stdin.buffer.read()), []
    book = workspace.open(path)
    return book.load(), book.warnings()


def chosen(notebook: Notebook, refs: Sequence[str]) -> list[int]:
    """The indexes of the cells named, in the order they were asked for, each once."""
    return list(dict.fromkeys(notebook.cell(ref).index for ref in _single(notebook, refs)))


def _single(notebook: Notebook, refs: Sequence[str]) -> Iterator[str]:
    """References one by one: a comma separates them, unless it is part of an id."""
    ids = set(notebook.snapshot().resolver.ids)
    for ref in refs:
        yield from [ref] if ref in ids else ref.split(",")


def _answer(
    call: Call, paths: Sequence[str], cells: Sequence[str], *, expanded: bool, outputs: bool
) -> int:
    """Answer with JSON: the notebook, or a list of several."""
    from cellwright.cli.render.describe import describe_shown

    found: list[dict[str, Any]] = []
    with call.here() as workspace:
        for path in paths:
            notebook, _ = _load(workspace, path)
            indexes = chosen(notebook, cells) if cells else range(len(notebook.cells))
            found.append(
                describe_shown(notebook, path, indexes, expanded=expanded, outputs=outputs)
            )
    call.output.data(found[0] if len(found) == 1 else {"notebooks": found}, "")
    return 0
