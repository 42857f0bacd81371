"""The example that writes its own report does so, and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cellwright
from tests.conftest import ROOT
from tests.kernels.manipulating import frontend

if TYPE_CHECKING:
    from pathlib import Path


async def test_the_notebook_writes_its_report_section_by_section_and_anew(tmp_path: Path) -> None:
    book = cellwright.read(str(ROOT / "examples" / "report.ipynb"))
    assert [cell.id for cell in book.cells] == ["about", "data", "section", "report"]
    python = str(ROOT / ".venv/bin/python")
    async with frontend(tmp_path, book, python=python) as front:
        for cell in ("data", "section", "report", "report"):
            ran = await front.cell(cell)
            assert ran.status == "ok", front.said(cell)
        report = front.notebook.cells[4:]
        assert [cell.type for cell in report] == ["markdown", "code"] * 3
        assert [cell.source.splitlines()[0] for cell in report if cell.type == "markdown"] == [
            "## The wettest day",
            "## Dry days",
            "## In all",
        ]
        assert "Wed  12.4 ████████████" in front.text[report[1].handle]
        assert front.text[report[3].handle] == "['Tue', 'Sat']"
        assert front.text[report[5].handle] == "4.0"
        assert front.notebook.metadata["report"] == {"sections": 3, "cells": 10}
        assert front.notebook.validate() is None
