"""Golden files: what commands answer, with what is random in it replaced by numbered names.

A file is a list of steps, each with the command, its exit code and its whole answer. Ids, revisions
and hashes become `<id-1>`, `<hash-2>` in the order in which they turn up, so that a file also shows
which of them are the same. To write the files anew, then read the diff:

    CELLWRIGHT_TEST_GOLDEN=write ./dev test tests/unit/cli/test_golden.py \
        tests/integration/cli/test_golden_processes.py
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden" / "answers"
WRITES = os.environ.get("CELLWRIGHT_TEST_GOLDEN") == "write"

_TOKEN = re.compile(
    r"(?P<time>\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
    r"|(?P<hash>\b[0-9a-f]{12}\b)"
    r"|(?P<id>\br?(?=\d*[a-f]|\d{8})[0-9a-f]{8}\b)"
)


# What is different in every run, and has no other place to be told from.
_MEASURED = frozenset(
    {"seconds", "artifact", "began", "ended", "duration_ms", "pid", "pids", "version"}
)


class Names:
    """Gives every random token a name, always the same one; `keep` are those that are not random."""

    def __init__(self, keep: frozenset[str] = frozenset(), **folders: str) -> None:
        self._names: dict[str, str] = {}
        self._counts = {"hash": 0, "id": 0}
        self._keep = keep
        self._folders = sorted(folders.items(), key=lambda item: -len(item[1]))

    def of(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self.of(key): f"<{key}>"
                if key in _MEASURED and item not in (None, [])
                else self.of(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if not isinstance(value, str):
            return value
        for name, folder in self._folders:
            value = value.replace(folder, f"<{name}>")
        return _TOKEN.sub(self._name, value)

    def _name(self, found: re.Match[str]) -> str:
        kind, token = str(found.lastgroup), found[0]
        if kind == "time":
            return "<time>"
        if token in self._keep:
            return token
        if token not in self._names:
            self._counts[kind] += 1
            self._names[token] = f"<{kind}-{self._counts[kind]}>"
        return self._names[token]


def check(name: str, steps: list[dict[str, Any]]) -> None:
    """Compare steps with the golden file of that name, or write it."""
    path = FOLDER / f"{name}.json"
    if WRITES:
        path.write_text(json.dumps(steps, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert path.is_file(), f"no {path.name}: see the top of {Path(__file__).name}"
    expected = json.loads(path.read_text(encoding="utf-8"))
    # Step by step, so that a failure shows the one that differs.
    for step, wanted in zip(steps, expected, strict=False):
        assert step == wanted
    assert [step["command"] for step in steps] == [step["command"] for step in expected]
