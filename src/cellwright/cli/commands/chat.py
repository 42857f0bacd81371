"""`cellwright chat [NB]...`."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import is_terminal, read_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXTRA = "pip install 'cellwright[assistant]'"


@click.command()
@click.argument("notebooks", nargs=-1, metavar="[NB]...")
@click.option("-p", "--prompt", metavar="TEXT", help="Ask this and leave; - reads it from stdin.")
@click.option("--cell", metavar="CELL", help="Chat inside this cell, which gets a new source.")
@click.option("--accept", is_flag=True, help="With --cell: make what is proposed the source.")
@click.option("--open", "opened", metavar="NB", help="The notebook in the editor; else the first.")
@click.option("--select", multiple=True, metavar="CELLS", help="Cells selected in it; repeatable.")
@click.option("--attach", multiple=True, metavar="FILE|#TOOL", help="Attach this, too; repeatable.")
@click.option("--model", metavar="NAME", help="As provider:name, or direct for the built-in one.")
@click.option("--yes", is_flag=True, help="Run and delete without asking.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[ID]",
    help="Go on with the last chat here, or with that one.",
)
@click.option("--no-save", is_flag=True, help="Keep no transcript.")
@common
def command(call: Call, notebooks: tuple[str, ...], **options: Any) -> int:
    """Chat with the assistant about notebooks.

    Notebooks that are named are attached, and the first is open, as in an editor. Mode ask reads;
    agent changes and runs, and asks before it runs. Without -p and without a terminal, every line
    of stdin is a prompt. /help lists the commands.

    \b
    cellwright chat analysis.ipynb
    cellwright chat analysis.ipynb --mode agent -p 'run cell 2' --yes
    cellwright chat analysis.ipynb --cell load -p 'read it with polars' --accept
    cellwright chat --resume
    """
    if options["accept"] and options["cell"] is None:
        raise click.UsageError("--accept needs --cell")
    if options["cell"] is not None and not (notebooks or options["opened"]):
        raise click.UsageError("--cell needs a notebook")
    if options["prompt"] == "-":
        options["prompt"] = read_input("-")
    talks = options["prompt"] is None and is_terminal(sys.stdin)
    if talks:
        _require_terminal(call)
    from cellwright.cli.chat.running import run

    source = click.get_current_context().get_parameter_source("mode")
    is_said = source is not None and source.name != "DEFAULT"
    here = call.here()
    options |= {"mode": here.mode if is_said else None, "root": here.root, "cwd": here.cwd}
    options["actor"] = here.actor.replace("cli:", "chat:", 1)
    return run(call, notebooks, options, talks=talks)


def _require_terminal(call: Call) -> None:
    """Raise unless somebody can type, and see what is answered."""
    from importlib.util import find_spec

    if call.output.as_json or not is_terminal(sys.stdout):
        raise click.UsageError("Give a prompt with -p, or prompts on stdin")
    if find_spec("prompt_toolkit") is None:
        from cellwright.errors import ConfigError

        raise ConfigError(
            "The library to type with, prompt_toolkit, is not installed",
            hint=f"{EXTRA}, or ask with -p",
        )


# Options that all commands have, where they mean something else here.
for _param in command.params:
    if isinstance(_param, click.Option):
        if _param.name == "mode":
            _param.default = "ask"
            _param.help = "What is allowed: ask, the default, and edit read; agent allows all."
        elif _param.name == "as_json":
            _param.help = "Print every event as one JSON object a line, and nothing else."
