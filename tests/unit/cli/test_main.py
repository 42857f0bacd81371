"""The command as a whole: its help, its common options, and what it makes of a wrong word."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest

from cellwright import __version__
from cellwright.cli.main import COMMANDS
from cellwright.cli.main import command as group
from tests.cases import for_each
from tests.unit.cli import samples
from tests.unit.cli.calling import call, succeed
from tests.unit.cli.reference import walk, words

if TYPE_CHECKING:
    from pathlib import Path

CONTEXTS = {words(context): context for context in walk(group, "cellwright")}


def examples(context: click.Context) -> list[str]:
    """The command lines that a help text shows."""
    text = context.get_help()
    body = text[text.index("\n") : text.index("\nOptions:")]
    lines = [line for line in body.splitlines() if re.match(r"  \S.*", line)]
    shown = [part for line in lines for part in re.split(r" \| | >>? ", line)]
    # What comes after two spaces explains it.
    return [
        re.split(r"\s{2,}", part.strip())[0]
        for part in shown
        if part.strip().startswith("cellwright ")
    ]


@for_each("name", CONTEXTS)
def test_every_help_says_what_for_and_shows_an_example(name: str) -> None:
    context = CONTEXTS[name]
    assert context.command.help
    assert examples(context), "no line that begins with `cellwright `"


@for_each("name", CONTEXTS)
def test_every_example_in_a_help_is_about_its_command_and_can_be_parsed(name: str) -> None:
    for line in examples(CONTEXTS[name]):
        parse(shlex.split(line)[1:])
    own = name.split()
    assert any(mentions(shlex.split(line), own) for line in examples(CONTEXTS[name]))


def mentions(line: list[str], own: list[str]) -> bool:
    """Whether the words of a command stand in a line, in order, with arguments between them."""
    rest = iter(line)
    return all(word in rest for word in own)


def parse(given: list[str], command: click.Command = group, parent: click.Context | None = None):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Parse a command line as click would, without running anything."""
    name = "cellwright" if parent is None else given.pop(0)
    context = command.make_context(name, given, parent=parent)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        assert rest, "a command is missing"
        found = command.get_command(context, rest[0])
        assert found is not None, f"no command {rest[0]}"
        parse(rest, found, context)


@for_each("name", CONTEXTS)
def test_help_goes_to_stdout_and_is_no_wider_than_a_terminal(name: str, folder: Path) -> None:
    given = name.split()[1:]
    if given[:1] == ["edit"]:
        given.insert(1, str(folder / "nb.ipynb"))
    for flag in ("--help", "-h"):
        answer = succeed(*given, flag)
        assert answer.err == ""
        assert answer.text.startswith("Usage: cellwright")
        assert max(map(len, answer.text.splitlines())) <= 90


@pytest.mark.parametrize("given", [[], ["edit"], ["git"]], ids=["all", "edit", "git"])
def test_a_command_of_commands_alone_shows_its_help(given: list[str]) -> None:
    answer = call(*given)
    shown = answer.text or answer.err
    assert shown.startswith("Usage: cellwright")
    assert "error:" not in shown


def test_the_version_is_told() -> None:
    assert succeed("--version").text == f"cellwright {__version__}\n"


def test_the_commands_are_those_of_the_design_and_a_few_more() -> None:
    designed = (
        *("read", "write", "show", "edit", "new", "run", "eval", "outputs", "log", "diff", "undo"),
        *("redo", "blame", "stale", "runs", "sessions", "kernel", "artifact", "batch", "mcp"),
        *("chat", "lab", "engine", "git", "upgrade", "demo", "doctor", "config"),
    )
    beyond = {
        "acp",
        "attach",
        "backup",
        "cancel",
        "completion",
        "conformance",
        "forget",
        "key",
        "sync",
    }
    beyond |= {"strip", "check-clean", "lint"}
    assert set(COMMANDS) == {*designed, *beyond}


# --- Wrong words ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["raed", "nb.ipynb"], "read"),
        (["wriet", "nb.ipynb"], "write"),
        (["udno", "nb.ipynb"], "undo"),
        (["edit", "nb.ipynb", "repalce", "0"], "replace"),
        (["git", "instal"], "install"),
        (["read", "nb.ipynb", "--jsno"], "--json"),
        (["config", "lock_timeot"], "lock_timeout"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value,
)
def test_a_misspelt_word_is_answered_with_the_one_that_is_near(
    given: list[str], meant: str
) -> None:
    answer = call(*given)
    assert answer.code == 2
    assert answer.out == b""
    assert f"'{meant}'" in answer.err.splitlines()[0]


def test_a_word_that_is_near_nothing_gets_no_suggestion() -> None:
    answer = call("xyzzy")
    assert answer.code == 2
    assert "Did you mean" not in answer.err
    assert "hint: Try 'cellwright --help'" in answer.err


# --- Options that every command has --------------------------------------------------------------

COMMON = {"--root", "--json", "--mode", "--no-engine", "--quiet", "--verbose"}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, context in CONTEXTS.items()
        if not isinstance(context.command, click.Group)
        and name != "cellwright completion"  # a script for a shell, whatever the options
    ],
)
def test_every_command_has_the_common_options(name: str) -> None:
    known = {option for param in CONTEXTS[name].command.params for option in param.opts}
    assert known >= COMMON


@pytest.mark.parametrize(
    "given",
    [
        ["--json", "read", "nb.ipynb"],
        ["read", "--json", "nb.ipynb"],
        ["read", "nb.ipynb", "--json"],
        ["--json", "edit", "nb.ipynb", "delete", "0", "--dry-run"],
        ["edit", "nb.ipynb", "delete", "0", "--dry-run", "--json"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("folder")
def test_a_common_option_may_stand_before_or_after_the_command(given: list[str]) -> None:
    answer = succeed(*given)
    assert answer.data["path"] == "nb.ipynb"


def test_root_and_mode_hold_wherever_they_stand(folder: Path) -> None:
    (folder / "inside").mkdir()
    for given in (
        ["--root", "inside", "read", "nb.ipynb"],
        ["read", "--root", "inside", "nb.ipynb"],
    ):
        assert call("--json", *given).error["code"] == "OUTSIDE_ROOT"
    for given in (
        ["--mode", "ask", "edit", "nb.ipynb", "delete", "0"],
        ["edit", "nb.ipynb", "delete", "0", "--mode", "ask"],
    ):
        assert call(*given).code == 5


@pytest.mark.usefixtures("folder")
def test_quiet_says_nothing_when_all_went_well() -> None:
    for given in (
        ["edit", "nb.ipynb", "delete", "notes"],
        ["undo", "nb.ipynb"],
        ["redo", "nb.ipynb"],
        ["new", "made.ipynb"],
        ["backup", "nb.ipynb", "--restore", "first"],
        ["upgrade", "nb.ipynb"],
    ):
        answer = succeed(*given, "--quiet")
        assert (answer.out, answer.err) == (b"", "")
    assert succeed("read", "nb.ipynb:1", "-q").err == ""
    assert call("read", "nowhere.ipynb", "-q").err.startswith("error: ")


def test_quiet_still_gives_the_data(folder: Path) -> None:
    dry = succeed("edit", "nb.ipynb", "delete", "notes", "--dry-run", "--quiet")
    assert dry.err == ""
    assert "-as is" in dry.text
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


# --- References ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", ["notes", "cell-6", "6", "-1"])
@pytest.mark.usefixtures("folder")
def test_a_cell_is_named_by_id_handle_index_or_from_the_end(ref: str) -> None:
    cells = succeed("edit", "nb.ipynb", "delete", ref, "--json").data["cells"]
    assert cells == [
        {"kind": "deleted", "handle": "notes", "type": "raw", "before": 6, "after": None}
    ]


@pytest.mark.usefixtures("folder")
def test_a_negative_index_works_wherever_a_cell_is_named() -> None:
    for given in (
        ["replace", "-1", "x"],
        ["replace-text", "-1", "x", "y"],
        ["move", "-1", "--at", "0"],
        ["insert", "z", "--after", "-1"],
        ["split", "-1", "0"],
        ["set-type", "-1", "raw"],
        ["set-metadata", "{}", "--cell", "-1"],
        ["clear-outputs", "-1"],
        ["merge", "-2", "-1"],
    ):
        answer = call("edit", "nb.ipynb", *given, "--json")
        assert answer.code in (0, 3), given
        assert answer.code == 0 or answer.error["code"] != "CELL_NOT_FOUND"


def test_a_source_may_begin_with_a_dash_after_two_dashes(folder: Path) -> None:
    succeed("edit", "nb.ipynb", "replace", "sum", "--", "-total")
    assert '"-total"' in (folder / "nb.ipynb").read_text(encoding="utf-8")


def test_a_variable_that_is_no_setting_is_a_warning_and_stops_no_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder
    monkeypatch.setenv("CELLWRIGHT_LOCK_TIMOUT", "1")
    monkeypatch.setenv("CELLWRIGHT_SERVER_TOKEN", "secret")
    for given in (["read", "nb.ipynb"], ["config"], ["kernel", "specs"], ["sessions"]):
        answer = succeed(*given)
        assert "warning: The variable CELLWRIGHT_LOCK_TIMOUT is ignored" in answer.err, answer
        assert "SERVER_TOKEN" not in answer.err
