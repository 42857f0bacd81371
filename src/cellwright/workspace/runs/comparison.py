"""Whether a cell gives again what its notebook holds: outputs compared, with what may differ.

| counts as equal | |
|---|---|
| execution counts | of cells and of results |
| memory addresses | `0x` and six hexadecimal digits or more |
| the file names that ipykernel gives to cells | `/tmp/ipykernel_71/123.py` |
| ids of widgets' models | |
| how a stream came in pieces, and the order of stdout and stderr | text is compared stream by stream |
| tracebacks and metadata of displays | errors are compared by name and message |

Everything else has to be the same: text to the character, pictures to the byte, JSON by value,
and the same MIME types in the same order of displays. Times, random numbers and paths differ.
"""

from __future__ import annotations

import difflib
import json
import re

from cellwright.document.outputs import Display, ErrorOutput, Stream, Unknown, parse_output
from cellwright.workspace.runs.execution import OutputCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.outputs import Output

_DIFF_LINES = 40
_LINE = 200
_volatile = re.compile(r"(0x)[0-9a-fA-F]{6,}|\S*ipykernel_\d+/\d+\.py")
_BINARY = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")


def compare_outputs(cell: Cell, status: str, outputs: Sequence[Mapping[str, Any]]) -> OutputCheck:
    """Compare what a cell says now with what is stored."""
    stored = cell.outputs
    now = tuple(map(parse_output, outputs))
    failed_then = any(isinstance(output, ErrorOutput) for output in stored)
    if status not in ("ok", "error") or (status == "error" and not failed_then):
        return OutputCheck("failed", _make_diff(stored, now) if stored else "")
    if not stored and cell.execution_count is None:
        return OutputCheck("unstored")
    if list_parts(stored) == list_parts(now):
        return OutputCheck("same")
    return OutputCheck("differs", _make_diff(stored, now))


def list_parts(outputs: Iterable[Output]) -> list[Any]:
    """What has to be equal: both streams as one text each, then the rest in order."""
    streams: dict[str, list[str]] = {}
    rest: list[Any] = []
    for output in outputs:
        if isinstance(output, Stream):
            streams.setdefault(output.name, []).append(output.text)
        elif isinstance(output, Display):
            data = {mime: _normalise_value(mime, value) for mime, value in output.data.items()}
            rest.append((type(output).__name__, data))
        elif isinstance(output, ErrorOutput):
            rest.append(("Error", output.ename, _normalise_text(output.evalue)))
        elif isinstance(output, Unknown):
            rest.append(("Unknown", output.value))
    texts = sorted((name, _normalise_text("".join(pieces))) for name, pieces in streams.items())
    return [*(("Stream", name, text) for name, text in texts if text), *rest]


def _normalise_value(mime: str, value: Any) -> Any:
    if isinstance(value, str):
        return "".join(value.split()) if mime in _BINARY else _normalise_text(value)
    if isinstance(value, dict) and "model_id" in value:
        return {**value, "model_id": ""}
    return value


def _normalise_text(text: str) -> str:
    return _volatile.sub(lambda found: f"{found[1]}…" if found[1] else "<cell>", text)


def _make_diff(stored: Sequence[Output], now: Sequence[Output]) -> str:
    lines = list(
        difflib.unified_diff(
            _list_lines(list_parts(stored)),
            _list_lines(list_parts(now)),
            "stored",
            "now",
            lineterm="",
            n=1,
        )
    )
    if len(lines) > _DIFF_LINES:
        lines[_DIFF_LINES:] = [f"… {len(lines) - _DIFF_LINES} more lines"]
    return "\n".join(line if len(line) <= _LINE else f"{line[:_LINE]}…" for line in lines)


def _list_lines(parts: Iterable[Any]) -> list[str]:
    """Outputs as lines that a person can compare; what is no text by its size and hash."""
    found: list[str] = []
    for kind, *rest in parts:
        if kind == "Stream":
            name, text = rest
            found += [f"[{name}] {line}" for line in text.splitlines()]
        elif kind == "Error":
            found.append(f"[error] {rest[0]}: {rest[1]}")
        elif kind == "Unknown":
            found.append(f"[unknown] {json.dumps(rest[0], sort_keys=True)}")
        else:
            for mime, value in rest[0].items():
                found += [f"[{mime}] {line}" for line in _split_lines(mime, value)]
    return found


def _split_lines(mime: str, value: Any) -> list[str]:
    if not isinstance(value, str):
        return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).splitlines()
    if mime in _BINARY:
        from cellwright.document.costs import blake2b

        digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        return [f"{len(value) * 3 // 4} bytes, {digest}"]
    return value.splitlines() or [""]
