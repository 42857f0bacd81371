"""The rules of nbformat 4.0 to 4.5 for what an edit may write.

nbformat's own validator takes a tenth of a second to import and checks the whole notebook. An
edit has to check only what it writes. Tests compare these rules with nbformat's.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_JSON_MIME = re.compile(r"application/(.*\+)?json")
_COMMON = frozenset({"cell_type", "metadata", "source"})
_KEYS = {
    "code": _COMMON | {"outputs", "execution_count"},
    "markdown": _COMMON | {"attachments"},
    "raw": _COMMON | {"attachments"},
}
_OUTPUT_KEYS = {
    "stream": {"output_type", "name", "text"},
    "display_data": {"output_type", "data", "metadata"},
    "execute_result": {"output_type", "data", "metadata", "execution_count"},
    "error": {"output_type", "ename", "evalue", "traceback"},
}


def is_valid_id(value: object) -> bool:
    """Whether nbformat 4.5 allows this cell id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def cell_keys(cell_type: str, minor: int) -> frozenset[str]:
    """The members a cell of that type may have."""
    keys = _KEYS[cell_type]
    return keys | {"id"} if minor >= 5 else keys


def cell_problem(cell: Mapping[str, Any], minor: int) -> str | None:
    """What is wrong with a whole cell in nbformat's shape, or None."""
    cell_type = cell.get("cell_type")
    if not isinstance(cell_type, str) or cell_type not in _KEYS:
        return f"cell_type must be code, markdown or raw, not {cell_type!r}"
    allowed = cell_keys(cell_type, minor)
    required = allowed - {"attachments"}
    for key in cell:
        if key not in allowed:
            return f"a {cell_type} cell of nbformat 4.{minor} cannot have `{key}`"
    for key in sorted(required):
        if key not in cell:
            return f"a {cell_type} cell needs `{key}`"
    if minor >= 5 and not is_valid_id(cell["id"]):
        return "an id has 1 to 64 letters, digits, - and _"
    if not _is_text(cell["source"]):
        return "source must be a string or a list of strings"
    if not isinstance(cell["metadata"], dict):
        return "metadata must be an object"
    problem = cell_metadata_problem(cell["metadata"], cell_type, minor, cell["metadata"])
    if problem or cell_type != "code":
        return problem or _attachments_problem(cell.get("attachments", {}))
    if not _is_count(cell["execution_count"]):
        return "execution_count must be null or an integer from 0 on"
    if not isinstance(cell["outputs"], list):
        return "outputs must be a list"
    return next(filter(None, map(_output_problem, cell["outputs"])), None)


def cell_metadata_problem(
    metadata: Mapping[str, Any], cell_type: str, minor: int, keys: Iterable[str]
) -> str | None:
    """What is wrong with those keys of a cell's metadata, or None."""
    for key in keys:
        if key not in metadata:
            continue
        value = metadata[key]
        if key == "name" and not (isinstance(value, str) and re.fullmatch(".+", value)):
            return "`name` must be a non-empty string"
        if key == "tags" and not _is_tags(value):
            return "`tags` must be a list of different strings without commas"
        if key == "jupyter" and minor >= 3 and not isinstance(value, dict):
            return "`jupyter` must be an object"
        if key == "format" and cell_type == "raw" and not isinstance(value, str):
            return "`format` must be a string"
        if cell_type != "code":
            continue
        if key == "collapsed" and not isinstance(value, bool):
            return "`collapsed` must be true or false"
        if key == "scrolled" and not (isinstance(value, bool) or value == "auto"):
            return '`scrolled` must be true, false or "auto"'
        if key == "execution" and minor >= 4 and not _is_strings(value):
            return "`execution` must be an object of strings"
    return None


def notebook_metadata_problem(
    metadata: Mapping[str, Any], minor: int, keys: Iterable[str]
) -> str | None:
    """What is wrong with those keys of the notebook's metadata, or None."""
    for key in keys:
        if key not in metadata:
            continue
        value = metadata[key]
        if key == "kernelspec" and not _has_strings(value, ("name", "display_name")):
            return "`kernelspec` needs the strings `name` and `display_name`"
        if key == "language_info":
            problem = _language_problem(value)
            if problem:
                return problem
        if key == "orig_nbformat" and not (type(value) is int and value >= 1):
            return "`orig_nbformat` must be an integer from 1 on"
        if key == "title" and minor >= 2 and not isinstance(value, str):
            return "`title` must be a string"
        if key == "authors" and minor >= 2 and not isinstance(value, list):
            return "`authors` must be a list"
    return None


def _language_problem(value: object) -> str | None:
    if not _has_strings(value, ("name",)):
        return "`language_info` needs the string `name`"
    assert isinstance(value, dict)  # noqa: S101  # _has_strings looked; this tells mypy
    for key in ("file_extension", "mimetype", "pygments_lexer"):
        if not isinstance(value.get(key, ""), str):
            return f"`language_info.{key}` must be a string"
    if not isinstance(value.get("codemirror_mode", ""), (str, dict)):
        return "`language_info.codemirror_mode` must be a string or an object"
    return None


def _output_problem(output: object) -> str | None:
    if not isinstance(output, dict):
        return "an output must be an object"
    kind = output.get("output_type")
    if not isinstance(kind, str) or kind not in _OUTPUT_KEYS:
        return f"unknown output_type {kind!r}"
    if set(output) != _OUTPUT_KEYS[kind]:
        return f"a {kind} output has exactly {', '.join(sorted(_OUTPUT_KEYS[kind]))}"
    if kind == "stream":
        good = isinstance(output["name"], str) and _is_text(output["text"])
    elif kind == "error":
        good = _has_strings(output, ("ename", "evalue")) and _is_lines(output["traceback"])
    else:
        good = _is_bundle(output["data"]) and isinstance(output["metadata"], dict)
        good = good and _is_count(output.get("execution_count"))
    return None if good else f"a {kind} output holds a value of the wrong type"


def _attachments_problem(value: object) -> str | None:
    if isinstance(value, dict) and all(_is_bundle(bundle) for bundle in value.values()):
        return None
    return "attachments must be an object of MIME bundles"


def _is_bundle(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_text(data) or _JSON_MIME.fullmatch(mime.removesuffix("\n"))
        for mime, data in value.items()
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) or _is_lines(value)


def _is_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _is_tags(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(tag, str) and re.fullmatch("[^,]+", tag) for tag in value)
        and len(set(value)) == len(value)
    )


def _is_count(value: object) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_strings(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _has_strings(value: object, keys: Iterable[str]) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in keys)
