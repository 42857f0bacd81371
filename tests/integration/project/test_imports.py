"""What importing, reading and editing load: an agent pays for it at every command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cellwright.config import directories
from tests.unit.document.samples import STREAM, code, write

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
    "gc",
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


def test_showing_cells_loads_what_reads_html_and_charts_for_those_alone(twenty_cells: str) -> None:
    show = """
import os
from cellwright.cli.main import main
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
main(["show", "--no-engine", sys.argv[1]])
sys.stdout.flush()
os.dup2(out, 1)
"""
    modules = loaded(show, twenty_cells)
    assert "cellwright.cli.render.outputs" in modules
    assert not modules & {
        "cellwright.cli.render.tables",
        "bz2",
        "cellwright.outputs.charts.reading",
        "cellwright.outputs.html",
        "cellwright.outputs.mime",
        "rich.table",
    }


def test_text_is_read_and_written_with_no_kernel_and_no_event_loop() -> None:
    """S3: the text view has no session, execution, chunks or artifacts."""
    script = """
import sys
from cellwright.text.combine import from_text
from cellwright.text.view import to_text
made = from_text("# %% [code]\\nx = 1")
from_text(to_text(made).replace("1", "2"), base=made)
assert "cellwright.text.view" in sys.modules
unwanted = {"asyncio", "anyio", "zmq", "jupyter_client", "nbformat", "subprocess", "socket"}
unwanted |= {f"cellwright.{room}" for room in ("kernel", "engine", "journal", "workspace")}
print(sorted(unwanted & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_reading_needs_neither_the_edits_nor_dataclasses() -> None:
    """Cold start: `read` pays for what it uses."""
    script = """
import sys
from cellwright.document.notebook import Notebook
from cellwright.text.selection import select
from cellwright.text.view import render_text
select(render_text(Notebook()), "outline")
print(sorted({"dataclasses", "inspect", "cellwright.document.edits"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_importing_the_journal_loads_no_database() -> None:
    script = (
        "import sys, cellwright.journal, cellwright.journal.journal as j; j.Journal('x');"
        "sys.exit(any(m in sys.modules for m in ('sqlite3', 'asyncio', 'dataclasses', 'pathlib')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_asking_for_the_runtime_directory_imports_nothing_new() -> None:
    """Every save asks; what it imports, every command pays for."""
    script = (
        "import os, stat, sys, cellwright; before = set(sys.modules)\n"
        "import cellwright.config.directories as directories\n"
        "directories.runtime_directory()\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    printed = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env=os.environ | {"PYTHONPATH": str(Path(directories.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert set(printed) <= {"__future__", "cellwright.config", "cellwright.config.directories"}
