"""The table of verbs, held against what they are."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cellwright.engine import verbs
from cellwright.errors import InvalidCall
from cellwright.workspace.book import Book
from cellwright.workspace.running import NotebookRun
from cellwright.workspace.workspace import Workspace

# What is no data: these are given by the engine, and called over the wire.
CALLBACKS = {"ask", "progress", "until", "done", "stop"}
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
    how = parameters(NotebookRun.__init__) - {"book", "evaluator"} | {"detach"}
    if verb == "run":
        wanted |= how
    elif verb == "edit":
        wanted |= how - {"check"}  # nothing is compared right after an edit
    assert set(verbs.BOOK[verb]) == wanted


def test_all_verbs_are_in_the_table() -> None:
    assert public(Workspace) - INSIDE == set(verbs.WORKSPACE)
    assert public(Book) - INSIDE == set(verbs.BOOK)


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
