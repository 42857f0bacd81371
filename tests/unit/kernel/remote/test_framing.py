from __future__ import annotations

import json
import struct
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cellwright.kernel.jupyter import MOST_CONTENT
from cellwright.kernel.remote.websocket import (
    V1,
    BadFrame,
    RemoteMessage,
    decode_frame,
    encode_frame,
)
from tests.conftest import RUN_ALL

some = settings(max_examples=2000 if RUN_ALL else 40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8), json_values, max_size=4)
messages = st.builds(
    RemoteMessage,
    st.sampled_from(["shell", "iopub", "stdin", "control"]),
    objects,
    objects,
    objects,
    objects,
    st.lists(st.binary(max_size=50), max_size=4).map(tuple),
)


@pytest.mark.parametrize("protocol", [V1, None])
@some
@given(messages)
def test_every_message_comes_back_as_it_went(protocol: str | None, message: RemoteMessage) -> None:
    frame = encode_frame(message, protocol)

    again = decode_frame(frame, protocol)

    again.size = 0
    assert again == message
    assert isinstance(frame, bytes) == (protocol == V1 or bool(message.buffers))


@pytest.mark.parametrize("protocol", [V1, None])
@given(st.binary(max_size=200) | st.text(max_size=100))
@example(b"")
@example("null")
@example("[]")
@example('{"header": []}')
@example(struct.pack("<Q", 2**63))
@example(struct.pack("<3Q", 2, 24, 24))
@example(struct.pack("<7Q", 6, 56, 50, 56, 56, 56, 56))
@example(struct.pack("!2I", 1, 8) + b"{")
@example("[" * 100_000)
def test_garbage_is_a_bad_frame_and_nothing_else(protocol: str | None, frame: str | bytes) -> None:
    with pytest.raises(BadFrame):
        decode_frame(frame, protocol)


@pytest.mark.parametrize("protocol", [V1, None])
@some
@given(messages, st.data())
def test_a_frame_with_a_wrong_byte_is_read_or_refused(
    protocol: str | None, message: RemoteMessage, data: st.DataObject
) -> None:
    frame = encode_frame(message, protocol)
    raw = bytearray(frame if isinstance(frame, bytes) else frame.encode())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    broken = bytes(raw) if isinstance(frame, bytes) else raw.decode("utf-8", "replace")

    try:
        again = decode_frame(broken, protocol)
    except BadFrame:
        return
    assert isinstance(again, RemoteMessage)
    assert isinstance(again.kind, str)
    assert isinstance(again.parent_id, str)


def test_the_frames_are_those_that_servers_read() -> None:
    message = RemoteMessage("shell", {"msg_id": "1"}, {}, {}, {"a": 1}, (b"xy",))

    frame = encode_frame(message, V1)
    assert isinstance(frame, bytes)
    (count,) = struct.unpack_from("<Q", frame)
    offsets = struct.unpack_from(f"<{count}Q", frame, 8)
    assert count == 7
    parts = [frame[a:b] for a, b in pairwise(offsets)]
    assert parts == [b"shell", b'{"msg_id":"1"}', b"{}", b"{}", b'{"a":1}', b"xy"]

    frame = encode_frame(message, None)
    assert isinstance(frame, bytes)
    count, first, second = struct.unpack_from("!3I", frame)
    assert count == 2
    assert json.loads(frame[first:second]) == {
        "channel": "shell",
        "header": {"msg_id": "1"},
        "parent_header": {},
        "metadata": {},
        "content": {"a": 1},
    }
    assert frame[second:] == b"xy"


def test_what_json_does_not_allow_but_kernels_send_is_read() -> None:
    text = '{"header": {"msg_type": "stream"}, "content": {"a": NaN, "b": "\\ud800"}}'

    content = decode_frame(text, None).content

    assert content["a"] != content["a"]
    assert content["b"] == "\ud800"
    frame = encode_frame(RemoteMessage("shell", {}, content={"code": "\ud800"}), V1)
    assert decode_frame(frame, V1).content == {"code": "\ud800"}


def test_of_an_output_that_is_too_large_the_beginning_is_decoded_and_the_bytes_are_kept() -> None:
    content = {"data": {"text/plain": "x" * (MOST_CONTENT + 1)}, "execution_count": 3}
    message = RemoteMessage("iopub", {"msg_type": "execute_result"}, content=content)
    again = decode_frame(encode_frame(message, V1), V1)
    assert again.content["execution_count"] == 3
    assert len(again.content["data"]["text/plain"]) < 50_000
    assert json.loads(again.raw) == content
