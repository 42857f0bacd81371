"""Artifacts are whole or absent, bounded, and found by their id alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from pathlib import Path

import pytest

from cellwright.errors import ArtifactNotFound, ArtifactsUnavailable
from cellwright.outputs import artifacts
from cellwright.outputs._artifact_writer import new_artifact_id
from cellwright.outputs.artifacts import Artifact, ArtifactStore


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "state" / "artifacts", quota_bytes=100_000)


def make_older(store: ArtifactStore, id: str, seconds: float) -> None:  # noqa: A002
    for path in store.directory.glob(f"{id}*"):
        before = time.time() - seconds
        os.utime(path, (before, before))


# -- writing and reading -------------------------------------------------------------------------


def data_path(store: ArtifactStore, id: str) -> Path:  # noqa: A002
    """The file with the bytes of an artifact."""
    (path,) = (path for path in store.directory.glob(f"{id}.*") if path.suffix != ".json")
    return path


def test_what_is_written_can_be_read(store: ArtifactStore) -> None:
    with store.stamp("nb.ipynb cell-3").create(mime="text/plain", name="output") as writer:
        writer.write(b"one\n")
        writer.write(bytearray(b"two\n"))
        assert writer.size == 8
        artifact = writer.commit()
    assert artifact == Artifact(
        id=writer.id,
        mime="text/plain",
        size=8,
        sha256=hashlib.sha256(b"one\ntwo\n").hexdigest(),
        created=artifact.created,
        name="output",
        origin="nb.ipynb cell-3",
        original_bytes=8,
    )
    assert abs(artifact.created - time.time()) < 60
    assert store.get(artifact.id) == store.get(artifact.uri) == artifact
    assert store.read(artifact.uri).data == b"one\ntwo\n"
    assert data_path(store, artifact.id).read_bytes() == b"one\ntwo\n"
    assert store.list() == [artifact]
    assert str(artifact) == f"artifact://{artifact.id} (text/plain, 8 B)"


def test_a_half_written_artifact_is_nowhere(store: ArtifactStore) -> None:
    writer = store.create()
    writer.write(b"half")
    assert store.list() == []
    with pytest.raises(ArtifactNotFound):
        store.get(writer.id)
    with pytest.raises(ArtifactNotFound):
        store.read(writer.id)
    writer.abort()
    assert list(store.directory.iterdir()) == []
    with pytest.raises(ArtifactsUnavailable):
        writer.write(b"more")
    with pytest.raises(ArtifactsUnavailable):
        writer.commit()


def test_an_exception_drops_what_was_written(store: ArtifactStore) -> None:
    with pytest.raises(ZeroDivisionError), store.create() as writer:
        writer.write(b"x" * (1 // 0))
    assert list(store.directory.iterdir()) == []


def test_only_we_can_look_into_the_folder(store: ArtifactStore) -> None:
    artifact = store.put(b"secret")
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700
    for path in store.directory.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    store.directory.chmod(0o755)
    store.put(b"another")
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700
    assert store.read(artifact.id).data == b"secret"


def test_the_file_can_be_opened_by_its_extension(store: ArtifactStore) -> None:
    for mime, extension in [
        ("text/plain", ".txt"),
        ("image/png", ".png"),
        ("application/json", ".json-data"),
        ("application/../../x", ".data"),
    ]:
        assert data_path(store, store.put(b"x", mime=mime).id).suffix == extension


def test_every_id_is_new_short_and_random() -> None:
    ids = {new_artifact_id() for _ in range(10_000)}
    assert len(ids) == 10_000
    assert all(re.fullmatch("[a-z2-7]{10}", id) for id in ids)  # noqa: A001
    assert len({id[0] for id in ids}) == 32  # noqa: A001


def test_an_artifact_can_be_deleted(store: ArtifactStore) -> None:
    artifact = store.put(b"x")
    store.delete(artifact.uri)
    assert list(store.directory.iterdir()) == []
    with pytest.raises(ArtifactNotFound):
        store.delete(artifact.uri)


def test_the_newest_is_listed_first(store: ArtifactStore) -> None:
    ids = [store.put(b"x", name=str(number)).id for number in range(5)]
    assert [artifact.id for artifact in store.list()] == ids[::-1]


# -- ids that are none ---------------------------------------------------------------------------

BAD_IDS = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "artifact://",
    "artifact://../secret",
    "artifact:///etc/passwd",
    "artifact://artifact://aaaaaaaaaa",
    "..%2f..%2fsecret",
    "%2e%2e/secret",
    "secret",
    "secret.txt",
    "aaaaaaaaaa/../secret",
    "AAAAAAAAAA",
    "aaaaaaaaaa.json",
    "aaaaaaaaaa\n",
    "aaaaaaaaaa\0",
    "\0",
    "a" * 100_000,
    "~",
    "*",
    "aaaaaaaaa?",
    "\ud800",
    "aaaaaaaaaa",
]


@pytest.mark.parametrize("ref", BAD_IDS, ids=lambda ref: ascii(ref[:20]))
def test_no_id_leads_anywhere_else(store: ArtifactStore, ref: str) -> None:
    store.put(b"x")
    (store.directory.parent / "secret").write_text("secret")
    (store.directory / "secret.txt").write_text("secret")
    (store.directory / "secret.json").write_text('{"mime": "text/plain", "size": 6}')
    for ask in (store.get, store.read, store.read_text):
        with pytest.raises(ArtifactNotFound) as caught:
            ask(ref)
        assert len(str(caught.value)) < 600
    with pytest.raises(ArtifactNotFound):
        store.delete(ref)
    assert (store.directory / "secret.txt").exists()


def test_a_slip_of_the_pen_is_helped_out_with(store: ArtifactStore) -> None:
    artifact = store.put(b"x")
    wrong = artifact.id[:-1] + ("a" if artifact.id[-1] != "a" else "b")
    with pytest.raises(ArtifactNotFound) as caught:
        store.get(wrong)
    assert caught.value.hint == f"Did you mean {artifact.id}?"
    with pytest.raises(ArtifactNotFound) as caught:
        store.get("zzzzzzzzzz" if "z" not in artifact.id else "2222222222")
    assert artifact.id not in (caught.value.hint or "")


def test_no_link_and_no_pipe_is_followed(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    link, pipe, record = (store.put(b"x").id for _ in range(3))
    for id in (link, pipe):  # noqa: A001
        data_path(store, id).unlink()
    (store.directory / f"{link}.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(store.directory / f"{pipe}.txt")
    (store.directory / f"{record}.json").unlink()
    (store.directory / f"{record}.json").symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactsUnavailable):
        store.read(link)
    with pytest.raises(ArtifactNotFound):
        store.read(pipe)
    with pytest.raises(ArtifactNotFound):
        store.get(record)


@pytest.mark.parametrize(
    "record", [b"", b"{", b"[]", b"null", b'{"mime": 1}', b"\xff\xff", b"[" * 50_000, b"{}"]
)
def test_a_damaged_record_hides_one_artifact_and_no_other(
    store: ArtifactStore, record: bytes
) -> None:
    good, bad = store.put(b"good"), store.put(b"bad")
    (store.directory / f"{bad.id}.json").write_bytes(record)
    assert store.list() == [good]
    with pytest.raises(ArtifactNotFound):
        store.get(bad.id)
    store.delete(bad.id)
    assert store.put(b"more").size == 4


# -- limits --------------------------------------------------------------------------------------


def test_the_oldest_make_room_for_the_new(store: ArtifactStore) -> None:
    ids = []
    for number in range(5):
        ids.append(store.put(b"x" * 30_000).id)
        make_older(store, ids[-1], 100 - number)
    assert [artifact.id for artifact in store.list()] == [ids[4], ids[3], ids[2]]
    assert sum(path.stat().st_size for path in store.directory.iterdir()) <= 100_000


def test_the_newest_stays_even_if_it_fills_the_quota_alone(store: ArtifactStore) -> None:
    store.put(b"old")
    artifact = store.put(b"x" * 100_000, mime="image/png")
    assert store.list() == [artifact]


def test_the_record_goes_before_the_bytes(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [store.put(b"x").id for _ in range(8)]
    gone: list[str] = []
    monkeypatch.setattr(Path, "unlink", lambda self, **_: gone.append(self.suffix))
    for id in ids:  # noqa: A001
        store.delete(id)
    assert gone == [".json", ".txt"] * 8


def test_one_that_is_being_written_never_goes(store: ArtifactStore) -> None:
    writer = store.create()
    writer.write(b"x" * 50_000)
    make_older(store, writer.id, 10_000)
    for _ in range(10):
        store.put(b"y" * 40_000)
    assert writer.commit().size == 50_000
    assert store.read(writer.id, 0, 10).data == b"x" * 10


def test_what_a_killed_writer_left_is_swept_after_a_while(store: ArtifactStore) -> None:
    store.put(b"x")
    left = store.directory / f"{new_artifact_id()}.part"
    orphan = store.directory / f"{new_artifact_id()}.txt"
    other = store.directory / "README"
    for path in (left, orphan, other):
        path.write_text("left")
    store.make_room()
    assert left.exists()
    assert orphan.exists()
    for path in (left, orphan, other):
        os.utime(path, (0, 0))
    store.make_room()
    assert not left.exists()
    assert not orphan.exists()
    assert other.exists()


def test_there_are_never_too_many(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MOST_ARTIFACTS", 3)
    for _ in range(6):
        last = store.put(b"x")
    assert len(store.list()) == 3
    assert store.list()[0] == last


@pytest.mark.parametrize("piece", [1, 7, 997, 100_000])
def test_of_a_long_text_both_ends_are_kept_with_exact_numbers(tmp_path: Path, piece: int) -> None:
    store = ArtifactStore(tmp_path, max_artifact_bytes=4000)
    data = "".join(f"línea {number:05}\n" for number in range(1000)).encode()
    with store.create() as writer:
        for start in range(0, len(data), piece):
            writer.write(data[start : start + piece])
        artifact = writer.commit()
    assert artifact.truncated
    assert artifact.original_bytes == len(data)
    assert artifact.size <= 4000
    kept = store.read(artifact.id, 0, 10_000).data
    assert len(kept) == artifact.size
    assert hashlib.sha256(kept).hexdigest() == artifact.sha256
    found = re.search(
        rb"\n\[ARTIFACT TRUNCATED: ([\d,]+) bytes left out here,"
        rb" ([\d,]+) before and ([\d,]+) after are kept\]\n",
        kept,
    )
    assert found is not None
    gone, before, after = (int(number.replace(b",", b"")) for number in found.groups())
    assert gone + before + after == len(data)
    assert kept[: found.start()] == data[:before]
    assert kept[found.end() :] == data[-after:]
    kept[found.end() :].decode()
    if piece > 7:  # a caller who cuts characters himself gets them cut
        kept.decode()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".txt"]


@pytest.mark.parametrize("count", [2000, 2001, 2002, 2003])
def test_neither_end_of_a_long_text_cuts_a_character(tmp_path: Path, count: int) -> None:
    store = ArtifactStore(tmp_path, max_artifact_bytes=4000)
    text = "é" * (count % 3) + "東" * count
    artifact = store.put(text.encode())
    kept = data_path(store, artifact.id).read_text(encoding="utf-8")
    head, tail = re.split(r"\n\[ARTIFACT TRUNCATED: .*\]\n", kept)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(tail) == 333


def test_a_text_at_its_limit_is_whole(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_artifact_bytes=4000)
    data = b"0123456789" * 380
    artifact = store.put(data)
    assert (artifact.truncated, artifact.size) == (False, 3800)
    assert store.read(artifact.id).data == data


def test_an_image_that_is_too_large_is_refused(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_artifact_bytes=4000)
    assert store.put(b"x" * 4000, mime="image/png").size == 4000
    with pytest.raises(ArtifactsUnavailable) as caught:
        store.put(b"x" * 4001, mime="image/png")
    assert str(caught.value) == "Artifacts cannot be stored: it is larger than 4,000 bytes"
    assert len(store.list()) == 1


# -- trouble -------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ArtifactStore(tmp_path / "file" / "artifacts")
    with pytest.raises(ArtifactsUnavailable) as caught:
        store.create()
    assert "Not a directory" in str(caught.value)
    with pytest.raises(ArtifactsUnavailable):
        store.list()


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "nothing")
    assert store.list() == []
    assert store.make_room() == []
    with pytest.raises(ArtifactNotFound):
        store.get("aaaaaaaaaa")


def test_a_full_disk_is_told_and_leaves_nothing(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = store.create()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ArtifactsUnavailable) as caught:
        writer.write(b"x" * 100_000)
    assert "No space left on device" in str(caught.value)
    assert list(store.directory.iterdir()) == []


def test_a_record_that_cannot_be_written_leaves_nothing(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = store.create()
    writer.write(b"x")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if target.suffix == ".json":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ArtifactsUnavailable):
        writer.commit()
    assert list(store.directory.iterdir()) == []


# -- parts ---------------------------------------------------------------------------------------


def test_bytes_by_offset_and_limit(store: ArtifactStore) -> None:
    id = store.put(b"0123456789").id  # noqa: A001
    part = store.read(id, 2, 3)
    assert (part.data, part.offset, part.next_offset, part.total) == (b"234", 2, 5, 10)
    assert store.read(id, 7, 3).next_offset is None
    assert store.read(id, 100, 3) == store.read(id, 10, 3)
    assert store.read(id, -5, 3).data == b"012"
    assert store.read(id, 0, 0).data == b""


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7, 100])
def test_text_is_read_in_parts_that_cut_no_character(store: ArtifactStore, limit: int) -> None:
    text = "aé東👍\n" * 20
    id = store.put(text.encode()).id  # noqa: A001
    parts = []
    offset: int | None = 0
    while offset is not None:
        part = store.read_text(id, offset, limit)
        assert part.offset == offset
        assert part.text
        assert len(part.text.encode()) <= max(4, limit)
        parts.append(part.text)
        offset = part.next_offset
    assert "".join(parts) == text
    assert part.total == len(text.encode())


def test_text_from_the_middle_of_a_character_begins_after_it(store: ArtifactStore) -> None:
    id = store.put("👍x".encode()).id  # noqa: A001
    part = store.read_text(id, 1, 10)
    assert (part.text, part.offset, part.next_offset) == ("x", 4, None)


def test_what_is_no_text_is_read_all_the_same(store: ArtifactStore) -> None:
    id = store.put(b"\x80\x80\x80\x80\x80\x80ok\xff").id  # noqa: A001
    assert store.read_text(id).text.endswith("ok\ufffd")
    assert store.read_text(id, 2, 4).text


def test_the_record_is_plain_json(store: ArtifactStore) -> None:
    artifact = store.stamp("\ud800").put(b"x", name="n" * 1000)
    record = json.loads((store.directory / f"{artifact.id}.json").read_text())
    assert record["id"] == artifact.id
    assert len(record["name"]) == 200
    assert store.get(artifact.id) == artifact
