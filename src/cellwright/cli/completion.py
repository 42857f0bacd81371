"""What a shell completes: notebooks, the cells of a notebook, and selectors of its text."""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import click
    from click.shell_completion import CompletionItem

    from cellwright.document.notebook import Notebook

_SELECTORS = {
    "raw": "the bytes of the file",
    "outline": "headings and cells",
    "cell=": "one cell",
    "section=": "the part under a heading",
}
_MOST = 200


def complete_notebook_or_cell(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer files for the first word, and then cells of that notebook, and files again."""
    words = [word for word in context.params.get(parameter.name or "") or () if word]
    cells = _offer_cells(words[0], incomplete) if words else []
    return cells or _offer_files(incomplete)


def complete_cell(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer cells of the notebook that the command line names before."""
    del parameter
    names = context.obj or (context.parent.params if context.parent else {}).get("notebook")
    names = names or context.params.get("notebook") or context.params.get("notebooks")
    name = names[0] if isinstance(names, (list, tuple)) and names else names
    return _offer_cells(name, incomplete) if isinstance(name, str) else []


def complete_selection(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer files, and after `NB:` selectors of its text.

    Bash takes `:` and `=` for ends of words, and wants only what follows them.
    """
    words = [word for word in context.params.get(parameter.name or "") or () if word]
    text = incomplete
    while (
        words
        and not text.partition(":")[0].endswith(".ipynb")
        and (words[-1] in (":", "=") or text[:1] in (":", "="))
    ):
        text = words.pop() + text
    if text[:1] in (":", "=") and words:
        text = words.pop() + text
    path, colon, selector = text.partition(":")
    if not colon or not path.endswith(".ipynb"):
        return _offer_files(incomplete)
    notebook = _load(path)
    known = len(text) - len(incomplete)  # what the shell has as words of its own
    return _offer(
        (found[known:], about)
        for found, about in _list_selectors(path, selector, notebook)
        if found.startswith(text)
    )


def _list_selectors(
    path: str, selector: str, notebook: Notebook | None
) -> Iterator[tuple[str, str]]:
    if selector.startswith("cell=") and notebook is not None:
        for cell in notebook.cells:
            yield f"{path}:cell={cell.handle}", _describe(cell.source)
    elif selector.startswith("section=") and notebook is not None:
        for cell in notebook.cells:
            for line in cell.source.split("\n") if cell.type == "markdown" else ():
                if line.startswith("#"):
                    yield f"{path}:section={line.lstrip('# ').strip()}", ""
    else:
        yield from ((f"{path}:{name}", about) for name, about in _SELECTORS.items())


def _offer_cells(path: str, incomplete: str) -> list[CompletionItem]:
    notebook = _load(path)
    if notebook is None:
        return []
    return _offer(
        (cell.handle, _describe(cell.source))
        for cell in notebook.cells
        if cell.handle.startswith(incomplete)
    )


def _offer(found: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(text, help=about) for text, about in islice(found, _MOST)]


def _offer_files(incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def _load(path: str) -> Notebook | None:
    """Load a notebook; None if that fails, since a shell must not show errors."""
    from cellwright.document.files import read
    from cellwright.errors import CellwrightError

    try:
        return read(path)
    except (CellwrightError, OSError, ValueError):
        return None


def _describe(source: str) -> str:
    from cellwright.cli.output import one_line

    line = next((line.strip() for line in source.split("\n") if line.strip()), "")
    return one_line(line[:60])
