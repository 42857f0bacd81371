"""`%pip`: install into this interpreter, and let the next import see what is new."""

# Why not: see the package's docstring.

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES = frozenset({"install", "uninstall"})


def pip(text: str, status: Callable[..., None]) -> None:
    """Run pip with these arguments; what it says is streamed.

    Modules whose files it changed are forgotten, so that importing them again loads the new ones.
    """
    from shlex import split
    from subprocess import DEVNULL, CalledProcessError, Popen

    words = split(text)
    before = _times() if words and words[0] in CHANGES else {}
    if words[:1] == ["uninstall"] and not {"-y", "--yes"} & set(words):
        words.append("--yes")  # nobody could answer its question
    command = _pip_command(words)
    environment = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUNBUFFERED": "1", **os.environ}
    child = Popen(command, stdin=DEVNULL, env=environment)  # noqa: S603
    try:
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    purged = _purge(before) if words and words[0] in CHANGES else []
    status("pip", arguments=words, returncode=code, purged=purged)
    if code:
        raise CalledProcessError(code, ["pip", *words])


def _pip_command(words: list[str]) -> list[str]:
    from importlib.util import find_spec

    if find_spec("pip") is None:  # an environment that uv made
        from shutil import which

        uv = which("uv")
        if uv is None:
            raise ModuleNotFoundError(
                f"this Python has no pip; `{sys.executable} -m ensurepip` installs it"
            )
        without = [word for word in words if word not in {"-y", "--yes"}]
        return [uv, "pip", *without[:1], "--python", sys.executable, *without[1:]]
    return [sys.executable, "-m", "pip", *words]


def _times() -> dict[str, int]:
    """Give when the file of each module outside the standard library was last changed."""
    library = os.path.dirname(os.__file__)
    times = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not path or name.startswith("_cellwright_runner"):
            continue
        if not path.startswith(library) or "-packages" in path:
            try:
                times[name] = os.stat(path).st_mtime_ns
            except OSError:
                continue
    return times


def _purge(before: dict[str, int]) -> list[str]:
    """Forget the modules of every package of which a file changed or went."""
    import importlib

    importlib.invalidate_caches()
    now = _times()
    changed = {name.split(".")[0] for name in before if now.get(name) != before[name]}
    for name in list(sys.modules):
        if name.split(".")[0] in changed:
            del sys.modules[name]
    return sorted(changed)
