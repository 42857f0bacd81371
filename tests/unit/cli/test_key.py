"""Keys of language models: into the keyring, and never anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

from tests.unit.cli.calling import call, succeed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-not-a-real-key-0123"


class Drawer(KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError


@pytest.fixture
def drawer() -> Iterator[Drawer]:
    before, drawer = keyring.get_keyring(), Drawer()
    keyring.set_keyring(drawer)
    yield drawer
    keyring.set_keyring(before)


def files(places: Path) -> str:
    found = [path.read_bytes() for path in places.rglob("*") if path.is_file()]
    return b"\n".join(found).decode(errors="replace")


def test_a_key_from_stdin_is_kept_and_forgotten(places: Path, drawer: Drawer) -> None:
    said = succeed("key", "anthropic", stdin=f"{KEY}\n")
    assert drawer.kept == {("cellwright", "anthropic"): KEY}
    assert KEY not in said.text + said.err
    assert KEY not in files(places)
    succeed("key", "anthropic", "--forget")
    assert drawer.kept == {}
    assert "no key" in succeed("key", "anthropic", "--forget").err


def test_a_key_for_a_server_of_ones_own_is_not_the_provider_s(drawer: Drawer) -> None:
    address = "https://models.example.org/v1"
    told = succeed("key", "openai", "--address", address, "--json", stdin=KEY)
    assert told.data == {"account": "openai@models.example.org", "stored": True}
    assert list(drawer.kept) == [("cellwright", "openai@models.example.org")]


@pytest.mark.parametrize("given", ["", "two words", "ключ", "line\nline"])
def test_what_is_no_key_is_refused(drawer: Drawer, given: str) -> None:
    failed = call("key", "openai", stdin=given)
    assert failed.code == 2
    assert drawer.kept == {}


def test_an_unknown_provider_is_refused_with_its_code(drawer: Drawer) -> None:
    failed = call("key", "antropic", "--json", stdin=KEY)
    assert failed.code == 2
    assert failed.error["code"] == "UNKNOWN_MODEL"
    assert drawer.kept == {}


def test_without_a_keyring_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)  # type: ignore[arg-type]
    failed = call("key", "anthropic", stdin=KEY)
    assert failed.code == 2
    assert "hint:" in failed.err
    assert KEY not in failed.err


def test_a_key_typed_at_a_terminal_is_not_shown(
    drawer: Drawer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def prompt(text: str, **options: Any) -> str:
        asked.append({"text": text, **options})
        return KEY

    monkeypatch.setattr("cellwright.cli.commands.chat.is_terminal", lambda _: True)
    monkeypatch.setattr("click.prompt", prompt)
    succeed("key", "anthropic")
    assert asked == [{"text": "Key of anthropic", "hide_input": True, "err": True}]
    assert list(drawer.kept.values()) == [KEY]
