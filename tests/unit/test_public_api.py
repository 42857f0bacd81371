"""What `import cellwright` offers."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import cellwright

# --- The names -----------------------------------------------------------------------------------


def names_for_type_checkers() -> dict[str, str]:
    """The names that the package imports where only a type checker looks, and their homes."""
    assert cellwright.__file__
    tree = ast.parse(Path(cellwright.__file__).read_text(encoding="utf-8"))
    ifs = [node for node in tree.body if isinstance(node, ast.If)]
    (block,) = [node for node in ifs if isinstance(node.test, ast.Name)]
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "`as` says that the name is exported"
            found[alias.name] = node.module or ""
    return found


def test_the_table_of_homes_and_the_imports_for_type_checkers_say_the_same() -> None:
    assert names_for_type_checkers() == cellwright._HOME_OF


def test_all_lists_every_public_name_in_order() -> None:
    assert cellwright.__all__ == sorted([*cellwright._HOME_OF, "__version__"])
    assert len(set(cellwright.__all__)) == len(cellwright.__all__)
    assert not [name for name in cellwright._HOME_OF if name.startswith("_")]


@pytest.mark.parametrize("name", cellwright.__all__)
def test_every_public_name_is_the_one_that_lives_at_its_home(name: str) -> None:
    value = getattr(cellwright, name)
    if name != "__version__":
        assert value is getattr(importlib.import_module(cellwright._HOME_OF[name]), name)
    assert getattr(cellwright, name) is value


def test_everything_can_be_imported_at_once() -> None:
    names: dict[str, object] = {}
    exec("from cellwright import *", names)  # noqa: S102
    assert set(cellwright.__all__) <= names.keys()


def test_dir_shows_what_is_public() -> None:
    assert dir(cellwright) == cellwright.__all__


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    assert not hasattr(cellwright, "no_such_name")
    with pytest.raises(AttributeError) as caught:
        cellwright.no_such_name  # noqa: B018
    assert "no_such_name" in str(caught.value)
    with pytest.raises(ImportError):
        exec("from cellwright import no_such_name", {})  # noqa: S102


def test_the_names_of_the_design_are_there() -> None:
    promised = """
        read write Notebook Change parse_edit merge
        Replace ReplaceText Insert Delete Move Split MergeCells SetType SetMetadata ClearOutputs Splice
        Cell CodeCell MarkdownCell RawCell Output Stream Display Result ErrorOutput CellwrightError
        Workspace AsyncWorkspace Book AsyncBook Execution Executions connect Mode CellRef errors
    """
    assert set(promised.split()) <= set(cellwright.__all__)
