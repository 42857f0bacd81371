"""What commands import: cold start is a promise."""

from __future__ import annotations

import inspect
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from cellwright import Notebook, write
from cellwright.cli import clean_text
from tests.unit.cli.chatting import chat_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["chat_folder"]  # a fixture

# They take as long as Python's own start, together.
SLOW = {"dataclasses", "hashlib", "inspect", "pathlib"}


@cache
def imported(*given: str) -> frozenset[str]:
    """The modules that a call loads."""
    code = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        "from cellwright.cli import entry; entry()"
    )
    words = [sys.executable, "-c", code, *given]
    return frozenset(
        subprocess.run(words, capture_output=True, text=True, check=True).stderr.split()
    )


def test_the_list_of_commands_imports_none_of_them() -> None:
    loaded = imported("--help")
    assert {name for name in loaded if name.startswith("cellwright.cli.commands.")} == set()
    assert not loaded & {"asyncio", "nbformat", "sqlite3", "rich", "cellwright.document.notebook"}
    assert not loaded & SLOW


def test_a_notebook_of_code_that_never_ran_is_shown_without_what_it_does_not_need(
    tmp_path: Path,
) -> None:
    """The parser of Markdown and the analysis of code take longer than all else for a small one."""
    path = tmp_path / "plain.ipynb"
    notebook = Notebook()
    notebook.apply([{"op": "insert", "source": "x = 1"}])
    write(notebook, path)
    loaded = imported("show", str(path))
    assert "cellwright.cli.render.markdown" in loaded
    assert not loaded & {"markdown_it", "rich.markdown", "cellwright.workspace.staleness"}
    notebook.apply([{"op": "insert", "type": "markdown", "source": "# A title"}])
    write(notebook, path)
    assert "markdown_it" in imported("show", "--quiet", str(path))


def test_click_gets_all_of_inspect_if_it_asks() -> None:
    code = (
        "from cellwright.cli import clean_text, import_click; import_click(); import click.core;"
        "assert click.core.inspect.cleandoc is clean_text; import inspect;"
        "assert click.core.inspect.isfunction is inspect.isfunction"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_click_that_needs_more_of_inspect_when_it_is_imported_gets_it(tmp_path: Path) -> None:
    """Another release of click may; every command would end with an error."""
    (tmp_path / "click.py").write_text(
        "import inspect\nassert inspect.isfunction(print) is False\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
        "from cellwright.cli import import_click; import_click(); import inspect;"
        "assert inspect.__file__ and sys.modules['click'].inspect.isclass is inspect.isclass"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "text", ["a", "", "\n", "\n  a\n    b\n\n", "  x\n\ty\n  z  \n   ", "a\n\n\n b", " \n  q"]
)
def test_help_is_cleaned_as_by_inspect(text: str) -> None:
    assert clean_text(text) == inspect.cleandoc(text)


def test_reading_needs_no_event_loop_no_nbformat_and_no_renderer(folder: Path) -> None:
    loaded = imported("read", str(folder / "nb.ipynb"))
    assert "cellwright.document.notebook" in loaded
    assert not loaded & {"asyncio", "nbformat", "rich", "PIL"}
    assert not loaded & SLOW


@pytest.mark.usefixtures("shared_engine")
def test_running_needs_no_event_loop_and_no_notebook(tmp_path: Path) -> None:
    notebook = Notebook()
    notebook.apply({"op": "insert", "source": "1 + 1"})
    write(notebook, tmp_path / "nb.ipynb")
    loaded = imported("run", str(tmp_path / "nb.ipynb"))
    assert "cellwright.engine.client" in loaded
    assert not loaded & {"asyncio", "nbformat", "sqlite3", "cellwright.document.notebook"}
    assert not loaded & SLOW


def test_code_of_no_notebook_needs_no_notebook() -> None:
    loaded = imported("eval", "1 + 1")
    assert "cellwright.kernel.runner.transport" in loaded
    assert not loaded & {"nbformat", "cellwright.document.notebook", "cellwright.document.change"}


@pytest.mark.usefixtures("chat_folder")
def test_without_the_extra_a_pipe_works() -> None:
    code = (
        "import sys; sys.modules['prompt_toolkit'] = None; sys.modules['pydantic_ai'] = None;"
        "from cellwright.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "chat", "sales.ipynb", "-p", "show all cells"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Cell 1" in done.stdout


def test_the_help_of_all_commands_imports_no_library_of_the_chat() -> None:
    loaded = imported("--help")
    assert not loaded & {
        "prompt_toolkit",
        "rich",
        "pydantic_ai",
        "pydantic",
        "cellwright.assistant",
    }


def test_the_help_of_the_chat_imports_none_either() -> None:
    loaded = imported("chat", "--help")
    assert not loaded & {"prompt_toolkit", "rich", "pydantic_ai", "pydantic", "asyncio"}


def test_a_pipe_imports_neither_what_one_types_with_nor_a_model(chat_folder: Path) -> None:
    loaded = imported(
        "chat", str(chat_folder / "sales.ipynb"), "-p", "hello", "--root", str(chat_folder)
    )
    assert not loaded & {"prompt_toolkit", "pydantic_ai", "openai", "anthropic", "keyring"}
