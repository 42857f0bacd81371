"""The table of verbs, held against what they are."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from cellwright.engine import verbs
from cellwright.errors import InvalidCall
from cellwright.workspace.runs.notebook_run import NotebookRun
from cellwright.workspace.workspace import Book, Workspace
from tests.conftest import ROOT

# What is no data: these are given by the engine, and called over the wire.
CALLBACKS = {"ask", "progress", "until", "done", "stop"}
# For cells that run cells, which ask their host and not the engine's socket.
FOR_CELLS = {"nested"}
INSIDE = {"load", "record_run", "record_execution", "open", "close", "require"}


def parameters(function: Any) -> set[str]:
    found = inspect.signature(function).parameters.values()
    return {each.name for each in found if each.kind is not each.VAR_KEYWORD} - CALLBACKS - {"self"}


def public(kind: type) -> set[str]:
    return {
        name for name, value in vars(kind).items() if name[0] != "_" and inspect.isfunction(value)
    }


@pytest.mark.parametrize("verb", sorted(verbs.WORKSPACE))
def test_a_verb_of_a_workspace_has_the_parameters_of_the_table(verb: str) -> None:
    assert set(verbs.WORKSPACE[verb]) == parameters(getattr(Workspace, verb))


@pytest.mark.parametrize("verb", sorted(verbs.BOOK))
def test_a_verb_of_a_notebook_has_the_parameters_of_the_table(verb: str) -> None:
    wanted = parameters(getattr(Book, verb))
    how = parameters(NotebookRun.__init__) - {"book", "evaluator"} - FOR_CELLS | {"detach"}
    if verb == "run":
        wanted |= how
    elif verb == "edit":
        wanted |= how - {"check"}  # nothing is compared right after an edit
    assert set(verbs.BOOK[verb]) == wanted


def test_all_verbs_are_in_the_table() -> None:
    assert public(Workspace) - INSIDE == set(verbs.WORKSPACE)
    assert public(Book) - INSIDE == set(verbs.BOOK)


def test_the_table_is_the_one_that_is_written_down() -> None:
    page = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*) \|$", page.partition("| verb |")[2], re.MULTILINE))
    written = {verb: re.findall(r"`(\w+)`", names) for verb, names in rows.items()}
    books = {verb: ["path", *names] for verb, names in verbs.BOOK.items()}
    assert written == {**{verb: [*names] for verb, names in verbs.WORKSPACE.items()}, **books}


@pytest.mark.parametrize(
    ("verb", "params"),
    [
        ("nothing", {}),
        ("__class__", {}),
        ("close", {}),
        ("require", {}),
        ("read", {}),
        ("read", {"path": 5}),
        ("read", {"path": "nb.ipynb", "more": 1}),
        ("run", {"path": "nb.ipynb", "progress": 1}),
        ("run", {"path": "nb.ipynb", "stop": 1}),
        ("run", {"path": "nb.ipynb", "timeout": True}),
        ("run", {"path": "nb.ipynb", "cells": "c1"}),
        ("edit", {"path": "nb.ipynb", "edits": {}}),
        ("eval", {"cells": "1 + 1"}),
        ("eval", {"cells": [], "cwd": ["/"]}),
        ("watch", {"until": 1}),
        ("artifact", {"ref": "a", "offset": 1.5}),
        ("list", {"path": "x"}),
    ],
)
def test_what_is_not_in_the_table_cannot_be_called(verb: str, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidCall):
        verbs.check(verb, params)


def test_a_missing_parameter_is_named() -> None:
    with Workspace() as workspace, pytest.raises(InvalidCall, match="'run'"):
        verbs.carry_out(workspace, "cancel", {}, {}, lambda: False)
