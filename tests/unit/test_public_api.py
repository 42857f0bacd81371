"""What `import cellwright` offers, and how little it costs."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cellwright
from tests.unit.document.samples import STREAM, code, write

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
        Replace ReplaceText Insert Delete Move Split Merge SetType SetMetadata ClearOutputs Splice
        Cell CodeCell MarkdownCell RawCell Output Stream Display Result Error CellwrightError
    """
    assert set(promised.split()) <= set(cellwright.__all__)


# --- What it costs -------------------------------------------------------------------------------

PROBE = """
import sys
bare = set(sys.modules)
import cellwright
{then}
print(*sorted(set(sys.modules) - bare))
"""


def loaded(then: str = "", *arguments: str) -> set[str]:
    """The modules that an empty Python loads for a program."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_"))}
    command = [sys.executable, "-I", "-c", PROBE.format(then=then), *arguments]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.fixture
def twenty_cells(tmp_path: Path) -> str:
    path = tmp_path / "twenty.ipynb"
    path.write_bytes(write(*[code(f"x = {i}", f"id-{i}", outputs=[STREAM]) for i in range(20)]))
    return str(path)


def tops(modules: set[str]) -> set[str]:
    """The packages they belong to; those of the interpreter's own C code do not count."""
    return {name.partition(".")[0] for name in modules if not name.startswith("_")}


def test_importing_the_package_imports_nothing_else() -> None:
    assert loaded() <= {"cellwright", "__future__"}


HEAVY = {
    "anyio",
    "argparse",
    "ast",
    "asyncio",
    "click",
    "concurrent",
    "csv",
    "dataclasses",
    "difflib",
    "email",
    "http",
    "inspect",
    "jsonschema",
    "logging",
    "msgspec",
    "multiprocessing",
    "nbformat",
    "pathlib",
    "platformdirs",
    "random",
    "shutil",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "tomllib",
    "traceback",
    "unittest",
    "urllib",
    "uuid",
    "zmq",
}
# All that reading a small notebook may import from the standard library.
READING = {
    "__future__",
    "array",
    "cellwright",
    "collections",
    "contextlib",
    "copyreg",
    "enum",
    "errno",
    "fcntl",
    "functools",
    "hashlib",
    "importlib",
    "itertools",
    "json",
    "keyword",
    "operator",
    "re",
    "reprlib",
    "types",
    "typing",
    "warnings",
}


def test_reading_a_notebook_imports_only_this(twenty_cells: str) -> None:
    modules = loaded("notebook = cellwright.read(sys.argv[1])", twenty_cells)
    assert not HEAVY & tops(modules)
    assert tops(modules) <= READING
    assert not {m for m in modules if m.startswith("cellwright.")} & {
        "cellwright.document._apply",
        "cellwright.document._bytes.cell_writer",
        "cellwright.document._bytes.validity",
        "cellwright.document._json.fast",
        "cellwright.document.edits",
        "cellwright.document.merge",
        "cellwright.document.outputs",
        "cellwright.document.versions",
    }


def test_looking_at_cells_imports_nothing_heavy(twenty_cells: str) -> None:
    look = "notebook = cellwright.read(sys.argv[1]); notebook.cells[3].source; notebook.revision"
    assert not HEAVY & tops(loaded(look, twenty_cells))


def test_editing_a_notebook_imports_no_validator_and_no_event_loop(twenty_cells: str) -> None:
    edit = "cellwright.edit(sys.argv[1], {'op': 'replace', 'cell': 3, 'source': 'y'})"
    modules = tops(loaded(edit, twenty_cells))
    # Edits are dataclasses, which bring `inspect` and what it needs.
    allowed = {"ast", "dataclasses", "inspect"}
    assert not (HEAVY - allowed) & modules
