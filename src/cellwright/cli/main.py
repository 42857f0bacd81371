"""The `cellwright` command: finds the command asked for, and turns errors into exit codes."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import move_common_options
from cellwright.cli.output import (
    USAGE,
    CommandOutput,
    ReaderGone,
    Unexpected,
    discard_stdout,
    exit_code,
    fail_usage,
    write,
)
from cellwright.errors import CellwrightError, SystemRefused, explain_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Name to module and one line of help. A command's module is imported when the command runs, so
# that listing the commands imports none of them.
COMMANDS = {
    "read": ("text", "Print a notebook as editable text"),
    "write": ("text", "Write edited text back into a notebook"),
    "sync": ("text", "Keep a notebook and its script in sync"),
    "show": ("show", "Show a notebook with its outputs"),
    "edit": ("edit", "Change cells: replace, insert, delete, move, or a list of edits"),
    "new": ("edit", "Create a notebook without cells"),
    "run": ("run", "Run cells of a notebook and save their outputs"),
    "batch": ("batch", "Run many notebooks, with parameters, several at a time"),
    "stale": ("history", "List which results are stale, and why"),
    "eval": ("eval", "Run code in a session that keeps its state"),
    "outputs": ("show", "Describe what cells printed, showed and raised"),
    "log": ("history", "List the changes of a notebook"),
    "diff": ("history", "Show what changed, cell by cell"),
    "undo": ("history", "Undo a change, outputs included"),
    "redo": ("history", "Redo an undone change"),
    "blame": ("history", "Show which change last touched each cell"),
    "backup": ("history", "List earlier states, or restore one byte for byte"),
    "forget": ("history", "Remove history, revisions and artifacts for good"),
    "upgrade": ("edit", "Upgrade an old notebook to nbformat 4.5"),
    "runs": ("run", "List current and recent runs"),
    "attach": ("run", "Follow a run"),
    "cancel": ("run", "Stop a run"),
    "sessions": ("engine", "List running sessions"),
    "kernel": ("engine", "List kernels, or control the kernel of a session"),
    "artifact": ("engine", "Print long output or a picture that was stored"),
    "engine": ("engine", "Control the background engine"),
    "lab": ("lab", "Start JupyterLab, with notebooks that agents and people share"),
    "mcp": ("mcp", "Serve notebooks to agents over MCP"),
    "chat": ("chat", "Chat with the assistant about notebooks"),
    "acp": ("chat", "Serve the assistant to an editor over the Agent Client Protocol"),
    "key": ("chat", "Store the API key of a language model in the keyring"),
    "git": ("git", "Let git diff and merge notebooks by cell"),
    "strip": ("git", "Remove outputs, counts and metadata of programs"),
    "check-clean": ("git", "Report notebooks that are not stripped"),
    "lint": ("git", "Report invalid notebooks, stale outputs and secrets in them"),
    "conformance": ("conformance", "Test one side of the Notebook Manipulator Protocol"),
    "config": ("setup", "Show the settings and where each comes from"),
    "doctor": ("setup", "Report whether cells can run, and what is installed"),
    "demo": ("setup", "Show the main job on a small notebook"),
    "completion": ("setup", "Print the completion script for a shell"),
}


class LazyGroup(click.Group):
    """A group that imports a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        module, _ = COMMANDS[cmd_name]
        found: click.Command = getattr(
            import_module(f"cellwright.cli.commands.{module}"),
            f"{cmd_name.replace('-', '_')}_command",
        )
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; suggest others for an unknown one."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = " or ".join(f"'{name}'" for name in get_close_matches(args[0], COMMANDS))
            meant = f" Did you mean {near}?" if near else ""
            raise click.UsageError(f"No such command '{args[0]}'.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cellwright", message="cellwright %(version)s")
def command() -> None:
    """Edit Jupyter notebooks without changing any other byte, and run code.

    \b
    cellwright read analysis.ipynb            the cells as text
    cellwright edit analysis.ipynb replace 2 'x = 1'
    cellwright undo analysis.ipynb
    cellwright run analysis.ipynb             outputs are saved in the file
    cellwright eval 'sum(range(10))'
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = move_common_options(list(sys.argv[1:] if arguments is None else arguments))
    # Completion looks for a variable named after the command that was typed.
    name = "cw" if sys.argv[0].rpartition("/")[2] == "cw" else "cellwright"
    if words and all(word.startswith("-") for word in words) and "--json" in words:
        return fail_usage(click.UsageError("Missing command"), as_json=True)
    try:
        result = command.main(words, prog_name=name, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        write(error.ctx.get_help() + "\n")
        return USAGE
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return 130
    except KeyboardInterrupt:
        return 130
    except click.ClickException as error:
        return fail_usage(error, as_json="--json" in words)
    except ReaderGone:
        discard_stdout()
        return 0
    except CellwrightError as error:
        return fail(words, error)
    except Exception as error:  # noqa: BLE001  # a bug of ours is an error message, too
        found = explain_exception(error)
        return fail(words, found if isinstance(found, SystemRefused) else Unexpected(error))
    return result if isinstance(result, int) else 0


def fail(words: Sequence[str], error: CellwrightError) -> int:
    """Print an error; returns the exit code."""
    output = CommandOutput.of_words(words)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard_stdout()  # what cannot be printed now cannot be printed at exit
    if sys.stdout is None:  # closed; stderr may still be open
        output.as_json = False
    try:
        output.fail(error)
    except (OSError, ReaderGone):
        output.as_json = False
        output.fail(error)
    return exit_code(error)
