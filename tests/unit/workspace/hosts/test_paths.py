"""Which file a caller means, and whether it may be touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from cellwright.errors import CellwrightError
from tests.unit.cli import samples
from tests.unit.workspace.hosts.confined import make_confined_root

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_confined_root(tmp_path)


OUTSIDE: dict[str, Callable[[Path], str]] = {
    "dots": lambda _: "../other/nb.ipynb",
    "dots in the middle": lambda _: "sub/../../other/nb.ipynb",
    "dots beyond the top": lambda _: "../" * 64 + "etc/nb.ipynb",
    "a sibling with the same beginning": lambda root: f"{root}-evil/nb.ipynb",
    "an absolute path": lambda root: str(root.parent / "other" / "nb.ipynb"),
    "a link to a file": lambda _: "out.ipynb",
    "a link to a folder": lambda _: "outside/nb.ipynb",
    "a link to what is not there": lambda _: "nowhere.ipynb",
    "a new file behind a link": lambda _: "outside/new.ipynb",
    "dots after a link": lambda _: "outside/../other/nb.ipynb",
    "the folder above": lambda _: "..",
}

INSIDE: dict[str, Callable[[Path], str]] = {
    "a name": lambda _: "nb.ipynb",
    "a folder": lambda _: "sub/nb.ipynb",
    "dots that stay": lambda _: "sub/../nb.ipynb",
    "an absolute path": lambda root: str(root / "sub" / "nb.ipynb"),
    "a link that stays": lambda _: "in.ipynb",
    "another way to the root": lambda root: str(root.parent / "link" / "nb.ipynb"),
}


@pytest.mark.parametrize("way", OUTSIDE)
def test_no_way_leads_out_of_the_root(way: str, root: Path) -> None:
    path = OUTSIDE[way](root)
    with Workspace(root, cwd=str(root)) as workspace:
        for call in (
            lambda: workspace.open(path).read(),
            lambda: workspace.open(path).edit([{"op": "insert", "source": "x"}], create=True),
            lambda: workspace.open(path).write("# %% [code]\nx"),
            lambda: workspace.create(path),
            lambda: workspace.open("nb.ipynb").diff("now", path),
        ):
            with pytest.raises(CellwrightError) as caught:
                call()
            assert caught.value.code in ("OUTSIDE_ROOT", "CHANGE_NOT_FOUND")
    for folder in ("other", "root-evil"):
        assert [item.name for item in (root.parent / folder).iterdir()] == ["nb.ipynb"]
        assert (root.parent / folder / "nb.ipynb").read_bytes() == samples.SALES


@pytest.mark.parametrize("way", INSIDE)
def test_every_way_inside_the_root_may_be_gone(way: str, root: Path) -> None:
    with Workspace(root, cwd=str(root)) as workspace:
        answer = workspace.open(INSIDE[way](root)).edit([{"op": "delete", "cell": "notes"}])
    assert answer.changed


def test_a_root_that_is_a_link_confines_as_well(root: Path) -> None:
    with Workspace(root.parent / "link", cwd=str(root)) as workspace:
        assert workspace.open("nb.ipynb").read().path == "nb.ipynb"
        with pytest.raises(CellwrightError) as caught:
            workspace.open("../other/nb.ipynb")
        assert caught.value.code == "OUTSIDE_ROOT"


def test_the_root_of_the_file_system_confines_nothing(root: Path) -> None:
    with Workspace("/", cwd=str(root)) as workspace:
        assert workspace.open("../other/nb.ipynb").read().cells


def test_without_a_root_nothing_is_confined(root: Path) -> None:
    with Workspace(cwd=str(root)) as workspace:
        assert workspace.open("../other/nb.ipynb").read().cells


def test_a_relative_path_is_relative_to_the_caller_and_not_to_the_root(root: Path) -> None:
    with Workspace(root, cwd=str(root / "sub")) as workspace:
        assert workspace.open("nb.ipynb").path == str(root / "sub" / "nb.ipynb")
        assert workspace.open("../nb.ipynb").path == str(root / "nb.ipynb")


def test_a_relative_root_is_relative_to_the_caller(root: Path) -> None:
    with Workspace("sub", cwd=str(root)) as workspace:
        assert workspace.open("sub/nb.ipynb").read().cells
        with pytest.raises(CellwrightError):
            workspace.open("nb.ipynb")


def test_two_ways_to_one_notebook_have_one_history(root: Path) -> None:
    with Workspace(root, cwd=str(root)) as workspace:
        workspace.open("in.ipynb").edit([{"op": "delete", "cell": "notes"}])
        workspace.open("sub/nb.ipynb").edit([{"op": "delete", "cell": "later"}])
        assert len(workspace.open(root.parent / "link" / "in.ipynb").log()) == 2
    assert os.path.islink(root / "in.ipynb")  # noqa: PTH114


def test_dots_after_a_link_mean_what_the_system_means(root: Path) -> None:
    """`link/..` is the folder above the target of the link, not the folder of the link."""
    (root.parent / "other" / "deep").mkdir()
    (root / "deep").symlink_to(root.parent / "other" / "deep")
    with Workspace(cwd=str(root)) as workspace:
        workspace.open("deep/../nb.ipynb").edit([{"op": "delete", "cell": "notes"}])
    assert (root / "nb.ipynb").read_bytes() == samples.SALES
    assert (root.parent / "other" / "nb.ipynb").read_bytes() != samples.SALES


def test_a_file_that_becomes_a_link_is_not_followed(root: Path) -> None:
    with Workspace(root, cwd=str(root)) as workspace:
        book = workspace.open("nb.ipynb")
        (root / "nb.ipynb").unlink()
        (root / "nb.ipynb").symlink_to(root.parent / "other" / "nb.ipynb")
        with pytest.raises(CellwrightError) as caught:
            book.raw()
        assert "/proc/" not in str(caught.value)


def test_what_leads_out_is_not_listed(root: Path) -> None:
    with Workspace(root, cwd=str(root)) as workspace:
        assert {row.path for row in workspace.list()} == {"nb.ipynb", "in.ipynb", "sub/nb.ipynb"}


@pytest.mark.parametrize("path", ["a\0b.ipynb", "\ud800.ipynb", "sub/\0/nb.ipynb"])
@pytest.mark.parametrize("is_confined", [False, True])
def test_what_is_no_path_is_refused_by_name(root: Path, path: str, *, is_confined: bool) -> None:
    with Workspace(root if is_confined else None, cwd=str(root)) as workspace:
        with pytest.raises(CellwrightError) as caught:
            workspace.open(path).read()
        assert caught.value.code == "UNREADABLE_FILE"


@pytest.mark.parametrize("name", ["nb.ipynb", "in.ipynb", "sub/nb.ipynb"])
def test_a_backup_lies_beside_what_was_named(root: Path, name: str) -> None:
    with Workspace(root, cwd=str(root)) as workspace:
        before = (root / name).read_bytes()
        answer = workspace.open(name).edit([{"op": "insert", "source": "new"}], backup=True)
    beside = root / name.replace(".ipynb", ".backup.ipynb")
    assert answer.backup == str(beside)
    assert beside.read_bytes() == before
