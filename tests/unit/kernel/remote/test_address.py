from __future__ import annotations

import copy
import pickle

import pytest

from cellwright.errors import KernelUnreachable
from cellwright.kernel.remote.server import Token, flatten_text, parse_address


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://localhost:8888", "http://localhost:8888"),
        ("http://localhost:8888/", "http://localhost:8888"),
        ("  http://localhost:8888//  ", "http://localhost:8888"),
        ("localhost:8888", "http://localhost:8888"),
        ("HTTPS://Hub.Example.org/user//me/", "https://hub.example.org/user/me"),
        ("http://localhost:8888/lab?token=abcd", "http://localhost:8888"),
        ("http://localhost:8888/tree/", "http://localhost:8888"),
        ("http://localhost:8888/labs", "http://localhost:8888/labs"),
        ("http://localhost:8888/a b/ü", "http://localhost:8888/a%20b/%C3%BC"),
        ("http://localhost:8888/a%20b", "http://localhost:8888/a%20b"),
        ("http://[::1]:8888/x/", "http://[::1]:8888/x"),
        ("http://[fe80::1]", "http://[fe80::1]"),
        ("http://localhost:8888/x#y", "http://localhost:8888/x"),
    ],
)
def test_an_address_is_taken_as_people_copy_it(given: str, expected: str) -> None:
    address, _ = parse_address(given)

    assert str(address) == expected


def test_the_token_is_taken_out_of_the_address() -> None:
    address, token = parse_address("http://localhost:8888/?a=b&token=s3cr%2Ft")
    assert "s3cr" not in str(address)
    assert token.header() == "token s3cr/t"

    _, token = parse_address("http://localhost:8888/?token=theirs", "ours")
    assert token.header() == "token ours"

    _, token = parse_address("http://localhost:8888", "")
    assert not token


@pytest.mark.parametrize(
    "given", ["", "ftp://localhost", "http://", "http://[::1", "http://host:port", "file:///etc/x"]
)
def test_what_is_no_address_is_an_error_that_quotes_nothing(given: str) -> None:
    with pytest.raises(KernelUnreachable) as caught:
        parse_address(f"{given}?token=s3cret" if given else given)

    assert "s3cret" not in str(caught.value)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(KernelUnreachable) as caught:
        parse_address("http://me:hunter22@localhost:8888")

    assert "hunter22" not in f"{caught.value}{caught.value.hint}"


@pytest.mark.parametrize("token", ["two words", "new\nline", "ä", "x\r\nHost: evil"])
def test_a_token_that_would_forge_a_header_is_refused(token: str) -> None:
    with pytest.raises(KernelUnreachable) as caught:
        parse_address("http://localhost", token)

    assert token not in str(caught.value)


def test_a_token_cannot_be_shown_nor_stored() -> None:
    token = Token("s3cret")

    assert "s3cret" not in f"{token} {token!r} {[token]}"
    for store in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            store(token)


def test_others_words_become_one_short_line_without_the_token() -> None:
    text = flatten_text("a\x1b[31m\n\u2028 s3cret s%2F3 " + "x" * 1000, Token("s3cret"))

    assert "s3cret" not in text
    assert text.isprintable()
    assert len(text) < 320
    assert flatten_text("a%2Fb+c", Token("a/b+c")) == "a%2Fb+c"
    assert flatten_text("is a%2Fb%2Bc", Token("a/b+c")) == "is …"


def test_parts_of_a_path_cannot_climb() -> None:
    address, _ = parse_address("https://host/base")

    assert address.join("kernels", "../x?y#z") == "https://host/base/api/kernels/..%2Fx%3Fy%23z"
    socket = address.websocket("kernels", "1", "channels", query={"session_id": "a b"})
    assert socket == "wss://host/base/api/kernels/1/channels?session_id=a+b"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org", True),
        ("http://localhost:1", True),
        ("http://127.0.0.53:1", True),
        ("http://[::1]:1", True),
        ("http://127.0.0.1.example.org", False),
        ("http://localhost.example.org", False),
        ("http://10.0.0.1", False),
    ],
)
def test_who_can_read_along_is_known(url: str, *, expected: bool) -> None:
    assert parse_address(url)[0].is_private is expected
