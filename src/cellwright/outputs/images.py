"""Images for models: small enough to be sent, and honest about what was changed.

What a model pays for is pixels, and providers scale larger images down themselves. So an image
beyond a budget of pixels or bytes is scaled here; the caller can keep the original as an artifact.

Scaling needs Pillow, which is an extra. Without it an image within the budget is sent as it is,
and any other one is kept as an artifact and named, with the word that it was not scaled and why.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from dataclasses import dataclass, field
from io import BytesIO

from cellwright.outputs.heads import has_end, size_in_head
from cellwright.outputs.mime import IMAGE_TYPES, SVG
from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import PIL.Image

    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.mime import Image

PIXELS = 1_150_000
"""Pixels of an image that is sent; about what models look at."""

LONGEST_SIDE = 1568
"""No side may be longer, as models would scale it down again."""

ENCODED_BYTES = 3_500_000
"""Bytes of an image that is sent; below what providers accept after base64."""

EXTRA = "pip install 'cellwright[images]'"
"""How to get what scales and draws pictures."""

_UNSCALED = f"not scaled, as Pillow is not installed ({EXTRA})"
_MOST_PIXELS = 100_000_000  # what is decoded at all
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
_BROKEN = (
    *(OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, OverflowError),
    *(MemoryError, RuntimeError, struct.error, zlib.error, ArithmeticError, AssertionError),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that can be sent; `data` is in the format of `mime`.

    `artifact` is where the original is, if it was scaled and there was a place for it.
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
class NoPicture:
    """Why an image cannot be sent.

    `pixels` are its width and height, and `artifact` where it is, if it was only too large.
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
    """Whether pictures can be decoded here: to be scaled for models, and drawn for people."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:  # or it is there but does not fit this Python
        return False
    return True


def measure(image: Image) -> tuple[int, int] | None:
    """Width and height, by the head of the image alone; None if it cannot be read."""
    return size_in_head(image.mime, image.data)


def prepare(
    image: Image,
    *,
    pixels: int = PIXELS,
    most_bytes: int = ENCODED_BYTES,
    store: ArtifactStore | None = None,
) -> Picture | NoPicture:
    """An image within a budget, scaled if it has to be; or why it cannot be sent.

    An SVG is not drawn here: its source is text, which a model can read. The original of an
    image that was changed, or that ought to be, goes to `store`.
    """
    if image.mime == SVG:
        return NoPicture(SVG, len(image.data), "its source is text")
    if image.mime not in IMAGE_TYPES:
        return NoPicture(image.mime, len(image.data), "of a type that cannot be sent")
    size = measure(image)
    if size and size[0] * size[1] > _MOST_PIXELS:
        return _unsent(image, "too many pixels", size, store)
    if not has_pillow():
        return _as_it_is(image, size, pixels, most_bytes, store)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a large picture is judged here, not by Pillow
            return _fitted(image, _open(image), pixels, most_bytes, store)
    except _errors() as error:
        return NoPicture(image.mime, len(image.data), _reason(error))


def _reason(error: Exception) -> str:
    from PIL.Image import DecompressionBombError

    if isinstance(error, DecompressionBombError):
        return "too many pixels"
    return "not enough memory" if isinstance(error, MemoryError) else "not readable"


def _errors() -> tuple[type[Exception], ...]:
    from PIL.Image import DecompressionBombError

    return (*_BROKEN, DecompressionBombError)


def _open(image: Image) -> PIL.Image.Image:
    from PIL import Image as pillow  # noqa: N813

    return pillow.open(BytesIO(image.data), formats=[_FORMATS[image.mime]])


def _as_it_is(
    image: Image,
    size: tuple[int, int] | None,
    pixels: int,
    most_bytes: int,
    store: ArtifactStore | None,
) -> Picture | NoPicture:
    """All that can be done without Pillow, by what the head of an image says."""
    length = len(image.data)
    if size is None or not has_end(image.mime, image.data):
        return NoPicture(image.mime, length, "not readable")
    if _is_within(size, length, pixels, most_bytes):
        return Picture(image.mime, image.data, *size, *size, length)
    return _unsent(image, _UNSCALED, size, store)


def _unsent(
    image: Image, reason: str, size: tuple[int, int], store: ArtifactStore | None
) -> NoPicture:
    """Why an image is not sent that can be looked at otherwise."""
    return NoPicture(image.mime, len(image.data), reason, size, _kept(image, store))


def _is_within(size: tuple[int, int], length: int, pixels: int, most_bytes: int) -> bool:
    width, height = size
    return width * height <= pixels and max(size) <= LONGEST_SIDE and length <= most_bytes


def _fitted(
    image: Image,
    opened: PIL.Image.Image,
    pixels: int,
    most_bytes: int,
    store: ArtifactStore | None,
) -> Picture | NoPicture:
    width, height = opened.size
    if width * height > _MOST_PIXELS:  # whatever its head said to us
        return _unsent(image, "too many pixels", opened.size, store)
    if _is_within(opened.size, len(image.data), pixels, most_bytes):
        opened.load()  # a head alone proves nothing
        return Picture(image.mime, image.data, width, height, width, height, len(image.data))
    factor = min(1.0, (pixels / (width * height)) ** 0.5, LONGEST_SIDE / max(width, height))
    opened.draft("RGB", (int(width * factor), int(height * factor)))  # JPEG: decode less
    drawn = opened.convert("RGBA" if _has_alpha(opened) else "RGB")
    for _ in range(6):
        size = max(1, round(width * factor)), max(1, round(height * factor))
        mime, data = _encode(_resized(drawn, size), image.mime)
        if len(data) <= most_bytes:
            artifact = _kept(image, store)
            return Picture(mime, data, *size, width, height, len(image.data), artifact)
        factor *= 0.7
    reason = f"more than {human_size(most_bytes)} when scaled"
    return _unsent(image, reason, (width, height), store)


def _resized(drawn: PIL.Image.Image, size: tuple[int, int]) -> PIL.Image.Image:
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


def _kept(image: Image, store: ArtifactStore | None) -> str | None:
    from cellwright.errors import ArtifactsUnavailable

    if store is None:
        return None
    try:
        return store.put(image.data, mime=image.mime, name="image").id
    except ArtifactsUnavailable:
        return None  # the image that is sent is there all the same
