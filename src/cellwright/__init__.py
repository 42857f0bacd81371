"""The notebook runtime for AI agents and the people beside them."""

from __future__ import annotations

__version__ = "0.1.0.dev0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright import errors as errors
    from cellwright.document.cells import BrokenCell as BrokenCell
    from cellwright.document.cells import Cell as Cell
    from cellwright.document.cells import CodeCell as CodeCell
    from cellwright.document.cells import MarkdownCell as MarkdownCell
    from cellwright.document.cells import RawCell as RawCell
    from cellwright.document.change import CellChange as CellChange
    from cellwright.document.change import Change as Change
    from cellwright.document.edits import ClearOutputs as ClearOutputs
    from cellwright.document.edits import Delete as Delete
    from cellwright.document.edits import Edit as Edit
    from cellwright.document.edits import Insert as Insert
    from cellwright.document.edits import MergeCells as MergeCells
    from cellwright.document.edits import Move as Move
    from cellwright.document.edits import Replace as Replace
    from cellwright.document.edits import ReplaceText as ReplaceText
    from cellwright.document.edits import SetMetadata as SetMetadata
    from cellwright.document.edits import SetType as SetType
    from cellwright.document.edits import Splice as Splice
    from cellwright.document.edits import Split as Split
    from cellwright.document.edits import parse_edit as parse_edit
    from cellwright.document.files import Saved as Saved
    from cellwright.document.files import read as read
    from cellwright.document.merge import Merged as Merged
    from cellwright.document.merge import merge as merge
    from cellwright.document.notebook import Notebook as Notebook
    from cellwright.document.outputs import Display as Display
    from cellwright.document.outputs import ErrorOutput as ErrorOutput
    from cellwright.document.outputs import Output as Output
    from cellwright.document.outputs import Result as Result
    from cellwright.document.outputs import Stream as Stream
    from cellwright.document.snapshot import CellRef as CellRef
    from cellwright.document.snapshot import Snapshot as Snapshot
    from cellwright.engine.client import connect as connect
    from cellwright.errors import CellConflict as CellConflict
    from cellwright.errors import CellwrightError as CellwrightError
    from cellwright.text.combine import from_text as from_text
    from cellwright.text.view import to_text as to_text
    from cellwright.workspace.api.requests import Mode as Mode
    from cellwright.workspace.hosts.file import edit as edit
    from cellwright.workspace.hosts.file import write as write
    from cellwright.workspace.runs.execution import CellError as CellError
    from cellwright.workspace.runs.execution import Execution as Execution
    from cellwright.workspace.runs.execution import Executions as Executions
    from cellwright.workspace.workspace import AsyncBook as AsyncBook
    from cellwright.workspace.workspace import AsyncWorkspace as AsyncWorkspace
    from cellwright.workspace.workspace import Book as Book
    from cellwright.workspace.workspace import Workspace as Workspace

# Where each public name lives. They are imported when first used, because an agent pays for the
# import of this package at every command.
_HOMES = {
    "cellwright": ("errors",),
    "cellwright.document.cells": ("BrokenCell", "Cell", "CodeCell", "MarkdownCell", "RawCell"),
    "cellwright.document.change": ("CellChange", "Change"),
    "cellwright.document.edits": (
        "ClearOutputs",
        "Delete",
        "Edit",
        "Insert",
        "MergeCells",
        "Move",
        "Replace",
        "ReplaceText",
        "SetMetadata",
        "SetType",
        "Splice",
        "Split",
        "parse_edit",
    ),
    "cellwright.document.files": ("Saved", "read"),
    "cellwright.document.merge": ("Merged", "merge"),
    "cellwright.document.notebook": ("Notebook",),
    "cellwright.document.outputs": ("Display", "ErrorOutput", "Output", "Result", "Stream"),
    "cellwright.document.snapshot": ("CellRef", "Snapshot"),
    "cellwright.engine.client": ("connect",),
    "cellwright.errors": ("CellConflict", "CellwrightError"),
    "cellwright.text.combine": ("from_text",),
    "cellwright.text.view": ("to_text",),
    "cellwright.workspace.hosts.file": ("edit", "write"),
    "cellwright.workspace.api.requests": ("Mode",),
    "cellwright.workspace.runs.execution": ("CellError", "Execution", "Executions"),
    "cellwright.workspace.workspace": ("AsyncBook", "AsyncWorkspace", "Book", "Workspace"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])  # noqa: PLE0605  # a list, made from the table above


if not TYPE_CHECKING:  # a type checker shall see the names above and no others

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        if home == "cellwright.workspace.workspace":
            import_module("cellwright.app")  # lets the kernels of this process call tools
        is_module = home == __name__
        value: object = (
            import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
        )
        globals()[name] = value
        return value


def load_ipython_extension(shell: object) -> None:
    """`%load_ext cellwright`: let cells read, edit and run their own notebook."""
    from cellwright_kernel import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """`%unload_ext cellwright`."""
    from cellwright_kernel import unload_ipython_extension as unload

    unload(shell)


def __dir__() -> list[str]:
    return __all__
