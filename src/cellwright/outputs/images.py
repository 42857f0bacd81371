"""Images for models: scaled to a size that can be sent, with a note about the change.

Models charge by pixels, and providers scale larger images down themselves. So an image beyond a
budget of pixels or bytes is scaled here; the caller can keep the original as an artifact.

Scaling needs Pillow, which is an extra. Without it, an image within the budget is sent as it is.
A larger one is kept as an artifact and named, with the reason why it was not scaled. The size of
a PNG, JPEG, GIF or WebP is read from its first bytes, without any library.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from dataclasses import dataclass, field
from io import BytesIO

from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import PIL.Image

    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.mime import MimeImage

PIXELS = 1_150_000
"""Pixels of an image that is sent; approximately what models use."""
ANSWER_PIXELS = 40_000_000
"""Pixels that are decoded for one answer, however many images it has."""
LONGEST_SIDE = 1568
"""The longest side of an image; models would scale a longer one down again."""
ENCODED_BYTES = 3_500_000
"""Bytes of an image that is sent; below what providers accept after base64."""
EXTRA = "pip install 'cellwright[images]'"
"""The command that installs what scales and draws images."""
_UNSCALED = "not scaled, as Pillow (the extra `images`) is not installed"
_MOST_PIXELS = 100_000_000  # larger images are not decoded
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
_BROKEN = (
    *(OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, OverflowError),
    *(MemoryError, RuntimeError, struct.error, zlib.error, ArithmeticError, AssertionError),
)
_LARGEST = 2**31 - 1  # the largest side of a PNG
_ENDS = {"image/png": b"IEND", "image/jpeg": b"\xff\xd9", "image/gif": b"\0;"}
_TRAILING = 1024  # bytes that programs may leave after the end
# Frame headers (SOF) of all kinds of JPEG; the markers in between are tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length
_MOST_SEGMENTS = 10_000  # before the frame; a hostile file can have any number


class PixelBudget:
    """How many pixels one answer may decode; `take` says whether an image still fits."""

    def __init__(self, pixels: int = ANSWER_PIXELS) -> None:
        self._left = pixels

    def take(self, size: tuple[int, int]) -> bool:
        """Take the pixels of an image; false if they are too many."""
        pixels = size[0] * size[1]
        if pixels > self._left:
            return False
        self._left -= pixels
        return True


@dataclass(frozen=True, slots=True)
class ModelImage:
    """An image that can be sent to a model; `data` is in the format of `mime`.

    `artifact` is the id of the original, if it was scaled and could be kept.
    """

    mime: str
    data: bytes = field(repr=False)
    width: int
    height: int
    original_width: int
    original_height: int
    original_bytes: int
    artifact: str | None = None

    @property
    def is_scaled(self) -> bool:
        """Whether it is smaller than the original."""
        return (self.width, self.height) != (self.original_width, self.original_height)

    def __str__(self) -> str:
        size = f"{self.original_width}×{self.original_height}"
        scaled = f", scaled to {self.width}×{self.height}" if self.is_scaled else ""
        original = f", original: artifact://{self.artifact}" if self.artifact else ""
        return f"<{self.mime} {size}, {human_size(self.original_bytes)}{scaled}{original}>"


@dataclass(frozen=True, slots=True)
class UnsentImage:
    """An image that cannot be sent, and the reason.

    If it is only too large, `pixels` are its width and height, and `artifact` is its id.
    """

    mime: str
    size: int
    reason: str
    pixels: tuple[int, int] | None = None
    artifact: str | None = None

    def __str__(self) -> str:
        pixels = f" {self.pixels[0]}×{self.pixels[1]}" if self.pixels else ""
        original = f", original: artifact://{self.artifact}" if self.artifact else ""
        return f"<{self.mime}{pixels}, {human_size(self.size)}, {self.reason}{original}>"


def has_pillow() -> bool:
    """Whether images can be decoded here: to scale them for models and draw them for people."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:  # missing, or it does not fit this Python
        return False
    return True


def prepare_image(
    image: MimeImage,
    *,
    pixels: int = PIXELS,
    most_bytes: int = ENCODED_BYTES,
    store: ArtifactStore | None = None,
    budget: PixelBudget | None = None,
) -> ModelImage | UnsentImage:
    """An image within a budget, scaled if needed; or the reason why it cannot be sent.

    `budget` is shared by the images of one answer.

    An SVG is not drawn here: its source is text, which a model can read. The original of an
    image that is too large goes to `store`.
    """
    from cellwright.outputs.mime import (
        IMAGE_TYPES,
        SVG,
    )  # who only measures images needs none of it

    if image.mime == SVG:
        return UnsentImage(SVG, len(image.data), "its source is text")
    if image.mime not in IMAGE_TYPES:
        return UnsentImage(image.mime, len(image.data), "of a type that cannot be sent")
    size = read_image_size(image.mime, image.data)
    if size and size[0] * size[1] > _MOST_PIXELS:
        return _unsent(image, "too many pixels", size, store)
    if size and budget is not None and not budget.take(size):
        return _unsent(image, "too many pixels for one answer", size, store)
    if not has_pillow():
        return _send_unscaled(image, size, pixels, most_bytes, store)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the size is checked here, not by Pillow
            return _fit_image(image, _open(image), pixels, most_bytes, store)
    except _errors() as error:
        return UnsentImage(image.mime, len(image.data), _reason(error))


def _reason(error: Exception) -> str:
    from PIL.Image import DecompressionBombError

    if isinstance(error, DecompressionBombError):
        return "too many pixels"
    return "not enough memory" if isinstance(error, MemoryError) else "not readable"


def _errors() -> tuple[type[Exception], ...]:
    from PIL.Image import DecompressionBombError

    return (*_BROKEN, DecompressionBombError)


def _open(image: MimeImage) -> PIL.Image.Image:
    from PIL import Image as pillow  # noqa: N813

    return pillow.open(BytesIO(image.data), formats=[_FORMATS[image.mime]])


def _send_unscaled(
    image: MimeImage,
    size: tuple[int, int] | None,
    pixels: int,
    most_bytes: int,
    store: ArtifactStore | None,
) -> ModelImage | UnsentImage:
    """The image as it is if it is within the budget, going by its header; used without Pillow."""
    length = len(image.data)
    if size is None or not has_image_end(image.mime, image.data):
        return UnsentImage(image.mime, length, "not readable")
    if _is_within(size, length, pixels, most_bytes):
        return ModelImage(image.mime, image.data, *size, *size, length)
    return _unsent(image, _UNSCALED, size, store)


def _unsent(
    image: MimeImage, reason: str, size: tuple[int, int], store: ArtifactStore | None
) -> UnsentImage:
    """The reason why an image is not sent, and the artifact that has it."""
    return UnsentImage(image.mime, len(image.data), reason, size, _keep_original(image, store))


def _is_within(size: tuple[int, int], length: int, pixels: int, most_bytes: int) -> bool:
    width, height = size
    return width * height <= pixels and max(size) <= LONGEST_SIDE and length <= most_bytes


def _fit_image(
    image: MimeImage,
    opened: PIL.Image.Image,
    pixels: int,
    most_bytes: int,
    store: ArtifactStore | None,
) -> ModelImage | UnsentImage:
    width, height = opened.size
    if width * height > _MOST_PIXELS:  # its header may have claimed less
        return _unsent(image, "too many pixels", opened.size, store)
    if _is_within(opened.size, len(image.data), pixels, most_bytes):
        opened.load()  # raises if there is nothing valid after the header
        return ModelImage(image.mime, image.data, width, height, width, height, len(image.data))
    factor = min(1.0, (pixels / (width * height)) ** 0.5, LONGEST_SIDE / max(width, height))
    opened.draft("RGB", (int(width * factor), int(height * factor)))  # JPEG: decode less
    drawn = opened.convert("RGBA" if _has_alpha(opened) else "RGB")
    for _ in range(6):
        size = max(1, round(width * factor)), max(1, round(height * factor))
        mime, data = _encode(_resize(drawn, size), image.mime)
        if len(data) <= most_bytes:
            artifact = _keep_original(image, store)
            return ModelImage(mime, data, *size, width, height, len(image.data), artifact)
        factor *= 0.7
    reason = f"more than {human_size(most_bytes)} when scaled"
    return _unsent(image, reason, (width, height), store)


def _resize(drawn: PIL.Image.Image, size: tuple[int, int]) -> PIL.Image.Image:
    from PIL.Image import Resampling

    if drawn.size == size:
        return drawn
    return drawn.resize(size, Resampling.LANCZOS, reducing_gap=3.0)


def _encode(drawn: PIL.Image.Image, mime: str) -> tuple[str, bytes]:
    """The bytes of an image; photographs stay JPEG, all else becomes PNG."""
    buffer = BytesIO()
    options: dict[str, Any] = {"format": "PNG", "optimize": False}
    if mime == "image/jpeg":
        options = {"format": "JPEG", "quality": 85}
    drawn.save(buffer, **options)
    return ("image/jpeg" if mime == "image/jpeg" else "image/png"), buffer.getvalue()


def _has_alpha(opened: PIL.Image.Image) -> bool:
    return opened.mode in {"RGBA", "LA", "PA"} or "transparency" in opened.info


def _keep_original(image: MimeImage, store: ArtifactStore | None) -> str | None:
    from cellwright.errors import ArtifactsUnavailable

    if store is None:
        return None
    try:
        return store.put(image.data, mime=image.mime, name="image").id
    except ArtifactsUnavailable:
        return None  # the scaled image can be sent anyway


def read_image_size(mime: str, data: bytes) -> tuple[int, int] | None:
    """Width and height from the header of an image; None if it is not of that type."""
    read = _READERS.get(mime)
    try:
        size = read(data) if read is not None else None
    except (struct.error, IndexError):
        return None  # it ends inside its header
    return size if size and all(0 < side <= _LARGEST for side in size) else None


def has_image_end(mime: str, data: bytes) -> bool:
    """Whether an image has its end marker, so that it is not cut off."""
    if mime == "image/webp":
        return len(data) >= 8 and len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return mime in _ENDS and _ENDS[mime] in data[-_TRAILING:]


def _png(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\xff\xd8"):
        return None
    place = 2
    for _ in range(_MOST_SEGMENTS):
        if data[place] != 0xFF:
            break
        marker = data[place + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        if marker == 0xFF:
            place += 1  # a fill byte
        elif marker in _ALONE:
            place += 2
        else:
            place += 2 + int(struct.unpack_from(">H", data, place + 2)[0])
    return None


def _gif(data: bytes) -> tuple[int, int] | None:
    if not data.startswith((b"GIF87a", b"GIF89a")):
        return None
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        packed = struct.unpack_from("<6B", data, 24)
        return 1 + int.from_bytes(packed[:3], "little"), 1 + int.from_bytes(packed[3:], "little")
    if kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
