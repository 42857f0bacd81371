"""Which sessions may call tools, and the token of each."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.workspace.workspace import AsyncWorkspace

    Make = Callable[[str, str, str | None, str | None], AsyncWorkspace]

_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class BridgeSession:
    """A session whose code may call tools.

    `workspace` carries its calls out: it has the root, the folder and the mode of whoever started
    the kernel, and is closed by whoever made it.
    """

    name: str
    workspace: AsyncWorkspace
    token: str


class BridgeSessions:
    """The sessions of one bridge; `make` gives each the workspace of its name, mode, root, folder."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._known: dict[tuple[str, str, str | None, str | None], BridgeSession] = {}

    def token(self, name: str, mode: str, root: str | None, cwd: str | None) -> str:
        """The token of a session, which is made if it has none; another mode makes another."""
        key = name, mode, root, cwd
        if key not in self._known:
            token = secrets.token_urlsafe(_TOKEN_BYTES)
            self._known[key] = BridgeSession(name, self._make(*key), token)
        return self._known[key].token

    def find(self, token: str) -> BridgeSession | None:
        """Whose token it is; how long that takes does not tell how much of it is right."""
        found = None
        for session in list(self._known.values()):  # all of them, for the same reason
            if hmac.compare_digest(session.token.encode(), token.encode()):
                found = session
        return found

    def forget(self, name: str) -> None:
        """The session is over: its tokens open nothing any more."""
        self._known = {key: each for key, each in self._known.items() if each.name != name}

    def names(self) -> list[str]:
        """The sessions there are."""
        return [session.name for session in self._known.values()]

    def clear(self) -> None:
        """All sessions are over."""
        self._known.clear()
