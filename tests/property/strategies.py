"""Notebooks as hypothesis draws them: any content, written in any style JSON allows."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

# Everything that has broken a notebook tool before: line breaks that are none, escapes, markers.
ODD_TEXT = [
    "",
    "\n",
    "\n\n",
    "x = 1",
    "x = 1\n",
    "a\nb\nc",
    "a\r\nb",
    "a\rb",
    "form\x0cfeed",
    "vertical\x0btab",
    "next\x85line",
    "line\u2028separator\u2029",
    "nul\x00byte",
    "esc\x1b[31mred",
    "lone \ud800 surrogate",
    "pair \U0001f600",
    "é ü 漢字",
    "back\\slash \\u00e9 \\n",
    "quote \" and '",
    "# %% [code] cell:3",
    "</script>",
    "trailing space ",
    "\t\tindented",
]
text = st.one_of(
    st.sampled_from(ODD_TEXT),
    st.text(st.characters(codec=None, exclude_categories=()), max_size=20),
    st.lists(st.sampled_from(ODD_TEXT), max_size=4).map("".join),
)
# Spellings that a parser would normalise away.
SPELLINGS = ["1e400", "-1E+2", "0.10", "1.0", "-0", "-0.0", "12345678901234567890123", "1e-7", "0"]


@dataclass(frozen=True)
class Spelled:
    """A number with a spelling of its own."""

    text: str


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    text,
    st.sampled_from(SPELLINGS).map(Spelled),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)),
    max_leaves=6,
)
keys = st.text("abcxyz_é", min_size=1, max_size=6)
free_metadata = st.dictionaries(keys, json_values, max_size=3)
ids = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=12)


@st.composite
def sources(draw: st.DrawFn) -> Any:
    """A source as one string, as nbformat's list of lines, or as some other list."""
    value = draw(text)
    form = draw(st.sampled_from(["list", "list", "list", "string", "irregular"]))
    if form == "string":
        return value
    if form == "list":
        return [line for line in re.split(r"(?<=\n)", value) if line]
    cuts = sorted(draw(st.lists(st.integers(0, len(value)), max_size=3)))
    return [value[a:b] for a, b in zip([0, *cuts], [*cuts, len(value)], strict=True)]


@st.composite
def outputs(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["stream", "display_data", "execute_result", "error"]))
    if kind == "stream":
        return {"output_type": kind, "name": "stdout", "text": draw(sources())}
    if kind == "error":
        return {
            "output_type": kind,
            "ename": draw(text),
            "evalue": draw(text),
            "traceback": draw(st.lists(text, max_size=2)),
        }
    bundle = {"text/plain": draw(sources()), "application/json": draw(json_values)}
    result = {"output_type": kind, "data": bundle, "metadata": draw(free_metadata)}
    if kind == "execute_result":
        result["execution_count"] = draw(st.none() | st.integers(0, 99))
    return result


@st.composite
def cells(draw: st.DrawFn, minor: int, *, valid: bool) -> dict[str, Any]:
    kind = draw(st.sampled_from(["code", "code", "markdown", "raw"]))
    cell: dict[str, Any] = {
        "cell_type": kind,
        "metadata": draw(free_metadata),
        "source": draw(sources()),
    }
    if kind == "code":
        cell["outputs"] = draw(st.lists(outputs(), max_size=2))
        cell["execution_count"] = draw(st.none() | st.integers(0, 99))
    elif draw(st.booleans()):
        cell["attachments"] = {"a.png": {"image/png": draw(text)}}
    if minor >= 5:
        cell["id"] = draw(ids)
    if not valid:
        for key in draw(st.lists(st.sampled_from(["id", "metadata", "outputs"]), max_size=2)):
            cell.pop(key, None)
        cell.update(draw(st.dictionaries(st.sampled_from(["x_extra", "y"]), json_values)))
    return cell


@st.composite
def values(draw: st.DrawFn, *, valid: bool = False, max_cells: int = 5) -> dict[str, Any]:
    """A notebook as a Python value; valid by nbformat's schema if asked for."""
    minor = draw(st.integers(0, 5))
    drawn = draw(st.lists(cells(minor, valid=valid), max_size=max_cells))
    if valid and minor >= 5:
        for number, cell in enumerate(drawn):
            cell["id"] = f"{cell['id']}-{number}"
    notebook = {
        "cells": drawn,
        "metadata": draw(free_metadata),
        "nbformat": 4,
        "nbformat_minor": minor,
    }
    if not valid:
        notebook.update(draw(st.dictionaries(st.sampled_from(["x_top", "a_top"]), json_values)))
    return notebook


@dataclass(frozen=True)
class Style:
    """How to write JSON; every field is a habit of some program."""

    indent: str | None
    newline: str
    colon: str
    comma: str
    escape: bool
    upper: bool
    shuffle: int
    bom: bool
    tail: str
    padding: str


styles = st.builds(
    Style,
    indent=st.sampled_from([None, "", " ", "  ", "   ", "    ", "        ", "\t"]),
    newline=st.sampled_from(["\n", "\n", "\r\n"]),
    colon=st.sampled_from([": ", ":", " : ", " :"]),
    comma=st.sampled_from([", ", ",", " , "]),
    escape=st.booleans(),
    upper=st.booleans(),
    shuffle=st.sampled_from([0, 0, 1, 2]),
    bom=st.sampled_from([False, False, True]),
    tail=st.sampled_from(["\n", "", "\r\n", " \n\n"]),
    padding=st.sampled_from(["", "", " ", "\n"]),
)


def write(value: Any, style: Style) -> bytes:
    """Write a value in a style; independent of the code under test."""
    body = style.padding + _write(value, style, 0, random.Random(style.shuffle)) + style.tail
    data = body.encode()
    return b"\xef\xbb\xbf" + data if style.bom else data


def _write(value: Any, style: Style, depth: int, dice: random.Random) -> str:
    if isinstance(value, Spelled):
        return value.text
    if isinstance(value, str):
        literal = json.dumps(value, ensure_ascii=style.escape)
        literal = re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", literal)
        if style.upper:
            literal = re.sub(
                r"(?<!\\)((?:\\\\)*\\u)([0-9a-f]{4})", lambda f: f[1] + f[2].upper(), literal
            )
        return literal
    if not isinstance(value, (list, dict)):
        return json.dumps(value)
    if isinstance(value, dict):
        items = list(value.items())
        if style.shuffle == 1:
            dice.shuffle(items)
        elif style.shuffle == 2:
            items.sort()
        rows = [
            _write(key, style, 0, dice) + style.colon + _write(item, style, depth + 1, dice)
            for key, item in items
        ]
        brackets = "{}"
    else:
        rows = [_write(item, style, depth + 1, dice) for item in value]
        brackets = "[]"
    if not rows:
        return brackets
    if style.indent is None:
        return brackets[0] + style.comma.join(rows) + brackets[1]
    inner = style.newline + style.indent * (depth + 1)
    outer = style.newline + style.indent * depth
    return brackets[0] + inner + ("," + inner).join(rows) + outer + brackets[1]


@st.composite
def files(draw: st.DrawFn, *, valid: bool = False, max_cells: int = 5) -> bytes:
    """The bytes of a notebook."""
    return write(draw(values(valid=valid, max_cells=max_cells)), draw(styles))
