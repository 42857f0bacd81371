"""Images fit a budget, or the reason why not is told."""

from __future__ import annotations

import re
import struct
import zlib
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from PIL import Image as pillow  # noqa: N813

from cellwright.outputs.artifacts import ArtifactStore
from cellwright.outputs.images import (
    LONGEST_SIDE,
    PIXELS,
    ModelImage,
    PixelBudget,
    UnsentImage,
    prepare_image,
    read_image_size,
)
from cellwright.outputs.mime import MimeImage

if TYPE_CHECKING:
    from pathlib import Path


def encode(width: int, height: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    buffer = BytesIO()
    pillow.effect_noise((width, height), 50).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def picture(image: MimeImage, **options: object) -> ModelImage:
    found = prepare_image(image, **options)  # type: ignore[arg-type]
    assert isinstance(found, ModelImage)
    return found


def refused(image: MimeImage, **options: object) -> UnsentImage:
    found = prepare_image(image, **options)  # type: ignore[arg-type]
    assert isinstance(found, UnsentImage)
    return found


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def bomb(width: int, height: int) -> bytes:
    """A PNG of some kilobytes that would fill the memory."""
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = zlib.compress(b"\0" * 1_000_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_a_small_image_is_sent_as_it_is() -> None:
    data = encode(300, 200)
    assert picture(MimeImage("image/png", data)) == ModelImage(
        "image/png", data, 300, 200, 300, 200, len(data)
    )


@pytest.mark.parametrize(
    ("kind", "mime", "sent"),
    [
        ("PNG", "image/png", "image/png"),
        ("JPEG", "image/jpeg", "image/jpeg"),
        ("GIF", "image/gif", "image/png"),
        ("WEBP", "image/webp", "image/png"),
    ],
)
def test_a_large_image_is_scaled_to_the_budget(kind: str, mime: str, sent: str) -> None:
    buffer = BytesIO()  # not of noise, which takes ten times as long to decode and to scale
    pillow.linear_gradient("L").resize((2000, 1000)).convert("RGB").save(buffer, kind)
    data = buffer.getvalue()
    found = picture(MimeImage(mime, data))
    assert found.mime == sent
    assert found.is_scaled
    assert found.width * found.height <= PIXELS * 1.01
    assert max(found.width, found.height) <= LONGEST_SIDE
    assert abs(found.width / found.height - 2) < 0.01
    assert (found.original_width, found.original_height) == (2000, 1000)
    assert found.original_bytes == len(data)
    assert pillow.open(BytesIO(found.data)).size == (found.width, found.height)


def test_a_long_side_is_scaled_too() -> None:
    assert picture(MimeImage("image/png", encode(5000, 10))).width == LONGEST_SIDE


def test_bytes_are_a_budget_as_well() -> None:
    found = picture(MimeImage("image/png", encode(400, 400)), most_bytes=30_000)
    assert len(found.data) <= 30_000
    assert found.width < 400
    assert "when scaled" in refused(MimeImage("image/png", encode(400, 400)), most_bytes=10).reason


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1", "L", "I;16", "RGB"])
def test_every_kind_of_png_can_be_scaled(mode: str) -> None:
    assert picture(MimeImage("image/png", encode(1600, 90, mode=mode))).is_scaled


def test_the_original_is_kept_as_an_artifact(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    data = encode(200, 100)
    found = picture(MimeImage("image/png", data), pixels=1000, store=store)
    assert found.artifact is not None
    assert store.read(found.artifact, 0, 10**9).data == data
    assert store.get(found.artifact).mime == "image/png"
    assert picture(MimeImage("image/png", encode(10, 10)), store=store).artifact is None
    assert f"original: artifact://{found.artifact}" in str(found)


def test_a_store_that_refuses_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ArtifactStore(tmp_path / "file" / "x")
    image = MimeImage("image/png", encode(200, 100))
    assert picture(image, pixels=1000, store=store).artifact is None


@pytest.mark.parametrize(
    ("mime", "data", "reason"),
    [
        ("image/png", b"no image", "not readable"),
        ("image/png", b"", "not readable"),
        ("image/png", encode(300, 300)[:2000], "not readable"),
        ("image/jpeg", encode(30, 30), "not readable"),
        ("image/svg+xml", b"<svg/>", "its source is text"),
        ("image/tiff", b"x", "of a type that cannot be sent"),
        ("image/png", bomb(60_000, 60_000), "too many pixels"),
        ("image/png", bomb(2_000_000_000, 2_000_000_000), None),
        ("image/png", bomb(11_000, 11_000), "too many pixels"),
        ("image/png", bomb(5000, 5000)[:-40], "not readable"),
    ],
    ids=[
        "junk",
        "nothing",
        "cut",
        "another",
        "svg",
        "tiff",
        "bomb",
        "huge bomb",
        "small bomb",
        "cut bomb",
    ],
)
def test_what_cannot_be_sent_says_why(mime: str, data: bytes, reason: str | None) -> None:
    found = refused(MimeImage(mime, data))
    assert reason is None or found.reason == reason
    assert re.match(rf"<{re.escape(mime)}( \d+×\d+)?, ", str(found))


def test_a_size_is_read_from_the_head_alone() -> None:
    assert read_image_size("image/png", encode(30, 20)[:60]) == (30, 20)
    assert read_image_size("image/png", bomb(11_000, 11_000)) == (11_000, 11_000)
    assert read_image_size("image/png", bomb(60_000, 60_000)) == (60_000, 60_000)
    assert read_image_size("image/png", b"junk") is None
    assert read_image_size("image/svg+xml", b"<svg/>") is None


def test_one_answer_decodes_only_so_many_pixels() -> None:
    budget = PixelBudget(1000)
    buffer = BytesIO()
    pillow.new("RGB", (20, 30)).save(buffer, "PNG")
    image = MimeImage("image/png", buffer.getvalue())
    assert isinstance(prepare_image(image, budget=budget), ModelImage)
    found = prepare_image(image, budget=budget)
    assert "too many pixels for one answer" in str(found)
