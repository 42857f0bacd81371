from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import ConfigError
from cellwright.mcp.http import HttpAddress, RateLimit, TokenFile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8765", "127.0.0.1", 8765),
        (":80", "127.0.0.1", 80),
        ("[::1]:1", "::1", 1),
        ("localhost:0", "localhost", 0),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    found = HttpAddress.parse(text)

    assert (found.host, found.port) == (host, port)
    found.check()


@pytest.mark.parametrize("text", ["", "8765", "host:", "host:x", "host:99999", "http://a/b"])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError):
        HttpAddress.parse(text)


EVERYWHERE = "0.0.0.0"  # noqa: S104  # that is what is refused


@pytest.mark.parametrize("host", [EVERYWHERE, "[::]", "192.168.1.2", "example.com", "[fe80::1]"])
def test_nobody_listens_beyond_this_machine_in_the_clear_unless_told_to(host: str) -> None:
    with pytest.raises(ConfigError) as refused:
        HttpAddress.parse(f"{host}:8765").check()

    assert "--tls-cert" in (refused.value.hint or "")
    HttpAddress.parse(f"{host}:8765", insecure=True).check()
    HttpAddress.parse(f"{host}:8765", certificate="c", key="k").check()
    with pytest.raises(ConfigError):
        HttpAddress.parse(f"{host}:8765", certificate="c").check()


def test_the_token_is_made_once_for_the_user_alone(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path), "agent")
    token, is_new = file.load()

    assert is_new
    assert len(token) >= 43
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert file.load() == (token, False)
    renewed, is_new = file.load(renew=True)
    assert is_new
    assert renewed != token


def test_a_token_is_that_of_one_root_and_mode(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    tokens = [
        TokenFile(root, mode).load()[0]
        for root in (str(tmp_path), f"{tmp_path}/link", f"{tmp_path}/other")
        for mode in ("ask", "agent")
    ]

    assert tokens[:2] == tokens[2:4]  # the same root, by another name
    assert len(set(tokens)) == 4


def test_a_running_server_follows_the_file(tmp_path: Path) -> None:
    running = TokenFile(str(tmp_path), "ask")
    first, _ = running.load()
    assert running.current() == first
    second, _ = TokenFile(str(tmp_path), "ask").load(renew=True)
    assert running.current() == second != first
    running.path.chmod(0o644)
    assert running.current() == ""
    running.path.chmod(0o600)
    assert running.current() == second
    running.path.unlink()
    assert running.current() == ""


def test_a_token_that_others_could_read_or_have_put_there_is_not_used(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path), "agent")
    file.load()
    path = file.path
    path.chmod(0o644)
    with pytest.raises(ConfigError):
        file.load()

    path.chmod(0o600)
    path.write_text("short\n")
    with pytest.raises(ConfigError):
        file.load()

    path.unlink()
    path.symlink_to(tmp_path / "theirs")
    (tmp_path / "theirs").write_text("A" * 43)
    with pytest.raises(ConfigError):
        file.load()

    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(ConfigError):  # and does not wait for a writer
        file.load()


def test_a_bucket_fills_again_and_forgets_the_oldest() -> None:
    now = 0.0
    bucket = RateLimit(2, 3, lambda: now)

    assert [bucket.allows("a") for _ in range(4)] == [True, True, True, False]
    now = 0.5
    assert [bucket.allows("a") for _ in range(2)] == [True, False]
    for number in range(5000):
        bucket.allows(str(number))
    assert len(bucket._known) <= 4096
