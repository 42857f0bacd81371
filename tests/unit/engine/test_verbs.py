"""What may be called over the engine's socket: the table of verbs, and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cellwright.errors import InvalidCall
from cellwright.workspace.api.requests import CALLBACKS, VERBS, list_kinds, parse_request
from tests.conftest import ROOT

# Of every parameter's kind one value that fits.
SAMPLES: dict[type, Any] = {
    str: "nb.ipynb",
    int: 1,
    float: 1.5,
    bool: True,
    list: [],
    dict: {},
    type(None): None,
}


def make_table() -> str:
    """Return the table of `docs/engine.md`; to write it anew, run this file as a program."""
    rows = ["| verb | parameters |", "|---|---|"]
    for verb, request in VERBS.items():
        names = ", ".join(f"`{name}`" for name in request.FIELDS if name not in CALLBACKS)
        rows.append(f"| `{verb}` | {names} |" if names else f"| `{verb}` | |")
    return "\n".join(rows) + "\n"


def test_the_table_of_the_page_is_the_table_of_verbs() -> None:
    assert make_table() in (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_every_parameter_of_a_verb_crosses_the_wire_and_has_its_kinds(verb: str) -> None:
    kinds = list_kinds(VERBS[verb])
    assert set(kinds) == set(VERBS[verb].FIELDS) - CALLBACKS
    for place in range(max((len(each) for each in kinds.values()), default=1)):
        params = {name: SAMPLES[each[min(place, len(each) - 1)]] for name, each in kinds.items()}
        callbacks = {"progress": print, "until": bool, "ask": None}
        request = parse_request(verb, params, **callbacks)
        again = parse_request(verb, json.loads(json.dumps(request.to_wire())), **callbacks)
        assert again == request


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_data_cannot_be_sent(verb: str) -> None:
    for name in CALLBACKS:
        with pytest.raises(InvalidCall, match=f"no parameter `{name}`"):
            parse_request(verb, {name: 1})


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
        ("read", {"path": "nb\0.ipynb"}),
        ("run", {"path": "nb.ipynb", "progress": 1}),
        ("run", {"path": "nb.ipynb", "stop": 1}),
        ("run", {"path": "nb.ipynb", "timeout": True}),
        ("run", {"path": "nb.ipynb", "cells": "c1"}),
        ("edit", {"path": "nb.ipynb", "edits": {}}),
        ("eval", {"cells": "1 + 1"}),
        ("eval", {"cells": [], "cwd": ["/"]}),
        ("watch", {"until": 1}),
        ("artifact", {"ref": "a", "offset": 1.5}),
        ("artifact", {"ref": "a", "offset": 2**70}),
        ("list", {"path": "x"}),
    ],
)
def test_what_is_not_in_the_table_cannot_be_called(verb: str, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidCall):
        parse_request(verb, params)


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(InvalidCall, match="`run`"):
        parse_request("cancel", {})


if __name__ == "__main__":
    page = ROOT / "docs" / "engine.md"
    text = page.read_text(encoding="utf-8")
    found = re.sub(r"\| verb \| parameters \|\n(\|.*\n)+", lambda _: make_table(), text)
    page.write_text(found, encoding="utf-8")
