"""Options that every command has, and the workspace that a command gets from them."""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

import click

from cellwright.cli.output import (
    OK,
    CommandOutput,
    ReaderGone,
    exit_code,
    one_line,
    write,
    write_bytes,
)
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from cellwright.workspace.api.requests import Mode
    from cellwright.workspace.workspace import Workspace


class CommandCall:
    """One call of a command: how to print its answer, and the workspace to work in."""

    def __init__(
        self, output: CommandOutput, root: str | None, mode: Mode, *, no_engine: bool
    ) -> None:
        self.output = output
        self._root = root
        self._mode = mode
        self.uses_engine = not no_engine

    def here(self) -> Workspace:
        """Make a workspace in this process."""
        from cellwright.app import Workspace
        from cellwright.app.workspaces import name_actor

        return Workspace(self._root, mode=self._mode, actor=name_actor("cli"), engine=False)

    def workspace(self, *, start: bool = False) -> Workspace:
        """Connect to the engine's workspace, or make one in this process.

        With `start`, an engine is started if none is running; for commands that need a kernel.
        """
        from cellwright.app.workspaces import name_actor, open_workspace

        return open_workspace(
            self._root,
            mode=self._mode,
            actor=name_actor("cli"),
            use_engine=self.uses_engine,
            start=start,
            warn=print_warning,
        )


server_option = click.option(
    "--server",
    metavar="URL",
    help="Run on a Jupyter server or gateway; `local` for here, whatever the settings say.",
)


def expand_notebooks(names: Sequence[str]) -> list[str]:
    """The notebooks that are named; a pattern such as `**/*.ipynb` names all that it matches."""
    found: list[str] = []
    for name in names:
        if not any(sign in name for sign in "*?[") or os.path.exists(name):  # noqa: PTH110
            found.append(name)
            continue
        from glob import glob

        matches = sorted(
            path
            for path in glob(name, recursive=True)  # noqa: PTH207
            if path.endswith(".ipynb") and "/.ipynb_checkpoints/" not in f"/{path}"
        )
        if not matches:
            raise click.UsageError(f"No notebook matches {name}")
        found += [path for path in matches if path not in found]
    return found


class NotebookReport(NamedTuple):
    """What a command says of one notebook: as JSON, as text or bytes, and its warnings."""

    data: Any
    text: str | bytes | Iterable[str]
    warnings: Sequence[str] = ()


def for_each_notebook(
    call: CommandCall,
    names: Sequence[str],
    report: Callable[[str], NotebookReport],
    *,
    styled: bool = False,
) -> int:
    """Print what a command says of a notebook, or of several, each below its name.

    A notebook that cannot be read does not keep the others from being shown. Returns the exit code,
    that of the first error.
    """
    output = call.output
    if len(names) == 1:
        found = report(names[0])
        if isinstance(found.text, bytes):
            write_bytes(found.text)
        else:
            output.data(found.data, found.text, styled=styled)
        output.warn(found.warnings)
        return OK
    code, rows = OK, []
    for number, name in enumerate(names):
        try:
            found = report(name)
        except CellwrightError as error:
            if output.as_json:
                raise
            output.say(f"{one_line(name)}:")
            output.fail(error)
            code = code or exit_code(error)
            continue
        rows.append(found.data)
        if not output.as_json:
            write(f"{chr(10) * bool(number)}==> {one_line(name)} <==\n")
            if isinstance(found.text, bytes):
                write_bytes(found.text)
            else:
                output.data(None, found.text, styled=styled)
        output.warn(found.warnings)
    if output.as_json:
        output.data({"notebooks": rows}, "")
    return code


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


def require_package(name: str, what: str, extra: str, instead: str = "") -> None:
    """Raise `ConfigError` unless a package of an extra is installed."""
    from importlib.util import find_spec

    if find_spec(name) is None:
        from cellwright.errors import ConfigError

        raise ConfigError(
            f"{what} is not installed", hint=f"pip install 'cellwright[{extra}]'{instead}"
        )


def print_warning(text: str) -> None:
    """Print a warning, also with `--json`: that the engine's state is missing here."""
    CommandOutput(as_json=False).warn([text])


def _warn_of_variables() -> None:
    """Warn of variables with our prefix that mean nothing; a mistake in one is hard to find."""
    # The engine's is common, and commands with it alone must not pay for the list of settings.
    if any(name.startswith("CELLWRIGHT_") and name != "CELLWRIGHT_ENGINE" for name in os.environ):
        from cellwright.config.loading import find_unknown_variables

        CommandOutput(as_json=False).warn(find_unknown_variables(os.environ))


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
    @click.option("--no-engine", is_flag=True, help="Do not use the background engine.")
    @click.option("-q", "--quiet", is_flag=True, help="Print only data, warnings and errors.")
    @click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
    @functools.wraps(function)
    def make_call(
        *args: Any,
        root: str | None,
        as_json: bool,
        mode: Mode,
        no_engine: bool,
        quiet: bool,
        verbose: bool,
        **kwargs: Any,
    ) -> Any:
        command = click.get_current_context().find_root().invoked_subcommand or ""
        output = CommandOutput(command, as_json=as_json, quiet=quiet, verbose=verbose)
        _warn_of_variables()
        try:
            return function(CommandCall(output, root, mode, no_engine=no_engine), *args, **kwargs)
        except BrokenPipeError:
            raise ReaderGone from None  # before click turns it into an exit

    return make_call


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
