"""`cellwright config`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line


@click.command()
@click.argument("names", metavar="[NAME…]", nargs=-1)
@click.option("--origin", is_flag=True, help="Tell where each value came from.")
@common
def command(call: Call, names: tuple[str, ...], *, origin: bool) -> None:
    """Show the settings that hold here.

    A setting comes from a CELLWRIGHT_NAME variable, the nearest cellwright.toml or
    [tool.cellwright] of a pyproject.toml, the user's config.toml, or is the default.

    \b
    cellwright config --origin
    cellwright config lock_timeout
    """
    from cellwright.config.loading import load

    settings = load()
    known = settings.to_json()
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no setting '{name}'.{hint}")
    chosen = {name: known[name] for name in names or known}
    data = {
        name: {"value": value, "origin": str(settings.origin(name))}
        for name, value in chosen.items()
    }
    rows = [
        f"{name} = {item['value']}" + (f"  ({one_line(str(item['origin']))})\n" if origin else "\n")
        for name, item in data.items()
    ]
    call.output.data(data, rows)
