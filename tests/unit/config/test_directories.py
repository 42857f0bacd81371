from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cellwright.config import directories
from cellwright.config.directories import runtime_directory
from cellwright.errors import UnsafeDirectory

NOBODY = 65534


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point every root at a folder of the test's own; the home folder lies beside them."""
    for name in ("CELLWRIGHT_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    for name in ("home", "session", "temp"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temp"))
    return tmp_path


def mode_of(path: str) -> int:
    return os.lstat(path).st_mode & 0o7777


def test_the_session_folder_is_the_first_choice(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folders / "session"))

    found = runtime_directory()

    assert found == str(folders / "session" / "cellwright")
    assert mode_of(found) == 0o700


def test_without_a_session_folder_it_is_named_after_the_user_in_the_temp_folder(
    folders: Path,
) -> None:
    found = runtime_directory()

    assert found == str(folders / "temp" / f"cellwright-{os.geteuid()}")
    assert mode_of(found) == 0o700


def test_a_second_call_finds_the_same_folder(folders: Path) -> None:
    assert runtime_directory() == runtime_directory()
    assert [entry.name for entry in (folders / "temp").iterdir()] == [f"cellwright-{os.geteuid()}"]


def test_it_is_private_whatever_the_umask(folders: Path) -> None:
    before = os.umask(0)
    try:
        found = runtime_directory()
    finally:
        os.umask(before)

    assert found.startswith(str(folders))
    assert mode_of(found) == 0o700


def test_the_variable_of_ours_outdoes_all(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folders / "session"))
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(folders / "mine"))

    assert runtime_directory() == str(folders / "mine")
    assert mode_of(str(folders / "mine")) == 0o700


def test_a_relative_path_in_the_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", "run")

    with pytest.raises(UnsafeDirectory, match="absolute"):
        runtime_directory()


def test_a_folder_that_cannot_be_made_is_refused(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(folders / "missing" / "run"))

    with pytest.raises(UnsafeDirectory, match="cannot be created"):
        runtime_directory()


@pytest.mark.parametrize("kind", ["missing", "a file", "writable by others", "relative"])
def test_a_session_folder_that_is_not_private_is_passed_over(
    kind: str, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = folders / "session"
    if kind == "missing":
        session.rmdir()
    elif kind == "a file":
        session.rmdir()
        session.touch()
    elif kind == "writable by others":
        session.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "session" if kind == "relative" else str(session))

    assert runtime_directory() == str(folders / "temp" / f"cellwright-{os.geteuid()}")


def test_a_session_folder_in_the_home_folder_is_passed_over(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "home" / "run").mkdir(mode=0o700)
    (folders / "link").symlink_to(folders / "home" / "run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folders / "link"))

    assert runtime_directory() == str(folders / "temp" / f"cellwright-{os.geteuid()}")


def test_a_temp_folder_in_the_home_folder_is_passed_over(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "home" / "tmp").mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(folders / "home" / "tmp"))
    monkeypatch.setattr(directories, "TEMPORARY_FOLDERS", (str(folders / "temp"),))

    assert runtime_directory() == str(folders / "temp" / f"cellwright-{os.geteuid()}")


def test_a_folder_whose_name_begins_like_the_home_folder_is_not_in_it(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "home-run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folders / "home-run"))

    assert runtime_directory() == str(folders / "home-run" / "cellwright")


def test_a_temp_folder_where_others_could_move_ours_away_is_passed_over(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = folders / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(loose))
    monkeypatch.setattr(directories, "TEMPORARY_FOLDERS", (str(folders / "temp"),))

    assert runtime_directory() == str(folders / "temp" / f"cellwright-{os.geteuid()}")

    loose.chmod(0o1777)

    assert runtime_directory() == str(loose / f"cellwright-{os.geteuid()}")


def test_no_temp_folder_at_all_is_a_named_error(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folders / "missing"))
    monkeypatch.setattr(directories, "TEMPORARY_FOLDERS", (str(folders / "missing"),))

    with pytest.raises(UnsafeDirectory, match="no temp folder"):
        runtime_directory()


def test_an_account_whose_home_is_the_root_folder_still_gets_one(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/")

    assert runtime_directory() == str(folders / "temp" / f"cellwright-{os.geteuid()}")


def test_a_symbolic_link_is_refused_even_to_a_good_folder(folders: Path) -> None:
    (folders / "good").mkdir(mode=0o700)
    (folders / "temp" / f"cellwright-{os.geteuid()}").symlink_to(folders / "good")

    with pytest.raises(UnsafeDirectory, match="symbolic link"):
        runtime_directory()


def test_a_file_in_its_place_is_refused(folders: Path) -> None:
    (folders / "temp" / f"cellwright-{os.geteuid()}").touch()

    with pytest.raises(UnsafeDirectory, match="not a directory"):
        runtime_directory()


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o770, 0o777, 0o500])
def test_any_other_mode_is_refused(mode: int, folders: Path) -> None:
    folder = folders / "temp" / f"cellwright-{os.geteuid()}"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(UnsafeDirectory, match=f"{mode:04o}") as caught:
        runtime_directory()

    assert caught.value.path == str(folder)
    assert mode_of(str(folder)) == mode


def test_the_group_bit_that_a_parent_hands_down_is_harmless(folders: Path) -> None:
    (folders / "temp").chmod(0o2700)

    assert mode_of(runtime_directory()) & 0o777 == 0o700


@pytest.mark.root
def test_a_folder_of_another_user_is_refused(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folders / "temp" / f"cellwright-{os.geteuid()}"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    monkeypatch.setenv("CELLWRIGHT_RUNTIME_DIR", str(folder))

    with pytest.raises(UnsafeDirectory, match=f"belongs to user {NOBODY}"):
        runtime_directory()


@pytest.mark.root
@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_a_name_that_another_user_has_taken_is_replaced_by_one_that_stays(
    kind: str, folders: Path
) -> None:
    (folders / "temp").chmod(0o1777)
    squatted = folders / "temp" / f"cellwright-{os.geteuid()}"
    if kind == "folder":
        squatted.mkdir(mode=0o700)
    elif kind == "link":
        squatted.symlink_to(folders / "home")
    else:
        squatted.touch()
    os.chown(squatted, NOBODY, NOBODY, follow_symlinks=False)

    found = runtime_directory()

    assert found.startswith(f"{squatted}-")
    assert mode_of(found) == 0o700
    assert runtime_directory() == found
    # Its owner takes the name away, to make two processes use two folders.
    squatted.rmdir() if kind == "folder" else squatted.unlink()
    assert runtime_directory() == found
    # As after a restart of the machine.
    Path(found).rmdir()
    assert runtime_directory() == str(squatted)


@pytest.mark.root
def test_a_second_name_that_was_taken_too_is_replaced(folders: Path) -> None:
    (folders / "temp").chmod(0o1777)
    squatted = folders / "temp" / f"cellwright-{os.geteuid()}"
    squatted.mkdir()
    os.chown(squatted, NOBODY, NOBODY)
    first = runtime_directory()
    os.chown(first, NOBODY, NOBODY)

    second = runtime_directory()

    assert second not in (str(squatted), first)
    assert runtime_directory() == second


@pytest.mark.root
def test_the_session_folder_of_another_user_is_passed_over(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `sudo`: a folder of root's in it would lock its owner out."""
    os.chown(folders / "session", NOBODY, NOBODY)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folders / "session"))

    assert runtime_directory() == str(folders / "temp" / f"cellwright-{os.geteuid()}")
    assert list((folders / "session").iterdir()) == []


def test_the_other_directories_are_the_platforms_own(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("the variables are those of Linux")
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(folders / kind))

    assert directories.config_directory() == folders / "CONFIG" / "cellwright"
    assert directories.state_directory() == folders / "STATE" / "cellwright"
    assert directories.cache_directory() == folders / "CACHE" / "cellwright"
    assert not (folders / "STATE").exists()


@pytest.mark.parametrize("home", ["/home/ada", "/home/ada/", "/", "relative", "", None])
@pytest.mark.parametrize("chosen", ["/elsewhere", "/elsewhere/", "relative", "~/here", "", None])
def test_the_usual_folders_are_those_of_platformdirs(
    home: str | None, chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import platformdirs

    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
        if chosen is not None:
            monkeypatch.setenv(f"XDG_{kind}_HOME", chosen)
    monkeypatch.delenv("HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)

    assert directories.config_directory() == platformdirs.user_config_path("cellwright")
    assert directories.state_directory() == platformdirs.user_state_path("cellwright")
    assert directories.cache_directory() == platformdirs.user_cache_path("cellwright")


def test_an_unknown_home_folder_is_a_named_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(platformdirs, "user_state_path", lambda *_, **__: Path("~/.local/state"))

    with pytest.raises(UnsafeDirectory, match="home folder"):
        directories.state_directory()


def test_a_place_that_was_found_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELLWRIGHT_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(first))
    monkeypatch.setenv("TMPDIR", str(second))
    second.mkdir(mode=0o700)
    in_second = f"{second}/cellwright-{os.geteuid()}"
    assert runtime_directory() == runtime_directory() == in_second
    first.mkdir(mode=0o700)  # other processes take it from now on
    assert runtime_directory() == runtime_directory() == f"{first}/cellwright"
    first.chmod(0o770)  # others may make files in it
    assert runtime_directory() == in_second
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert runtime_directory() == runtime_directory() == in_second
    second.chmod(0o777)
    assert not runtime_directory().startswith(str(second))
