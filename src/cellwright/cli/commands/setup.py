"""The installation: `cellwright config`, `doctor`, `demo` and `completion`."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from contextlib import contextmanager

import click

from cellwright.cli.options import CommandCall, common
from cellwright.cli.output import one_line, write
from cellwright.errors import CellwrightError, KernelMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

_MISSING = "not installed"
_EDITORS = {
    "JupyterLab, Notebook 7": "share the notebooks they have open, with the extra lab",
    "VS Code, Cursor and others": "are invisible: to cellwright, what they have open is a file",
}
# A cell each: its id and its source.
_DEMO_CELLS = {
    "rain": "rain = {'Bergen': 2495, 'Lima': 16, 'Zürich': 1121}",
    "total": "print(sum(rain.values()), 'mm a year')",
    "chart": "for city, mm in rain.items():\n    print(f'{city:7}', '█' * (mm // 60), mm)",
}
_PACKAGES = ("click", "ipykernel", "msgspec", "nbformat", "pydantic", "rich")


@click.command()
@click.argument("names", metavar="[NAME… | set NAME VALUE | unset NAME]", nargs=-1)
@click.option("--origin", is_flag=True, help="Show where each value comes from.")
@click.option("--project", is_flag=True, help="Set it in the cellwright.toml of this folder.")
@common
def config_command(
    call: CommandCall, names: tuple[str, ...], *, origin: bool, project: bool
) -> None:
    """Show the settings for this folder, or change one in your config.toml.

    A setting comes from a CELLWRIGHT_NAME variable, the nearest cellwright.toml or
    [tool.cellwright] in a pyproject.toml, the user's config.toml, or is the default.

    \b
    cellwright config --origin
    cellwright config lock_timeout
    cellwright config set lock_timeout 30
    cellwright config unset lock_timeout
    cellwright config set run_save_interval 5 --project
    """
    from cellwright.config.loading import load

    settings = load()
    known = settings.to_json()
    wanted, value = names, None
    if names[:1] in (("set",), ("unset",)):
        if len(names) != (3 if names[0] == "set" else 2):
            raise click.UsageError("Write `config set NAME VALUE`, or `config unset NAME`")
        wanted, value = names[1:2], names[2] if names[0] == "set" else None
    elif project:
        raise click.UsageError("--project is for `config set` and `config unset`")
    for name in wanted:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no setting '{name}'.{hint}")
    if wanted != names:
        from cellwright.config.loading import write_setting

        path = write_setting(wanted[0], value, project=project)
        settings = load()
        known = settings.to_json()
        call.output.say(f"✓ Written: {one_line(str(path))}", color="green")
        origin = True
    chosen = {name: known[name] for name in wanted or known}
    data = {
        name: {"value": value, "origin": str(settings.origin(name))}
        for name, value in chosen.items()
    }
    rows = [
        f"{name} = {_as_typed(item['value'])}"
        + (f"  ({one_line(str(item['origin']))})\n" if origin else "\n")
        for name, item in data.items()
    ]
    call.output.data(data, rows)
    call.output.warn(settings.warnings)


def _as_typed(value: Any) -> str:
    """A value as `config set` takes it."""
    return one_line(",".join(value) if isinstance(value, tuple | list) else str(value))


@click.command()
@click.option("--mcp", is_flag=True, help="Also start an MCP server and call it; runs no code.")
@click.option("--repair", is_flag=True, help="Bring back what is readable of a damaged history.")
@common
def doctor_command(call: CommandCall, *, mcp: bool, repair: bool) -> int:
    """Report whether cells can run, what is installed and what is missing, and where things are.

    Exit code 1 if something is wrong: no kernel to run cells in, a folder that cannot be used.

    \b
    cellwright doctor --json
    cellwright doctor --mcp
    cellwright doctor --repair
    """
    from cellwright.config import directories

    report = {
        "cellwright": _version("cellwright"),
        "python": f"{platform.python_version()} at {sys.executable}",
        "platform": platform.platform(),
        "kernels": _try_check(lambda: _describe_kernels(call)),
        "extras": _describe_extras(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "pictures": _describe_pictures(),
        "editors": _EDITORS,
        "runtime directory": _try_check(directories.runtime_directory),
        "state directory": _try_check(directories.state_directory),
        "config directory": _try_check(directories.config_directory),
        "settings": _try_check(_describe_settings),
        **({"repair": _try_check(lambda: _repair_journal(call))} if repair else {}),
        "journal": _try_check(lambda: _describe_journal(call)),
        "git": _try_check(_describe_git),
    }
    if mcp:
        report["mcp"] = _try_check(lambda: _check_mcp(call))
    bad = [name for name, value in report.items() if str(value).startswith("PROBLEM")]
    rows = [row for name, value in report.items() for row in _render_rows(name, value)]
    call.output.data({**report, "problems": bad}, rows)
    if bad:
        call.output.say(f"Something is wrong: {', '.join(bad)}", color="red")
    return 1 if bad else 0


def _render_rows(name: str, value: Any) -> list[str]:
    """A line for a fact; kernels, extras and editors have a line each."""
    if not isinstance(value, dict):
        return [f"{name:18} {one_line(str(value))}\n"]
    facts = [f"{key} {fact}" for key, fact in value.items()]
    lines = facts if name in ("kernels", "extras", "editors") else [", ".join(facts)]
    return [f"{'' if i else name:18} {one_line(line)}\n" for i, line in enumerate(lines)]


def _try_check(check: Callable[[], Any]) -> Any:
    """The result of a check, as data; a failure is a line that begins with PROBLEM."""
    try:
        found = check()
        return found if isinstance(found, dict) else str(found)
    except CellwrightError as error:
        return f"PROBLEM: {error.message}. {error.hint or ''}".strip()
    except Exception as error:  # noqa: BLE001  # it reports what is wrong, whatever that is
        return f"PROBLEM: {type(error).__name__}: {error}"


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return _MISSING


def _describe_kernels(call: CommandCall) -> dict[str, str]:
    """Describe every kernel that can be started here; without one, cells cannot run."""
    with call.here() as workspace:
        found = workspace.kernel_specs()
    for spec in found:
        if spec.problem is not None:
            raise KernelMissing(spec.problem, hint=spec.hint or "")
    described: dict[str, str] = {}
    for spec in found:
        place = spec.python or spec.folder or ""
        chosen = f" (the default: {spec.why})" if spec.default else ""
        described.setdefault(str(spec.name), f"{place}{chosen}")
    return described


def _describe_extras() -> dict[str, str]:
    """Say of each extra whether it is installed, and how to install it."""
    import re
    from importlib.metadata import requires

    wanted: dict[str, list[str]] = {}
    for line in requires("cellwright") or ():
        found = re.match(r"([\w.-]+).*\bextra == ['\"]([\w-]+)", line)
        if found and found[2] != "all":
            wanted.setdefault(found[2], []).append(found[1])
    described = {}
    for extra, names in sorted(wanted.items()):
        missing = [name for name in names if _version(name) == _MISSING]
        described[extra] = (
            f"needs {', '.join(missing)}: pip install 'cellwright[{extra}]'"
            if missing
            else f"installed ({', '.join(f'{name} {_version(name)}' for name in names)})"
        )
    return described


def _describe_pictures() -> str:
    from cellwright.cli.render.images import has_library
    from cellwright.outputs.images import EXTRA, has_pillow

    if not has_pillow():
        return f"only named, because Pillow is missing; to draw and scale them: {EXTRA}"
    if not has_library():
        return f"scaled, and drawn with half-blocks; for kitty and sixel graphics: {EXTRA}"
    return (
        f"drawn and scaled (pillow {_version('pillow')}, textual-image {_version('textual-image')})"
    )


def _describe_settings() -> str:
    from cellwright.config.loading import load

    settings = load()
    origins = {name: str(settings.origin(name)) for name in settings.to_json()}
    changed = [name for name, origin in origins.items() if origin != "default"]
    said = ", ".join(changed) + " changed" if changed else "all default"
    return "; ".join([said, *settings.warnings])


def _describe_journal(call: CommandCall) -> str:
    from cellwright.errors import JournalUnavailable

    with call.here() as workspace:
        journal = workspace.caller.journal
        described = journal.describe()
        problems = journal.find_problems()
    if problems:
        error = JournalUnavailable("; ".join(problems))
        error.hint = "`cellwright doctor --repair` brings back what is readable"
        raise error
    return described


def _repair_journal(call: CommandCall) -> str:
    with call.here() as workspace:
        return str(workspace.caller.journal.repair())


def _check_mcp(call: CommandCall) -> dict[str, Any]:
    from cellwright.cli.commands.mcp import require_library
    from cellwright.mcp.clients import check_server

    require_library()
    here = call.here()
    return check_server(here.root or here.cwd)


def _describe_git() -> str:
    from cellwright.cli.commands.git import describe_drivers

    return describe_drivers(os.getcwd())  # noqa: PTH109


@click.command()
@click.argument("folder", metavar="[FOLDER]", required=False)
@common
def demo_command(call: CommandCall, folder: str | None) -> int:
    """Show the main job on a small notebook: run, look, edit and run, a conflict, undo.

    It plays in a temporary folder with an engine and a history of its own, or in FOLDER, where the
    notebook stays. Lines that begin with $ are commands that you can type yourself.

    \b
    cellwright demo
    cellwright demo ~/first-steps
    """
    from contextlib import nullcontext
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="cellwright-") as apart:
        place = Path(folder).expanduser() if folder else Path(apart)
        place.mkdir(parents=True, exist_ok=True)
        environ = dict(os.environ)
        if not folder:
            (place / "run").mkdir(mode=0o700)
            environ |= {
                "CELLWRIGHT_RUNTIME_DIR": str(place / "run"),
                "XDG_STATE_HOME": str(place / "state"),
            }
        played: list[dict[str, Any]] = []
        with nullcontext() if folder else _stop_engine(environ):
            code = _play_demo(call, place, environ, played)
    call.output.data({"steps": played}, ())
    if not code:
        call.output.say("That was it. `cellwright --help` lists the commands", color="green")
    return code


@contextmanager
def _stop_engine(environ: dict[str, str]) -> Iterator[None]:
    """Stop the engine of these variables at the end."""
    try:
        yield
    finally:
        _type_command(["engine", "stop"], None, environ, shows=False)


def _type_command(
    words: list[str], place: Path | None, environ: dict[str, str], *, shows: bool
) -> int:
    """Run one of our commands in a process of its own; returns its exit code."""
    import subprocess

    command = [sys.executable, "-P", "-m", "cellwright", *words]
    done = subprocess.run(  # noqa: S603
        command,
        cwd=place,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=None if shows else subprocess.DEVNULL,
        stderr=subprocess.STDOUT,  # in the order in which it was said
        check=False,
    )
    return done.returncode


def _play_demo(
    call: CommandCall, place: Path, environ: dict[str, str], played: list[dict[str, Any]]
) -> int:
    """Play the demo; returns the exit code of the step that did not end as it should, or 0."""
    from cellwright.document.files import read

    name = "rain.ipynb"
    edits = [{"op": "insert", "id": id_, "source": text} for id_, text in _DEMO_CELLS.items()]
    (place / "edits.json").write_text(json.dumps(edits), encoding="utf-8")
    steps: list[tuple[str, list[str], int]] = [
        ("A notebook of three cells", ["new", name], 0),
        ("", ["edit", name, "apply", "edits.json"], 0),
        ("It runs, and its outputs are saved in the file", ["run", name], 0),
        ("The notebook, with its outputs", ["show", name, "--no-pager"], 0),
        (
            "Edit a cell, and run what that makes stale, in one call",
            ["edit", name, "replace-text", "rain", "16", "160", "--run", "stale"],
            0,
        ),
        (
            "An edit that is based on what was there before overwrites nothing",
            ["edit", name, "replace", "rain", "rain = {}", "--base", "BASE"],
            6,
        ),
        ("Everything is on record, and can be undone, outputs included", ["undo", name], 0),
        ("", ["log", name], 0),
    ]
    base = ""
    for about, words, expected in steps:
        if words[0] == "show":
            base = read(place / name).revision
        typed = [base if word == "BASE" else word for word in words]
        shown = shlex.join(["cellwright", *typed])
        if not call.output.as_json:
            write((f"\n# {about}\n" if about else "") + f"$ {shown}\n")
        code = _type_command(typed, place, environ, shows=not call.output.as_json)
        played.append({"command": shown, "exit": code})
        if code != expected:
            call.output.say(f"The demo ends here: exit code {code}, not {expected}", color="red")
            return code or 1
    return 0


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    cellwright completion bash >> ~/.bashrc
    cellwright completion fish > ~/.config/fish/completions/cellwright.fish
    """
    from click.shell_completion import get_completion_class

    from cellwright.cli.main import command as group

    found = get_completion_class(shell)
    if found is None:  # pragma: no cover  # the choices above are those that click knows
        raise click.UsageError(f"No completion for {shell}")
    for name in ("cellwright", "cw"):
        write(found(group, {}, name, f"_{name.upper()}_COMPLETE").source() + "\n")
