"""What two runs of one notebook must agree on, and what no two runs ever agree on."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import itertools
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cellwright.document.outputs import Display, ErrorOutput, Result, Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cellwright import Notebook


class Rule(NamedTuple):
    """Text that differs between any two runs, be they of one program, and what stands for it."""

    pattern: re.Pattern[str]
    stands: str


_TIME = r"\d[\d.]* ?(?:ns|[µμu]s|ms|s|min|h)\b"  # there are two letters for micro

RULES = (
    # Where an object lies in memory: `<Line2D at 0x7f...>`.
    Rule(re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x…"),
    # ipykernel names the file of a cell's code after its process; warnings tell the name.
    Rule(re.compile(r"/ipykernel_\d+/"), "/ipykernel_…/"),
    # What `%time` and `%timeit` measured; how often they tried depends on that, too.
    Rule(re.compile(rf"(?m)^(CPU times|Wall time): .*{_TIME}.*$"), r"\1: …"),
    Rule(re.compile(rf"(?m)^{_TIME} ± .* per loop \(.*\)$"), "… per loop"),
)
SVG_RULES = (
    # matplotlib tells the date, and makes ids out of random numbers.
    Rule(re.compile(r"<dc:date>[^<]*</dc:date>"), "<dc:date>…</dc:date>"),
    Rule(re.compile(r"\b[a-z][0-9a-f]{10}\b"), "id…"),
)


def plain(text: str, rules: Iterable[Rule] = RULES) -> str:
    """The text without what differs between any two runs."""
    for rule in rules:
        text = rule.pattern.sub(rule.stands, text)
    return text


def comparable(cells: Iterable[dict[str, Any]]) -> list[Any]:
    """The counts and outputs of all cells that run, as far as any two runs must agree on them."""
    return [
        (cell["execution_count"], list(_outputs(cell["outputs"])))
        for cell in cells
        if cell["cell_type"] == "code" and cell["source"].strip()
    ]


def without_code(cells: Iterable[dict[str, Any]]) -> list[Any]:
    """The counts and outputs of cells that have no code to run: they stay as they are."""
    return [
        (cell["execution_count"], cell["outputs"])
        for cell in cells
        if cell["cell_type"] == "code" and not cell["source"].strip()
    ]


def _outputs(outputs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Outputs with the pieces of a stream joined, and without what is left to chance.

    nbclient keeps every piece of a stream as an output of its own where Jupyter makes one of them;
    how many pieces there are depends on the clock. So does the order of two streams between two
    other outputs: a kernel has a buffer for each.
    """
    for is_stream, group in itertools.groupby(outputs, lambda out: out["output_type"] == "stream"):
        if not is_stream:
            yield from map(_settled, group)
            continue
        texts: dict[str, str] = {}
        for output in group:
            texts[output["name"]] = texts.get(output["name"], "") + output["text"]
        for name in sorted(texts):
            yield {"output_type": "stream", "name": name, "text": plain(texts[name])}


def _settled(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _settled(each, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_settled(each) for each in value]
    if not isinstance(value, str):
        return value
    if key in {"image/png", "image/jpeg"}:
        return _pixels(value)
    return plain(value, SVG_RULES if key == "image/svg+xml" else RULES)


def _pixels(encoded: str) -> Any:
    """What a picture shows: its file may tell a date. As it is, if it is no picture."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
            return picture.size, picture.mode, hashlib.sha256(picture.tobytes()).hexdigest()
    except (UnidentifiedImageError, ValueError):
        return encoded


# --- What our own reader sees --------------------------------------------------------------------

_KINDS = {Stream: "stream", Display: "display_data", Result: "execute_result", ErrorOutput: "error"}


def as_nbformat(notebook: Notebook) -> list[dict[str, Any]]:
    """The cells of a notebook that we have read, in the words of nbformat."""
    return [
        {
            "cell_type": cell.type,
            "source": cell.source,
            "execution_count": cell.execution_count,
            "outputs": [
                {"output_type": _KINDS[type(output)], **dataclasses.asdict(output)}
                for output in cell.outputs
            ],
        }
        for cell in notebook.cells
    ]


# --- Bytes that a run has no business with -------------------------------------------------------

_blank = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder(strict=False)
CHANGES = ("execution_count", "outputs")


def frame(text: str) -> str:
    """The text of a notebook without the values that a run may change: the rest, to the letter."""
    pieces: list[str] = []
    done = 0
    for start, end in _changing(text):
        pieces.append(text[done:start])
        done = end
    return "…".join([*pieces, text[done:]])


def _changing(text: str) -> Iterator[tuple[int, int]]:
    notebook = dict(_members(text, _skip(text, 0)))
    for cell, _ in _items(text, notebook["cells"][0]):
        members = dict(_members(text, cell))
        kind = members["cell_type"]
        if json.loads(text[slice(*kind)]) == "code":
            yield from sorted(members[name] for name in CHANGES)


def _members(text: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """The members of the object that begins there: their keys, and where their values are."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        end = _decoder.raw_decode(text, start)[1]
        yield key, (start, end)
        at = _next(text, end)


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    at = _skip(text, at + 1)
    while text[at] != "]":
        end = _decoder.raw_decode(text, at)[1]
        yield at, end
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = _blank.match(text, at)
    assert found
    return found.end()
