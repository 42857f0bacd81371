"""How other programs start this installation: git, and the clients of the MCP server.

They start it in folders of other people, and years later. So the words name an absolute path that
lasts, and Python takes no module from the folder it is started in.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

from cellwright.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class StartCommand:
    """The first words of a command line, and the files without which it cannot start."""

    words: tuple[str, ...]
    needs: tuple[str, ...]


def find_start_command() -> StartCommand:
    """Find the words that start Cellwright, whatever the folder and the PATH are.

    Raises:
        ConfigError: this installation is in a cache that will be emptied, and there is no other.
    """
    if not _is_in_cache(sys.prefix, os.environ):
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
        # -I also ignores PYTHONPATH, which often has an empty entry: the current folder.
        flag = "-P" if _is_found_by_variables(package) else "-I"
        start = os.path.join(package, "__main__.py")  # noqa: PTH118
        return StartCommand((sys.executable, flag, "-m", "cellwright"), (sys.executable, start))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("cellwright", path=folder) if os.path.isabs(folder) else None  # noqa: PTH117
        if found is not None and not _is_in_cache(os.path.realpath(found), os.environ):
            return StartCommand((found,), (found,))
    raise ConfigError(
        f"This Cellwright is in a cache that will be emptied ({sys.prefix})",
        hint="Install it first: `uv tool install cellwright` or `pipx install cellwright`",
    )


def _is_found_by_variables(package: str) -> bool:
    """Whether Python finds the package only with the user's variables or packages, without -I."""
    import site

    folders = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep)]  # noqa: PTH100
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return os.path.dirname(package) in folders  # noqa: PTH120


def _is_in_cache(path: str, environ: Mapping[str, str]) -> bool:
    """Whether a path is below a cache, such as those of `uvx` and `pipx run`."""
    path = os.path.realpath(path)
    if any((path + "/").startswith(os.path.realpath(each) + "/") for each in _caches(environ)):
        return True
    # The mark of a cache; uv and virtualenv also put it into environments, which last.
    while (parent := os.path.dirname(path)) != path:  # noqa: PTH120
        path = parent
        is_marked = os.path.exists(os.path.join(path, "CACHEDIR.TAG"))  # noqa: PTH110, PTH118
        if is_marked and not os.path.exists(os.path.join(path, "pyvenv.cfg")):  # noqa: PTH110, PTH118
            return True
    return False


def _caches(environ: Mapping[str, str]) -> Iterator[str]:
    home = os.path.expanduser("~")  # noqa: PTH111
    cache = environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    yield from filter(None, (environ.get("UV_CACHE_DIR"), environ.get("PIP_CACHE_DIR")))
    yield from (f"{cache}/uv", f"{cache}/pipx", f"{home}/Library/Caches")
    for folder in (environ.get("PIPX_HOME"), f"{home}/.local/pipx", f"{home}/.local/share/pipx"):
        if folder:
            yield f"{folder}/.cache"
