"""A notebook from its heading to its last cell, cell by cell."""

from __future__ import annotations

from rich.text import Text

from cellwright.cli.render.cells import CellView
from cellwright.cli.render.images import Graphic
from cellwright.cli.render.layout import BOLD, DIM, Stack
from cellwright.cli.render.source import language_of
from cellwright.errors import CellwrightError
from cellwright.outputs.sanitize import one_line

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
    """What to print of a notebook, cell by cell; nothing is made before it is asked for.

    Args:
        notebook: what to show.
        name: what it is called in the heading.
        view: how to show it.
        indexes: the cells to show; all by default.
    """
    metadata = _metadata(notebook)
    count = len(notebook.cells)
    gutter = max(2, len(str(count - 1)))
    cells = CellView(view, language_of(metadata), gutter)
    yield heading(notebook, name, metadata, view.width)
    for index in range(count) if indexes is None else indexes:
        yield from _grouped(cells.parts(notebook.cells[index]))


def _grouped(parts: Iterator[RenderableType]) -> Iterator[RenderableType]:
    """A cell in as few parts as can be: every one is written for itself."""
    texts: list[RenderableType] = [Text()]
    for part in parts:
        if isinstance(part, Graphic):
            yield Stack(texts, gap=0)
            yield part
            texts = []
        else:
            texts.append(part)
    yield Stack(texts, gap=0)


def heading(notebook: Notebook, name: str, metadata: dict[str, Any], width: int) -> Text:
    """The name of a notebook and what it says about itself, below it if there is no room."""
    count = len(notebook.cells)
    kernel = metadata.get("kernelspec")
    kernel = kernel if isinstance(kernel, dict) else {}
    facts = [f"{count:,} {'cell' if count == 1 else 'cells'}"]
    kernel_name = kernel.get("display_name") or kernel.get("name")
    if isinstance(kernel_name, str):
        facts.append(one_line(kernel_name[:80]))
    facts.append(f"nbformat {notebook.version}")
    title, about = Text(one_line(name), BOLD), Text(" · ".join(facts), DIM)
    fits = title.cell_len + 2 + about.cell_len <= width
    return Text.assemble(title, "  " if fits else "\n", about, overflow="fold")


def _metadata(notebook: Notebook) -> dict[str, Any]:
    try:
        return notebook.metadata
    except CellwrightError:
        return {}
