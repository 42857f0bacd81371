"""What all Jupyter kernels have in common, local or remote: messages, requests, folder, variables.

A kernel or a server may send anything: a part with the wrong shape becomes empty, and raises no
exception.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from cellwright.kernel.events import CommMessage, Started
from cellwright.kernel.transport import KernelInfo
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, RawPiece, StreamEvent
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from cellwright.kernel.events import KernelEvent

PROTOCOL = "5.4"
"""The version of the messaging protocol that we speak."""
MOST_CONTENT = 12 * 2**20
"""The largest content of a message that is decoded as a whole, in bytes.

To decode a larger one takes the whole process so long that other clients would wait for it.
"""
DISPLAYS = frozenset({"display_data", "execute_result", "update_display_data"})
_COMM_KINDS: dict[str, Literal["open", "msg", "close"]] = {
    "comm_open": "open",
    "comm_msg": "msg",
    "comm_close": "close",
}
# Some Python kernels name the class of an exception as Python prints it.
_class = re.compile(r"^<class '(?:\w+\.)*(\w+)'>$")
_UNKNOWN = object()
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_FIELDS = re.compile(
    rb'"(text/plain|text|name|ename|evalue|status|display_id|execution_count|'
    rb'type|id|displayId|executionCount|update)": ?(?:(")|(\d{1,15}|true|false)(?=[,}]))'
)
_LONGEST_FIELD = 64
_INSIDE_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_SLICE = 2**20
_TEXT_KEPT = 32 * 2**10


# --- Messages from a kernel ----------------------------------------------------------------------


def make_event(
    kind: str,
    content: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    buffers: tuple[bytes, ...] = (),
) -> KernelEvent | None:
    """Make the event of a message on `iopub`; None for messages about the kernel itself."""
    if kind == "stream":
        return StreamEvent(_text(content.get("name")) or "stdout", _text(content.get("text")))
    if kind in DISPLAYS:
        return _make_shown(kind, content)
    if kind == "error":
        return make_raised(content)
    if kind == "execute_input":
        return Started(read_count(content))
    if kind == "clear_output":
        return ClearEvent(wait=bool(content.get("wait")))
    if kind in _COMM_KINDS:
        return CommMessage(
            kind=_COMM_KINDS[kind],
            comm_id=_text(content.get("comm_id")),
            target=_text(content.get("target_name")),
            data=as_object(content.get("data")),
            metadata=metadata or {},
            buffers=buffers,
        )
    return None


def make_raised(content: Mapping[str, Any]) -> ErrorEvent:
    """Make the exception of an `error` message, or of a reply with that status."""
    traceback = content.get("traceback")
    lines = traceback if isinstance(traceback, list | tuple) else ()
    return ErrorEvent(
        ename=_class.sub(r"\1", _text(content.get("ename"))),
        evalue=_text(content.get("evalue")),
        traceback=tuple(_text(line) for line in lines),
    )


def make_pages(reply: Mapping[str, Any]) -> Iterator[DisplayEvent]:
    """Make displays of the help texts in a reply, as for `len?`: notebooks show them."""
    payload = reply.get("payload")
    for item in payload if isinstance(payload, list) else ():
        if isinstance(item, dict) and item.get("source") == "page" and as_object(item.get("data")):
            yield DisplayEvent(data=as_object(item.get("data")))


def read_count(content: Mapping[str, Any]) -> int | None:
    """Read the execution count of a message, if it has a valid one."""
    value = content.get("execution_count")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_expression(reply: Mapping[str, Any], name: str) -> str | None:
    """Read the value that a request has asked for beside its code, as Python writes it."""
    value = as_object(as_object(reply.get("user_expressions")).get(name))
    text = as_object(value.get("data")).get("text/plain")
    return text if isinstance(text, str) else None


def read_info(
    content: Mapping[str, Any],
    *,
    name: str,
    transport: str,
    language: str = "",
    pid: int | None = None,
    details: Mapping[str, Any],
    display_name: str = "",
) -> KernelInfo:
    """Read what a `kernel_info_reply` says; `language` is for a kernel that does not name its own."""
    described = as_object(content.get("language_info"))
    return KernelInfo(
        name=name,
        transport=transport,
        language=(_text(described.get("name")) or language).lower(),
        implementation=_text(content.get("implementation")),
        pid=pid,
        details=details,
        display_name=display_name,
        language_info=described,
    )


def _make_shown(kind: str, content: Mapping[str, Any]) -> DisplayEvent:
    is_result = kind == "execute_result"
    display_id = as_object(content.get("transient")).get("display_id")
    return DisplayEvent(
        data=as_object(content.get("data")),
        metadata=as_object(content.get("metadata")),
        display_id=display_id if isinstance(display_id, str) else None,
        is_update=kind == "update_display_data",
        is_result=is_result,
        execution_count=read_count(content) if is_result else None,
    )


def as_object(value: object) -> Mapping[str, Any]:
    """An object of JSON, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def decode_json(raw: str | bytes | memoryview) -> Any:
    """Decode a part of a message."""
    import msgspec

    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # Python's own reader also takes NaN and lone surrogates, which kernels may send.
        return json.loads(raw if isinstance(raw, str) else bytes(raw).decode("utf-8", "replace"))


def read_beginnings(raw: memoryview | bytes) -> dict[str, Any]:
    """Read a content that is too large to be decoded: its short fields, and how its texts begin.

    In pieces, so that other threads have a turn. Inside a string all quotes are escaped, so that
    a name of a field that is found in quotes is one.
    """
    found: dict[str, Any] = {}
    for start in range(0, len(raw), _SLICE):
        piece = bytes(raw[start : start + _SLICE + _LONGEST_FIELD])
        for match in _FIELDS.finditer(piece):
            name, at = match[1].decode(), start + match.start()
            is_escaped = at > 0 and raw[at - 1] == 0x5C
            if match.start() >= _SLICE or is_escaped or name in found:
                continue
            found[name] = (
                _read_beginning(raw, start + match.end()) if match[2] else decode_json(match[3])
            )
    size = human_size(len(raw))
    text = found.pop("text/plain", f"[an output of {size} is too large to be shown]")
    if "ename" in found:
        error = f"{found['ename']}: {found.get('evalue', '')}"
        found["traceback"] = [f"[an error of {size}: its traceback is left out]", error]
    return {
        **found,
        "data": {"text/plain": text},
        "transient": {"display_id": found.get("display_id")},
    }


def _read_beginning(raw: memoryview | bytes, at: int) -> str:
    """Read the string whose inside begins there; of a long one the beginning."""
    piece = bytes(raw[at : at + _TEXT_KEPT + 1])
    inside = _INSIDE_STRING.match(piece)
    end = inside.end() if inside is not None else 0
    has_end = piece[end : end + 1] == b'"'
    cut = end if has_end or not piece else find_safe_cut(piece, len(piece) - 1)
    text: str = decode_json(b'"%b"' % piece[:cut])
    return text if has_end else f"{text}\n[… the rest is left out …]"


def cut_raw(raw: memoryview | bytes) -> Iterator[RawPiece]:
    """Cut a content into pieces that an artifact takes one by one, and end it with a newline."""
    for start in range(0, len(raw), _SLICE):
        yield RawPiece(bytes(raw[start : start + _SLICE]))
    if raw:
        yield RawPiece(b"\n")


def find_safe_cut(piece: bytes, cut: int) -> int:
    """Find the last place up to `cut` where the inside of a JSON string can be divided.

    That is neither inside a UTF-8 sequence, nor inside an escape, nor between two surrogates.
    """
    while cut and piece[cut] & 0xC0 == 0x80:
        cut -= 1
    for back in range(1, 6):
        at = cut - back
        if at < 0 or piece[at] != 0x5C:
            continue
        run = at + 1 - len(piece[: at + 1].rstrip(b"\\"))
        if run % 2:  # an odd one begins an escape
            if back < (6 if piece[at + 1 : at + 2] == b"u" else 2):
                cut = at
            break
    if _HIGH_SURROGATE.fullmatch(piece, cut - 6, cut) and cut > 6:
        backslashes = cut - 6 - len(piece[: cut - 6].rstrip(b"\\"))
        if backslashes % 2 == 0:
            cut -= 6
    return cut


# --- Requests to a kernel ------------------------------------------------------------------------


def build_header(kind: str, identity: str, session: str, username: str) -> dict[str, str]:
    """Build the header of a new message."""
    return {
        "msg_id": identity,
        "msg_type": kind,
        "username": username,
        "session": session,
        "date": datetime.now(UTC).isoformat(),
        "version": PROTOCOL,
    }


def build_execute_request(
    source: str,
    *,
    silent: bool = True,
    store_history: bool = False,
    allow_stdin: bool = False,
    stop_on_error: bool = False,
) -> dict[str, Any]:
    """Build the content of an `execute_request`; by default one that leaves no trace."""
    return {
        "code": source,
        "silent": silent,
        "store_history": store_history and not silent,
        "user_expressions": {},
        "allow_stdin": allow_stdin,
        "stop_on_error": stop_on_error,
    }


def encode_json(value: Any) -> str:
    """Encode a part of a message in ASCII: a lone surrogate has no UTF-8, but it has an escape."""
    return json.dumps(value, separators=(",", ":"))


def build_comm_content(message: CommMessage) -> tuple[str, dict[str, Any]]:
    """Build the type and content of the Jupyter message for a message on a comm."""
    content: dict[str, Any] = {"comm_id": message.comm_id, "data": dict(message.data)}
    if message.kind == "open":
        content["target_name"] = message.target
    return f"comm_{message.kind}", content


class KernelContext:
    """The folder and the variables that a kernel was given last, at its start or before a cell.

    What a cell changes itself is not seen: it stays until something else is asked for. Without
    an `env`, it is not known which variables the kernel has.
    """

    def __init__(self, cwd: str | None = None, env: Mapping[str, str] | None = None) -> None:
        self._cwd = cwd
        self._env: dict[str, str | None] = dict(env or {})
        self._absent = _UNKNOWN if env is None else None

    def find_changes(
        self, cwd: str | None, env: Mapping[str, str | None]
    ) -> tuple[str | None, dict[str, str | None]]:
        """The folder and the variables of these that the kernel was not given yet."""
        return (
            cwd if cwd != self._cwd else None,
            {name: value for name, value in env.items() if self._get(name) != value},
        )

    def remember(self, cwd: str | None, env: Mapping[str, str | None]) -> None:
        """Note that the kernel was given these."""
        self._cwd = cwd or self._cwd
        self._env.update(env)

    def _get(self, name: str) -> object:
        return self._env.get(name, self._absent)


def write_context_code(cwd: str | None, env: Mapping[str, str | None]) -> str:
    """Write Python code that sets variables, goes to a folder and makes its modules importable."""
    lines = ["import os, sys"]
    if cwd is not None:
        lines += [
            f"os.chdir({cwd!r})",
            # An ipykernel has '' there, which means the current folder.
            f"'' in sys.path or {cwd!r} in sys.path or sys.path.insert(0, {cwd!r})",
        ]
    for name, value in env.items():
        change = f"pop({name!r}, None)" if value is None else f"update({{{name!r}: {value!r}}})"
        lines.append(f"os.environ.{change}")
    return isolate_code("\n".join(lines))


def isolate_code(source: str) -> str:
    """Write Python code that runs `source` in its own namespace: the user's names do not change."""
    return f"exec({source!r}, {{}})"
