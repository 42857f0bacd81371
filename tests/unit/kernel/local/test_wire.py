"""The wire format: signed both ways, and long texts in pieces that lose nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from cellwright.kernel import jupyter
from cellwright.kernel.jupyter import PROTOCOL
from cellwright.kernel.local import channels
from cellwright.kernel.local.channels import BadMessage, LocalMessage, MessageSigner, find_safe_cut
from cellwright.kernel.local.conversation import translate_message
from cellwright.outputs.events import DisplayEvent, ErrorEvent

KEY = b"key"


def _frames(parts: list[bytes]) -> list[zmq.Frame]:
    return [zmq.Frame(part) for part in parts]


def _message(content: bytes, kind: str = "stream") -> LocalMessage:
    header = json.dumps({"msg_id": "m", "msg_type": kind}).encode()
    return LocalMessage(_frames([header, b"{}", b"{}", content]))


def test_what_is_packed_is_unpacked() -> None:
    signer = MessageSigner(KEY)

    identity, frames = signer.pack(
        "comm_msg", {"data": 1}, parent={"msg_id": "p"}, metadata={"a": 2}, buffers=[b"raw"]
    )
    message = signer.unpack(_frames([b"topic", *frames]))

    assert message.header["msg_id"] == identity
    assert (message.type, message.parent_id) == ("comm_msg", "p")
    assert (message.content, message.metadata) == ({"data": 1}, {"a": 2})
    assert [frame.bytes for frame in message.buffers] == [b"raw"]


def test_jupyter_itself_reads_what_we_pack_and_we_what_it_packs() -> None:
    from jupyter_client.session import Session

    ours, theirs = MessageSigner(KEY), Session(key=KEY)

    _, frames = ours.pack("execute_request", {"code": "é\ud800"}, metadata={"cellId": "c"})
    _, parts = theirs.feed_identities(frames)
    read = theirs.deserialize(parts)
    packed = theirs.serialize(theirs.msg("stream", {"name": "stdout", "text": "é\n"}))
    message = ours.unpack(_frames(packed))

    assert read["content"] == {"code": "é\ud800"}
    assert read["header"]["version"] == PROTOCOL
    assert list(message.stream_pieces()) == [("stdout", "é\n")]


@pytest.mark.parametrize("index", [1, 2, 3, 4, 5])
def test_a_message_that_was_tampered_with_is_refused(index: int) -> None:
    signer = MessageSigner(KEY)
    _, frames = signer.pack("status", {"execution_state": "idle"})
    frames[index] = frames[index][:-1] + b"!"

    with pytest.raises(BadMessage):
        signer.unpack(_frames(frames))


@pytest.mark.parametrize(
    "frames", [[], [b"x"], [channels.DELIMITER], [channels.DELIMITER, b"", b"{}", b"{}", b"{}"]]
)
def test_frames_that_are_no_message_are_refused(frames: list[bytes]) -> None:
    with pytest.raises(BadMessage):
        MessageSigner(KEY).unpack(_frames(frames))


@pytest.mark.parametrize("content", [b"[]", b"{", b"1"])
def test_a_signed_message_whose_parts_are_no_objects_is_refused(content: bytes) -> None:
    signer = MessageSigner(KEY)
    parts = [content, b"{}", b"{}", b"{}"]

    with pytest.raises(BadMessage):
        signer.unpack(_frames([channels.DELIMITER, signer._sign(parts), *parts]))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"a": NaN}', float("nan")),
        (b'{"a": "\\ud800"}', "\ud800"),
        (b'{"a": "\xff"}', "\ufffd"),
        (b'{"a": 123456789012345678901234567890}', 123456789012345678901234567890),
    ],
)
def test_json_that_strict_readers_refuse_is_read(raw: bytes, expected: Any) -> None:
    assert repr(_message(raw).content["a"]) == repr(expected)


TEXTS = st.text(st.sampled_from('ab\\"\n\x00\x1b é€😀\ud83d\udc4d/u0123'), max_size=60)


@given(TEXTS, st.booleans(), st.integers(13, 30))
def test_a_text_in_pieces_is_the_text(text: str, is_ascii: bool, size: int) -> None:
    if not is_ascii and not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        is_ascii = True  # it has no UTF-8
    raw = json.dumps({"name": "stdout", "text": text}, ensure_ascii=is_ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channels, "PIECE", size)
        pieces = list(_message(raw).stream_pieces())

    assert {name for name, _ in pieces} <= {"stdout"}
    joined = "".join(piece for _, piece in pieces)
    assert joined == json.loads(raw)["text"]


def test_a_long_text_comes_in_pieces_of_bounded_size() -> None:
    raw = json.dumps({"name": "stderr", "text": "x" * 5 * channels.PIECE}).encode()

    pieces = list(_message(raw).stream_pieces())

    assert {name for name, _ in pieces} == {"stderr"}
    assert max(len(text) for _, text in pieces) <= channels.PIECE
    assert sum(len(text) for _, text in pieces) == 5 * channels.PIECE


def test_a_long_text_in_another_order_of_keys_is_read_whole() -> None:
    raw = json.dumps({"text": "x" * 3 * channels.PIECE, "name": "stderr"}).encode()

    pieces = list(_message(raw).stream_pieces())

    assert {name for name, _ in pieces} == {"stderr"}
    assert "".join(text for _, text in pieces) == "x" * 3 * channels.PIECE


# -- a content that is too large to be decoded -----------------------------------------------------

LONG = jupyter.MOST_CONTENT + 1


@pytest.fixture
def never_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if more than a little is decoded at once."""
    decode = jupyter.decode_json

    def decode_little(raw: Any) -> Any:
        assert len(raw) < 2**20
        return decode(raw)

    monkeypatch.setattr(jupyter, "decode_json", decode_little)
    monkeypatch.setattr(channels, "decode_json", decode_little)


@pytest.mark.usefixtures("never_decoded")
def test_of_a_result_that_is_too_large_the_beginning_is_read() -> None:
    content = {
        "data": {"application/json": {"a": "\\"}, "text/plain": "é\n\\" + "x" * LONG},
        "metadata": {},
        "execution_count": 7,
    }

    raw = json.dumps(content).encode()
    *pieces, shown = translate_message(_message(raw, "execute_result"))

    assert isinstance(shown, DisplayEvent)
    assert (shown.is_result, shown.execution_count) == (True, 7)
    text = shown.data["text/plain"]
    assert text.startswith("é\n\\xxx")
    assert text.endswith("left out …]")
    assert len(text) < 50_000
    assert b"".join(piece.data for piece in pieces) == raw + b"\n"  # type: ignore[union-attr]


@pytest.mark.usefixtures("never_decoded")
def test_of_an_error_that_is_too_large_name_and_beginning_are_read() -> None:
    trap = '", "ename": "Forged'
    content = {"traceback": [trap + "x" * LONG], "ename": "ValueError", "evalue": "y" * LONG}

    *pieces, raised = translate_message(_message(json.dumps(content).encode(), "error"))

    assert isinstance(raised, ErrorEvent)
    assert raised.ename == "ValueError"
    assert raised.evalue.startswith("yyy")
    assert len(raised.evalue) < 50_000
    assert sum(map(len, raised.traceback)) < 100_000
    assert len(pieces) > LONG // 2**20


@pytest.mark.usefixtures("never_decoded")
def test_a_display_that_is_too_large_keeps_its_id_and_says_its_size() -> None:
    content = {"data": {"image/png": "A" * LONG}, "transient": {"display_id": "d1"}}

    *_, shown = translate_message(_message(json.dumps(content).encode(), "display_data"))

    assert isinstance(shown, DisplayEvent)
    assert shown.display_id == "d1"
    assert "13 MB" in shown.data["text/plain"]


def test_a_cell_that_may_show_more_has_it_decoded() -> None:
    content = {"data": {"text/plain": "x" * LONG}, "metadata": {}}
    message = _message(json.dumps(content).encode(), "display_data")

    [shown] = translate_message(message, 2 * LONG)

    assert isinstance(shown, DisplayEvent)
    assert shown.data["text/plain"] == "x" * LONG


@pytest.mark.parametrize(
    ("piece", "cut", "expected"),
    [
        (rb"abcdef", 3, 3),
        (rb"ab\ncd", 3, 2),
        (rb"ab\\cd", 3, 2),
        (rb"ab\\cd", 4, 4),
        (rb"a\u00e9bc", 4, 1),
        (rb"a\u00e9bc", 7, 7),
        (rb"ab\\u00e9", 6, 6),
        ("aé".encode(), 2, 1),
        (rb"abcdefgh\ud83d\ude00", 14, 8),
        (rb"abcdefgh\ud83d\ude00x", 17, 8),
        (rb"abcdefgh\\ud83dxyz", 15, 15),
    ],
)
def test_a_cut_is_never_inside_a_character(piece: bytes, cut: int, expected: int) -> None:
    assert find_safe_cut(piece, cut) == expected
