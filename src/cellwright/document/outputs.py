"""What a code cell printed, displayed or raised, as typed values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@dataclass(frozen=True, slots=True)
class Stream:
    """Text that a cell wrote to `stdout` or `stderr`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Display:
    """Something a cell displayed, in one or several MIME types."""

    data: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result(Display):
    """The value of a cell's last expression."""

    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorOutput:
    """An exception that a cell raised."""

    ename: str
    evalue: str
    traceback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """An output of a type that this version does not know, as it is in the file."""

    value: Any


Output = Stream | Display | Result | ErrorOutput | Unknown


def parse_output(value: Any) -> Output:
    """Turn an output of a notebook into a typed one; what does not fit becomes `Unknown`."""
    if not isinstance(value, dict):
        return Unknown(value)
    kind = value.get("output_type")
    if kind == "stream":
        text = join_lines(value.get("text", ""))
        if not isinstance(text, str):
            return Unknown(value)
        return Stream(str(value.get("name", "stdout")), text)
    if kind in ("display_data", "execute_result"):
        data, metadata = value.get("data"), value.get("metadata")
        if not isinstance(data, dict):
            return Unknown(value)
        bundle = {mime: _join_if_text(mime, item) for mime, item in data.items()}
        extra = metadata if isinstance(metadata, dict) else {}
        if kind == "display_data":
            return Display(bundle, extra)
        return Result(bundle, extra, value.get("execution_count"))
    if kind == "error":
        traceback = value.get("traceback")
        lines = tuple(map(str, traceback)) if isinstance(traceback, list) else ()
        return ErrorOutput(str(value.get("ename", "")), str(value.get("evalue", "")), lines)
    return Unknown(value)


def _join_if_text(mime: str, value: Any) -> Any:
    # Only JSON types may hold a list that is data rather than lines.
    is_json = mime == "application/json" or (
        mime.startswith("application/") and mime.endswith("+json")
    )
    return value if is_json else join_lines(value)


def join_lines(value: Any) -> Any:
    """A text that is a list of lines as one string; everything else as it is."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value


def to_file_shape(output: Mapping[str, Any]) -> dict[str, Any]:
    """An output as files have it: text as lines, images and JSON unchanged."""
    shape = dict(output)
    if shape.get("output_type") == "stream":
        shape["text"] = _split_lines(shape.get("text"))
    elif isinstance(shape.get("data"), dict):
        shape["data"] = {
            mime: _split_lines(value)
            if mime.startswith("text/") or mime in _IN_LINES
            else _without_nan(value)
            for mime, value in shape["data"].items()
        }
    return {key: shape[key] for key in sorted(shape)}


_IN_LINES = ("application/javascript", "image/svg+xml")


def _split_lines(value: Any) -> Any:
    return value.splitlines(keepends=True) if isinstance(value, str) else value


def _without_nan(value: Any) -> Any:
    """The value with null in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value
