"""Every error, as it reaches a model: with a tool to call next, and nothing for a shell."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.errors import CellNotFound, CellwrightError, KernelMissing, NotebookNotFound
from cellwright.tools.errors import NEXT_CALLS, describe_error, drop_shell_hint, format_hint
from cellwright.tools.native import NATIVE
from cellwright.tools.profiles import PROFILES
from cellwright.tools.toolbox import Toolbox
from tests.conftest import ROOT
from tests.unit.test_errors import CLASSES, instances

if TYPE_CHECKING:
    from cellwright.tools.tool import Tool

NAMES = [tool.name for tool in NATIVE]
SHELL = "Install it: `/usr/bin/python3 -m pip install ipykernel`; or choose another"


def texts(error: CellwrightError, tools: tuple[Tool, ...]) -> list[str]:
    """What a model reads about an error, from each of these tools."""
    names = [tool.name for tool in tools]
    found = [
        tool.refused(error) if tool.refused is not None else describe_error(error, names)
        for tool in tools
    ]
    return [f"{each.text}\n{json.dumps(each.data, ensure_ascii=False)}" for each in found]


def every_error() -> list[CellwrightError]:
    found = [error for kind in CLASSES for error in instances(kind)]
    return [*found, KernelMissing("none", hint=SHELL), KernelMissing("none", hint="Use --runner")]


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_no_command_and_no_flag_reaches_a_model(profile: str) -> None:
    for error in every_error():
        for text in texts(error, PROFILES[profile]):
            assert "--" not in text, error
            assert "`cellwright " not in text, error
            assert "pip install" not in text, error


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_only_tools_of_the_profile_are_named(profile: str) -> None:
    tools = PROFILES[profile]
    absent = set(NAMES) - {tool.name for tool in tools}
    for error in every_error():
        hint = format_hint(error, [tool.name for tool in tools])
        for call in NEXT_CALLS.get(error.code, ()):
            if call.tool in absent:
                assert str(call) not in hint.split(": ")[-1].split(" or ")


def test_every_call_that_is_named_can_be_made() -> None:
    properties: dict[str, dict[str, Any]] = {
        row["name"]: row["inputSchema"]["properties"] for row in Toolbox(NATIVE).table()
    }
    for code, calls in NEXT_CALLS.items():
        assert code in {kind.code for kind in CLASSES}
        for call in calls:
            for argument in filter(None, call.arguments.split(", ")):
                name, value = argument.split("=")
                schema = properties[call.tool][name]
                assert value in schema.get("enum", [value])
                assert (value == "true") == (schema["type"] == "boolean")


# What only people at a shell see, and hints of errors, which `drop_shell_hint` keeps from models.
FOR_SHELLS = {
    *{("kernel/discovery.py", "pip install"), ("outputs/images.py", "pip install")},
    ("tools/errors.py", "pip install"),  # the pattern that finds such hints
    ("mcp/clients.py", "cellwright m"),  # what people paste into their client
}
ROOMS = (
    "dataflow",
    "document",
    "journal",
    "kernel",
    "mcp",
    "outputs",
    "text",
    "tools",
    "workspace",
)


def test_no_sentence_that_can_reach_a_model_has_a_command_or_a_flag() -> None:
    """Notes, warnings and answers are written in these rooms; docstrings are for programmers."""
    source = ROOT / "src" / "cellwright"
    looks_like_shell = re.compile(r"`cellwright \w|pip install|`[^`\n]* --\w").search
    found = set()
    for room in ROOMS:
        for path in sorted((source / room).rglob("*.py")):
            text = path.read_text("utf-8")
            if not re.search(r"`cellwright|\bpip\b|--\w", text):
                continue  # nothing to find, and parsing takes long
            tree = ast.parse(text)
            documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    shell = looks_like_shell(node.value)
                    if shell and id(node) not in documented:
                        found.add((path.relative_to(source).as_posix(), shell[0].strip("`")))
    assert found <= FOR_SHELLS


def test_the_next_call_follows_the_hint() -> None:
    assert format_hint(NotebookNotFound("a.ipynb"), NAMES) == (
        "Check the path, or create it: notebook_list or notebook_edit with create=true"
    )
    assert format_hint(NotebookNotFound("a.ipynb"), ["notebook_list"]) == (
        "Check the path, or create it: notebook_list"
    )
    assert format_hint(NotebookNotFound("a.ipynb")) == "Check the path, or create it"


def test_what_was_probably_meant_is_all_that_is_said() -> None:
    assert format_hint(CellNotFound("lod", near=["load"]), NAMES) == "Did you mean load?"


def test_a_hint_for_shells_gives_way_to_the_next_call() -> None:
    assert drop_shell_hint(SHELL) == drop_shell_hint(None) == ""
    assert format_hint(KernelMissing("none", hint=SHELL), NAMES) == "kernel with action=specs"


def test_a_mode_without_edits_names_no_tool_that_edits() -> None:
    names = [tool.name for tool in Toolbox(NATIVE, "ask").list_tools()]

    named = " ".join(format_hint(error, names) for error in every_error())

    assert not re.search(r"notebook_(edit|run) with", named)
