"""Jupyter's kernelspecs: where they are, and what they say."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cellwright.errors import KernelMissing
from cellwright.kernel.discovery.environments import has_ipykernel, require_ipykernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

Origin = Literal["project", "variable", "user", "own", "system"]
_NAME = re.compile(r"(?!\.+$)[\w .+-]+")
_SYSTEM = ("/usr/local/share/jupyter", "/usr/share/jupyter")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSpec:
    """How to start one kind of kernel.

    `origin` says where it was found: in the `project`'s environment, where a `variable` of
    Jupyter's leads, in the `user`'s or the `system`'s folders, or in our `own` environment.
    `python` is the interpreter it starts, if it is known to start one.
    """

    name: str
    display_name: str
    language: str
    command: tuple[str, ...]
    origin: Origin
    folder: str | None = None
    python: str | None = None
    interrupt_mode: Literal["signal", "message"] = "signal"
    env: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def list_specs(env: Mapping[str, str], python: str | None = None) -> list[KernelSpec]:
    """Every kernelspec that can be meant, sorted by name; of two with one name the first found.

    `env` holds the variables that Jupyter's places depend on, `python` is an interpreter whose
    environment comes before them.
    """
    found: dict[str, KernelSpec] = {}
    for folder, origin in _folders(env, python):
        for spec in _read_all(folder, origin):
            found.setdefault(spec.name.lower(), spec)
    own = Path(sys.executable)
    if "python3" not in found and has_ipykernel(own):
        found["python3"] = _ipykernel(own, "own")
    return sorted(found.values(), key=lambda spec: spec.name)


def find_spec(name: str, env: Mapping[str, str], python: str | None = None) -> KernelSpec:
    """The kernelspec called `name`; see `list_specs` for where it is looked for.

    Raises:
        KernelMissing: there is none; the hint names those that there are.
    """
    # The name may be a notebook's, and so anybody's: it must not lead out of the folders.
    if _NAME.fullmatch(name):
        for folder, origin in _folders(env, python):
            for place in (folder / name, folder / name.lower()):
                spec = _read(place, origin)
                if spec is not None:
                    return spec
    known = {spec.name: spec for spec in list_specs(env, python)}
    for spec in known.values():
        if spec.name.lower() == name.lower():
            return spec
    raise KernelMissing(f"There is no kernel `{name}` here", hint=_what_else(name, known))


def python_spec(python: str, origin: Origin = "project") -> KernelSpec:
    """The ipykernel of an interpreter, whether or not a kernelspec tells of it.

    Raises:
        KernelMissing: it has none; the hint says how to install it.
    """
    require_ipykernel(Path(python))
    return _ipykernel(Path(python), origin)


def _what_else(name: str, known: Mapping[str, KernelSpec]) -> str:
    from difflib import get_close_matches

    if not known:
        return "None is installed; install ipykernel, or use --runner"
    by_words = {spec.display_name: spec.name for spec in known.values()} | {n: n for n in known}
    near = get_close_matches(name, by_words, n=1)
    listing = f"There are: {', '.join(sorted(known))}; choose one with --kernel"
    return f"Did you mean `{by_words[near[0]]}`? {listing}" if near else listing


def _folders(env: Mapping[str, str], python: str | None) -> Iterator[tuple[Path, Origin]]:
    """Where kernelspecs are, in Jupyter's order; the environment of `python` before all."""
    if python is not None:
        yield Path(python).parent.parent / "share/jupyter/kernels", "project"
    for folder in env.get("JUPYTER_PATH", "").split(os.pathsep):
        if folder:
            yield Path(folder, "kernels"), "variable"
    user: tuple[Path, Origin] = (_user_folder(env) / "kernels", "user")
    own: tuple[Path, Origin] = (Path(sys.prefix, "share/jupyter/kernels"), "own")
    # Jupyter prefers an environment that it runs in to the user's folder.
    yield from (own, user) if sys.prefix != sys.base_prefix else (user, own)
    for folder in _SYSTEM:
        yield Path(folder, "kernels"), "system"
    yield _home(env) / ".ipython" / "kernels", "user"


def _user_folder(env: Mapping[str, str]) -> Path:
    if env.get("JUPYTER_DATA_DIR"):
        return Path(env["JUPYTER_DATA_DIR"])
    if sys.platform == "darwin":
        return _home(env) / "Library" / "Jupyter"
    data = env.get("XDG_DATA_HOME")
    return Path(data, "jupyter") if data else _home(env) / ".local/share/jupyter"


def _home(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path("~").expanduser()


def _read_all(folder: Path, origin: Origin) -> Iterator[KernelSpec]:
    try:
        places = sorted(folder.iterdir())
    except OSError:
        return
    for place in places:
        spec = _read(place, origin)
        if spec is not None:
            yield spec


def _read(folder: Path, origin: Origin) -> KernelSpec | None:
    """The kernelspec in a folder; None if there is none that could be started."""
    try:
        content = json.loads((folder / "kernel.json").read_bytes())
        command = tuple(str(part) for part in content["argv"])
        variables = {str(k): str(v) for k, v in (content.get("env") or {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not command:
        return None
    language = str(content.get("language") or "")
    python = _interpreter(command[0], folder) if language.lower() == "python" else None
    if python is not None:
        command = (python, *command[1:])
    return KernelSpec(
        name=folder.name,
        display_name=str(content.get("display_name") or folder.name),
        language=language,
        command=command,
        origin=origin,
        folder=str(folder),
        python=python,
        interrupt_mode="message" if content.get("interrupt_mode") == "message" else "signal",
        env=variables,
        metadata=content.get("metadata") or {},
    )


def _interpreter(word: str, folder: Path) -> str | None:
    """The Python that a command begins with; a bare `python` is that of the kernelspec's prefix."""
    name = Path(word).name
    if not name.startswith("python"):
        return None
    if word != name:
        return word
    beside = folder.parents[3] / "bin" / name
    return str(beside) if beside.exists() else None


def _ipykernel(python: Path, origin: Origin) -> KernelSpec:
    return KernelSpec(
        name="python3",
        display_name="Python 3 (ipykernel)",
        language="python",
        command=(str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"),
        origin=origin,
        python=str(python),
    )
