"""Notebooks and git: its drivers, and `strip`, `check-clean` and `lint` before a commit."""

from __future__ import annotations

import os
import shlex
import subprocess
from functools import partial

import click

from cellwright.cli.options import CommandCall, NotebookReport, common, expand_notebooks
from cellwright.cli.output import (
    FAILED,
    OK,
    describe_problem,
    exit_code,
    one_line,
    print_json,
    printable,
    write,
    write_bytes,
)
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from cellwright.document.merge import Merged
    from cellwright.document.notebook import Notebook
    from cellwright.document.outputs import Output
    from cellwright.errors import CellConflict

ATTRIBUTES = "*.ipynb diff=cellwright merge=cellwright"
STRIP_ATTRIBUTES = f"{ATTRIBUTES} filter=cellwright"
# What other programs write into cells while a person looks at them or runs them.
STRIPPED = ("collapsed", "scrolled", "execution", "ExecuteTime", "heading_collapsed", "hidden")
_KEEP = ("keep_output", "keep-output")
_BRIEF_LINES = 5


class GitError(Exception):
    """Git failed, or there is no repository."""


@click.group()
def git_command() -> None:
    """Let git diff notebooks as text and merge them by cell.

    \b
    cellwright git install            in this repository
    cellwright git install --global   in all of yours
    cellwright git install --strip    commit notebooks without outputs
    git mergetool --tool=cellwright   choose a side for every cell in conflict
    """


@git_command.command()
@click.option("--global", "everywhere", is_flag=True, help="For all repositories of this user.")
@click.option(
    "--strip", is_flag=True, help="Commit without outputs, counts and metadata of programs."
)
@click.option(
    "--strip-key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Also strip this metadata of cells, or of the notebook as metadata.KEY.",
)
@common
def install(call: CommandCall, *, everywhere: bool, strip: bool, keys: tuple[str, ...]) -> None:
    """Install the diff driver, the merge driver and the merge tool.

    With --strip, git stores notebooks without outputs; the files in your folder keep theirs, and
    no other byte is changed. A cell with the tag keep_output keeps its outputs in git, too.

    \b
    cellwright git install
    cellwright git install --strip --strip-key metadata.language_info.version
    """
    if keys and not strip:
        raise click.UsageError("--strip-key needs --strip")
    make = partial(install_drivers, strip=[*STRIPPED, *keys] if strip else None)
    path = _change_drivers(make, everywhere=everywhere)
    call.output.data({"installed": True, "strip": strip, "attributes": path}, "")
    call.output.say("✓ Drivers installed", color="green")
    call.output.say(f"  Attributes: {one_line(path)}")


@git_command.command()
@click.option("--global", "everywhere", is_flag=True, help="For all repositories of this user.")
@common
def uninstall(call: CommandCall, *, everywhere: bool) -> None:
    """Remove the drivers.

    \b
    cellwright git uninstall
    """
    path = _change_drivers(remove_drivers, everywhere=everywhere)
    call.output.data({"installed": False, "attributes": path}, "")
    call.output.say("✓ Drivers removed", color="green")
    call.output.say(f"  Attributes: {one_line(path)}")


def _change_drivers(change: Callable[..., str], *, everywhere: bool) -> str:
    try:
        return change(os.getcwd(), everywhere=everywhere)  # noqa: PTH109
    except GitError as error:
        raise click.UsageError(str(error)) from None


@git_command.command(hidden=True)
@click.option("--strip", is_flag=True)
@click.argument("path")
def textconv(path: str, *, strip: bool) -> None:
    """Print the text that git compares: sources and short outputs, or the file if it is broken."""
    from cellwright.document.files import read

    try:
        notebook = read(path)
        if strip:  # git compares the file in the folder, which has what is not committed
            notebook.apply(make_strip_edits(notebook, ()))
        text = render_for_diff(notebook)
    except CellwrightError as error:
        try:
            text = _read_file(path).decode("utf-8", "backslashreplace")
        except OSError:
            raise error from None
    write(printable(text))  # outside of `try`: that it cannot be printed is no broken notebook


def render_for_diff(notebook: Notebook) -> str:
    """The text of a notebook to compare: no numbers that change when a cell is added or run.

    A cell begins with its type and id; its outputs are shown in brief, after a rule.
    """
    from cellwright.errors import InvalidCell

    lines: list[str] = []
    for cell in notebook.cells:
        if cell.problem:
            raise InvalidCell(cell.index, cell.problem)
        name = f" {cell.id}" if cell.id is not None else ""
        lines.append(f"# %% [{cell.type}]{name}")
        lines += cell.source.split("\n") if cell.source else []
        for output in cell.outputs if cell.type == "code" else ():
            lines += [f"│ {line}" for line in _describe_output(output)]
    return "".join(f"{line}\n" for line in lines)


def _describe_output(output: Output) -> list[str]:
    """What an output says, in a few lines; a picture is named with a hash that tells it apart."""
    from hashlib import sha256

    from cellwright.document.outputs import Display, ErrorOutput, Stream
    from cellwright.outputs.mime import MimeImage, choose_parts
    from cellwright.outputs.sanitize import render_printed

    if isinstance(output, Stream):
        name = "" if output.name == "stdout" else f"{output.name}: "
        return _shorten_lines(name + render_printed(output.text))
    if isinstance(output, ErrorOutput):
        return _shorten_lines(f"{output.ename}: {output.evalue}")
    if not isinstance(output, Display):
        return ["unknown output"]
    chosen = choose_parts(output.data)
    found = _shorten_lines(chosen.text.text) if chosen.text is not None else []
    for part in chosen.parts:
        if isinstance(part, MimeImage):
            found.append(
                f"{part.mime}, {len(part.data):,} bytes, {sha256(part.data).hexdigest()[:8]}"
            )
        else:
            found += _shorten_lines(str(getattr(part, "value", part)))
    return found


def _shorten_lines(text: str) -> list[str]:
    lines = text.rstrip("\n").split("\n")
    more = len(lines) - _BRIEF_LINES
    if more > 1:
        lines[_BRIEF_LINES:] = [f"… {more:,} more lines"]
    return [line if len(line) <= 200 else f"{line[:200]}…" for line in lines]


@git_command.command(hidden=True)
@click.option("--key", "keys", multiple=True)
def clean(keys: tuple[str, ...]) -> None:
    """Print the notebook on stdin as git stores it; one that cannot be read is printed as it is."""
    import sys

    data = sys.stdin.buffer.read()
    try:
        write_bytes(strip_notebook(data, keys))
    except CellwrightError as error:
        click.echo(one_line(f"warning: a notebook is stored with its outputs: {error}"), err=True)
        write_bytes(data)


def strip_notebook(data: bytes, keys: Sequence[str]) -> bytes:
    """A notebook without outputs, counts and some metadata; every other byte stays."""
    from cellwright.document.notebook import Notebook

    notebook = Notebook(data)
    edits = make_strip_edits(notebook, keys)
    if edits:
        notebook.apply(edits)
    return notebook.to_bytes()


def make_strip_edits(notebook: Notebook, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the edits that remove outputs, counts and some metadata; none if it has none."""
    edits: list[dict[str, Any]] = []
    top = [key.removeprefix("metadata.") for key in keys if key.startswith("metadata.")]
    inner = [key for key in keys if not key.startswith("metadata.")]
    removed = _remove_keys(notebook.metadata, top)
    if removed:
        edits.append({"op": "set_metadata", "metadata": removed})
    for cell in notebook.cells:
        metadata = cell.metadata
        removed = _remove_keys(metadata, inner)
        if removed:
            edits.append({"op": "set_metadata", "cell": cell.index, "metadata": removed})
        tags = metadata.get("tags")
        named = [*(tags if isinstance(tags, list) else []), *(k for k in _KEEP if metadata.get(k))]
        if cell.type != "code" or any(name in _KEEP for name in named):
            continue
        if cell.output_types or cell.execution_count is not None:
            edits.append({"op": "clear_outputs", "cells": [cell.index]})
    return edits


def _remove_keys(metadata: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The change that removes keys, which may lead inside by dots, as far as they are there."""
    change: dict[str, Any] = {}
    for key in keys:
        inside: Any = metadata
        place = change
        *way, last = key.split(".")
        for step in way:
            inside = inside.get(step) if isinstance(inside, dict) else None
        if not isinstance(inside, dict) or last not in inside:
            continue
        for step in way:
            place = place.setdefault(step, {})
        place[last] = None
    return change


@git_command.command(hidden=True, name="merge-driver")
@click.argument("base")
@click.argument("current")
@click.argument("other")
@click.option("-L", "marker_size", type=int, default=7)
@click.option("-P", "name", default="the notebook")
@click.option("-X", "ours", default="")
@click.option("-Y", "theirs", default="")
def merge_driver(
    base: str, current: str, other: str, marker_size: int, name: str, ours: str, theirs: str
) -> int:
    """Merge OTHER into CURRENT, as git calls it; exit 1 if cells are in conflict."""
    try:
        merged = _merge_files(base, current, other)
    except CellwrightError as error:
        click.echo(one_line(f"error: {name} cannot be merged by cell: {error}"), err=True)
        return 1
    # git reads the result from CURRENT, which is a temporary file of its own.
    with open(current, "wb") as file:  # noqa: PTH123
        if merged.conflicts:
            ours, theirs = _name_sides(ours, theirs)
        file.writelines(merged.with_markers(ours, theirs, marker_size).parts())
    for conflict in merged.conflicts:
        said = f"conflict: {name}, cell {conflict.handle}: {conflict.reason}"
        click.echo(one_line(said), err=True)
    return 1 if merged.conflicts else 0


def _merge_files(base: str, current: str, other: str) -> Merged:
    from cellwright.document.files import read
    from cellwright.document.merge import merge
    from cellwright.document.notebook import Notebook

    def load(path: str) -> Notebook:
        # For a file that both sides added, git gives an empty base.
        return read(path) if os.path.getsize(path) else Notebook()  # noqa: PTH202

    return merge(load(base), load(current), load(other))


def _name_sides(ours: str, theirs: str) -> tuple[str, str]:
    """The names of the two sides of a merge: as git gives them, or found where it left them.

    Git gives them since 2.44; before, `%X` stays as it is.
    """
    if ours in ("", "%X"):
        ours = _ask_git("symbolic-ref", "--quiet", "--short", "HEAD") or "ours"
    if theirs in ("", "%Y"):
        names = [value for name, value in os.environ.items() if name.startswith("GITHEAD_")]
        if len(names) == 1:
            theirs = names[0]
        else:  # the merge has ended with conflicts, and left what it merged
            branches = ("--refs=refs/heads/*", "--refs=refs/remotes/*")
            words = ("name-rev", "--name-only", "--no-undefined", *branches, "MERGE_HEAD")
            theirs = _ask_git(*words) or "theirs"
    return one_line(ours), one_line(theirs)


def _ask_git(*words: str) -> str:
    try:
        return run_git(["git", *words], os.getcwd()).strip()  # noqa: PTH109
    except GitError:
        return ""


@git_command.command(hidden=True, name="merge-tool")
@click.argument("base")
@click.argument("current")
@click.argument("other")
@click.argument("merged_file")
def merge_tool(base: str, current: str, other: str, merged_file: str) -> int:
    """Merge by cell, and let the person choose a side of every conflict; exit 1 if one is left."""
    from cellwright.document.files import write as save

    merged = _merge_files(base if os.path.exists(base) else os.devnull, current, other)  # noqa: PTH110
    ours, theirs = _name_sides("", "")
    edits: list[dict[str, Any]] = []
    for number, conflict in enumerate(merged.conflicts, 1):
        title = f"cell {conflict.handle}: {conflict.reason}"
        click.secho(f"\n{number} of {len(merged.conflicts)}  {one_line(title)}", bold=True)
        for sign, name, side in (("1", ours, conflict.current), ("2", theirs, conflict.other)):
            click.secho(f"{sign}  {name}", fg="yellow")
            shown = "(deleted)" if side is None else side
            click.echo("".join(f"   {line}\n" for line in printable(shown).split("\n")), nl=False)
        answer = _ask_side()
        if answer is None:
            return 1
        edits += _settle_conflict(conflict, answer)
    if edits:
        merged.notebook.apply(edits)
    save(merged.notebook, merged_file)
    return 0


def _ask_side() -> str | None:
    while True:
        try:
            answer = input("1, 2, both, or quit? ").strip().lower()
        except EOFError:
            return None
        if answer[:1] == "q":
            return None
        if answer in ("1", "2", "b", "both"):
            return answer[:1]


def _settle_conflict(conflict: CellConflict, answer: str) -> list[dict[str, Any]]:
    """The edits that make a merged notebook, which has our side, hold the side that was chosen."""
    ours, theirs = conflict.current, conflict.other
    if ours is None and theirs is None:
        return []  # the notebook's metadata, of which ours stays
    wanted = {"1": ours, "2": theirs, "b": "\n".join(each for each in (ours, theirs) if each)}[
        answer
    ]
    if wanted == ours:
        return []
    if conflict.index is None:
        return [{"op": "insert", "source": wanted}]
    if wanted is None:
        return [{"op": "delete", "cell": conflict.handle}]
    return [{"op": "replace", "cell": conflict.handle, "source": wanted}]


def install_drivers(folder: str, *, everywhere: bool, strip: Sequence[str] | None = None) -> str:
    """Install the drivers in one repository, or for this user; returns the attributes file."""
    scope = "--global" if everywhere else "--local"
    path = remove_drivers(folder, everywhere=everywhere)  # an earlier choice, if there is one
    for key, value in driver_settings(strip).items():
        run_git(["git", "config", scope, key, value], folder)
    content = _read_file(path) if os.path.exists(path) else b""  # noqa: PTH110
    line = (ATTRIBUTES if strip is None else STRIP_ATTRIBUTES).encode()
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    # A file without a final newline stays without one, so that uninstall can restore it.
    end = b"" if content and not content.endswith(b"\n") else b"\n"
    _write_file(path, content + (b"" if end else b"\n") + line + end)
    return path


def remove_drivers(folder: str, *, everywhere: bool) -> str:
    """Remove the drivers; returns the attributes file."""
    scope = "--global" if everywhere else "--local"
    for section in (f"{kind}.cellwright" for kind in ("diff", "merge", "mergetool", "filter")):
        subprocess.run(
            ["git", "config", scope, "--remove-section", section],
            cwd=folder,
            capture_output=True,
            check=False,
        )
    path = find_attributes_file(folder, everywhere=everywhere)
    content = _read_file(path) if os.path.exists(path) else b""  # noqa: PTH110
    for line in (ATTRIBUTES.encode(), STRIP_ATTRIBUTES.encode()):
        if line not in content.split(b"\n"):
            continue
        if content.endswith(b"\n" + line):
            content = content[: -len(line) - 1]
        else:
            content = (b"\n" + content).replace(b"\n" + line + b"\n", b"\n", 1)[1:]
        if content:
            _write_file(path, content)
        else:
            os.remove(path)  # noqa: PTH107  # it had no other line
    return path


def describe_drivers(folder: str) -> str:
    """Say whether git calls the drivers in this folder, and whether they are this installation."""
    try:
        found = run_git(["git", "config", "--get", "merge.cellwright.driver"], folder).strip()
    except GitError:
        found = ""
    if not found:
        return "drivers not installed here"
    if found == driver_settings()["merge.cellwright.driver"]:
        return "drivers installed"
    return "drivers of another installation; `cellwright git install` replaces them"


def driver_settings(strip: Sequence[str] | None = None) -> dict[str, str]:
    """The settings of git: a line for a shell each, which runs git's own tool if ours is gone.

    `strip` is the metadata that is not stored in git, and no outputs are; None to store all.

    Git starts them in the worktree, which may be anyone's.

    Raises:
        ConfigError: this installation will not last.
    """
    from cellwright.app.installation import find_start_command

    start = find_start_command()
    call = f"{shlex.join(start.words)} git"
    is_there = " && ".join(f"test -e {shlex.quote(path)}" for path in start.needs)
    text = f"{call} textconv{'' if strip is None else ' --strip'}"
    show = f'if {is_there}; then {text} -- "$1" || cat -- "$1"; else cat -- "$1"; fi'
    by_cell = f'{call} merge-driver -L "$4" -P "$5" -X "$6" -Y "$7" -- "$1" "$2" "$3"'
    by_line = 'git merge-file -L ours -L base -L theirs --marker-size="$4" "$2" "$1" "$3"'
    merge = f"if {is_there}; then {by_cell}; else {by_line}; fi".replace("%", "%%")
    return {
        "diff.cellwright.textconv": f"show() {{ {show}; }}; show",
        "diff.cellwright.cachetextconv": "false",
        "merge.cellwright.name": "cellwright, three-way by cell",
        "merge.cellwright.driver": f"merge() {{ {merge}; }}; merge %O %A %B %L %P %X %Y",
        "mergetool.cellwright.cmd": f'{call} merge-tool -- "$BASE" "$LOCAL" "$REMOTE" "$MERGED"',
        "mergetool.cellwright.trustExitCode": "true",
        **({} if strip is None else _filter_settings(call, is_there, strip)),
    }


def _filter_settings(call: str, is_there: str, strip: Sequence[str]) -> dict[str, str]:
    keys = "".join(f" --key {shlex.quote(key)}" for key in strip)
    # Without us the whole file is stored: better than a commit that cannot be made.
    return {
        "filter.cellwright.clean": f"if {is_there}; then {call} clean{keys}; else cat; fi",
        "filter.cellwright.smudge": "cat",
    }


def find_attributes_file(folder: str, *, everywhere: bool) -> str:
    """The attributes file that is not part of a repository's content."""
    if not everywhere:
        name = run_git(["git", "rev-parse", "--git-path", "info/attributes"], folder).strip()
        return os.path.join(folder, name)  # noqa: PTH118
    try:
        path = run_git(["git", "config", "--global", "--type=path", "core.attributesFile"], folder)
    except GitError:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
        return os.path.join(base, "git", "attributes")  # noqa: PTH118
    return path.strip()


def run_git(words: Sequence[str], folder: str) -> str:
    """Run git and return its stdout; raises `GitError` with its stderr."""
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        raise GitError(done.stderr.strip() or f"{shlex.join(words)} failed")
    return done.stdout


def _read_file(path: str) -> bytes:
    # A FIFO in a repository would block for ever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
        return file.read()


def _write_file(path: str, content: bytes) -> None:
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)


# -- before a commit ----------------------------------------------------------------------------

_strip_keys = click.option(
    "--strip-key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Also this metadata of cells, or of the notebook as metadata.KEY.",
)
_notebooks = click.argument("notebooks", metavar="NB…", nargs=-1, required=True)
# By what their makers let them begin with; a word that may be anything else is not among them.
_SECRETS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "an access key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60,})",
    "a token of GitLab": r"\bglpat-[\w-]{20}",
    "a key of a language model": r"\bsk-(?:ant-|proj-)?[\w-]{32,}",
    "a key of Google": r"\bAIza[\w-]{35}",
    "a token of Slack": r"\bxox[abprs]-[\w-]{10,}",
    "a key of Stripe": r"\b[rs]k_live_[A-Za-z0-9]{20,}",
    "a token of Hugging Face": r"\bhf_[A-Za-z0-9]{30,}",
    "a token of PyPI": r"\bpypi-[\w-]{50,}",
    # From the end of the scheme on: its beginning would be looked for at every dot of a text.
    "a password in an address": r"[a-z0-9+.-]://[^\s:/@]+:[^\s:/@]{3,}@",
}


@click.command()
@_notebooks
@_strip_keys
@common
def strip_command(call: CommandCall, notebooks: tuple[str, ...], *, keys: tuple[str, ...]) -> int:
    """Remove outputs, counts and metadata that programs leave in cells.

    Every other byte stays, and `cellwright undo` brings them back. A cell with the tag keep_output
    keeps its outputs.

    \b
    cellwright strip analysis.ipynb
    cellwright strip '**/*.ipynb' --strip-key metadata.language_info.version
    """
    with call.workspace() as workspace:

        def strip_one(name: str) -> NotebookReport:
            book = workspace.open(name)
            edits = make_strip_edits(book.load(), [*STRIPPED, *keys])
            warnings = book.edit(edits, label="strip").warnings if edits else []
            if edits:
                call.output.say(f"✓ Stripped {one_line(name)}", color="green")
            return NotebookReport({"path": name, "stripped": bool(edits)}, "", warnings)

        return _report_each(call, expand_notebooks(notebooks), strip_one)


@click.command()
@_notebooks
@_strip_keys
@common
def check_clean_command(
    call: CommandCall, notebooks: tuple[str, ...], *, keys: tuple[str, ...]
) -> int:
    """Report notebooks with outputs, counts or metadata of programs; exit 1 if there is one.

    \b
    cellwright check-clean '**/*.ipynb'
    """

    def check_one(name: str) -> list[str]:
        found = make_strip_edits(_load(call, name)[0], [*STRIPPED, *keys])
        cells = sorted({each["cells"][0] for each in found if each["op"] == "clear_outputs"})
        where = ", ".join(map(str, cells))
        problems = [f"outputs or counts in {where}"] if cells else []
        has_metadata = any(each["op"] == "set_metadata" for each in found)
        return [*problems, "metadata that programs left"] if has_metadata else problems

    return _report_problems(call, expand_notebooks(notebooks), check_one, "`cellwright strip`")


@click.command()
@_notebooks
@common
def lint_command(call: CommandCall, notebooks: tuple[str, ...]) -> int:
    """Report what is wrong with notebooks; exit 1 if anything is.

    It checks that a notebook follows the schema of its own version, that no two cells have the same
    id, that no result is stale (by the runs on record here, and by execution counts), and that no
    output holds what looks like a key, a token or a password.

    \b
    cellwright lint '**/*.ipynb'
    """
    return _report_problems(
        call,
        expand_notebooks(notebooks),
        lambda name: list_problems(*_load(call, name)),
        "`cellwright run NB`",
    )


def list_problems(notebook: Notebook, stale: Mapping[str, str]) -> list[str]:
    """List what is wrong with a notebook; `stale` has reasons by the handles of cells."""
    from collections import Counter

    problem = notebook.validate()
    found = [] if problem is None else [f"not valid: {problem}"]
    ids = Counter(cell.id for cell in notebook.cells if cell.id is not None)
    found += [f"the id {name} is that of {n} cells" for name, n in ids.items() if n > 1]
    last = 0
    for cell in notebook.cells:
        where = f"cell {cell.handle} (index {cell.index})"
        if cell.type != "code" or cell.problem:
            continue
        count = cell.execution_count or 0
        if cell.output_types and cell.handle in stale:
            found.append(f"{where} is stale: {stale[cell.handle]}")
        elif cell.output_types and 0 < count < last:
            found.append(f"{where} is stale: a cell above it was run after it")
        last = max(last, count)
        found += [f"{where} shows {what}" for what in _find_secrets(cell.to_dict().get("outputs"))]
    return found


def _find_secrets(outputs: Any) -> list[str]:
    """Name what looks like a secret in outputs; pictures are not looked into."""
    import json
    import re

    if not outputs:
        return []
    for output in outputs:
        data = output.get("data") if isinstance(output, dict) else None
        if isinstance(data, dict):
            for mime in [name for name in data if name.startswith("image/") and "svg" not in name]:
                del data[mime]
    # Lines of a text are a list in the file, and one text to a reader.
    text = json.dumps(outputs, ensure_ascii=False).replace('", "', "")
    return [what for what, pattern in _SECRETS.items() if re.search(pattern, text)]


def _load(call: CommandCall, name: str) -> tuple[Notebook, dict[str, str]]:
    """Read a notebook, and which of its cells are stale by the runs on record."""
    with call.workspace() as workspace:
        book = workspace.open(name)
        notebook = book.load()
        rows = book.stale().cells if any(cell.output_types for cell in notebook.cells) else []
        return notebook, {row.cell: row.stale_reason or "" for row in rows if row.state == "stale"}


def _report_each(
    call: CommandCall, names: Sequence[str], work: Callable[[str], NotebookReport]
) -> int:
    """Do something to each notebook, also if one of them cannot be read; returns the exit code."""
    code, rows = OK, []
    for name in names:
        try:
            found = work(name)
        except CellwrightError as error:
            if call.output.as_json:
                raise
            call.output.say(f"{one_line(name)}:")
            call.output.fail(error)
            code = code or exit_code(error)
            continue
        call.output.warn(found.warnings)
        rows.append(found.data)
    call.output.data({"notebooks": rows}, "")
    return code


def _report_problems(
    call: CommandCall, names: Sequence[str], find: Callable[[str], list[str]], mend: str
) -> int:
    """Print a line for each problem of each notebook; the exit code is 1 if there is one."""
    code, rows = OK, []
    for name in names:
        try:
            problems = find(name)
        except CellwrightError as error:
            problems = [f"{error.code}: {error.message}"]
            code = code or exit_code(error)
        rows.append({"path": name, "problems": problems})
    bad = [row for row in rows if row["problems"]]
    code = code or (FAILED if bad else OK)
    if call.output.as_json:
        first = None
        if bad:
            message = f"{bad[0]['path']}: {bad[0]['problems'][0]}"
            first = describe_problem("NOT_CLEAN", message, mend)
        print_json({"ok": not bad, "data": {"notebooks": rows}, "error": first})
        return code
    lines = [f"{row['path']}: {each}" for row in bad for each in row["problems"]]
    call.output.data(None, [f"{one_line(line)}\n" for line in lines])
    return code
