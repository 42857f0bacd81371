"""Fixtures of the unit tests that properties need."""

from __future__ import annotations

from tests.unit.tools.conftest import caller, folder, kernels, workspace

__all__ = ["caller", "folder", "kernels", "workspace"]
