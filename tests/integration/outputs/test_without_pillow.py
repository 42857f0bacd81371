"""Pillow is an extra: what becomes of pictures for models where it is not installed."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as pillow  # noqa: N813

from cellwright.outputs.artifacts import ArtifactStore

BLOCK = """
import json, sys
sys.modules.update(PIL=None, textual_image=None)  # whoever imports them gets an ImportError
"""
DESCRIBE = (
    BLOCK
    + """
from pathlib import Path
from cellwright.outputs.artifacts import ArtifactStore
from cellwright.outputs.describe import describe
found = describe(json.load(sys.stdin), store=ArtifactStore(Path(sys.argv[1])))
pictures = [[p.mime, p.width, p.height, p.is_scaled, p.data.hex()] for p in found.images]
print(json.dumps({"text": found.text, "images": pictures}))
"""
)
EVERYTHING = (
    BLOCK
    + """
import importlib, pkgutil
import cellwright
names = [
    found.name for found in pkgutil.walk_packages(cellwright.__path__, "cellwright.")
    if not found.name.endswith("__main__") and ".inside" not in found.name
    and not found.name.startswith("cellwright.server.")  # which only a Jupyter server imports
]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
)
HINT = "not scaled, as Pillow (the extra `images`) is not installed"


def python(code: str, *words: str, given: str = "") -> str:
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, check=True, timeout=100
    )
    return done.stdout


def encode(width: int, height: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    buffer = BytesIO()
    pillow.effect_noise((width, height), 50).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def described(mime: str, data: bytes, folder: Path) -> dict[str, Any]:
    bundle = {mime: base64.b64encode(data).decode(), "text/plain": "<Figure size 1x1>"}
    output = {"output_type": "display_data", "data": bundle, "metadata": {}}
    told: dict[str, Any] = json.loads(python(DESCRIBE, str(folder), given=json.dumps([output])))
    return told


def test_everything_can_be_imported() -> None:
    assert int(python(EVERYTHING)) > 100


def test_pillow_and_textual_image_are_an_extra() -> None:
    path = Path(__file__).parents[3] / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    names = ("pillow", "textual-image")
    assert not [need for need in project["dependencies"] if need.startswith(names)]
    extras = project["optional-dependencies"]
    assert [need.split(">")[0] for need in extras["images"]] == list(names)
    assert "images" in extras["all"][0].partition("[")[2]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_picture_within_the_budget_is_sent_as_it_is(kind: str, tmp_path: Path) -> None:
    mime, data = f"image/{kind.lower()}", encode(300, 200, kind)
    told = described(mime, data, tmp_path)
    assert told["images"] == [[mime, 300, 200, False, data.hex()]]
    assert f"⟦image 1: {mime} 300×200, " in told["text"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_larger_one_is_kept_and_said_not_to_be_scaled(kind: str, tmp_path: Path) -> None:
    mime, data = f"image/{kind.lower()}", encode(2000, 1000, kind)
    told = described(mime, data, tmp_path)
    assert told["images"] == []
    start, _, artifact = told["text"].partition(", original: artifact://")
    assert f"⟦{mime} 2000×1000, " in start
    assert start.endswith(HINT)
    store = ArtifactStore(tmp_path)
    assert store.read(artifact.rstrip("⟧"), 0, 10**9).data == data
    assert store.get(artifact.rstrip("⟧")).mime == mime


@pytest.mark.parametrize(
    ("mime", "data"),
    [
        ("image/png", b"no image"),
        ("image/png", encode(300, 300)[:5000]),
        ("image/jpeg", encode(300, 300, "JPEG")[:5000]),
        ("image/webp", encode(300, 300, "WEBP")[:5000]),
        ("image/jpeg", encode(30, 30)),
    ],
    ids=["junk", "cut png", "cut jpeg", "cut webp", "another"],
)
def test_what_is_no_whole_picture_is_not_sent(mime: str, data: bytes, tmp_path: Path) -> None:
    told = described(mime, data, tmp_path)
    assert told["images"] == []
    assert "not readable" in told["text"]
    assert "Pillow" not in told["text"]  # it would not help
