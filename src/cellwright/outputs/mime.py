"""Choose the parts of a display that comes in several MIME types.

The text is Markdown, then plain text, then HTML converted to text. Besides the text, a display
can have structured parts: JSON, images, charts and status reports. Kernels can put anything into a
display; nothing here raises, and what cannot be read is only named.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TypeAlias

from cellwright.document.outputs import join_lines
from cellwright.outputs.sanitize import one_line
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from cellwright.outputs.charts.reading import Chart

STATUS_TYPES = ("application/x-cellwright-status", "application/x-omp-status")
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
SVG = "image/svg+xml"
_LONGEST_IMAGE = 100_000_000  # characters of base64
_LONGEST_NAME = 80
# What `repr` returns for an object that has another representation.
_placeholder = re.compile(
    r"<[\w. ]+ object(?: at 0x[0-9a-fA-F]+)?>|<[\w. ]+ at 0x[0-9a-fA-F]+>|<Figure size [^<>\n]*>"
)


@dataclass(frozen=True, slots=True)
class MimeText:
    """The text of a display; `mime` is the type it was made from."""

    text: str
    mime: str = "text/plain"


@dataclass(frozen=True, slots=True)
class MimeJson:
    """A JSON value in a display."""

    value: Any


@dataclass(frozen=True, slots=True)
class MimeImage:
    """An image as it was sent; for an SVG, the bytes of its source."""

    mime: str
    data: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"<{self.mime}, {human_size(len(self.data))}>"


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A report about what code did, such as `{"op": "pip", …}`; never shown as text."""

    value: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """A later report with the same key replaces this one."""
        detail = next((self.value[name] for name in ("key", "id") if name in self.value), "")
        return str(self.value.get("op", "")), str(detail)


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """A part that is only named, because its type is unknown or it is broken."""

    mime: str
    size: int
    problem: str = ""

    def __str__(self) -> str:
        problem = f", {self.problem}" if self.problem else ""
        return f"<{one_line(self.mime[:_LONGEST_NAME])}, {human_size(self.size)}{problem}>"


MimePart: TypeAlias = "MimeJson | MimeImage | Chart | StatusReport | UnreadPart"


@dataclass(frozen=True, slots=True)
class MimeChoice:
    """What was chosen from a display: one text or none, and the structured parts."""

    text: MimeText | None = None
    parts: tuple[MimePart, ...] = ()


def choose_parts(data: Mapping[str, Any]) -> MimeChoice:
    """The best text of a display, and its structured parts in their order.

    Other types are named only if there is nothing else.
    """
    parts: list[MimePart] = []
    others: list[UnreadPart] = []
    for mime, given in data.items():
        value = join_lines(given)
        if mime == "application/json":
            parts.append(MimeJson(given))
        elif mime in STATUS_TYPES:
            parts.append(_status(mime, given))
        elif mime in IMAGE_TYPES:
            parts.append(_image(mime, value))
        elif mime == SVG and isinstance(value, str):
            parts.append(MimeImage(SVG, value.encode("utf-8", "replace")))
        elif mime not in _TEXTS:
            others.append(UnreadPart(str(mime), part_size(str(mime), value)))
    if others:
        from cellwright.outputs.charts.reading import read_chart

        chart = read_chart(data)
        if chart is not None:  # its texts are for pages that cannot draw it
            return MimeChoice(None, (*parts, chart))
    is_status = bool(parts) and all(isinstance(part, StatusReport) for part in parts)
    says_more = bool(parts or others or "text/html" in data)
    text = None if is_status else _text(data, says_more=says_more)
    if not (text or parts):
        parts.extend(others)
    return MimeChoice(text, tuple(parts))


def latest_statuses(statuses: Iterable[StatusReport]) -> list[StatusReport]:
    """The last version of each report, at the place of its first version."""
    found: dict[tuple[str, str], StatusReport] = {}
    for status in statuses:
        found[status.key] = status
    return list(found.values())


def part_size(mime: str, value: Any) -> int:
    """The size in bytes of a part of a display, decoded if it is base64."""
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


def _text(data: Mapping[str, Any], *, says_more: bool) -> MimeText | None:
    for mime in _TEXTS:
        value = join_lines(data.get(mime))
        if not isinstance(value, str):
            continue
        if mime == "text/html":
            from cellwright.outputs.html import html_to_text

            value = html_to_text(value)
        elif mime == "text/plain" and says_more and _placeholder.fullmatch(value):
            continue
        if value or mime != "text/html":
            return MimeText(value, mime)
    plain = join_lines(data.get("text/plain"))
    if isinstance(plain, str) and set(data) <= set(_TEXTS):
        return MimeText(plain)
    for mime, value in data.items():  # such as LaTeX
        text = join_lines(value)
        if mime.startswith("text/") and mime not in _TEXTS and isinstance(text, str):
            return MimeText(text, mime)
    return None


def _image(mime: str, value: Any) -> MimeImage | UnreadPart:
    if not isinstance(value, str):
        return UnreadPart(mime, part_size(mime, value), "not readable")
    if len(value) > _LONGEST_IMAGE:
        return UnreadPart(mime, part_size(mime, value), "too large")
    try:
        data = b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return UnreadPart(mime, part_size(mime, value), "not readable")
    return MimeImage(mime, data) if data else UnreadPart(mime, 0, "not readable")


def _status(mime: str, value: Any) -> StatusReport | UnreadPart:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return UnreadPart(mime, part_size(mime, value), "not readable")
    if isinstance(value, dict):
        return StatusReport(value)
    return UnreadPart(mime, part_size(mime, value), "not readable")
