"""A notebook from its heading to its last cell, cell by cell."""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text

from cellwright.cli.render.cells import CellView
from cellwright.cli.render.layout import BOLD, DIM
from cellwright.cli.render.sanitize import one_line
from cellwright.cli.render.source import language_of
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from rich.console import RenderableType

    from cellwright.cli.render.limits import View
    from cellwright.document.notebook import Notebook


def render_notebook(
    notebook: Notebook, name: str, view: View, indexes: Sequence[int] | None = None
) -> Iterator[RenderableType]:
    """What to print of a notebook, in order; nothing is made before it is asked for.

    Args:
        notebook: what to show.
        name: what it is called in the heading.
        view: how to show it.
        indexes: the cells to show; all by default.
    """
    metadata = _metadata(notebook)
    count = len(notebook.cells)
    gutter = max(2, len(str(count - 1)))
    # Everything inside stands right of the gutter.
    inner = replace(view, width=max(20, view.width - gutter - 2))
    cells = CellView(view, inner, language_of(metadata), gutter)
    yield heading(notebook, name, metadata)
    for index in range(count) if indexes is None else indexes:
        yield Text()
        yield from cells.parts(notebook.cells[index])


def heading(notebook: Notebook, name: str, metadata: dict[str, Any]) -> Text:
    """The name of a notebook and what it says about itself."""
    count = len(notebook.cells)
    kernel = metadata.get("kernelspec")
    kernel = kernel if isinstance(kernel, dict) else {}
    facts = [f"{count:,} {'cell' if count == 1 else 'cells'}"]
    title = kernel.get("display_name") or kernel.get("name")
    if isinstance(title, str):
        facts.append(one_line(title[:80]))
    facts.append(f"nbformat {notebook.version}")
    text = Text(one_line(name), BOLD, no_wrap=True, overflow="ellipsis")
    return text.append(f"  {' · '.join(facts)}", DIM)


def _metadata(notebook: Notebook) -> dict[str, Any]:
    try:
        return notebook.metadata
    except CellwrightError:
        return {}
