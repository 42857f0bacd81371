"""The assistant: `cellwright chat`, `acp` for editors, and `key` for the keys of its models."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import CommandCall, common, require_package
from cellwright.cli.output import fit, is_terminal, measure_width, one_line, read_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PASSED_ON = (
    *("prompt", "cell", "accept", "select", "attach", "model", "yes", "resume", "shows_prompts"),
)


@click.command()
@click.argument("notebooks", nargs=-1, metavar="[NB]...")
@click.option("-p", "--prompt", metavar="TEXT", help="Ask this and exit; - reads it from stdin.")
@click.option("--cell", metavar="CELL", help="Chat about a new source for this cell.")
@click.option("--accept", is_flag=True, help="With --cell: accept the proposed source.")
@click.option("--open", "opened", metavar="NB", help="The open notebook; by default the first.")
@click.option(
    "--select", multiple=True, metavar="CELLS", help="Selected cells in it, by id or index."
)
@click.option(
    "--attach", multiple=True, metavar="FILE|#TOOL", help="Attach this, too; may be repeated."
)
@click.option(
    "--model", metavar="NAME", help="A provider:name, or direct for the built-in assistant."
)
@click.option("--yes", is_flag=True, help="Run and delete without asking.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[ID]",
    help="Continue the last chat here, or the one with this id.",
)
@click.option(
    "--show-prompts", "shows_prompts", is_flag=True, help="Name the prompt files of every turn."
)
@click.option("--list", "lists", is_flag=True, help="List the chats that were held here.")
@click.option("--no-save", is_flag=True, help="Do not save a transcript.")
@common
def chat_command(call: CommandCall, notebooks: tuple[str, ...], **options: Any) -> int:
    """Chat with the assistant about notebooks.

    The named notebooks are attached, and the first is open, as in an editor. In mode ask the
    assistant reads; in mode agent it also changes and runs cells, and asks before it runs them.
    Without -p and without a terminal, every line of stdin is a prompt. /help lists the commands.

    \b
    cellwright chat analysis.ipynb
    cellwright chat analysis.ipynb --mode agent -p 'run cell 2' --yes
    cellwright chat analysis.ipynb --cell load -p 'read it with polars' --accept
    cellwright chat --resume
    cellwright chat --list
    """
    if options["lists"]:
        return _list_chats(call)
    if options["accept"] and options["cell"] is None:
        raise click.UsageError("--accept needs --cell")
    if options["cell"] is not None and not (notebooks or options["opened"]):
        raise click.UsageError("--cell needs a notebook")
    if options["prompt"] == "-":
        options["prompt"] = read_input("-")
    is_interactive = options["prompt"] is None and is_terminal(sys.stdin)
    if is_interactive:
        _require_terminal(call)
    from cellwright.app.workspaces import name_actor
    from cellwright.cli.chat.startup import ChatOptions, run_chat

    source = click.get_current_context().get_parameter_source("mode")
    has_mode = source is not None and source.name != "DEFAULT"
    here = call.here()
    found = ChatOptions(
        root=here.root,
        cwd=here.cwd,
        mode=here.mode if has_mode else None,
        actor=name_actor("chat"),
        uses_engine=call.uses_engine,
        notebooks=notebooks,
        open=options["opened"],
        saves=not options["no_save"],
        is_interactive=is_interactive,
        **{name: options[name] for name in _PASSED_ON},
    )
    return run_chat(call, found)


def _list_chats(call: CommandCall) -> int:
    """List the chats that were held in this folder, the newest first."""
    from cellwright.assistant.transcripts import Transcripts
    from cellwright.config.directories import state_directory

    here = call.here()
    found = Transcripts(state_directory() / "assistant" / "chats").find_all(here.root or here.cwd)
    rows = [
        {"id": each.id, "model": each.model, "questions": each.questions, "title": each.title}
        for each in found
    ]
    width = measure_width()
    lines = (
        fit(f"{row['id']}  {row['questions']:>3}  {one_line(str(row['title']))}", width) + "\n"
        for row in rows
    )
    call.output.data({"chats": rows}, lines)
    call.output.say(
        "`cellwright chat --resume ID` continues one" if rows else "There is no chat here"
    )
    return 0


def _require_terminal(call: CommandCall) -> None:
    """Raise unless stdin and stdout are a terminal, and the library for prompts is installed."""
    if call.output.as_json or not is_terminal(sys.stdout):
        raise click.UsageError("Give a prompt with -p, or prompts on stdin")
    name = "prompt_toolkit"
    require_package(name, f"The library {name}", "assistant", ", or ask with -p")


@click.command()
@click.option("--model", metavar="NAME", help="A provider:name; by default that of the settings.")
@common
def acp_command(call: CommandCall, model: str | None) -> None:
    """Serve the assistant to an editor, over the Agent Client Protocol.

    The editor (Zed, Neovim, JetBrains, …) starts this command and talks to it over stdin and
    stdout. A notebook that a prompt names is the open one; --mode is the mode of new chats.

    \b
    cellwright acp
    cellwright acp --mode agent --model anthropic:claude-sonnet-4-5
    """
    import asyncio

    require_package("acp", "The library of the Agent Client Protocol", "acp")
    from cellwright.acp import serve_editor

    asyncio.run(serve_editor(call.here().mode, model))


# Common options that mean something else here.
for _param in (*chat_command.params, *acp_command.params):
    if isinstance(_param, click.Option):
        if _param.name == "mode":
            _param.default = "ask"
            _param.help = (
                "What is allowed: ask, the default, and edit only read; agent allows everything."
            )
        elif _param.name == "as_json":
            _param.help = "Print each event as a line of JSON, and nothing else."


@click.command()
@click.argument("provider", metavar="PROVIDER")
@click.option("--address", default="", metavar="URL", help="The address of your own model server.")
@click.option("--forget", is_flag=True, help="Remove the key.")
@common
def key_command(call: CommandCall, provider: str, *, address: str, forget: bool) -> None:
    """Store the API key of a language model in the system's keyring.

    The key is typed without echo, or read from stdin. It is never written to a file, and kernels
    never see it. PROVIDER is anthropic, openai, or the first part of another model's name.

    \b
    cellwright key anthropic
    cellwright key openai --address https://models.example.org/v1
    cellwright key anthropic --forget
    """
    from cellwright.assistant.models.keys import account_of, forget_key, is_key, store_key

    account = account_of(provider, address)
    if forget:
        was_there = forget_key(provider, address)
        call.output.data({"account": account, "forgotten": was_there}, [])
        call.output.say(f"{'Removed the' if was_there else 'There was no'} key of {account}")
        return
    if is_terminal(sys.stdin):
        key = click.prompt(f"Key of {account}", hide_input=True, err=True).strip()
    else:
        key = read_input("-").strip()
    if not is_key(key):
        raise click.UsageError("This is not a key: it is empty or has invalid characters")
    store_key(provider, key, address)
    call.output.data({"account": account, "stored": True}, [])
    call.output.say(f"Stored the key of {account} in the keyring")
