"""The directories where Cellwright keeps things on this machine, and how a file in them is locked.

Every save needs the runtime directory, because the locks are there, so that part imports only
`os` and `stat`. The other directories are the usual ones of the platform.
"""

# pathlib is slow to import, and every save runs this code.
# ruff: noqa: PTH102, PTH103, PTH105, PTH111, PTH115, PTH116, PTH117, PTH118, PTH119, PTH120, PTH211
from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.errors import UnsafeDirectory

PRIVATE = 0o700
TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108 - the system's own list
_VARIABLES = ("XDG_RUNTIME_DIR", "TMPDIR", "TEMP", "TMP", "HOME")
# The variables, what the folder was like, the folder, and the place in it that was found.
_found: tuple[object, tuple[int, ...] | None, str, str] | None = None


def runtime_directory() -> str:
    """Return the private folder for locks and sockets; it is created if needed.

    `$CELLWRIGHT_RUNTIME_DIR` if set; otherwise `cellwright` in `$XDG_RUNTIME_DIR`, if that belongs
    to this user; otherwise `cellwright-<uid>` in the system's temp folder. If another user has
    taken that name, a folder with a random name there, which is on record in the state directory.
    Unless it is set explicitly, it is never in the home folder, which may be on a network where
    locks and sockets fail.

    Raises:
        UnsafeDirectory: it cannot be created, or another user owns it or could write to it.
    """
    path = os.environ.get("CELLWRIGHT_RUNTIME_DIR")
    if path:
        if not os.path.isabs(path):
            raise _unsafe(path, "CELLWRIGHT_RUNTIME_DIR is not an absolute path")
        _check(path, _find_or_make(path))
        return path
    path = _usual_place()
    # All processes must agree on one folder, also if the name becomes free while they work: so
    # before it is made, the record is looked at. In a private folder, no other user takes names.
    try:
        status = os.lstat(path)
    except OSError:
        second = None if _is_private(os.path.dirname(path)) else _find_second(path)
        if second is not None:
            return second
        status = _find_or_make(path)
    if _is_squatted(status) and not _is_private(os.path.dirname(path)):
        return _find_second(path) or _make_second(path)
    _check(path, status)
    return path


def _find_or_make(path: str) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        raise _unsafe(path, str(error.strerror)) from error


def _is_squatted(status: os.stat_result) -> bool:
    """Whether another user has put something there; what this user did, they have to mend."""
    return status.st_uid != os.geteuid()


def _find_second(path: str) -> str | None:
    """Return the folder that is used instead of `path`, if there is one."""
    try:
        name = os.readlink(_second_record())
        second = os.path.join(os.path.dirname(path), name)
        if os.path.basename(name) == name and not _is_squatted(os.lstat(second)):
            _check(second, os.lstat(second))
            return second
    except OSError:
        pass
    return None


def _make_second(path: str) -> str:
    """Make a folder with a name that cannot be guessed, and put the name on record."""
    folder, name = os.path.split(path)
    name = f"{name}-{os.urandom(8).hex()}"
    record = _second_record()
    try:
        os.makedirs(os.path.dirname(record), PRIVATE, exist_ok=True)
        descriptor = os.open(os.path.dirname(record), os.O_RDONLY | os.O_CLOEXEC)
        try:
            lock_file(descriptor, waits=True)
            second = _find_second(path)  # another process may have been faster
            if second is None:
                second = os.path.join(folder, name)
                _check(second, _make(second))
                # A link is replaced in one step, and is never half written.
                os.symlink(name, f"{record}.{name}")
                os.replace(f"{record}.{name}", record)
            return second
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unsafe(path, f"it belongs to another user, and {error}") from error


def lock_file(descriptor: int, *, shared: bool = False, waits: bool = False) -> bool:
    """Lock an open file until it is closed; False if another has it and this does not wait.

    Raises:
        OSError: the system cannot lock it.
    """
    import fcntl

    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, how if waits else how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _second_record() -> str:
    return os.path.join(state_folder(), "runtime-folder")


def _usual_place() -> str:
    global _found  # noqa: PLW0603  # every save asks, and finding it takes a dozen system calls
    wanted = (*map(os.environ.get, _VARIABLES), os.geteuid(), TEMPORARY_FOLDERS)
    if _found and _found[0] == wanted and _found[1] == _identify(_found[2]):
        return _found[3]
    session = os.environ.get("XDG_RUNTIME_DIR")
    passed_over = bool(session)
    if session and os.path.isabs(session) and _is_private(session) and not _is_in_home(session):
        place = os.path.join(session, "cellwright")
        _found = (wanted, _identify(session), session, place)
        return place
    # The order of `tempfile`, but without its test file: the choice must not depend on free
    # space, or two writers would use different locks.
    chosen = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    for folder in filter(None, (*chosen, *TEMPORARY_FOLDERS)):
        if os.path.isabs(folder) and _is_shared(folder) and not _is_in_home(folder):
            place = os.path.join(folder, f"cellwright-{os.geteuid()}")
            # A folder that comes first may be usable later, and other processes will take it.
            _found = None if passed_over else (wanted, _identify(folder), folder, place)
            return place
        passed_over = True
    raise _unsafe(TEMPORARY_FOLDERS[0], "no temp folder outside the home folder can be used")


def _identify(folder: str) -> tuple[int, ...] | None:
    """What changes if the folder is another one, or other users may do other things there."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid


def _is_private(folder: str) -> bool:
    """Whether only this user can make files in `folder`; after `sudo` it may be another user's."""
    try:
        status = os.stat(folder)
    except OSError:
        return False
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not others


def _is_shared(folder: str) -> bool:
    """Whether this user can make a folder in `folder` that other users cannot move away."""
    try:
        status = os.stat(folder)
    except OSError:
        return False
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    safe = not others or status.st_mode & stat.S_ISVTX
    return bool(stat.S_ISDIR(status.st_mode) and safe and os.access(folder, os.W_OK | os.X_OK))


def _is_in_home(folder: str) -> bool:
    home = os.path.realpath(os.path.expanduser("~"))
    if home == "/":  # service accounts: everything would be in the home folder
        return False
    return (os.path.realpath(folder) + "/").startswith(home + "/")


def _make(path: str) -> os.stat_result:
    try:
        os.mkdir(path, PRIVATE)
    except FileExistsError:
        pass  # another process was faster; the folder is checked below
    except OSError as error:
        raise _unsafe(path, f"it cannot be created, {error.strerror}") from error
    try:
        return os.lstat(path)
    except OSError as error:
        raise _unsafe(path, str(error.strerror)) from error


def _check(path: str, status: os.stat_result) -> None:
    # A link is refused even if it leads to a good folder: its owner can change it.
    if stat.S_ISLNK(status.st_mode):
        raise _unsafe(path, "it is a symbolic link")
    if not stat.S_ISDIR(status.st_mode):
        raise _unsafe(path, "it is not a directory")
    if status.st_uid != os.geteuid():
        raise _unsafe(path, f"it belongs to user {status.st_uid}")
    if status.st_mode & 0o777 != PRIVATE:
        raise _unsafe(path, f"its mode is {status.st_mode & 0o777:04o}, not 0700")


def _unsafe(path: str, reason: str) -> UnsafeDirectory:
    from cellwright.errors import UnsafeDirectory

    return UnsafeDirectory(path, reason)


def describe_distrust(*paths: str) -> str | None:
    """Say who else may change one of these files or folders; None if only this user and root may.

    A path that does not exist is passed over. A link counts, and so does what it leads to.
    """
    for path in paths:
        try:
            found = [os.lstat(path)]
            if stat.S_ISLNK(found[0].st_mode):
                found.append(os.stat(path))
        except OSError:
            continue
        for status in found:
            if status.st_uid not in (os.geteuid(), 0):
                return f"{path} belongs to user {status.st_uid}"
            if stat.S_ISLNK(status.st_mode):
                continue  # its own mode means nothing
            if status.st_mode & stat.S_IWOTH:
                return f"all users may write {path}"
            if not status.st_mode & stat.S_IWGRP:
                continue
            if not _is_private_group(status.st_gid):
                return f"group {status.st_gid} may write {path}"
            if _has_access_list(path):
                return f"the access list of {path} lets others write it"
    return None


def _is_private_group(group: int) -> bool:
    """Whether the group has only this user: many systems give each user one, and write to it."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    is_own = group == user.pw_gid and found.gr_name == user.pw_name
    return is_own and set(found.gr_mem) <= {user.pw_name}


def _has_access_list(path: str) -> bool:
    """Whether an access list says who may use a path; the mode of its group is then the most."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (AttributeError, OSError):  # macOS, or there is none
        return False


def config_directory() -> Path:
    """The folder of the user's `config.toml`; it may not exist."""
    return _as_path(config_folder())


def config_folder() -> str:
    """The same as text, for those who need no pathlib."""
    return _find_directory("config", ".config")


def state_directory() -> Path:
    """The folder for lasting data, such as the journal; it may not exist."""
    return _as_path(state_folder())


def state_folder() -> str:
    """The same as text, for those who need no pathlib."""
    return _find_directory("state", ".local/state")


def cache_directory() -> Path:
    """The folder for data that can be created again; it may not exist."""
    return _as_path(_find_directory("cache", ".cache"))


def _as_path(folder: str) -> Path:
    from pathlib import Path

    return Path(folder)


def _find_directory(kind: str, in_home: str) -> str:
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ:
        # What `platformdirs` says in the usual case; every command asks, and importing it is slow.
        chosen, home = os.environ.get(f"XDG_{kind.upper()}_HOME", ""), os.environ.get("HOME", "")
        if os.path.isabs(chosen):
            return tidy_path(f"{chosen}/cellwright")
        if os.path.isabs(home):
            return tidy_path(f"{home.rstrip('/')}/{in_home}/cellwright")
    import platformdirs

    path = str(getattr(platformdirs, f"user_{kind}_path")("cellwright", appauthor=False))
    if not os.path.isabs(path):  # `~` is not expanded if there is no home folder
        raise _unsafe(path, "the home folder is unknown")
    return path


def tidy_path(path: str) -> str:
    """An absolute path as pathlib writes it; engines are named after these."""
    root = "//" if path.startswith("//") and not path.startswith("///") else "/"
    return root + "/".join(part for part in path.split("/") if part not in ("", "."))
