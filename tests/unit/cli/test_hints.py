"""The next steps that the command line adds to hints can be typed as they are written."""

from __future__ import annotations

import re
import shlex
from importlib.metadata import metadata

import click
import pytest

from cellwright import errors
from cellwright.assistant.models.keys import key_hint
from cellwright.assistant.models.providers import PROVIDERS, find_endpoint
from cellwright.cli.chat.slash_commands import COMMANDS as SLASH_COMMANDS
from cellwright.cli.main import command as group
from cellwright.cli.output import NEXT_STEPS, complete_hint, complete_notes
from cellwright.config.settings import Settings
from cellwright.workspace.runs.execution import Execution
from tests.conftest import ROOT
from tests.unit.cli.calling import call

CODES = {
    kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")
}


def find_command(words: list[str]) -> click.Command:
    """The command that these words begin with."""
    found: click.Command = group
    for word in words:
        if not isinstance(found, click.Group) or word.startswith("-"):
            break
        below = found.get_command(click.Context(found), word)
        assert below is not None, word
        found = below
    return found


def options_of(command: click.Command) -> set[str]:
    return {name for param in command.params for name in param.opts}


@pytest.mark.parametrize("key", NEXT_STEPS)
def test_a_next_step_names_commands_and_options_that_exist(key: str) -> None:
    code, _, name = key.partition(" ")
    assert code in CODES
    typed = re.findall("`([^`]+)`", NEXT_STEPS[key])
    assert typed
    for text in typed:
        words = shlex.split(text)
        if words[0].startswith("/"):
            assert words[0][1:] in SLASH_COMMANDS
        elif words[0] == "cellwright":
            command = find_command(words[1:])
            assert command is not group
            used = {word for word in words if word.startswith("-")}
            assert used <= options_of(command)
        else:  # an option of the command that failed; of any command, if none is named
            assert words[0] in options_of(find_command([name or "read"]))


def test_an_error_without_a_step_keeps_its_hint() -> None:
    error = errors.Locked("nb.ipynb", 3)
    assert complete_hint(error, "edit") == error.hint
    assert complete_hint(errors.InvalidCall("no verb")) is None


def test_only_eval_is_told_of_the_runner() -> None:
    error = errors.KernelMissing("There is no kernel `x` here", hint="Choose another kernel")
    assert "--runner" in str(complete_hint(error, "eval"))
    assert "--runner" not in str(complete_hint(error, "run"))
    assert "--kernel" not in str(complete_hint(error, "edit"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "step"),
    [
        (["undo", "nb.ipynb", "deadbeef"], "`cellwright log NB`"),
        (["read", "/nb.ipynb", "--root", "."], "`--root DIR`"),
        (["edit", "nb.ipynb", "delete", "0", "--mode", "ask"], "`--mode agent`"),
    ],
)
def test_the_step_follows_the_hint_on_the_terminal_and_in_json(words: list[str], step: str) -> None:
    hint = call(*words, "--json").error["hint"]
    assert hint.endswith(f": {step}")
    assert call(*words).err.endswith(f"hint: {hint}\n")


def test_lost_variables_come_with_the_command_that_brings_them_back() -> None:
    died = Execution("died", "c 3", 3, notes=["Variables lost"], replay=["c1"])
    assert complete_notes(died, "my nb.ipynb") == [
        "Variables lost",
        "`cellwright run 'my nb.ipynb' --replay 'c 3'` does that",
    ]
    assert complete_notes(died.replace(replay=[]), "nb.ipynb") == ["Variables lost"]


SOURCES = "\n".join(path.read_text("utf-8") for path in (ROOT / "src/cellwright").rglob("*.py"))


def test_every_command_that_the_sources_name_can_be_typed() -> None:
    """Wherever it is written: in hints, notes, warnings and help."""
    found = set(re.findall(r"`(?:\.\.\. )?(cellwright [a-z][^`]*)`", SOURCES))
    assert len(found) > 20
    for text in found:
        words = re.sub(r"\{[^}]*\}", "X", text.replace("\n", " ")).split()
        if words[1].startswith("-"):
            continue
        if "|" in words[1]:
            words[1] = words[1].partition("|")[0]
        command = find_command(
            [word for word in words[1:] if word.isalpha() and word.islower()][:2]
        )
        used = {word.rstrip(",").partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= options_of(command), text


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("address", ["", "https://models.example.org/v1"])
def test_the_command_that_stores_a_key_can_be_typed(provider: str, address: str) -> None:
    settings = Settings(assistant_base_url=address)
    hint = key_hint(find_endpoint(f"{provider}:x", settings, {}), {})
    words = shlex.split(hint[hint.index("cellwright ") :])
    command = find_command(words[1:])
    assert (command, words[2]) == (group.get_command(click.Context(group), "key"), provider)
    assert {word for word in words if word.startswith("-")} <= options_of(command)
    variable = PROVIDERS[provider].key_variable
    assert (f"Set {variable}," in hint) == (variable is not None and not address)


def test_every_extra_that_the_sources_name_can_be_installed() -> None:
    extras = metadata("cellwright").get_all("Provides-Extra") or []
    found = set(re.findall(r"cellwright\[(\w+)\]", SOURCES))
    assert found
    assert found <= set(extras)
