"""Cards for tests: calls of tools on a notebook, in every state."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

from rich.color import ColorSystem

from cellwright.assistant.models.model import ToolCall
from cellwright.cli.render.cards.card import Card
from cellwright.cli.render.screen import ScreenView, make_screen
from cellwright.document.notebook import Notebook
from cellwright.outputs.images import ModelImage
from cellwright.tools.page import Page
from cellwright.tools.tool import ToolResult
from tests.unit.cli import samples

if TYPE_CHECKING:
    from cellwright.cli.render.screen import Screen

JSON_OUTPUT = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"application/json": {"rows": [1, 2, 3], "by": {"north": 4, "south": None}}},
}
STATUS_OUTPUT = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"application/x-cellwright-status": {"op": "read", "path": "data.csv"}},
}
NAVY = (  # 64 by 32 pixels
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAIAAAAt/+nTAAAAQElEQVR4nO3PQQ0AIBDAsAPlSEcEj4ZkVbCtmTM/2z"
    "rgVQNaA1oDWgNaA1oDWgNaA1oDWgNaA1oDWgNaA1oD2gUrgQDAtu1mpgAAAABJRU5ErkJggg=="
)
LONG = "\n".join(f"line_{number} = {number}" for number in range(45))
BEFORE = samples.write(
    samples.markdown("intro", "# Sales\n\nWhat we sold."),
    samples.code("load", "total = 41\nprint(total)", samples.STREAM, count=1),
    samples.code("sum", "total", samples.RESULT, count=3),
    samples.code("plot", "y", samples.FAILURE, count=4),
    samples.code("tree", "display(JSON(rows))", JSON_OUTPUT, STATUS_OUTPUT, count=5),
)


def notebook(data: bytes = BEFORE) -> Notebook:
    return Notebook(data)


def card(
    name: str,
    arguments: dict[str, Any] | None = None,
    answer: ToolResult | None = None,
    *,
    number: int = 1,
    path: str = "sales.ipynb",
    before: bytes | None = BEFORE,
    after: bytes | None = None,
) -> Card:
    """A card of a call; with an answer it is over."""
    found = notebook(before) if before is not None else None
    made = Card(number=number, call=ToolCall("c", name, arguments or {}), path=path, before=found)
    made.begin()
    if answer is not None:
        made.end(answer, notebook(after or before) if before is not None else None)
    return made


def ran(*rows: tuple[str, int, str, float], error: str = "") -> ToolResult:
    """What a run answers: the handle, index, status and seconds of each cell."""
    facts = [
        {"cell": cell, "index": index, "status": status, "seconds": seconds, "error": None}
        for cell, index, status, seconds in rows
    ]
    text = error or f"Successfully executed {len(rows)} cell(s)."
    return ToolResult(text, {"done": True, "executions": facts}, is_error=bool(error))


def told(
    *parts: str | tuple[str, str],
    data: dict[str, Any] | None = None,
    left_out: str = "",
    is_error: bool = False,
) -> ToolResult:
    """What a tool answers: lines of its own, and texts of the notebook with their names."""
    page = Page(4000)
    for part in parts:
        if isinstance(part, str):
            page.say(part)
        else:
            page.show(*part, cell=part[0].removeprefix("outputs of "))
    if left_out:
        page.leave_out(left_out)
    return page.to_result(data or {}, is_error=is_error)


def screen(width: int, *, colors: bool = False) -> tuple[Screen, io.StringIO]:
    file = io.StringIO()
    made = make_screen(file, width, colored=colors)
    if colors:
        made._color_system = ColorSystem.TRUECOLOR
    return made, file


def draw(one: Card, width: int = 80, *, expanded: bool = False, **options: Any) -> str:
    """A card as it is printed."""
    view = ScreenView(width=width, **options)
    console, file = screen(width, colors=view.colors)
    for part in one.draw(console, view, expanded=expanded):
        console.show(part)
    return file.getvalue()


def picture() -> ModelImage:
    data = base64.b64decode(NAVY)
    return ModelImage("image/png", data, 64, 32, 640, 320, 9000, artifact="k3m9x2ab")


def every_card() -> dict[str, Card]:
    """One of everything, by what it shows."""
    running = card("RunNotebookCells", {"cellIds": ["load", "sum", "plot"]})
    running.progress({"cell": 1, "handle": "load", "status": "ok"})
    running.progress({"cell": 2, "handle": "sum", "status": "running"})
    running.progress(
        {"cell": 2, "handle": "sum", "text": "step 1\nstep 2\r\x1b[32mstep 3\x1b[0m\n"}
    )
    waiting = card("RunNotebookCells", {"cellIds": ["load"]})
    waiting.wait()
    updated = ToolResult("Successfully updated cell load", {"cellId": "load", "change": "x"})
    added = ToolResult("Successfully added", {"cellId": "ab12cd34", "index": 5, "change": "x"})
    deleted = ToolResult(
        "Deleted cell 2 (code). Notebook now has 4 cells.",
        {"action": "delete", "cellIndex": 2, "cellType": "code", "totalCells": 4}
        | {"cellSource": "total"},
    )
    facts = [
        {"id": cell.handle, "index": cell.index, "type": cell.type} for cell in notebook().cells
    ]
    cut = told(
        "### Cell 0",
        data={"cells": facts[:2], "artifact": "nothing"},
        left_out="3 cells; ask for them by cellIds=[2]",
    )
    found = {
        "read all": card("GetNotebookCells", {}, ToolResult("…", {"cells": facts})),
        "read and cut": card("GetNotebookCells", {"cellIds": ["intro", "load"]}, cut),
        "outputs": card("GetCellOutputs", {"cellId": "tree"}, ToolResult("…", {"outputs": 2})),
        "no outputs": card("GetCellOutputs", {"cellId": "intro"}, ToolResult("…", {"outputs": 0})),
        "waiting for a word": waiting,
        "running": running,
        "ran one": card("RunNotebookCells", {"cellIds": ["load"]}, ran(("load", 1, "ok", 0.25))),
        "ran and failed": card(
            "RunNotebookCells",
            {"cellIds": ["load", "plot", "sum"]},
            ran(
                ("load", 1, "ok", 0.25),
                ("plot", 3, "error", 12.0),
                ("sum", 2, "pending", 0.0),
                error="Failed to run notebook cells: cell plot ended with error (NameError).",
            ),
        ),
        "kernel trouble": card(
            "RunNotebookCells",
            {"cellIds": ["load"]},
            ToolResult(
                "Failed to run notebook cells: no kernel", {"code": "KERNEL_MISSING"}, is_error=True
            ),
        ),
        "refused": card(
            "RunNotebookCells",
            {"cellIds": ["load"]},
            ToolResult(
                "error: MODE_FORBIDS: Mode ask forbids to use RunNotebookCells",
                {
                    "code": "MODE_FORBIDS",
                    "message": "Mode ask forbids it",
                    "hint": "Switch to agent",
                },
                is_error=True,
            ),
        ),
        "declined": card(
            "RunNotebookCells",
            {"cellIds": ["load"]},
            ToolResult("error: DECLINED: no.", {"code": "DECLINED"}, is_error=True),
        ),
        "updating": card("UpdateNotebookCell", {"cellId": "load", "content": "total = 42"}),
        "updated": card(
            "UpdateNotebookCell",
            {"cellId": "load", "content": "total = 42\nprint(total)\nprint('done')"},
            updated,
        ),
        "added markdown": card(
            "AddNotebookCell",
            {"type": "markdown", "index": -1, "content": "## Results\n\nAll **good**."},
            added,
        ),
        "added long": card("AddNotebookCell", {"type": "code", "index": 0, "content": LONG}, added),
        "deleted": card(
            "notebook",
            {"action": "delete", "notebook_path": "sales.ipynb", "cell_index": 2},
            deleted,
        ),
        "no such cell": card(
            "notebook",
            {"action": "edit", "notebook_path": "sales.ipynb", "cell_index": 99, "content": "x"},
            ToolResult("Error: Cell index 99 out of range (0-4) in sales.ipynb"),
        ),
        "another tool": card(
            "lookup",
            {"word": "north"},
            told(
                "Found it.",
                ("outputs of gone", "said by the cell\nartifact://forged99"),
                ("facts", '{"north": [1, 2], "south": {}}'),
            ),
            path="",
            before=None,
        ),
        "a picture": card(
            "draw", {}, ToolResult("A picture.", {}, (picture(),)), path="", before=None
        ),
    }
    code = {"cells": [{"code": "x = 1", "title": "set up"}, {"code": "x / 0", "title": ""}]}
    found["code to run"] = card("python", code, path="", before=None)
    coding = found["code that runs"] = card("python", code, path="", before=None)
    coding.progress({"cell": 0, "status": "ok"})
    coding.progress({"cell": 1, "status": "running"})
    coding.progress({"cell": 1, "text": "dividing\n"})
    rows = [
        {"title": "set up", "status": "ok", "seconds": 0.5},
        {"title": "", "status": "error", "seconds": 1.0, "artifact": "zz99xx11"},
    ]
    found["code that ran"] = card(
        "python",
        code,
        told(
            "FAILED at cell 1: error. ZeroDivisionError.",
            "cell 0 (set up) · complete · 0.50 s",
            "cell 1 · error · 1.00 s",
            ("output of cell 1", "[1, 2]"),
            data={"session": "default", "cells": rows},
            left_out="9,000 lines; notebook_outputs with artifact=artifact://zz99xx11",
            is_error=True,
        ),
        path="",
        before=None,
    )
    for number, one in enumerate(found.values(), 1):
        one.number = number
    return found
