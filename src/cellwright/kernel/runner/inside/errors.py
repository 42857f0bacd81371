"""A cell's exception for people: the cell's own frames and lines, limited in size."""

# Why not: see the package's docstring.

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VALUE_CHARS = 1 << 14
LINE_CHARS = 1 << 14
LINES = 200
FOLDER = os.path.dirname(__file__) + os.sep


def describe_error(error: BaseException, sources: dict[str, str]) -> dict[str, Any]:
    """Describe an exception: `ename`, `evalue` and the lines of the traceback."""
    name = type(error).__name__
    try:
        value = _shorten(str(error), VALUE_CHARS)
    except Exception:  # noqa: BLE001
        value = "<its text could not be made>"
    try:
        lines = _traceback(error, sources)
    except BaseException as problem:  # noqa: BLE001 (the cell's error is reported in any case)
        lines = [f"{name}: {value}", f"(no traceback: {type(problem).__name__})"]
    return {"ename": name, "evalue": value, "traceback": lines}


def show_sources(linecache: Any, sources: dict[str, str]) -> None:
    """Give `linecache`, and with it tracebacks, `inspect` and debuggers, the cells' lines."""
    for filename, source in sources.items():
        if filename not in linecache.cache:
            # Without a modification time the entry is never checked against a file.
            lines = [line + "\n" for line in source.split("\n")]
            entry = (len(source), None, lines, filename)
            linecache.cache[filename] = entry


def _traceback(error: BaseException, sources: dict[str, str]) -> list[str]:
    import linecache
    from traceback import TracebackException

    show_sources(linecache, sources)
    where = error.__traceback__
    while where is not None and _is_ours(where.tb_frame.f_code.co_filename):
        where = where.tb_next
    found = TracebackException(type(error), error, where)
    if where is None and isinstance(error, SyntaxError):
        return _limit_lines("".join(found.format_exception_only()))
    _remove_our_frames(found, set())
    return _limit_lines("".join(found.format()))


def _is_ours(filename: str) -> bool:
    return filename.startswith(FOLDER)


def _remove_our_frames(found: Any, seen: set[int]) -> None:
    """Remove our own frames from an exception, its causes and its parts."""
    if found is None or id(found) in seen:
        return
    seen.add(id(found))
    found.stack[:] = [frame for frame in found.stack if not _is_ours(frame.filename)]
    parts = getattr(found, "exceptions", None) or []
    for other in (found.__cause__, found.__context__, *parts):
        _remove_our_frames(other, seen)


def _limit_lines(text: str) -> list[str]:
    lines = [_shorten(line, LINE_CHARS) for line in text.rstrip("\n").split("\n")]
    if len(lines) > LINES:
        cut = len(lines) - LINES
        half = LINES // 2
        lines[half:-half] = [f"[{cut} lines cut]"]
    return lines


def _shorten(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}[{len(text) - 2 * half} characters cut]{text[-half:]}"
