"""Which numbers `pytest --cellwright --check` takes for the same."""

from __future__ import annotations

from typing import Any

import pytest

from cellwright.batch.pytest_plugin import _are_close


@pytest.mark.parametrize(
    ("old", "new", "is_close"),
    [
        ("took 1.000 s", "took 1.001 s", True),
        ("took 1.000 s", "took 1.100 s", False),
        ({"data": [1.0, "x 2.0"]}, {"data": [1.001, "x 2.001"]}, True),
        ("1-2", "1", False),  # numbers alone: there is no text between them to tell
        ("1", "1-2", False),
        ("1.5.3", "1.5", False),
        ([1.0], [1.0, 2.0], False),
        ({"a": 1}, {"b": 1}, False),
    ],
)
def test_outputs_are_close_if_each_number_is(old: Any, new: Any, is_close: bool) -> None:
    assert _are_close(old, new, 0.01) is is_close
