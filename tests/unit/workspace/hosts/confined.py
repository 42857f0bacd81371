"""A folder that callers are confined to, and what lies beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.cli import samples

if TYPE_CHECKING:
    from pathlib import Path


def make_confined_root(place: Path) -> Path:
    """A folder to be confined to, and others beside it that it must not lead to."""
    for name in ("root", "root/sub", "root-evil", "other"):
        (place / name).mkdir()
    for name in ("root/nb.ipynb", "root/sub/nb.ipynb", "root-evil/nb.ipynb", "other/nb.ipynb"):
        (place / name).write_bytes(samples.SALES)
    (place / "root" / "out.ipynb").symlink_to(place / "other" / "nb.ipynb")
    (place / "root" / "outside").symlink_to(place / "other")
    (place / "root" / "nowhere.ipynb").symlink_to(place / "other" / "missing.ipynb")
    (place / "root" / "in.ipynb").symlink_to(place / "root" / "sub" / "nb.ipynb")
    (place / "link").symlink_to(place / "root")
    return place / "root"
