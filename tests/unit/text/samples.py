"""Small notebooks and texts for tests, written by Python's json module."""

from __future__ import annotations

import json
from typing import Any

from cellwright import Notebook

STREAM = {"name": "stdout", "output_type": "stream", "text": ["1\n"]}


def cell(kind: str = "code", source: str = "", id_: str | None = None, **more: Any) -> Any:
    extra: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    named = {"id": id_} if id_ is not None else {}
    return {"cell_type": kind, **named, "metadata": {}, "source": source, **extra, **more}


def book(*cells: Any, minor: int = 4) -> Notebook:
    value = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    return Notebook(json.dumps(value, indent=1).encode())


def text(*lines: str) -> str:
    return "\n".join(lines)


def sources(notebook: Notebook) -> list[str]:
    return [cell.source for cell in notebook.cells]
