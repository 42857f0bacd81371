"""Fixtures of the unit tests that properties need, and time for many examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RUN_ALL
from tests.unit.tools.conftest import caller, folder, kernels, workspace

__all__ = ["caller", "folder", "kernels", "workspace"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if RUN_ALL and item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(1800), append=False)
