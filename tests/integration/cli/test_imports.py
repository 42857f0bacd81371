"""What commands import: cold start is a promise."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.chatting import chat_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["chat_folder"]  # a fixture


@cache
def imported(*given: str) -> frozenset[str]:
    """The modules that a call loads."""
    code = (
        "import sys; from cellwright.cli.main import main; main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, *given]
    return frozenset(
        subprocess.run(words, capture_output=True, text=True, check=True).stderr.split()
    )


def test_the_list_of_commands_imports_none_of_them() -> None:
    loaded = imported("--help")
    assert {name for name in loaded if name.startswith("cellwright.cli.commands.")} == set()
    assert not loaded & {"asyncio", "nbformat", "sqlite3", "rich", "cellwright.document.notebook"}


def test_reading_needs_no_event_loop_no_nbformat_and_no_renderer(folder: Path) -> None:
    loaded = imported("read", str(folder / "nb.ipynb"))
    assert "cellwright.document.notebook" in loaded
    assert not loaded & {"asyncio", "nbformat", "rich", "PIL"}


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
