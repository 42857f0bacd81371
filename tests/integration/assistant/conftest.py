"""The fixtures of the unit tests of the assistant."""

from __future__ import annotations

from tests.unit.assistant.conftest import conversation, empty_keyring, folder, kernels, workspace

__all__ = ["conversation", "empty_keyring", "folder", "kernels", "workspace"]
