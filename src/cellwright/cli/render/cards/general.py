"""An answer as it was given: for tools that have no look of their own."""

from __future__ import annotations

from base64 import b64encode

from rich.text import Text

from cellwright.cli.render.cards.answers import NOTHING, as_json, pieces_of
from cellwright.cli.render.json_tree import json_tree
from cellwright.cli.render.layout import DIM, Lines
from cellwright.cli.render.outputs import text_parts
from cellwright.document.outputs import Display
from cellwright.outputs.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from cellwright.cli.render.cards.frame import Frame
    from cellwright.tools.tool import ToolResult


def general_parts(answer: ToolResult, frame: Frame) -> Iterator[RenderableType]:
    """An answer as it was given: our words, texts of the notebook, trees, pictures."""
    view = frame.view
    for piece in pieces_of(answer.text):
        if piece.name is not None:
            yield frame.part(Text(one_line(piece.name), DIM))
        value = as_json(piece.text)
        if value is not NOTHING:
            yield frame.ruled(Lines(json_tree(value, view.limits)))
            continue
        for part in text_parts(piece.text, view, view.limits.output_lines // 3):
            yield frame.ruled(part)
    shown = [
        Display({picture.mime: b64encode(picture.data).decode("ascii")})
        for picture in answer.images
    ]
    yield from frame.outputs(shown)
