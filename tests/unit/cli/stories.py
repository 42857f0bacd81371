"""Stories of commands for golden files: the steps, the notebooks they need, and how to play them.

The stories in `PROCESS_STORIES` start processes: kernels, an engine, or git.
"""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli import golden, samples
from tests.unit.cli.calling import call, succeed

if TYPE_CHECKING:
    from pathlib import Path

# A step is a command line, and what is on stdin if anything. Those before a dash are not shown.
Step = str | tuple[str, str]

TEXT = "# %% [markdown] cell:0\n# Turnover\n# %% [code] cell:1\ntotal = 42\nprint(total)\n"
EDITS = json.dumps(
    [
        {"op": "replace", "cell": "sum", "source": "total + 1", "outputs": "clear"},
        {"op": "insert", "source": "first", "type": "markdown", "id": "top", "at": 0},
        {"op": "delete", "cell": "notes"},
    ]
)

STORIES: dict[str, list[Step]] = {
    "read": ["read nb.ipynb"],
    "commits": ["check-clean nb.ipynb", "lint nb.ipynb", "strip nb.ipynb", "check-clean nb.ipynb"],
    "selectors": [
        f"read nb.ipynb:{selector}"
        for selector in (
            *("raw", "6", "17-", "5-6", "5+2", "2-3,8-9", "9,2-3,3-4", "1-3:raw", "raw:1-3"),
            *("cell=sum", "cell=cell-0", "cell=-1", "section=Results", "outline"),
        )
    ],
    "write": [
        ("write nb.ipynb --dry-run", TEXT),
        ("write nb.ipynb", TEXT),
        ("write nb.ipynb", TEXT),
        ("write new.ipynb --from -", "# %% [code]\nx = 1\n"),
        "write new.ipynb --from text.txt --backup",
    ],
    "edit": [
        "edit nb.ipynb replace sum total+1",
        ("edit nb.ipynb replace sum - --type markdown --dry-run", "*total*\n"),
        ("edit nb.ipynb replace load --clear-outputs --backup --label tidy", "total = 43\n"),
        "edit nb.ipynb replace-text load 43 44",
        "edit nb.ipynb insert x --id fresh --after load",
        "edit nb.ipynb insert x --id front --before 0 --type markdown",
        "edit nb.ipynb insert x --id third --at 2 --type raw",
        "edit nb.ipynb insert x --id last",
        "edit nb.ipynb delete third",
        "edit nb.ipynb move last --at 0",
        "edit nb.ipynb move last --after results",
        "edit nb.ipynb split intro 1",
        "edit nb.ipynb merge load fresh",
        "edit nb.ipynb set-type notes markdown",
        "edit nb.ipynb set-metadata '{\"tags\": [\"a\"]}' --cell sum",
        "edit nb.ipynb set-metadata '{\"title\": \"Sales\"}'",
        "edit nb.ipynb set-metadata '{}' --replace",
        "edit nb.ipynb clear-outputs plot",
        "edit nb.ipynb clear-outputs",
        "edit nb.ipynb clear-outputs",
    ],
    "apply": [
        ("edit nb.ipynb apply --dry-run", EDITS),
        "edit nb.ipynb apply edits.json",
        ("edit made.ipynb apply - --create", '{"op": "insert", "source": "x", "id": "only"}'),
    ],
    "outputs": ["outputs nb.ipynb", "outputs nb.ipynb plot --max-tokens 100", "outputs nb.ipynb zz"],
    "sessions": ["sessions", "kernel status", "artifact", "artifact nothing"],
    "sync": [
        "sync nb.ipynb nb.py",
        "read nb.ipynb --percent",
        "edit nb.ipynb replace sum total+1",
        "sync nb.ipynb nb.py",
        "sync nb.ipynb nb.py",
    ],
    "new": ["new made.ipynb", "new second.ipynb --kernel julia-1.11"],
    "log": [
        "edit nb.ipynb replace sum total+1 --label 'one more'",
        "edit nb.ipynb delete notes",
        "undo nb.ipynb",
        "-",
        "log nb.ipynb",
        "log nb.ipynb --limit 1",
        "log never-there.ipynb",
    ],
    "diff": [
        "edit nb.ipynb replace sum total+1",
        "edit nb.ipynb delete notes",
        "-",
        "diff nb.ipynb",
        "diff nb.ipynb first",
        "diff nb.ipynb now first",
        "diff nb.ipynb other.ipynb",
    ],
    "undo": [
        "edit nb.ipynb replace load 'total = 1' --clear-outputs",
        "edit nb.ipynb delete notes",
        "-",
        "undo nb.ipynb --dry-run",
        "undo nb.ipynb",
        "undo nb.ipynb",
        "redo nb.ipynb --dry-run",
        "redo nb.ipynb",
        "redo nb.ipynb",
    ],
    "untouched": ["log nb.ipynb", "blame nb.ipynb", "backup nb.ipynb"],
    "blame": [
        "edit nb.ipynb replace sum total+1 --label 'one more'",
        "edit nb.ipynb insert x --id fresh --at 0",
        "-",
        "blame nb.ipynb",
    ],
    "backup": [
        "edit nb.ipynb replace sum total+1",
        "edit nb.ipynb delete notes",
        "-",
        "backup nb.ipynb",
        "backup nb.ipynb --restore first --dry-run",
        "backup nb.ipynb --restore first",
        "backup nb.ipynb --restore first",
    ],
    "forget": [
        "edit nb.ipynb replace sum total+1",
        "read other.ipynb",
        "-",
        "forget nb.ipynb --dry-run",
        "forget nb.ipynb --before 2026-01-01",
        "forget nb.ipynb",
        "log nb.ipynb",
        "forget --all",
        "forget",
        "forget nb.ipynb --all",
        "forget --before yesterday",
    ],
    "upgrade": [
        "upgrade old.ipynb --dry-run",
        "upgrade old.ipynb oldest.ipynb --backup",
        "upgrade nb.ipynb",
    ],
    "config": ["config", "config lock_timeout max_file_bytes", "config --origin lock_timeout"],
    "usage": [
        "wriet nb.ipynb",
        "read",
        "read nb.ipynb --mode sing",
        "read nb.ipynb --lines 3",
        "edit nb.ipynb repalce sum x",
        "edit nb.ipynb insert x --type prose",
        ("edit nb.ipynb apply", "[{]"),
        ("edit nb.ipynb apply", "[]"),
        "write nb.ipynb --from nowhere.txt",
        "config lock_tiemout",
    ],
    "bad-notebook": [
        "read nowhere.ipynb",
        "read .",
        "read broken.ipynb",
        "read list.ipynb",
        "read latin.ipynb",
        "read future.ipynb",
        "edit oldest.ipynb delete 0",
        "edit nb.ipynb delete itnro",
        "edit nb.ipynb delete 99",
        "edit twins.ipynb delete same",
        "edit nb.ipynb replace-text load nowhere x",
        "edit nb.ipynb insert x --id 'no id'",
        "edit nb.ipynb move intro --after load --before sum",
        "edit nb.ipynb split sum 7",
        "edit nb.ipynb set-metadata '[]'",
        ("edit nb.ipynb apply", "[1]"),
        ("write nb.ipynb", "\n# %% [code] cell:0\n"),
        ("write nb.ipynb", "total\n"),
        "read nb.ipynb:0",
        "read nb.ipynb:99",
        "read nb.ipynb:section=Nothing",
        "read nb.ipynb:cell=nothing",
        "undo nb.ipynb",
        "redo nb.ipynb",
        "undo nb.ipynb 12345678",
        "diff nb.ipynb",
        "backup nb.ipynb --restore first",
        "new nb.ipynb",
        "read --root inside nb.ipynb",
    ],
    "mode": [
        *(f"edit nb.ipynb delete notes --mode {mode}" for mode in ("ask", "edit")),
        *("undo nb.ipynb --mode ask", "new made.ipynb --mode ask", "read list.ipynb --mode ask"),
    ],
    "conflict": [
        "edit nb.ipynb replace sum total+1 --expect 000000000000",
        "edit nb.ipynb replace sum total+1 --base 000000000000",
        ("write nb.ipynb --base 000000000000", TEXT),
    ],
}  # fmt: skip

PROCESS_STORIES: dict[str, list[Step]] = {
    "eval": [
        "eval 'x = 1' 'x + 1' --title one",
        "eval 'print(2)' 1/0 3",
        "eval --per-call --timeout 0.5 'import time; time.sleep(60)'",
        "eval 'import os; os._exit(3)'",
        ("eval --cells -", '[{"code": "1", "language": "klingon"}]'),
    ],
    "run": ["run small.ipynb", "run small.ipynb good --above next", "run small.ipynb good"],
    "stale": [
        "stale small.ipynb",
        "run small.ipynb",
        "stale small.ipynb",
        "edit small.ipynb replace good 'y = 1'",
        "stale small.ipynb",
    ],
    "engine": [
        "engine status",
        "engine start",
        "run small.ipynb good",
        "runs",
        "attach RUN",
        "cancel RUN",
        "cancel r0",
        "engine stop",
        "engine stop",
    ],
    "git": [
        "git install",
        "git install",
        "git install --global",
        "git uninstall --global",
        "git uninstall",
    ],
}


def words_of(step: Step) -> list[str]:
    line = step if isinstance(step, str) else step[0]
    words = shlex.split(line)
    # So that words after `--` would stay what they are.
    return [words[0], *words[1:], "--json"]


@pytest.fixture
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """More notebooks, old and broken ones among them."""
    monkeypatch.delenv("CELLWRIGHT_SPARE_KERNEL")  # settings are shown as users have them
    (folder / "inside").mkdir()
    (folder / "text.txt").write_text("# %% [code] cell:0\nx = 2\n", encoding="utf-8")
    (folder / "edits.json").write_text(EDITS, encoding="utf-8")
    (folder / "other.ipynb").write_bytes(samples.write(samples.markdown("intro", "# Other")))
    (folder / "twins.ipynb").write_bytes(
        samples.write(samples.raw("same", "a"), samples.raw("same", "b"))
    )
    (folder / "old.ipynb").write_bytes(samples.write(samples.code(None, "x"), minor=4))
    oldest = {
        "metadata": {"name": "oldest"},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "collapsed": False,
                        "input": ["print 1"],
                        "language": "python",
                        "metadata": {},
                        "outputs": [],
                    }
                ],
                "metadata": {},
            }
        ],
    }
    (folder / "oldest.ipynb").write_text(json.dumps(oldest, indent=1), encoding="utf-8")
    small = samples.write(samples.code("good", "print(1)\n2"), samples.code("next", "3"))
    (folder / "small.ipynb").write_bytes(small)
    (folder / "broken.ipynb").write_text('{\n "cells": [\n', encoding="utf-8")
    (folder / "list.ipynb").write_text('{"metadata": {}, "nbformat": 4}', encoding="utf-8")
    (folder / "latin.ipynb").write_bytes(b'{"cells": [], "metadata": {"name": "caf\xe9"}}')
    (folder / "future.ipynb").write_text('{"cells": [], "nbformat": 9}', encoding="utf-8")
    for path in (*folder.iterdir(), folder):
        os.utime(path, (1, 1))  # what was written just now may be half of a save
    return folder


def play(story: list[Step]) -> list[dict[str, Any]]:
    """Run the steps; those before a dash are only prepared for."""
    if "-" in story:
        start = story.index("-")
        for step in story[:start]:
            succeed(*words_of(step), stdin="" if isinstance(step, str) else step[1])
        story = story[start + 1 :]
    shown = []
    run = ""
    for step in story:
        stdin = "" if isinstance(step, str) else step[1]
        answer = call(*(run if word == "RUN" else word for word in words_of(step)), stdin=stdin)
        run = (answer.json["data"] or {}).get("run", run)
        assert answer.err == "", "with --json there is no talk"
        line = step if isinstance(step, str) else step[0]
        shown.append({"command": line, "exit": answer.code, "answer": answer.json})
    return shown


def check_story(name: str, files: Path, places: Path) -> None:
    """Play a story, and compare its answers with the golden file of that name."""
    # Sources and ids of the sample are fixed, so that its hashes and revision are too.
    keep = _hashes(call("read", "nb.ipynb", "--json").json) if name == "read" else ()
    names = golden.Names(frozenset(keep), folder=os.path.realpath(files), places=str(places))
    golden.check(name, names.of(play((STORIES | PROCESS_STORIES)[name])))


def _hashes(answer: dict[str, Any]) -> list[str]:
    return [answer["data"]["revision"], *(cell["hash"] for cell in answer["data"]["cells"])]
