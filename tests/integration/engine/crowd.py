"""One client of a crowd, as a process: edits and runs cells of its own among those of others.

    python -m tests.integration.engine.crowd NAME OPERATIONS PROGRESS

It keeps its own account of what the engine has confirmed, checks every answer against it, and
prints the account at the end. When the engine goes away it looks what was done, and goes on.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellwright.engine import connect
from cellwright.errors import CellwrightError, EngineError, OwnedElsewhere

if TYPE_CHECKING:
    from cellwright import Book, Workspace
    from cellwright.workspace.runs.execution import Execution

NOTEBOOKS = ("one.ipynb", "two.ipynb")
ATTEMPTS = 200


class Client:
    """Somebody who works, and remembers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.chance = random.Random(name)
        self.cells: dict[str, dict[str, str]] = {path: {} for path in NOTEBOOKS}
        self.printed: dict[str, dict[str, str | None]] = {path: {} for path in NOTEBOOKS}
        self.lost = 0
        self._workspace: Workspace | None = None

    def book(self, path: str) -> Book:
        if self._workspace is None:
            self._workspace = connect(actor=f"crowd:{self.name}")
            assert self._workspace is not None
        return self._workspace.open(path)

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()

    def work(self, number: int) -> None:
        path = NOTEBOOKS[number % 2]
        mine = self.cells[path]
        kind = number // 2 % 4
        if kind == 0 or not mine:
            cell, edit = f"{self.name}-{number}", "insert"
        else:
            cell, edit = self.chance.choice(sorted(mine)), "replace"
        text = f"{self.name} {path} {cell} {number}"
        if kind < 2:
            self.edit(path, edit, cell, f"print({text!r})")
        elif kind == 2:
            self.run(path, cell)
        else:
            self.edit(path, edit, cell, f"print({text!r})", run="changed")

    def edit(self, path: str, kind: str, cell: str, source: str, **how: Any) -> None:
        edit: dict[str, Any] = {"op": kind, "source": source}
        edit |= {"id": cell} if kind == "insert" else {"cell": cell, "outputs": "clear"}
        for _ in range(ATTEMPTS):
            try:
                answer = self.book(path).edit([edit], **how)
            except (EngineError, OwnedElsewhere):
                self.lost += 1
                if self.found(path).get(cell) != source:
                    continue  # it was not done
                self.cells[path][cell] = source
                self.printed[path][cell] = None  # whether it ran is not known
                return
            self.cells[path][cell] = source
            self.printed[path][cell] = ""
            assert answer.changed, answer
            for execution in answer.executions or ():
                self.check(path, cell, execution)
            return
        raise AssertionError("the engine never came back")

    def run(self, path: str, cell: str) -> None:
        for _ in range(ATTEMPTS):
            told: list[str] = []

            def progress(event: dict[str, Any], told: list[str] = told) -> None:
                if "text" in event:
                    told.append(event["text"])

            try:
                (execution,) = self.book(path).run([cell], progress=progress)
            except (EngineError, OwnedElsewhere):
                self.lost += 1
                self.printed[path][cell] = None
                continue
            if execution.status != "ok":  # the engine was ended under it
                assert execution.status in ("cancelled", "died"), execution
                self.printed[path][cell] = None
                continue
            self.check(path, cell, execution)
            assert "".join(told) == self.printed[path][cell], (told, cell)
            return
        raise AssertionError("the engine never came back")

    def check(self, path: str, cell: str, execution: Execution) -> None:
        if execution.status != "ok":
            assert execution.status in ("cancelled", "died", "pending"), execution
            self.printed[path][cell] = None
            return
        source = self.cells[path][cell]
        wanted = source.removeprefix("print('").removesuffix("')") + "\n"
        text = "".join(output["text"] for output in execution.outputs)
        assert (execution.cell, text) == (cell, wanted)
        assert execution.saved, execution
        assert not execution.stale, execution
        self.printed[path][cell] = wanted

    def found(self, path: str) -> dict[str, str]:
        """What the file holds of ours, whoever runs it."""
        notebook = json.loads(Path(path).read_text())
        return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


def main() -> None:
    name, operations, progress = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    client = Client(name)
    problem = None
    try:
        for number in range(operations):
            client.work(number)
            with progress.open("a") as file:
                file.write(".")
    except (AssertionError, CellwrightError) as error:
        problem = repr(error)
    client.close()
    account = {"cells": client.cells, "printed": client.printed}
    print(json.dumps({**account, "lost": client.lost, "problem": problem}))  # noqa: T201


if __name__ == "__main__":
    main()
