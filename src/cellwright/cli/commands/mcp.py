"""`cellwright mcp`: serve notebooks to agents."""

from __future__ import annotations

import click

from cellwright.cli.options import CommandCall, common, require_package, resolve_root
from cellwright.cli.output import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROFILES = ("native", "positron", "notebookedit", "notebook", "text", "manipulator", "all")
CLIENTS = ("claude", "claude-desktop", "cursor", "vscode", "codex")


@click.command()
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="native",
    help="Which tools; native by default.",
)
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP instead of stdio.")
@click.option("--tls-cert", metavar="FILE", help="A certificate, for HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Its key.")
@click.option("--insecure", is_flag=True, help="Let other machines connect without TLS.")
@click.option("--allow-host", "hosts", multiple=True, help="A host name that clients may use.")
@click.option(
    "--allow-origin", "origins", multiple=True, help="The origin of a web page, as a URL."
)
@click.option("--new-token", is_flag=True, help="Make a new token; the old one becomes invalid.")
@click.option(
    "--client",
    "key",
    metavar="KEY",
    help="A name for the client, so that it can undo after a restart.",
)
@click.option("--structured", is_flag=True, help="Send facts as structuredContent to every client.")
@click.option(
    "--print-config", "client", type=click.Choice(CLIENTS), help="Print a client's settings."
)
@common
def mcp_command(call: CommandCall, profile: str, client: str | None, **options: Any) -> None:
    """Serve notebooks to agents over MCP: on stdin and stdout, or over HTTP.

    The root is this folder unless --root names another.

    \b
    cellwright mcp --print-config claude
    cellwright mcp --root ~/analysis --mode ask
    cellwright mcp --http 127.0.0.1:8765
    """
    here = call.here()
    if client is not None:
        _print_config(call, client, here.root, profile, here.mode, options)
        return
    root = resolve_root(here.root, here.cwd)
    require_library()
    from cellwright.mcp.running import run_server

    run_server(
        root,
        profile=profile,
        mode=here.mode,
        engine=call.uses_engine,
        structured=options["structured"],
        listening=_parse_listening(options),
        new_token=options["new_token"],
        key=options["key"],
        say=lambda text: click.echo(one_line(f"cellwright: {text}"), err=True),
    )


def require_library() -> None:
    """Raise `ConfigError` unless the extra is installed."""
    for name in ("mcp", "mcp_types"):
        require_package(name, "The MCP library", "mcp")


def _parse_listening(options: dict[str, Any]) -> Any:
    if options["address"] is not None and options["key"]:
        raise click.UsageError("--client is for stdio; over HTTP clients send Cellwright-Client")
    if options["address"] is None:
        for name in ("tls_cert", "tls_key", "insecure", "hosts", "origins", "new_token"):
            if options[name]:
                raise click.UsageError(f"{name} needs --http".replace("_", "-"))
        return None
    from cellwright.mcp.http import HttpAddress

    return HttpAddress.parse(
        options["address"],
        certificate=options["tls_cert"],
        key=options["tls_key"],
        insecure=options["insecure"],
        hosts=options["hosts"],
        origins=options["origins"],
    )


def _print_config(
    call: CommandCall,
    client: str,
    root: str | None,
    profile: str,
    mode: str,
    options: dict[str, Any],
) -> None:
    if options["address"] is not None:
        raise click.UsageError("--print-config is for stdio; over HTTP clients need only the URL")
    from cellwright.mcp.clients import build_snippet

    words = ["--profile", profile] if profile != "native" else []
    words += ["--mode", mode] if mode != "agent" else []
    found = build_snippet(client, root, words)
    call.output.data({"client": client, "config": found.data, "where": found.where}, found.text)
    for line in found.where:
        call.output.say(line)
