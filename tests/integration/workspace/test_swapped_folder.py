"""A folder that another program swaps for a link, again and again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from cellwright.errors import CellwrightError
from tests.unit.cli import samples
from tests.unit.workspace.hosts.confined import make_confined_root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_confined_root(tmp_path)


def test_a_folder_that_becomes_a_link_during_the_call_leads_nowhere(root: Path) -> None:
    """Whoever swaps a folder for a link, at any moment, gets nothing from outside the root."""
    secret = root.parent / "other" / "nb.ipynb"
    secret.write_bytes(samples.SALES.replace(b"sum", b"secret"))
    before = secret.read_bytes()
    folder, away, link = root / "sub", root / "away", root / "trap"
    link.symlink_to(root.parent / "other")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            folder.rename(away)
            link.rename(folder)
            folder.rename(link)
            away.rename(folder)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = {"read": 0, "refused": 0}
    try:
        with Workspace(root, cwd=str(root)) as workspace:
            for number in range(3_000):
                try:
                    book = workspace.open("sub/nb.ipynb")
                    if number % 10:
                        assert b"secret" not in book.raw()
                    else:
                        book.edit([{"op": "insert", "source": f"{number}"}])
                    seen["read"] += 1
                except CellwrightError:
                    seen["refused"] += 1
    finally:
        stop.set()
        swapping.join()
    assert secret.read_bytes() == before
    assert [path.name for path in (root.parent / "other").iterdir()] == ["nb.ipynb"]
    assert all(seen.values()), seen  # else the swapping was never met
