"""Small notebooks for tests, written by Python's json module and not by the code under test."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from cellwright import Notebook
from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright import Snapshot

# For properties over whole notebooks, which tests/property/ tries more often.
fewer_examples = hypothesis.settings(max_examples=hypothesis.settings().max_examples // 4)

# How `write` writes: as Jupyter does, and as short as can be.
PRETTY = {"indent": 1, "separators": (",", ": ")}
MINIFIED = {"indent": None, "separators": (",", ":")}
STYLES = [pytest.param(PRETTY, id="pretty"), pytest.param(MINIFIED, id="minified")]

STREAM = {"name": "stdout", "output_type": "stream", "text": ["1\n"]}
RESULT = {
    "data": {"text/plain": ["2"]},
    "execution_count": 2,
    "metadata": {},
    "output_type": "execute_result",
}
IMAGE = {"image.png": {"image/png": "QUJD"}}


def lines(source: str) -> list[str]:
    """A source as notebooks have it: every line but the last keeps its newline."""
    return re.findall(r"[^\n]*\n|[^\n]+", source)


def code(source: str = "", id_: str | None = None, **more: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    return _cell(cell, source, id_, more)


def markdown(source: str = "", id_: str | None = None, **more: Any) -> dict[str, Any]:
    return _cell({"cell_type": "markdown", "metadata": {}}, source, id_, more)


def raw(source: str = "", id_: str | None = None, **more: Any) -> dict[str, Any]:
    return _cell({"cell_type": "raw", "metadata": {}}, source, id_, more)


def _cell(
    cell: dict[str, Any], source: str, id_: str | None, more: dict[str, Any]
) -> dict[str, Any]:
    named = {"id": id_} if id_ is not None else {}
    return {**cell, **named, "source": lines(source), **more}


def write(
    *cells: Any,
    minor: int = 5,
    metadata: dict[str, Any] | None = None,
    style: dict[str, Any] = PRETTY,
) -> bytes:
    """A notebook as bytes, with keys in alphabetical order."""
    value = {
        "cells": cells,
        "metadata": metadata or {},
        "nbformat": 4,
        "nbformat_minor": minor,
    }
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, **style)
    return text.encode() + b"\n"


def book(*cells: Any, **options: Any) -> Notebook:
    """The notebook that `write` writes."""
    return Notebook(write(*cells, **options))


def sources(notebook: Notebook) -> list[str]:
    return [cell.source for cell in notebook.cells]


def ids(notebook: Notebook) -> list[str | None]:
    return [cell.id for cell in notebook.cells]


def values(notebook: Notebook) -> list[dict[str, Any]]:
    """All cells as another parser reads them from the bytes."""
    cells: list[dict[str, Any]] = json.loads(notebook.to_bytes().decode("utf-8-sig"))["cells"]
    return cells


def refusal(
    notebook: Notebook,
    edits: dict[Any, Any] | Sequence[Any],
    *,
    base: Snapshot | str | None = None,
) -> Any:
    """The error with which edits are refused; they must have changed nothing."""
    before, revision = notebook.to_bytes(), notebook.revision
    with pytest.raises(CellwrightError) as caught:
        notebook.apply(edits, base=base)
    assert (notebook.to_bytes(), notebook.revision) == (before, revision)
    return caught.value
