"""The fixtures of the unit tests of the tools."""

from __future__ import annotations

from tests.unit.tools.conftest import call, caller, folder, kernels, profile, workspace

__all__ = ["call", "caller", "folder", "kernels", "profile", "workspace"]
