"""Choose what to take of a display that comes in several MIME types.

For text that is Markdown, then plain text, then HTML converted to text. Beside the text a display
may hold structured parts: JSON, images, and status reports, which are no text at all. Kernels
put anything into a display; nothing here raises, what cannot be read is only named.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TypeAlias

from cellwright.outputs.sanitize import one_line
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

STATUS_TYPES = ("application/x-cellwright-status", "application/x-omp-status")
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
SVG = "image/svg+xml"
WIDGET = "application/vnd.jupyter.widget-view+json"
_LONGEST_IMAGE = 100_000_000  # characters of base64
_LONGEST_NAME = 80
# What `repr` says of an object that shows itself otherwise.
_placeholder = re.compile(
    r"<[\w. ]+ object(?: at 0x[0-9a-fA-F]+)?>|<[\w. ]+ at 0x[0-9a-fA-F]+>|<Figure size [^<>\n]*>"
)


@dataclass(frozen=True, slots=True)
class Text:
    """Text to show; `mime` is the type it was made from."""

    text: str
    mime: str = "text/plain"


@dataclass(frozen=True, slots=True)
class Json:
    """A value as JSON has it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Image:
    """A picture as it was sent; an SVG is the bytes of its source."""

    mime: str
    data: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"<{self.mime}, {human_size(len(self.data))}>"


@dataclass(frozen=True, slots=True)
class Status:
    """A report of what code has done, such as `{"op": "pip", …}`; never shown as text."""

    value: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """A later report with the same key replaces this one."""
        detail = next((self.value[name] for name in ("key", "id") if name in self.value), "")
        return str(self.value.get("op", "")), str(detail)


@dataclass(frozen=True, slots=True)
class Other:
    """A part that is only named: of a type nobody here reads, or broken."""

    mime: str
    size: int
    problem: str = ""

    def __str__(self) -> str:
        problem = f", {self.problem}" if self.problem else ""
        return f"<{one_line(self.mime[:_LONGEST_NAME])}, {human_size(self.size)}{problem}>"


Part: TypeAlias = Json | Image | Status | Other


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was taken of a display: one text or none, and the structured parts."""

    text: Text | None = None
    parts: tuple[Part, ...] = ()


def choose(data: Mapping[str, Any]) -> Chosen:
    """The best text of a display, and its structured parts in the order in which they came.

    Types that are neither are named only if there would be nothing else.
    """
    parts: list[Part] = []
    others: list[Other] = []
    for mime, given in data.items():
        value = _joined(given)
        if mime == "application/json":
            parts.append(Json(given))
        elif mime in STATUS_TYPES:
            parts.append(_status(mime, given))
        elif mime in IMAGE_TYPES:
            parts.append(_image(mime, value))
        elif mime == SVG and isinstance(value, str):
            parts.append(Image(SVG, value.encode("utf-8", "replace")))
        elif mime not in _TEXTS:
            others.append(Other(str(mime), size_of(str(mime), value)))
    is_status = bool(parts) and all(isinstance(part, Status) for part in parts)
    says_more = bool(parts or others or "text/html" in data)
    text = None if is_status else _text(data, says_more=says_more)
    if not (text or parts):
        parts.extend(others)
    return Chosen(text, tuple(parts))


def latest(statuses: Iterable[Status]) -> list[Status]:
    """Reports in order, each only in its last version, where its first one stood."""
    found: dict[tuple[str, str], Status] = {}
    for status in statuses:
        found[status.key] = status
    return list(found.values())


def size_of(mime: str, value: Any) -> int:
    """How many bytes a part of a display has, decoded if it is base64."""
    if isinstance(value, str):
        is_encoded = mime.startswith(("image/", "audio/", "video/")) and "xml" not in mime
        if is_encoded or mime == "application/pdf":
            return len(value.rstrip("\n=")) * 3 // 4
        return len(value.encode("utf-8", "replace"))
    try:
        return len(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return 0


_TEXTS = ("text/markdown", "text/plain", "text/html")


def _text(data: Mapping[str, Any], *, says_more: bool) -> Text | None:
    for mime in _TEXTS:
        value = _joined(data.get(mime))
        if not isinstance(value, str):
            continue
        if mime == "text/html":
            from cellwright.outputs.html import html_to_text

            value = html_to_text(value)
        elif mime == "text/plain" and says_more and _placeholder.fullmatch(value):
            continue
        if value or mime != "text/html":
            return Text(value, mime)
    plain = _joined(data.get("text/plain"))
    if isinstance(plain, str) and set(data) <= set(_TEXTS):
        return Text(plain)
    for mime, value in data.items():  # such as LaTeX
        text = _joined(value)
        if mime.startswith("text/") and mime not in _TEXTS and isinstance(text, str):
            return Text(text, mime)
    return None


def _image(mime: str, value: Any) -> Image | Other:
    if not isinstance(value, str):
        return Other(mime, size_of(mime, value), "not readable")
    if len(value) > _LONGEST_IMAGE:
        return Other(mime, size_of(mime, value), "too large")
    try:
        data = b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return Other(mime, size_of(mime, value), "not readable")
    return Image(mime, data) if data else Other(mime, 0, "not readable")


def _status(mime: str, value: Any) -> Status | Other:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return Other(mime, size_of(mime, value), "not readable")
    if isinstance(value, dict):
        return Status(value)
    return Other(mime, size_of(mime, value), "not readable")


def _joined(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value
