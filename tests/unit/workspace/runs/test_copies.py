"""Copies with parameters as a cell, as papermill makes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cellwright import Notebook
from cellwright.errors import KernelCannot
from cellwright.workspace.runs.copies import make_copy_edits


def notebook(*tags: str | None, language: str = "python") -> Notebook:
    cells = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {"tags": [tag]} if tag else {},
            "source": "a = 1",
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}],
            "execution_count": 3,
        }
        for number, tag in enumerate(tags)
    ]
    metadata = {"language_info": {"name": language}}
    shape = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return Notebook(json.dumps(shape).encode())


def tags_of(copy: Notebook) -> list[Any]:
    return [(cell.metadata.get("tags") or [None])[0] for cell in copy.cells]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ((None, "parameters", None), [None, "parameters", "injected-parameters", None]),
        ((None, None), ["injected-parameters", None, None]),
        (("parameters", "injected-parameters"), ["parameters", "injected-parameters"]),
        ((None, "injected-parameters", None), [None, "injected-parameters", None]),
        (("injected-parameters", "parameters"), ["parameters", "injected-parameters"]),
    ],
)
def test_parameters_are_a_cell_where_papermill_has_it(
    tags: tuple[str | None, ...], expected: list[str | None]
) -> None:
    copy = notebook(*tags)
    copy.apply(make_copy_edits(copy, {"a": 2, "b": "x\ny"}, clears=True))
    assert tags_of(copy) == expected
    injected = copy.cells[expected.index("injected-parameters")]
    values: dict[str, Any] = {}
    exec(injected.source, values)  # noqa: S102  # what a kernel would do
    assert (values["a"], values["b"]) == (2, "x\ny")
    assert injected.source.startswith("# Parameters\n")
    assert all(not cell.outputs and cell.execution_count is None for cell in copy.cells)


def test_without_parameters_there_is_no_such_cell() -> None:
    copy = notebook(None, "parameters")
    assert make_copy_edits(copy, {}, clears=False) == []
    copy.apply(make_copy_edits(copy, None, clears=True))
    assert tags_of(copy) == [None, "parameters"]


def test_a_language_that_is_not_known_is_refused() -> None:
    with pytest.raises(KernelCannot):
        make_copy_edits(notebook(None, language="brainfuck"), {"a": 1}, clears=True)
