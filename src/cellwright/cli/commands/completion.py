"""`cellwright completion SHELL`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from cellwright.cli.output import write


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    cellwright completion bash >> ~/.bashrc
    cellwright completion fish > ~/.config/fish/completions/cellwright.fish
    """
    from cellwright.cli.main import command as group

    found = get_completion_class(shell)
    if found is None:  # pragma: no cover  # the choices above are those that click knows
        raise click.UsageError(f"No completion for {shell}")
    for name in ("cellwright", "cw"):
        write(found(group, {}, name, f"_{name.upper()}_COMPLETE").source() + "\n")
