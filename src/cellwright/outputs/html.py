"""Read HTML outputs into texts and tables, in time linear in what is read.

Styles, scripts, comments and everything else that is no text are left out. `read_html` gives
blocks, for whoever draws them; `html_to_text` gives one text, for models.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from cellwright.outputs._html import Paragraph, Reader
from cellwright.outputs.grid import Grid
from cellwright.outputs.sanitize import visible
from cellwright.outputs.tags import walk

__all__ = ["Block", "Paragraph", "html_to_text", "read_html"]

_MOST_CHARACTERS = 2_000_000
_row = re.compile("<tr[ >]", re.IGNORECASE)


Block: TypeAlias = Paragraph | Grid


def read_html(html: str, most_characters: int = _MOST_CHARACTERS) -> list[Block]:
    """The paragraphs and tables of a piece of HTML, without its styles and scripts.

    Only so much of it is read; rows of a table beyond that are counted.
    """
    end = len(html)
    if end > most_characters:
        end = max(html.rfind("<tr", 0, most_characters), most_characters // 2)
    reader = Reader()
    for part in walk(html[:end]):
        if isinstance(part, str):
            reader.read_text(part)
        elif part.is_closing:
            reader.end(part.name)
        else:
            reader.start(part.name, part.attributes)
    blocks = reader.finish()
    if blocks and isinstance(blocks[-1], Grid):
        blocks[-1].more_rows += sum(1 for _ in _row.finditer(html, end))
    return blocks


def html_to_text(html: str, most_characters: int = _MOST_CHARACTERS) -> str:
    """HTML as text: paragraphs apart, headings marked with `#`, tables in aligned columns.

    What is beyond `most_characters` of the HTML is not read; the last line says how much that is.
    """
    from cellwright.outputs.tables import table_text

    parts: list[str] = []
    for block in read_html(html, most_characters):
        if isinstance(block, Grid):
            parts.append(table_text(block))
        else:
            parts.append("#" * block.heading + " " * bool(block.heading) + block.text.strip("\n"))
    if len(html) > most_characters:
        parts.append(f"[{len(html):,} characters of HTML, not all of them read]")
    # Once more, as marks may have come together that were harmless apart.
    return visible("\n\n".join(parts))
