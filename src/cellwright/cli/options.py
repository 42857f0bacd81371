"""Options that every command has, and the workspace that a command gets from them."""

from __future__ import annotations

import functools
import getpass
import os

import click

from cellwright.cli.output import CommandOutput, ReaderGone
from cellwright.errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cellwright.workspace.workspace import Workspace


class CommandCall:
    """One call of a command: how to print its answer, and the workspace to work in."""

    def __init__(
        self, output: CommandOutput, root: str | None, mode: str, *, no_engine: bool
    ) -> None:
        self.output = output
        self._root = root
        self._mode = mode
        self._actor = f"cli:{_user_name()}"
        self.uses_engine = not no_engine

    def here(self, *, runs: bool = False) -> Workspace:
        """Make a workspace in this process; with `runs`, its kernels can call tools."""
        from cellwright.workspace.workspace import Workspace

        workspace = Workspace(self._root, mode=self._mode, actor=self._actor)  # type: ignore[arg-type]
        if runs:
            from cellwright.tools.bridge import start_bridge

            workspace.hub.call(start_bridge(workspace.hub))
        return workspace

    def workspace(self, *, start: bool = False) -> Workspace | Workspace:
        """Connect to the engine's workspace, or make one in this process.

        With `start`, an engine is started if none is running; for commands that need a kernel.
        """
        found = self._connect(start=start) if self.uses_engine else None
        return found or self.here(runs=start)

    def _connect(self, *, start: bool) -> Workspace | None:
        """Connect to the engine; None to work in this process alone.

        Every command uses a running engine, so that all commands see one state. No engine is
        started where `CI` is set, because it would outlive its job.
        """
        # Most commands end within milliseconds, so the variable is read before any import.
        if os.environ.get("CELLWRIGHT_ENGINE", "") == "never":
            return None
        from cellwright.engine import location

        try:
            if not start and not os.path.exists(location.socket_path()):  # noqa: PTH110
                return None
            from cellwright.config.loading import load

            setting = load().engine
            if setting == "never":
                return None
            from cellwright.engine.client import connect

            starts = start and (setting == "always" or not _is_ci())
            mode: Any = self._mode
            return connect(self._root, mode=mode, actor=self._actor, start=starts)
        except (EngineError, OSError) as error:
            warn_without_engine(error)
            return None


def resolve_root(root: str | None, cwd: str) -> str:
    """The folder to give to agents: `root`, or by default the working folder.

    The home folder and `/` are refused, unless `root` names them.
    """
    if root is None:
        real = os.path.realpath(cwd)
        if real in ("/", os.path.realpath(os.path.expanduser("~"))):  # noqa: PTH111
            raise click.UsageError(
                f"{real} would be accessible as a whole; name it with --root if you mean it"
            )
        return cwd
    if not os.path.isdir(root):  # noqa: PTH112  # cold start: no pathlib
        raise click.UsageError(f"--root {root} is not a folder")
    return root


def warn_without_engine(error: Exception) -> None:
    """Warn that the engine cannot be used, also with `--json`: its state is missing here."""
    CommandOutput(as_json=False).warn([f"{error}; working in this process alone"])


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for this user
        return str(os.getuid())


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the common options; the command is called with a `CommandCall` first."""

    @click.option("--root", metavar="DIR", help="Refuse paths outside this folder.")
    @click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object.")
    @click.option(
        "--mode",
        type=click.Choice(["ask", "edit", "agent"]),
        default="agent",
        help="What is allowed; agent, the default, allows everything.",
    )
    @click.option("--no-engine", is_flag=True, help="Work in this process alone.")
    @click.option("-q", "--quiet", is_flag=True, help="Print only data, warnings and errors.")
    @click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        root: str | None,
        as_json: bool,
        mode: str,
        no_engine: bool,
        quiet: bool,
        verbose: bool,
        **kwargs: Any,
    ) -> Any:
        output = CommandOutput(as_json=as_json, quiet=quiet, verbose=verbose)
        try:
            return function(CommandCall(output, root, mode, no_engine=no_engine), *args, **kwargs)
        except BrokenPipeError:
            raise ReaderGone from None  # before click turns it into an exit

    return wrapped


_FLAGS = frozenset({"--json", "--no-engine", "-q", "--quiet", "-v", "--verbose"})
_WITH_VALUE = frozenset({"--root", "--mode"})
# How many words name the command; the words after them are its own.
_NAMES = {"edit": 3, "engine": 2, "git": 2, "kernel": 2}


def move_common_options(words: list[str]) -> list[str]:
    """Move common options from before or inside the command's name to the end."""
    moved: list[str] = []
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name = word.partition("=")[0]
        if word in _FLAGS:
            moved.append(word)
        elif name in _WITH_VALUE:
            moved.append(word)
            if "=" not in word:
                moved += [value for value in (next(rest, None),) if value is not None]
        else:
            kept.append(word)
            is_option = word.startswith("-") and word != "--"
            if not is_option and (word == "--" or len(kept) >= _NAMES.get(kept[0], 1)):
                break
    remaining = list(rest)
    cut = remaining.index("--") if "--" in remaining else len(remaining)
    return [*kept, *remaining[:cut], *moved, *remaining[cut:]]
