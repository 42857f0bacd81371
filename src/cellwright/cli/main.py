"""The `cellwright` command: finds the command asked for, and turns errors into exit codes."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import common_options_last
from cellwright.cli.output import (
    USAGE,
    Output,
    ReaderGone,
    Unexpected,
    exit_code,
    let_go_of_stdout,
    usage_failure,
    write,
)
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Name to one line of help. The module of a command is imported when it is run: a list of
# commands must not cost the import of them all.
COMMANDS = {
    "read": "Print a notebook as editable text",
    "write": "Write edited text back into a notebook",
    "show": "Show a notebook with its outputs, for people",
    "edit": "Change cells: replace, insert, delete, move, or a list of edits",
    "new": "Make a notebook with no cells",
    "run": "Run cells of a notebook, outputs into the file",
    "stale": "Tell which results still stand, and why not",
    "eval": "Run code in a session that keeps its state",
    "outputs": "Describe what cells printed, showed and raised",
    "log": "List the changes of a notebook",
    "diff": "Show what changed, cell by cell",
    "undo": "Take back a change, outputs included",
    "redo": "Make an undone change again",
    "blame": "Tell which change last touched each cell",
    "backup": "List earlier states, or restore one to the byte",
    "upgrade": "Make an old notebook nbformat 4.5",
    "runs": "List what runs, and what ran lately",
    "attach": "Follow a run that goes on",
    "cancel": "Stop a run",
    "sessions": "List the sessions that run",
    "kernel": "List kernels; look after a session's kernel",
    "artifact": "Print long output or a picture that was kept aside",
    "engine": "Look after the background engine",
    "mcp": "Serve notebooks to agents over MCP",
    "chat": "Chat with the assistant about notebooks",
    "key": "Keep the key of a language model in the keyring",
    "git": "Let git diff and merge notebooks by cell",
    "conformance": "Try one side of the Notebook Manipulator Protocol",
    "config": "Show the settings and where each came from",
    "doctor": "Report versions, folders and the state of the journal",
    "completion": "Print the completion script of a shell",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"cellwright.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; an unknown one gets suggestions."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = " or ".join(f"'{name}'" for name in get_close_matches(args[0], COMMANDS))
            meant = f" Did you mean {near}?" if near else ""
            raise click.UsageError(f"No such command '{args[0]}'.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cellwright", message="%(version)s")
def command() -> None:
    """Edit Jupyter notebooks, keep every byte you did not touch, and run code.

    \b
    cellwright read analysis.ipynb            the cells as text
    cellwright edit analysis.ipynb replace 2 'x = 1'
    cellwright undo analysis.ipynb
    cellwright run analysis.ipynb             outputs land in the file
    cellwright eval 'sum(range(10))'
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = common_options_last(list(sys.argv[1:] if arguments is None else arguments))
    # Completion looks for a variable named after the command that was typed.
    name = "cw" if sys.argv[0].rpartition("/")[2] == "cw" else "cellwright"
    if words and all(word.startswith("-") for word in words) and "--json" in words:
        return usage_failure(click.UsageError("Missing command"), as_json=True)
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
        return usage_failure(error, as_json="--json" in words)
    except ReaderGone:
        let_go_of_stdout()
        return 0
    except CellwrightError as error:
        return fail(words, error)
    except Exception as error:  # noqa: BLE001  # a bug of ours; nobody needs our stack for that
        return fail(words, Unexpected(error))
    return result if isinstance(result, int) else 0


def fail(words: Sequence[str], error: CellwrightError) -> int:
    """Tell what went wrong; returns the exit code."""
    output = Output.of_words(words)
    if sys.stdout is None:  # it failed, or there never was one; stderr may still be heard
        output.as_json = False
    try:
        output.fail(error)
    except (OSError, ReaderGone):
        output.as_json = False
        output.fail(error)
    return exit_code(error)


def entry() -> None:
    """The console script."""
    sys.exit(main())
