"""`load`: the current settings, from five kinds of origin.

A flag beats a `CELLWRIGHT_<NAME>` variable, which beats the nearest project file, which beats the
user's `config.toml`, which beats the default. Names are the same in all of them. A setting that is
unknown, of the wrong type or out of range is an error that names its place. Two things are ignored
with a warning: a variable that is not a setting, because a newer or older Cellwright may know it,
and a project file that another user could have written.
"""

# Every command loads the settings, and pathlib is slow to import.
# ruff: noqa: PTH109, PTH117, PTH118, PTH120
from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from cellwright.config.directories import config_folder, describe_distrust, tidy_path
from cellwright.config.settings import SPECS, OriginKind, SettingOrigin, Settings
from cellwright.errors import BadConfigFile, InvalidSetting, UnknownSetting, UnsafeDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

PREFIX = "CELLWRIGHT_"

NOT_SETTINGS = (
    "CELLWRIGHT_ARTIFACTS_DIR",
    "CELLWRIGHT_BENCH_*",
    "CELLWRIGHT_KERNEL_MARK",
    "CELLWRIGHT_NO_PROGRESS",
    "CELLWRIGHT_RUNTIME_DIR",
    "CELLWRIGHT_SERVER_TOKEN",
    "CELLWRIGHT_SESSION_FILE",
    "CELLWRIGHT_TEST_*",
    "CELLWRIGHT_TOOL_BRIDGE_*",
)
"""Variables with our prefix that are not settings; a star means any ending."""

MAX_CONFIG_BYTES = 2**20


class _File(NamedTuple):
    """A configuration file: its settings as written."""

    kind: OriginKind
    place: str
    values: Mapping[str, object]


def load(
    cwd: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings for the folder `cwd`, each with its origin.

    `overrides` are the flags of a command or the arguments of a caller; None means that the flag
    was not given. An empty variable counts as not set.

    Raises:
        UnknownSetting: a file or a flag names no setting; the hint has a similar name.
        InvalidSetting: the setting does not accept the value, or a project may not set it.
        BadConfigFile: a file cannot be read or is not TOML; the message says where.
    """
    values: dict[str, object] = {}
    origins: dict[str, SettingOrigin] = {}
    variables = os.environ if environ is None else environ
    warnings = find_unknown_variables(variables)

    def take(name: str, value: object, origin: SettingOrigin) -> None:
        values[name] = SPECS[name].check(value, origin.place)
        origins[name] = origin

    # From the weakest to the strongest. All are checked, even if a stronger one replaces them:
    # otherwise a mistake in a file would show only when its flag is left out.
    for file in filter(None, (_user_file(), _project_file(cwd, warnings))):
        for name, value in file.values.items():
            take(*_from_file(file, name, value))
    for variable, text in sorted(variables.items()):
        name = variable.removeprefix(PREFIX).lower()
        if variable == f"{PREFIX}{name.upper()}" and text and name in SPECS:
            take(name, text, SettingOrigin("variable", variable))
    for name, value in (overrides or {}).items():
        if name not in SPECS:
            raise UnknownSetting(name, "the flags", _find_nearest(name, SPECS))
        if value is not None:
            take(name, value, SettingOrigin("flag", f"--{name.replace('_', '-')}"))
    checked: dict[str, Any] = values
    return Settings(**checked, origins=origins, warnings=tuple(warnings))


def write_setting(name: str, value: str | None, *, project: bool = False) -> Path:
    """Set a setting in the user's file, or in that of the working folder; None removes it.

    Everything else in the file stays as it is, comments and mode included. Returns the file.

    Raises:
        InvalidSetting: the setting does not accept the value, or a project may not set it.
        BadConfigFile: the file is not TOML, or that of the folder is a link.
    """
    if project:
        place = os.path.join(os.getcwd(), "cellwright.toml")
    else:
        place = os.path.join(config_folder(), "config.toml")
    import json
    import re
    from pathlib import Path

    path = Path(place)
    if project and path.is_symlink():
        # It would put what it leads to, which may be a secret, into a folder that is shared.
        raise BadConfigFile(place, "it is a link: change the file that it leads to")
    text = (_read(place) or b"").decode("utf-8", "replace")
    _parse(place, text.encode())  # raises if it is broken, before anything is written
    row = ""
    if value is not None:
        checked = SPECS[name].check(value, str(path))
        _from_file(_File("project" if project else "user", str(path), {}), name, checked)
        row = f"{name} = {json.dumps(checked, ensure_ascii=False)}\n"
    table = re.search(r"^[ \t]*\[", text, re.MULTILINE)  # settings come before the first one
    end = table.start() if table else len(text)
    ours, rest = text[:end], text[end:]
    old = re.compile(rf"^[ \t]*{name}[ \t]*=(?:\s*\[[^\]]*\])?[^\n]*(?:\n|$)", re.MULTILINE)
    if old.search(ours):
        ours = old.sub(lambda _: row, ours, count=1)
    else:
        ours += row if not ours or ours.endswith("\n") else f"\n{row}"
    _parse(place, (ours + rest).encode())
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _replace(os.path.realpath(place), (ours + rest).encode(), 0o666 if project else 0o600)
    return path


def _replace(path: str, content: bytes, mode: int) -> None:
    """Make a file hold these bytes, in one step; `mode` is for a new one."""
    temp = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:  # noqa: PTH123
            if os.path.exists(path):  # noqa: PTH110
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))  # noqa: PTH116
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)  # noqa: PTH105
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temp)  # noqa: PTH108
        raise


def find_unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Say of each variable with our prefix that is not a setting that it is ignored."""
    found = []
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or not environ[variable] or _is_no_setting(variable):
            continue
        if name not in SPECS or variable != variable.upper():
            near = _find_nearest(name, SPECS)
            meant = f"; did you mean {PREFIX}{near.upper()}?" if near else ""
            found.append(f"The variable {variable} is ignored: it is not a setting{meant}")
    return found


def _from_file(file: _File, name: str, value: object) -> tuple[str, object, SettingOrigin]:
    if name not in SPECS:
        raise UnknownSetting(name, file.place, _find_nearest(name, SPECS))
    if isinstance(value, str) and not isinstance(SPECS[name].default, str):
        # TOML has numbers; a number in quotes is a mistake.
        raise InvalidSetting(
            name, value, file.place, f"{SPECS[name].accepted_values}, without quotes"
        )
    if file.kind == "project" and not SPECS[name].project_may_set:
        expected = "set by you, in config.toml, a variable or a flag; a project may not set it"
        raise InvalidSetting(name, value, file.place, expected)
    return name, value, SettingOrigin(file.kind, file.place)


def _is_no_setting(variable: str) -> bool:
    return any(
        variable.startswith(known[:-1]) if known.endswith("*") else variable == known
        for known in NOT_SETTINGS
    )


def _find_nearest(name: str, known: Iterable[str]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name.replace("-", "_"), list(known), n=1)), None)


def _user_file() -> _File | None:
    try:
        path = os.path.join(config_folder(), "config.toml")
    except UnsafeDirectory:
        return None  # no home folder, so no user file
    content = _read(path)
    return None if content is None else _File("user", path, _parse(path, content))


def _project_file(cwd: str | os.PathLike[str] | None, warnings: list[str]) -> _File | None:
    """The nearest project file upwards; `cellwright.toml` wins over `pyproject.toml` beside it.

    One that another user could have written is passed over, with a warning.
    """
    try:
        place = os.fspath(cwd or ".")
        start = tidy_path(place if os.path.isabs(place) else os.path.join(os.getcwd(), place))
    except FileNotFoundError:
        return None  # the current folder was removed
    for folder in _list_upwards(start):
        path = os.path.join(folder, "cellwright.toml")
        if _may_read(path, warnings) and (content := _read(path)) is not None:
            return _File("project", path, _parse(path, content))
        path = os.path.join(folder, "pyproject.toml")
        # Do not complain about a `pyproject.toml` that never mentions Cellwright.
        if (
            _may_read(path, warnings)
            and (content := _read(path)) is not None
            and b"cellwright" in content
        ):
            tools = _parse(path, content).get("tool")
            if isinstance(tools, dict) and "cellwright" in tools:
                return _File("project", f"{path} [tool.cellwright]", _table(path, tools))
    return None


def _list_upwards(folder: str) -> Iterator[str]:
    """A folder, then the one it is in, up to the root."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def _may_read(path: str, warnings: list[str]) -> bool:
    """Whether there is a project file that only this user and root can have written."""
    if not os.path.lexists(path):
        return False
    distrust = describe_distrust(os.path.dirname(path), path)
    if distrust is not None:
        warnings.append(f"{path} is ignored: {distrust}")
    return distrust is None


def _table(path: str, tools: dict[str, Any]) -> dict[str, Any]:
    table = tools["cellwright"]
    if not isinstance(table, dict):
        raise BadConfigFile(path, "`tool.cellwright` is not a table")
    return table


def _read(path: str) -> bytes | None:
    """The bytes of a regular file of limited size, or `None` if there is none."""
    try:
        # Without O_NONBLOCK, a FIFO in a repository would block forever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadConfigFile(path, str(error.strerror)) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise BadConfigFile(path, "it is not a regular file")
        if status.st_size > MAX_CONFIG_BYTES:
            raise BadConfigFile(path, f"it has more than {MAX_CONFIG_BYTES:,} bytes")
        return os.read(handle, MAX_CONFIG_BYTES)
    finally:
        os.close(handle)


def _parse(path: str, content: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadConfigFile(path, f"not UTF-8 (at line {line})") from error
    except tomllib.TOMLDecodeError as error:
        raise BadConfigFile(path, str(error)) from error  # its text ends in line and column
    except RecursionError as error:
        raise BadConfigFile(path, "nested too deeply (at line 1 or later)") from error
