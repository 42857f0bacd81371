"""The variables a kernel gets: the caller's own without secrets, and those of its session."""

from __future__ import annotations

import json
import os
import re
from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MARK_VARIABLE = "CELLWRIGHT_KERNEL_MARK"
"""Set in every kernel to its own mark, which every process it starts inherits."""

CLIENT_PYTHON = "_CELLWRIGHT_CLIENT_PYTHON"
"""Tells an engine which interpreter its client runs in; kernels do not get it."""

# What pays for the agent, or opens an account: code that an agent writes must not use it unasked.
_is_secret = re.compile(
    r"(?:.*[\W_])?(?:(?:API_?|AUTH_?|SECRET_|ACCESS_|ACCOUNT_|PRIVATE_|STORAGE_"
    r"|ENCRYPTION_|MASTER_|SIGNING_)KEYS?(?:_ID)?"
    # As some are called that need no API in their names.
    r"|(?:ANTHROPIC|COHERE|GEMINI|KAGGLE|MISTRAL|OPENAI)_KEYS?"
    r"|(?:API_?|AUTH_?|ACCESS_?)?TOKEN|(?:API_?|AUTH_?|ACCESS_?)TOKENS|SECRETS?"
    r"|CREDENTIALS?|CONNECTION_STRING)"
    r"|.+_PAT|.+_TOKEN_\w+|AWS_CONTAINER_CREDENTIALS_\w+",
    re.IGNORECASE | re.DOTALL,
).fullmatch

ADDRESSES = ("CELLWRIGHT_SERVER", "CELLWRIGHT_SERVERS", "CELLWRIGHT_ASSISTANT_BASE_URL")
"""Settings of ours that may have a token or a password inside; kernels do not need them."""

# Each of our variables, and the names that code written for other tools uses for it.
_NAMES = {
    "session_file": ("CELLWRIGHT_SESSION_FILE", "PI_SESSION_FILE"),
    "artifacts_dir": ("CELLWRIGHT_ARTIFACTS_DIR", "PI_ARTIFACTS_DIR", "ARTIFACTS"),
    "bridge_url": ("CELLWRIGHT_TOOL_BRIDGE_URL", "PI_TOOL_BRIDGE_URL"),
    "bridge_token": ("CELLWRIGHT_TOOL_BRIDGE_TOKEN", "PI_TOOL_BRIDGE_TOKEN"),
    "bridge_session": ("CELLWRIGHT_TOOL_BRIDGE_SESSION", "PI_TOOL_BRIDGE_SESSION"),
}
MANAGED = frozenset(name for names in _NAMES.values() for name in names)
"""Variables of a session, which are set or removed before each of its cells."""


def build_kernel_environment(
    environ: Mapping[str, str], passed: Collection[str] = ()
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Build the environment of a new kernel; also gives the names that were withheld from it.

    Secrets are withheld by their names, except for those in `passed`, which may have a `*`.
    """
    withheld = tuple(
        name
        for name in sorted(environ)
        if _is_secret(name) and not any(fnmatchcase(name, each) for each in passed)
    )
    dropped = {*withheld, *MANAGED, *ADDRESSES, MARK_VARIABLE}
    return {name: value for name, value in environ.items() if name not in dropped}, withheld


def build_session_variables(
    *,
    session_file: str | None = None,
    artifacts_dir: str | None = None,
    bridge_url: str | None = None,
    bridge_token: str | None = None,
    bridge_session: str | None = None,
) -> dict[str, str | None]:
    """Build the managed variables under all their names; None removes one."""
    values = (session_file, artifacts_dir, bridge_url, bridge_token, bridge_session)
    pairs = zip(_NAMES.values(), values, strict=True)
    return {name: value for names, value in pairs for name in names}


def explain_withheld(withheld: Collection[str], text: str) -> str | None:
    """Explain a cell's failure if its text names a variable that was withheld from it."""
    missing = [name for name in withheld if name in text]
    if not missing:
        return None
    names = ", ".join(missing)
    return (
        f"{names} {'is' if len(missing) == 1 else 'are'} withheld from kernels; to pass it, set "
        f"CELLWRIGHT_PASS_VARIABLES={','.join(missing)} or `pass_variables` in your config.toml"
    )


SESSION_FILE_PREFIX = "session-"


def write_session_file(path: str, facts: Mapping[str, str | None]) -> None:
    """Write the small JSON from which code in a kernel learns its session, notebook, root and mode."""
    temp = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(dict(facts), indent=1).encode() + b"\n")
    finally:
        os.close(descriptor)
    os.replace(temp, path)  # noqa: PTH105  # readers see the whole file or none
