"""Many processes write one notebook while an outside editor rewrites it, and nothing gets lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import cellwright
from tests.integration.document import crowd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITERS = [f"w{number}" for number in range(8)]
IN_PLACE = ("ok", "DURABILITY_UNCONFIRMED")  # what is said when the edit was in the file


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, crowd.__file__, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> Any:
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(said)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "notebook.ipynb"
    file.write_bytes(crowd.start(WRITERS))
    return file


def require_exchange(path: Path) -> None:
    """Skip by name where two files cannot change places."""
    try:
        crowd.exchange(path, path)
    except OSError as error:
        pytest.skip(f"cannot exchange two files: {error.strerror}")


def found_in(path: Path) -> set[str]:
    """The tokens in the file, none of them twice."""
    counts = Counter(crowd.TOKEN.findall(path.read_bytes()))
    assert set(counts.values()) <= {1}
    return {token.decode() for token in counts}


def test_eight_processes_lose_none_of_their_edits(path: Path) -> None:
    writers = [start("writer", path, name, "25") for name in WRITERS]
    said: dict[str, str] = {}
    for writer in writers:
        said |= answer(writer)
    assert set(said.values()) == {"ok"}
    assert found_in(path) == said.keys()
    assert len(said) == 8 * 25


@pytest.mark.timeout(300)
@pytest.mark.parametrize("edits", [50, pytest.param(200, marks=pytest.mark.all)])
def test_every_edit_of_eight_processes_is_accounted_for_while_an_outsider_rewrites(
    edits: int, path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Hundreds of edits, each of which is in the file at the end, or was answered with `CONFLICT`.

    Or the outside editor itself replaced it with what it had read before; it finds out which.

    What the outsider writes between our last look at the file and our rename is replaced unread.
    No order of `lstat` and `rename` can rule that out, but it must be rare: the outsider counts
    how often it happened.
    """
    require_exchange(path)
    outsider = start("outsider", path)
    writers = [start("writer", path, name, str(edits)) for name in WRITERS]
    said: dict[str, str] = {}
    for writer in writers:
        said |= answer(writer)
    outside = answer(outsider)
    lost = set(outside["lost"])

    assert len(said) == 8 * edits
    assert set(said.values()) <= {*IN_PLACE, "CONFLICT"}
    in_place = {token for token, code in said.items() if code in IN_PLACE}
    in_file = found_in(path)
    assert in_place - in_file - lost == set(), "told that it was saved, but it is nowhere"
    assert (in_file | lost) - in_place == set(), "told that it was not saved, but it was"
    # The crowd was a crowd, and most of it got through.
    assert outside["written"] >= edits // 4
    assert len(in_file) >= 4 * edits

    record_property("outsider wrote", outside["written"])
    record_property("outsider was replaced unread", len(outside["robbed"]))
    # About one write in a hundred is; two of three would be if we did not look.
    assert len(outside["robbed"]) <= 2 + outside["written"] // 10

    cells = cellwright.read(path).cells
    assert {cell.id for cell in cells} >= set(WRITERS)
    assert cells[0].problem is None
    assert [item.name for item in path.parent.iterdir()] == [path.name]
