"""The outputs of a notebook: `cellwright show` for people, `cellwright outputs` within a budget."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from cellwright.cli.completion import complete_cell
from cellwright.cli.options import CommandCall, common, expand_notebooks
from cellwright.cli.output import exit_code
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.workspace.api.answers import CellOutputs, CellView
    from cellwright.workspace.workspace import Book, Workspace


_FIRST = 50  # cells that are described before any is shown
IMAGES = ("auto", "kitty", "iterm", "sixel", "blocks", "none")


@click.command()
@click.argument("notebooks", metavar="NB...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--cells",
    metavar="CELL",
    multiple=True,
    help="Only these cells, by id, cell-N or index.",
    shell_complete=complete_cell,
)
@click.option("--width", type=click.IntRange(min=20), metavar="N", help="Columns to use.")
@click.option("--expanded", is_flag=True, help="Show long sources and outputs in full.")
@click.option("--no-outputs", is_flag=True, help="Show only sources.")
@click.option(
    "--images",
    type=click.Choice(IMAGES),
    default="auto",
    help="How to draw pictures; auto, the default, asks the environment.",
)
@click.option("--pager/--no-pager", default=False, help="Show it in a pager; off by default.")
@common
def show_command(
    call: CommandCall,
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

    Long sources and outputs are cut, with a note that says how much is missing. Control sequences
    in a notebook never reach the terminal.

    \b
    cellwright show analysis.ipynb
    cellwright show analysis.ipynb --cells 3,ab12cd34 --expanded
    cellwright show *.ipynb --no-outputs --pager
    git show HEAD~1:analysis.ipynb | cellwright show -
    """
    if call.output.as_json:
        return _print_json(
            call, expand_notebooks(notebooks), cells, expanded=expanded, outputs=not no_outputs
        )
    from cellwright.cli.render.notebook import render_notebook
    from cellwright.cli.render.screen import open_screen
    from cellwright.outputs.sanitize import one_line

    code = 0
    notebooks = tuple(expand_notebooks(notebooks))
    with (
        call.workspace() as workspace,
        open_screen(
            width=width, expanded=expanded, outputs=not no_outputs, images=images, pager=pager
        ) as (screen, view),
    ):
        for number, path in enumerate(notebooks):
            try:
                notebook, known, warnings = _load_notebook(workspace, path, cells, stale=True)
                indexes = choose_cells(notebook, cells) if cells else None
            except CellwrightError as error:
                if len(notebooks) == 1:
                    raise
                call.output.say(f"{one_line(path)}:")
                call.output.fail(error)  # and show the other notebooks
                code = code or exit_code(error)
                continue
            if number:
                screen.line(2)
            name = "stdin" if path == "-" else path
            for part in render_notebook(notebook, name, view, indexes, known):
                screen.show(part)
            call.output.warn(warnings)
    return code


def _load_notebook(
    workspace: Workspace, path: str, cells: Sequence[str], *, stale: bool = False
) -> tuple[Notebook, Mapping[str, CellView], list[str]]:
    """Load a notebook, what is known of its cells, and its warnings; `-` is read from stdin."""
    if path == "-":
        from cellwright.document.notebook import Notebook

        return Notebook(sys.stdin.buffer.read()), {}, []
    book = workspace.open(path)
    notebook = book.load()
    indexes = choose_cells(notebook, cells) if cells else range(len(notebook.cells))
    return notebook, KnownCells(book, notebook, indexes, stale=stale), book.warnings()


class KnownCells(Mapping[str, "CellView"]):
    """What is on record of the cells to show: of the first at once, of the rest when needed.

    A notebook may have many thousands; the first should be on the screen before all are described.
    """

    def __init__(
        self, book: Book, notebook: Notebook, indexes: Sequence[int], *, stale: bool
    ) -> None:
        self._book = book
        self._stale = stale
        self._count = len(indexes)
        first = [notebook.cells[index].handle for index in indexes[:_FIRST]]
        self._has_all = self._count <= _FIRST
        self._found = self._ask(first)

    def __getitem__(self, handle: str) -> CellView:
        if handle not in self._found and not self._has_all:
            self._has_all = True
            self._found = self._ask(None)
        return self._found[handle]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return self._count

    def _ask(self, cells: Sequence[str] | None) -> dict[str, CellView]:
        try:
            found = self._book.read(text=False, cells=cells, stale=self._stale).cells
        except CellwrightError:
            return {}  # a cell is broken in a way that only `show` can tell
        return {each.handle: each for each in found}


def choose_cells(notebook: Notebook, refs: Sequence[str]) -> list[int]:
    """The indexes of the named cells, in the order of their names, each once."""
    return list(
        dict.fromkeys(notebook.cell(ref).index for ref in _split_references(notebook, refs))
    )


def _split_references(notebook: Notebook, refs: Sequence[str]) -> Iterator[str]:
    """Split references at commas, except a reference that is the id of a cell."""
    ids = set(notebook.snapshot().resolver.ids)
    for ref in refs:
        yield from [ref] if ref in ids else ref.split(",")


def _print_json(
    call: CommandCall, paths: Sequence[str], cells: Sequence[str], *, expanded: bool, outputs: bool
) -> int:
    """Print the notebook as JSON, or a list of several."""
    from cellwright.cli.render.notebook import describe_notebook

    found: list[dict[str, Any]] = []
    with call.workspace() as workspace:
        for path in paths:
            notebook, known, _ = _load_notebook(workspace, path, cells)
            indexes = choose_cells(notebook, cells) if cells else range(len(notebook.cells))
            found.append(
                describe_notebook(
                    notebook, path, indexes, known, expanded=expanded, outputs=outputs
                )
            )
    call.output.data(found[0] if len(found) == 1 else {"notebooks": found}, "")
    return 0


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("cells", nargs=-1, metavar="[CELL]...", shell_complete=complete_cell)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=50),
    default=8000,
    help="The budget for all cells together.",
)
@common
def outputs_command(
    call: CommandCall, notebook: str, cells: tuple[str, ...], max_tokens: int
) -> None:
    """Describe what cells printed, showed and raised, within a budget of tokens.

    \b
    cellwright outputs nb.ipynb              all cells with outputs
    cellwright outputs nb.ipynb 3 ab12       some cells
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        data = book.outputs(list(cells) or None, max_tokens=max_tokens)
        call.output.data(data, map(_describe_cell, data.cells))
        call.output.warn(book.warnings())


def _describe_cell(cell: CellOutputs) -> str:
    count = " " if cell.execution_count is None else cell.execution_count
    return f"── cell {cell.index} {cell.handle} [{count}]\n{cell.text}\n"
