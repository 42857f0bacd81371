"""The page about the assistant shows a program that works, and names that are there."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


PAGE = (ROOT / "docs" / "assistant.md").read_text(encoding="utf-8")


def test_the_program_on_the_page_runs_a_cell(folder: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / "sales.ipynb").write_bytes(
        (folder / "sales.ipynb").read_bytes().replace(b"print 42", b"print(6*7)")
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "Run cell 2 of sales.ipynb?" in done.stdout
    assert "Cell 2 (`load`): ok" in done.stdout
    assert "42" in done.stdout
