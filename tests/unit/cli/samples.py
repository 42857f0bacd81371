"""A notebook for commands to work on, written by Python's json module."""

from __future__ import annotations

import json
from typing import Any

STREAM = {"name": "stdout", "output_type": "stream", "text": ["42\n"]}
RESULT = {
    "data": {"text/plain": ["42"]},
    "execution_count": 3,
    "metadata": {},
    "output_type": "execute_result",
}
FAILURE = {
    "ename": "NameError",
    "evalue": "name 'y' is not defined",
    "output_type": "error",
    "traceback": ["NameError: name 'y' is not defined"],
}


def code(id_: str | None, source: str, *outputs: Any, count: int | None = None) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": count}
    return _cell({**cell, "metadata": {}, "outputs": outputs}, id_, source)


def markdown(id_: str | None, source: str) -> dict[str, Any]:
    return _cell({"cell_type": "markdown", "metadata": {}}, id_, source)


def raw(id_: str | None, source: str) -> dict[str, Any]:
    return _cell({"cell_type": "raw", "metadata": {}}, id_, source)


def _cell(cell: dict[str, Any], id_: str | None, source: str) -> dict[str, Any]:
    return {
        **cell,
        **({} if id_ is None else {"id": id_}),
        "source": source.splitlines(keepends=True),
    }


def write(*cells: dict[str, Any], minor: int = 5, indent: int | None = 1) -> bytes:
    """A notebook as Jupyter would write it."""
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    value = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    text = json.dumps(value, indent=indent, ensure_ascii=False, sort_keys=True)
    return text.encode() + b"\n"


SALES = write(
    markdown("intro", "# Sales\n\nWhat we sold."),
    code("load", "total = 42\nprint(total)", STREAM, count=1),
    code("sum", "total", RESULT, count=3),
    markdown("results", "## Results"),
    code("plot", "y", FAILURE, count=4),
    code("later", "# not yet run"),
    raw("notes", "as is"),
)
