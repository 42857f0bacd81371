"""The git drivers: how they are set up, and the merge that git calls."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PATTERN = "*.ipynb"
ATTRIBUTES = f"{PATTERN} diff=cellwright merge=cellwright"


class GitError(Exception):
    """Git refused, or there is no repository."""


def settings() -> dict[str, str]:
    """What git must know to call us; by this interpreter, so that any PATH will do."""
    call = f"{shlex.quote(sys.executable)} -m cellwright git"
    return {
        "diff.cellwright.textconv": f"{call} textconv",
        "diff.cellwright.cachetextconv": "false",
        "merge.cellwright.name": "cellwright, three-way by cell",
        "merge.cellwright.driver": f"{call} merge-driver %O %A %B -L %L -P %P",
    }


def install(folder: str, *, everywhere: bool) -> str:
    """Set up the drivers for one repository, or for all of this user; returns where."""
    scope = "--global" if everywhere else "--local"
    for key, value in settings().items():
        run(["git", "config", scope, key, value], folder)
    path = attributes_file(folder, everywhere=everywhere)
    content = _read(path)
    if ATTRIBUTES.encode() not in content.split(b"\n"):
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        # A file without a final newline stays one, so that it can be put back as it was.
        end = b"" if content and not content.endswith(b"\n") else b"\n"
        _write(path, content + (b"" if end else b"\n") + ATTRIBUTES.encode() + end)
    return path


def uninstall(folder: str, *, everywhere: bool) -> str:
    """Take the drivers away again."""
    scope = "--global" if everywhere else "--local"
    for section in ("diff.cellwright", "merge.cellwright"):
        subprocess.run(
            ["git", "config", scope, "--remove-section", section],
            cwd=folder,
            capture_output=True,
            check=False,
        )
    path = attributes_file(folder, everywhere=everywhere)
    content = _read(path)
    line = ATTRIBUTES.encode()
    if line in content.split(b"\n"):
        if content.endswith(b"\n" + line):
            content = content[: -len(line) - 1]
        else:
            content = (b"\n" + content).replace(b"\n" + line + b"\n", b"\n", 1)[1:]
        if content:
            _write(path, content)
        else:
            os.remove(path)  # noqa: PTH107  # it held nothing but our line
    return path


def is_installed(folder: str) -> bool:
    """Whether git would call us in this folder."""
    try:
        return bool(run(["git", "config", "--get", "merge.cellwright.driver"], folder).strip())
    except GitError:
        return False


def attributes_file(folder: str, *, everywhere: bool) -> str:
    """Where git looks for attributes that are nobody else's business."""
    if not everywhere:
        name = run(["git", "rev-parse", "--git-path", "info/attributes"], folder).strip()
        return os.path.join(folder, name)  # noqa: PTH118
    try:
        path = run(["git", "config", "--global", "--type=path", "core.attributesFile"], folder)
    except GitError:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
        return os.path.join(base, "git", "attributes")  # noqa: PTH118
    return path.strip()


def run(words: Sequence[str], folder: str) -> str:
    """Run git and return what it says; raises `GitError` with its complaint."""
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        raise GitError(done.stderr.strip() or f"{shlex.join(words)} failed")
    return done.stdout


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        return b""


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)
