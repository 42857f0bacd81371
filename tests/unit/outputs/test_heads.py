"""The size of a picture is read from its head, as Pillow reads it."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as pillow  # noqa: N813

from cellwright.outputs.images import has_image_end, read_image_size


def encode(
    kind: str, size: tuple[int, int] = (37, 21), mode: str = "RGB", **options: object
) -> bytes:
    buffer = BytesIO()
    pillow.effect_noise(size, 50).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


SAMPLES = {
    "png": ("image/png", encode("PNG")),
    "interlaced png": ("image/png", encode("PNG", mode="P", interlace=1)),
    "jpeg": ("image/jpeg", encode("JPEG")),
    "progressive jpeg": ("image/jpeg", encode("JPEG", progressive=True)),
    "grey jpeg": ("image/jpeg", encode("JPEG", mode="L")),
    "jpeg with profile": ("image/jpeg", encode("JPEG", icc_profile=b"\xff\xc0" * 60_000)),
    "jpeg with exif": ("image/jpeg", encode("JPEG", exif=b"Exif\0\0" + bytes(range(200)))),
    "gif": ("image/gif", encode("GIF")),
    "webp": ("image/webp", encode("WEBP")),
    "lossless webp": ("image/webp", encode("WEBP", lossless=True)),
    "webp with alpha": ("image/webp", encode("WEBP", mode="RGBA", exif=b"Exif\0\0")),
}
TYPES = sorted({mime for mime, _ in SAMPLES.values()})
sample = pytest.mark.parametrize(("mime", "data"), SAMPLES.values(), ids=SAMPLES)


@sample
def test_the_size_is_what_the_picture_has(mime: str, data: bytes) -> None:
    assert read_image_size(mime, data) == (37, 21)
    assert has_image_end(mime, data)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("size", [(1, 1), (1, 300), (5000, 3), (16_000, 2)])
def test_every_size_is_read(kind: str, size: tuple[int, int]) -> None:
    assert read_image_size(f"image/{kind.lower()}", encode(kind, size)) == size


@sample
def test_another_type_or_none_has_no_size(mime: str, data: bytes) -> None:
    others = [other for other in (*TYPES, "image/svg+xml", "") if other != mime]
    assert [read_image_size(other, data) for other in others] == [None] * len(others)


@sample
def test_a_picture_that_is_cut_has_no_end_and_no_wrong_size(mime: str, data: bytes) -> None:
    for length in range(len(data) - 12):
        assert read_image_size(mime, data[:length]) in {None, (37, 21)}
    assert not has_image_end(mime, data[: len(data) * 3 // 4])
    assert not has_image_end(mime, b"")


def test_a_side_of_nothing_is_no_size() -> None:
    data = bytearray(SAMPLES["png"][1])
    data[16:20] = bytes(4)
    assert read_image_size("image/png", bytes(data)) is None


def test_a_head_of_nothing_but_filling_is_left_soon() -> None:
    assert read_image_size("image/jpeg", b"\xff\xd8" + b"\xff" * 50_000_000) is None


@given(
    mime=st.sampled_from(TYPES),
    start=st.sampled_from([data[:30] for _, data in SAMPLES.values()]),
    place=st.integers(0, 30),
    junk=st.binary(max_size=80),
)
def test_junk_is_never_more_than_no_size(mime: str, start: bytes, place: int, junk: bytes) -> None:
    size = read_image_size(mime, start[:place] + junk)
    assert size is None or (len(size) == 2 and min(size) > 0)
    assert has_image_end(mime, junk) in {True, False}
