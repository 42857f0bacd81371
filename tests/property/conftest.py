"""Fixtures of the unit tests that properties need."""

from __future__ import annotations

from tests.unit.tools.conftest import kernels

__all__ = ["kernels"]
