"""What `show --json` answers: cells with a compact list of their outputs."""

from __future__ import annotations

from io import StringIO

from rich.text import Text

from cellwright.cli.render.layout import Stack
from cellwright.cli.render.outputs import joined_streams, show_outputs
from cellwright.cli.render.screen import make_screen
from cellwright.document.outputs import Display, Error, Result, Stream
from cellwright.errors import CellwrightError
from cellwright.workspace.answers import describe_cell

TYPE_CHECKING = False
