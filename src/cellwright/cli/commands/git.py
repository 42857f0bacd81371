"""`cellwright git`: set up the git drivers for notebooks, and the commands that git then calls."""

from __future__ import annotations

import os
import shlex
import subprocess

import click

from cellwright.cli.options import CommandCall, common
from cellwright.cli.output import one_line, printable, write
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cellwright.document.notebook import Notebook

ATTRIBUTES = "*.ipynb diff=cellwright merge=cellwright"


class GitError(Exception):
    """Git failed, or there is no repository."""


@click.group()
def git_command() -> None:
    """Let git diff notebooks as text and merge them by cell.

    \b
    cellwright git install            in this repository
    cellwright git install --global   in all of yours
    """


@git_command.command()
@click.option("--global", "everywhere", is_flag=True, help="For all repositories of this user.")
@common
def install(call: CommandCall, *, everywhere: bool) -> None:
    """Install the diff driver and the merge driver.

    \b
    cellwright git install
    """
    path = _change_drivers(install_drivers, everywhere=everywhere)
    call.output.data({"installed": True, "attributes": path}, "")
    call.output.say("✓ Drivers installed", color="green")
    call.output.say(f"  Attributes: {one_line(path)}")


@git_command.command()
@click.option("--global", "everywhere", is_flag=True, help="For all repositories of this user.")
@common
def uninstall(call: CommandCall, *, everywhere: bool) -> None:
    """Remove the drivers.

    \b
    cellwright git uninstall
    """
    path = _change_drivers(remove_drivers, everywhere=everywhere)
    call.output.data({"installed": False, "attributes": path}, "")
    call.output.say("✓ Drivers removed", color="green")
    call.output.say(f"  Attributes: {one_line(path)}")


def _change_drivers(change: Callable[..., str], *, everywhere: bool) -> str:
    try:
        return change(os.getcwd(), everywhere=everywhere)  # noqa: PTH109
    except GitError as error:
        raise click.UsageError(str(error)) from None


@git_command.command(hidden=True)
@click.argument("path")
def textconv(path: str) -> None:
    """Print the text that git compares: the notebook as text, or the file if it is broken."""
    from cellwright.document.files import read
    from cellwright.text.view import end_with_newline, to_text

    try:
        text = end_with_newline(to_text(read(path)))
    except CellwrightError as error:
        try:
            text = _read_file(path).decode("utf-8", "backslashreplace")
        except OSError:
            raise error from None
    write(printable(text))  # outside of `try`: that it cannot be printed is no broken notebook


@git_command.command(hidden=True, name="merge-driver")
@click.argument("base")
@click.argument("current")
@click.argument("other")
@click.option("-L", "marker_size", type=int, default=7)
@click.option("-P", "name", default="the notebook")
def merge_driver(base: str, current: str, other: str, marker_size: int, name: str) -> int:
    """Merge OTHER into CURRENT, as git calls it; exit 1 if cells are in conflict."""
    from cellwright.document.files import read
    from cellwright.document.merge import merge
    from cellwright.document.notebook import Notebook

    def load(path: str) -> Notebook:
        # For a file that both sides added, git gives an empty base.
        return read(path) if os.path.getsize(path) else Notebook()  # noqa: PTH202

    try:
        merged = merge(load(base), load(current), load(other))
    except CellwrightError as error:
        click.echo(one_line(f"error: {name} cannot be merged by cell: {error}"), err=True)
        return 1
    # git reads the result from CURRENT, which is a temporary file of its own.
    with open(current, "wb") as file:  # noqa: PTH123
        file.writelines(merged.with_markers("ours", "theirs", marker_size).parts())
    for conflict in merged.conflicts:
        said = f"conflict: {name}, cell {conflict.handle}: {conflict.reason}"
        click.echo(one_line(said), err=True)
    return 1 if merged.conflicts else 0


def install_drivers(folder: str, *, everywhere: bool) -> str:
    """Install the drivers in one repository, or for this user; returns the attributes file."""
    scope = "--global" if everywhere else "--local"
    for key, value in driver_settings().items():
        run_git(["git", "config", scope, key, value], folder)
    path = find_attributes_file(folder, everywhere=everywhere)
    content = _read_file(path) if os.path.exists(path) else b""  # noqa: PTH110
    if ATTRIBUTES.encode() not in content.split(b"\n"):
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        # A file without a final newline stays without one, so that uninstall can restore it.
        end = b"" if content and not content.endswith(b"\n") else b"\n"
        _write_file(path, content + (b"" if end else b"\n") + ATTRIBUTES.encode() + end)
    return path


def remove_drivers(folder: str, *, everywhere: bool) -> str:
    """Remove the drivers; returns the attributes file."""
    scope = "--global" if everywhere else "--local"
    for section in ("diff.cellwright", "merge.cellwright"):
        subprocess.run(
            ["git", "config", scope, "--remove-section", section],
            cwd=folder,
            capture_output=True,
            check=False,
        )
    path = find_attributes_file(folder, everywhere=everywhere)
    content = _read_file(path) if os.path.exists(path) else b""  # noqa: PTH110
    line = ATTRIBUTES.encode()
    if line in content.split(b"\n"):
        if content.endswith(b"\n" + line):
            content = content[: -len(line) - 1]
        else:
            content = (b"\n" + content).replace(b"\n" + line + b"\n", b"\n", 1)[1:]
        if content:
            _write_file(path, content)
        else:
            os.remove(path)  # noqa: PTH107  # it had no other line
    return path


def describe_drivers(folder: str) -> str:
    """Say whether git calls the drivers in this folder, and whether they are this installation."""
    try:
        found = run_git(["git", "config", "--get", "merge.cellwright.driver"], folder).strip()
    except GitError:
        found = ""
    if not found:
        return "drivers not installed here"
    if found == driver_settings()["merge.cellwright.driver"]:
        return "drivers installed"
    return "drivers of another installation; `cellwright git install` replaces them"


def driver_settings() -> dict[str, str]:
    """The settings of git: a line for a shell each, which runs git's own tool if ours is gone.

    Git starts them in the worktree, which may be anyone's.

    Raises:
        ConfigError: this installation will not last.
    """
    from cellwright.app.installation import find_start_command

    start = find_start_command()
    call = f"{shlex.join(start.words)} git"
    is_there = " && ".join(f"test -e {shlex.quote(path)}" for path in start.needs)
    show = f'if {is_there}; then {call} textconv -- "$1" || cat -- "$1"; else cat -- "$1"; fi'
    by_cell = f'{call} merge-driver -L "$4" -P "$5" -- "$1" "$2" "$3"'
    by_line = 'git merge-file -L ours -L base -L theirs --marker-size="$4" "$2" "$1" "$3"'
    merge = f"if {is_there}; then {by_cell}; else {by_line}; fi".replace("%", "%%")
    return {
        "diff.cellwright.textconv": f"show() {{ {show}; }}; show",
        "diff.cellwright.cachetextconv": "false",
        "merge.cellwright.name": "cellwright, three-way by cell",
        "merge.cellwright.driver": f"merge() {{ {merge}; }}; merge %O %A %B %L %P",
    }


def find_attributes_file(folder: str, *, everywhere: bool) -> str:
    """The attributes file that is not part of a repository's content."""
    if not everywhere:
        name = run_git(["git", "rev-parse", "--git-path", "info/attributes"], folder).strip()
        return os.path.join(folder, name)  # noqa: PTH118
    try:
        path = run_git(["git", "config", "--global", "--type=path", "core.attributesFile"], folder)
    except GitError:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
        return os.path.join(base, "git", "attributes")  # noqa: PTH118
    return path.strip()


def run_git(words: Sequence[str], folder: str) -> str:
    """Run git and return its stdout; raises `GitError` with its stderr."""
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        raise GitError(done.stderr.strip() or f"{shlex.join(words)} failed")
    return done.stdout


def _read_file(path: str) -> bytes:
    # A FIFO in a repository would block for ever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
        return file.read()


def _write_file(path: str, content: bytes) -> None:
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)
