"""`cellwright doctor`."""

from __future__ import annotations

import os
import platform
import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@click.command()
@click.option("--mcp", is_flag=True, help="Start an MCP server, call it, and say what it answers.")
@common
def command(call: Call, *, mcp: bool) -> int:
    """Report versions, folders and the state of the journal; exit 1 if something is wrong.

    \b
    cellwright doctor --json
    cellwright doctor --mcp
    """
    report = {
        "cellwright": _version("cellwright"),
        "python": f"{platform.python_version()} at {sys.executable}",
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in ("msgspec", "nbformat", "click", "rich")},
        "pictures": _pictures(),
        "runtime directory": _try(_runtime),
        "state directory": _try(_state),
        "config directory": _try(_config),
        "settings": _try(_settings),
        "journal": _try(lambda: _journal(call)),
        "git": _try(_git),
    }
    if mcp:
        report["mcp"] = _try(lambda: _mcp(call))
    bad = [name for name, value in report.items() if str(value).startswith("PROBLEM")]
    rows = []
    for name, value in report.items():
        shown = (
            ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        )
        rows.append(f"{name:18} {one_line(str(shown))}\n")
    call.output.data({**report, "problems": bad}, rows)
    return 1 if bad else 0


def _try(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except CellwrightError as error:
        return f"PROBLEM: {error.message}. {error.hint or ''}".strip()


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _pictures() -> str:
    from cellwright.cli.render.protocols import has_library
    from cellwright.outputs.images import EXTRA, has_pillow

    if not has_pillow():
        return f"only named, without Pillow; to draw and scale them: {EXTRA}"
    if not has_library():
        return f"scaled, and drawn by half-blocks; for kitty's way and sixels: {EXTRA}"
    return (
        f"drawn and scaled (pillow {_version('pillow')}, textual-image {_version('textual-image')})"
    )


def _runtime() -> str:
    from cellwright.config.directories import runtime_directory

    return runtime_directory()


def _state() -> str:
    from cellwright.config.directories import state_directory

    return str(state_directory())


def _config() -> str:
    from cellwright.config.directories import config_directory

    return str(config_directory())


def _settings() -> str:
    from cellwright.config.loading import load

    settings = load()
    origins = {name: str(settings.origin(name)) for name in settings.to_json()}
    changed = [name for name, origin in origins.items() if origin != "default"]
    return ", ".join(changed) + " changed" if changed else "all default"


def _journal(call: Call) -> str:
    with call.here() as workspace:
        return workspace.journal.describe()


def _mcp(call: Call) -> dict[str, Any]:
    from cellwright.cli.commands.mcp import require_library
    from cellwright.mcp.clients import check_server

    require_library()
    here = call.here()
    return check_server(here.root or here.cwd)


def _git() -> str:
    from cellwright.cli.git import is_installed

    return "drivers installed" if is_installed(os.getcwd()) else "drivers not installed here"  # noqa: PTH109
