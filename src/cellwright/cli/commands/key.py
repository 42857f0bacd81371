"""`cellwright key PROVIDER`."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import is_terminal, read_input


@click.command()
@click.argument("provider", metavar="PROVIDER")
@click.option("--address", default="", metavar="URL", help="A server of your own that it is for.")
@click.option("--forget", is_flag=True, help="Remove it again.")
@common
def command(call: Call, provider: str, *, address: str, forget: bool) -> None:
    """Keep the key of a language model in the system's keyring.

    It is typed unseen, or read from stdin; it is never written to a file of ours, and no kernel
    gets it. PROVIDER is anthropic, openai, or the first part of another model's name.

    \b
    cellwright key anthropic
    cellwright key openai --address https://models.example.org/v1
    cellwright key anthropic --forget
    """
    from cellwright.assistant.models.model.keys import account_of, forget_key, store_key

    account = account_of(provider, address)
    if forget:
        was_there = forget_key(provider, address)
        said = f"Forgot the key of {account}" if was_there else f"There was no key of {account}"
        call.output.data({"account": account, "forgotten": was_there}, [])
        call.output.say(said)
        return
    if is_terminal(sys.stdin):
        key = click.prompt(f"Key of {account}", hide_input=True, err=True).strip()
    else:
        key = read_input("-").strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise click.UsageError("That is no key: it is empty, or has characters that no key has")
    store_key(provider, key, address)
    call.output.data({"account": account, "stored": True}, [])
    call.output.say(f"The keyring has the key of {account}")
