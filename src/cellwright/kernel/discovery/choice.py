"""Which kernel a notebook is run with when several could be meant.

In this order: what was asked for; the setting; the notebook's own kernelspec; the environment
nearest the notebook; the one that the client has activated; a `python3` that Jupyter knows; our
own interpreter, only if nothing else was found.

`python3` is the name that every Python notebook carries, and says nothing about which Python: by
itself it never comes before an environment. An environment that was found is the answer even if
it cannot run a kernel: then that is an error, never a silent step to the next.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from cellwright.errors import KernelMissing
from cellwright.kernel.discovery.environments import (
    OLDEST_PYTHON,
    environment_from,
    interpreter_of,
    is_environment,
    nearest_environment,
    version_of,
)
from cellwright.kernel.discovery.specs import find_spec, python_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.kernel.discovery.specs import KernelSpec

_ANY_PYTHON = frozenset({"python", "python3"})


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel, and in words why it was this one; `Launch` takes `kernel_name` and `python`."""

    spec: KernelSpec
    why: str

    @property
    def kernel_name(self) -> str | None:
        """The name of the kernelspec; None if an interpreter's ipykernel was chosen without one."""
        return self.spec.name if self.spec.folder is not None else None

    @property
    def python(self) -> str | None:
        """The interpreter that the kernel runs in, if it is known."""
        return self.spec.python


def choose_kernel(
    folder: str,
    *,
    env: Mapping[str, str],
    asked: str | None = None,
    setting: str | None = None,
    notebook: str | None = None,
) -> KernelChoice:
    """Choose the kernel for a notebook in `folder`.

    `asked` and `setting` are the name of a kernelspec, or the path of an interpreter or of an
    environment; `notebook` is the name in the notebook's own `kernelspec`; `env` holds the
    client's variables.

    Raises:
        KernelMissing: what was chosen is not there, or has no kernel.
    """
    found = _environment_for(folder, env)
    for word, why in ((asked, "asked for"), (setting, "setting"), (notebook, "notebook")):
        if word is None or (word in _ANY_PYTHON and (found is not None or why == "notebook")):
            continue
        if _is_path(word) and why != "notebook":
            return KernelChoice(python_spec(str(_interpreter_at(word, folder))), why)
        return KernelChoice(_named(word, env, found), why)
    if found is not None:
        environment, why = found
        return KernelChoice(python_spec(str(interpreter_of(environment))), why)
    spec = find_spec("python3", env)
    return KernelChoice(spec, "own environment" if spec.origin == "own" else "Jupyter's python3")


def choose_python(
    folder: str, *, env: Mapping[str, str], asked: str | None = None, setting: str | None = None
) -> str:
    """Choose the interpreter for code in `folder` that needs no kernel.

    Raises:
        KernelMissing: what was chosen is no Python, or too old a one.
    """
    found = _environment_for(folder, env)
    word = asked if asked is not None else setting
    if word is not None and _is_path(word):
        python = _interpreter_at(word, folder)
    elif word is not None and not (word in _ANY_PYTHON and found is not None):
        spec = _named(word, env, found)
        if spec.python is None:
            raise KernelMissing(
                f"The kernel `{word}` names no Python interpreter", hint="Give the path of one"
            )
        python = Path(spec.python)
    else:
        python = interpreter_of(found[0]) if found is not None else Path(sys.executable)
    version = version_of(python)
    if version < OLDEST_PYTHON:
        raise KernelMissing(
            f"{python} is Python {version[0]}.{version[1]}",
            hint="It must be 3.9 or newer; choose another with --kernel",
        )
    return str(python)


def _environment_for(folder: str, env: Mapping[str, str]) -> tuple[Path, str] | None:
    """The environment that goes with `folder`, in working order or not, and why it does."""
    home = Path(env["HOME"]) if env.get("HOME") else None
    nearest = nearest_environment(Path(folder), home)
    if nearest is not None:
        return nearest, f"environment {nearest}"
    active = environment_from(env)
    return None if active is None else (active, f"active environment {active}")


def _named(name: str, env: Mapping[str, str], environment: tuple[Path, str] | None) -> KernelSpec:
    python = None if environment is None else str(environment[0] / "bin" / "python")
    return find_spec(name, env, python)


def _is_path(word: str) -> bool:
    return "/" in word


def _interpreter_at(word: str, folder: str) -> Path:
    """The interpreter that a path means: itself, or that of the environment there."""
    path = Path(folder, Path(word).expanduser())
    if path.is_dir():
        if not is_environment(path):
            raise KernelMissing(
                f"{path} is no Python environment",
                hint="Give the path of one, or of an interpreter",
            )
        return interpreter_of(path)
    if not path.is_file():
        raise KernelMissing(
            f"There is no interpreter at {path}", hint="Check the path, or give a kernel's name"
        )
    return path
