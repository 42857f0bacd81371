"""Writes the reference pages of the command line and of the settings from what they describe.

.venv/bin/python -m tests.unit.cli.reference
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cellwright.cli.main import command as group
from cellwright.config.loading import PREFIX
from cellwright.config.settings import SPECS, SettingSpec
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = ROOT / "docs" / "reference"
WRITER = "tests/unit/cli/reference.py"

COMMAND_LINE = f"""# Command line

<!-- Written by {WRITER}, which a test holds against the commands themselves. -->

`cellwright`, or `cw` for short, reads, edits and runs notebooks. Data is printed on stdout, \
messages on stderr, so that every command works in a pipe. Name a cell by its id, by `cell-N`, or by \
its index, which counts from 0, or from the end if it is negative. `-` means stdin.

With `--json`, stdout is one object in one line:

```json
{{"ok": true, "data": {{}}, "error": null}}
{{"ok": false, "data": null, "error": {{"code": "CELL_NOT_FOUND", "message": "No cell `c9`", \
"hint": "Did you mean c1?", "retryable": false}}}}
```

[Errors](errors.md) lists the codes, [Settings](settings.md) the settings. Colours are used on a \
terminal; `NO_COLOR` switches them off and `FORCE_COLOR` on.

## Exit codes

| exit code | means |
|---|---|
| 0 | done |
| 1 | a cell failed: `CELL_FAILED`, `run --check` found a difference, or `doctor` found a problem |
| 2 | wrong usage: `USAGE`, or a wrong setting |
| 3 | a bad notebook, text or cell reference, or a save that the system refused |
| 4 | a kernel, the engine, an editor or a language model failed |
| 5 | the mode forbids it: `MODE_FORBIDS` |
| 6 | a conflict: `CONFLICT`; an unknown base revision: `UNKNOWN_REVISION`; another process runs the \
notebook: `OWNED_ELSEWHERE`; or a turn of the chat runs: `CHAT_BUSY` |
| 70 | a bug in Cellwright: `INTERNAL_ERROR` |
| 124 | a cell or a run took longer than its limit: `EXECUTION_TIMED_OUT`, or another writer kept the \
notebook locked too long: `LOCKED` |
| 130 | interrupted |

## Commands
"""

SETTINGS = f"""# Settings

<!-- Written by {WRITER}, which a test holds against the settings themselves. -->

A setting comes from the first of these places that has it:

1. an argument or a flag;
2. the variable `{PREFIX}<NAME>`, in capitals;
3. the nearest `cellwright.toml`, or `[tool.cellwright]` in the nearest `pyproject.toml`, from the \
working folder upwards;
4. `config.toml` in the user's configuration folder, which `cellwright doctor` prints;
5. the default.

An unknown name or a wrong value is an error that says where it is. `cellwright config --origin` shows \
the current settings and where each comes from. Durations are seconds and sizes are bytes.

| setting | default | from | to | meaning | in a project's file |
|---|---|---|---|---|---|
"""


def walk(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[click.Context]:
    """The contexts of a command and of all below it, without the hidden ones."""
    shape = {**command.context_settings, "terminal_width": 80}
    context = click.Context(command, info_name=name, parent=parent, **shape)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            if not found.hidden:
                yield from walk(found, below, context)


def words(context: click.Context) -> str:
    """The command as one would type it, without its arguments."""
    before = f"{words(context.parent)} " if context.parent else ""
    return before + str(context.info_name)


def command_line() -> str:
    parts = [
        f"\n### {words(context)}\n\n```text\n{context.get_help()}\n```\n"
        for context in walk(group, "cellwright")
    ]
    return COMMAND_LINE + "".join(parts)


def shown(spec: SettingSpec) -> str:
    """Default and range, as two columns and a half: what has no range says what it takes."""
    if spec.is_number:
        return f"{spec.default:,} | {spec.low:,} | {spec.high:,}"
    value = str(spec.default).lower() if isinstance(spec.default, bool) else spec.default
    return f"{value or 'none'} | {spec.accepted_values} |"


def settings() -> str:
    rows = [
        f"| `{name}` | {shown(spec)} | {spec.about} | {'yes' if spec.project_may_set else 'no'} |\n"
        for name, spec in SPECS.items()
    ]
    return SETTINGS + "".join(rows)


PAGES = {"cli.md": command_line, "settings.md": settings}

if __name__ == "__main__":
    for page, make in PAGES.items():
        (FOLDER / page).write_text(make(), encoding="utf-8")
