"""The tools as a model meets them: names, schemas, descriptions, and how much there is to read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from cellwright.outputs.describe import CHARACTERS_PER_TOKEN
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import allowed_effects
from cellwright.tools.toolbox import Toolbox
from tests.cases import for_each

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = {f"{name}-{tool.name}": tool for name, tools in PROFILES.items() for tool in tools}
_mentioned = re.compile(r"`([a-z_]+)`|\b([a-z_]+)=").finditer


def tokens(profile: str) -> int:
    names = ("name", "description", "inputSchema")
    rows = [{name: row[name] for name in names} for row in Toolbox(PROFILES[profile]).table()]
    return len(json.dumps(rows, separators=(",", ":"))) // CHARACTERS_PER_TOKEN


def test_the_native_table_is_short() -> None:
    """At most 2,600 tokens of o200k with titles and hints; tests/integration/tools counts them."""
    assert tokens("native") <= 2300


def test_every_profile_is_short() -> None:
    assert {name: tokens(name) for name in PROFILES if tokens(name) > 1000}.keys() <= {
        "native",
        "all",
    }


def test_the_profiles_have_the_tools_of_their_documents() -> None:
    names = {profile: [tool.name for tool in tools] for profile, tools in PROFILES.items()}
    assert names.pop("all") == list(dict.fromkeys(name for row in names.values() for name in row))
    assert names == {
        "native": [
            "notebook_list",
            "notebook_read",
            "notebook_edit",
            "notebook_run",
            "notebook_outputs",
            "notebook_history",
            "kernel",
            "eval",
        ],
        "positron": [
            "GetNotebookCells",
            "GetCellOutputs",
            "RunNotebookCells",
            "AddNotebookCell",
            "UpdateNotebookCell",
        ],
        "notebookedit": ["NotebookEdit"],
        "notebook": ["notebook", "python"],
        "text": ["read", "edit", "write", "eval"],
        "manipulator": [
            "get_cell_count",
            "get_notebook_metadata",
            "get_cell_range",
            "splice_cell_range",
            "set_notebook_metadata",
            "execute_cell_range",
        ],
    }


def test_where_two_profiles_have_a_tool_of_one_name_all_has_the_native_one() -> None:
    (found,) = [tool for tool in PROFILES["all"] if tool.name == "eval"]
    assert found in PROFILES["native"]


@for_each("name", ALL)
def test_a_schema_is_an_object_and_valid_json_schema(name: str) -> None:
    for mode in ("ask", "edit", "agent"):
        schema = ALL[name].schema(allowed_effects(mode))
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "$ref" not in json.dumps(schema)


def walk(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema and all in it."""
    yield schema
    for inner in [*schema.get("properties", {}).values(), schema.get("items")]:
        if inner is not None:
            yield from walk(inner)


@for_each("name", ALL)
def test_a_schema_keeps_to_what_every_model_api_takes(name: str) -> None:
    """Gemini, OpenAI strict and Anthropic strict; tests/integration/tools asks the libraries."""
    for schema in walk(ALL[name].schema(allowed_effects("agent"))):
        assert isinstance(schema["type"], str)  # Gemini and Anthropic refuse a list of types
        # Gemini refuses booleans here, and whatever it does not know; strict sets it itself.
        known = {"type", "description", "properties", "required", "items", "enum", "default"}
        limits = {"minimum", "maximum", "minItems", "maxItems", "maxLength"}
        assert schema.keys() <= known | limits
        # A strict object lists its properties, and a strict array says of what.
        assert schema["type"] != "object" or schema["properties"] or schema.get("required") is None
        assert schema["type"] != "array" or schema["items"]["type"]
        assert "" not in schema.get("enum", [])  # Gemini refuses an empty choice
        if schema["type"] == "object" and "properties" not in schema:
            pytest.fail("an object without properties")


@for_each("name", ALL)
def test_what_a_docstring_says_to_us_is_not_in_the_schema(name: str) -> None:
    for schema in walk(ALL[name].schema(allowed_effects("agent"))):
        assert "\n" not in schema.get("description", "")


@for_each("name", ALL)
def test_strict_apis_can_say_that_an_optional_choice_is_not_made(name: str) -> None:
    """They make the model give every parameter, so that one of the choices must be the default."""
    for schema in walk(ALL[name].schema(allowed_effects("agent"))):
        for field, inner in schema.get("properties", {}).items():
            is_needed = field in schema.get("required", [])
            if "enum" in inner and not is_needed and field != "cell_type":  # only insert reads it
                assert inner["default"] in inner["enum"], field


@for_each("name", ALL)
def test_a_description_speaks_of_parameters_and_tools_that_there_are(name: str) -> None:
    tool = ALL[name]
    known = {*json.dumps(tool.schema(allowed_effects("agent"))).replace('"', " ").split()}
    known |= {other.name for other in PROFILES["all"]} | {"base"}
    known = {word.strip(":,") for word in known}
    for match in _mentioned(tool.describe(allowed_effects("agent"))):
        assert (match[1] or match[2]) in known, match[0]


@for_each("name", ALL)
def test_every_tool_can_be_referenced_and_says_whether_it_only_reads(name: str) -> None:
    tool = ALL[name]
    assert tool.title
    assert tool.description.endswith(".")
    assert re.fullmatch(r"[a-z][A-Za-z]+", tool.reference)
    only_reads = tool.is_allowed(allowed_effects("ask")) and isinstance(tool.effects, str)
    assert ("read-only" in tool.tags) == only_reads


def test_reference_names_differ() -> None:
    names = [tool.reference for tool in PROFILES["all"]]
    assert len(set(names)) == len(names)


def test_the_table_has_what_a_door_tells_its_client() -> None:
    row = Toolbox(PROFILES["positron"]).table()[0]
    schema = row.pop("inputSchema")
    assert row == {
        "name": "GetNotebookCells",
        "title": "Get notebook cells",
        "description": "Read cells of the notebook with their status.",
        "tags": ["read-only", "requires-notebook"],
        "toolReferenceName": "getNotebookCells",
        "canBeReferencedInPrompt": True,
    }
    assert schema["properties"].keys() == {"cellIds", "path", "offset"}


PARAMETERS = {
    "notebook_read": ("path", "view", "cells", "section", "only", "search", "outputs", "offset", "max_tokens"),
    "notebook_edit": ("path", "edits", "run", "base", "dry_run", "create", "timeout", "max_tokens"),
    "GetNotebookCells": ("cellIds", "path", "offset"),
    "GetCellOutputs": ("cellId", "path", "offset"),
    "RunNotebookCells": ("cellIds", "path"),
    "AddNotebookCell": ("type", "index", "content", "path"),
    "UpdateNotebookCell": ("cellId", "content", "path"),
    "NotebookEdit": ("notebook_path", "cell_id", "cell_type", "new_source", "edit_mode", "outputs", "edits", "backup", "create"),
    "notebook": ("action", "notebook_path", "cell_index", "content", "cell_type"),
    "python": ("cells", "timeout", "cwd", "reset", "per_call"),
    "read": ("path", "max_tokens"),
    "edit": ("path", "edits"),
    "write": ("path", "content", "base"),
    "get_cell_count": ("path",),
    "get_notebook_metadata": ("path",),
    "get_cell_range": ("start", "end", "path"),
    "splice_cell_range": ("start", "delete_count", "cells", "path"),
    "set_notebook_metadata": ("metadata", "merge", "path"),
    "execute_cell_range": ("start", "end", "path"),
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_parameters_are_those_of_the_document(name: str) -> None:
    (tool,) = [tool for tool in PROFILES["all"] if tool.name == name]
    assert tuple(tool.schema(allowed_effects("agent"))["properties"]) == PARAMETERS[name]


REQUIRED = {
    "GetNotebookCells": None,
    "RunNotebookCells": ["cellIds"],
    "AddNotebookCell": ["type", "index", "content"],
    "NotebookEdit": ["notebook_path"],
    "notebook": ["action", "notebook_path", "cell_index"],
    "python": ["cells"],
    "get_cell_range": ["start", "end"],
    "splice_cell_range": ["start"],
    "set_notebook_metadata": ["metadata"],
    "execute_cell_range": ["start", "end"],
}


@pytest.mark.parametrize("name", REQUIRED)
def test_what_is_required_is_what_the_document_requires(name: str) -> None:
    (tool,) = [tool for tool in PROFILES["all"] if tool.name == name]
    assert tool.schema(allowed_effects("agent")).get("required") == REQUIRED[name]


def test_an_answer_comes_within_45_seconds_unless_asked_otherwise() -> None:
    for name in ("notebook_run", "eval"):
        (tool,) = [tool for tool in PROFILES["native"] if tool.name == name]
        assert tool.schema(allowed_effects("agent"))["properties"]["wait"]["default"] == 45
    for tool in PROFILES["native"]:
        budget = tool.schema(allowed_effects("agent"))["properties"]["max_tokens"]
        assert budget["default"] <= 8000
