"""Selections of tools, each with the names, the parameters and the answers of its document.

| profile | tools |
|---|---|
| `native` | the eight of this project |
| `positron` | five about the notebook that a person has open |
| `notebookedit` | `NotebookEdit` |
| `notebook` | `notebook` and `python` |
| `text` | `read`, `edit`, `write` and `eval` |
| `manipulator` | the six methods of the Notebook Manipulator Protocol |
| `all` | all of them; where two have a name in common, the native one |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellwright.tools.native import NATIVE
from cellwright.tools.profiles.manipulator import MANIPULATOR
from cellwright.tools.profiles.notebook import NOTEBOOK, PYTHON
from cellwright.tools.profiles.notebook_edit import NOTEBOOK_EDIT
from cellwright.tools.profiles.positron import POSITRON
from cellwright.tools.profiles.text import TEXT

if TYPE_CHECKING:
    from cellwright.tools.tool import Tool

PROFILES: dict[str, tuple[Tool, ...]] = {
    "native": NATIVE,
    "positron": POSITRON,
    "notebookedit": (NOTEBOOK_EDIT,),
    "notebook": (NOTEBOOK, PYTHON),
    "text": TEXT,
    "manipulator": MANIPULATOR,
}
"""The tools of each profile."""

_named = {tool.name: tool for tools in reversed(PROFILES.values()) for tool in tools}
PROFILES["all"] = tuple(
    tool for tools in PROFILES.values() for tool in tools if _named[tool.name] is tool
)
