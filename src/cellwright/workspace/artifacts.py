"""Artifacts as JSON-able data."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.outputs.artifacts import ArtifactStore


def read_part(store: ArtifactStore, ref: str, offset: int, limit: int) -> dict[str, Any]:
    """A part of an artifact and what is known of the whole; `next_offset` is None at its end."""
    from dataclasses import asdict

    facts = store.get(ref)
    answer: dict[str, Any] = asdict(facts)
    if facts.mime.startswith("text/") or facts.mime in ("application/json", "image/svg+xml"):
        text = store.read_text(ref, offset, limit)
        answer |= {"offset": text.offset, "next_offset": text.next_offset, "text": text.text}
    else:
        from base64 import b64encode

        part = store.read(ref, offset, limit)
        answer |= {"offset": part.offset, "next_offset": part.next_offset}
        answer["base64"] = b64encode(part.data).decode()
    return answer


def list_artifacts(store: ArtifactStore) -> list[dict[str, Any]]:
    """All artifacts, the newest first."""
    from dataclasses import asdict

    return [asdict(artifact) for artifact in store.list()]
