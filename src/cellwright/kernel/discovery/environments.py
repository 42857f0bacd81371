"""Python environments as folders: where the nearest one is, and what is installed there."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cellwright.errors import KernelMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST_PYTHON = (3, 9)
_FOLDER_NAMES = (".venv", "venv", ".conda", ".pixi/envs/default", "env")
_ASK_WITHIN = 30.0
_QUESTION = (
    "import importlib.util, json, sys; print(json.dumps(["
    "list(sys.version_info[:2]), importlib.util.find_spec('ipykernel_launcher') is not None]))"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an interpreter says of itself."""

    version: tuple[int, int]
    has_ipykernel: bool


def nearest_environment(folder: Path, home: Path | None = None) -> Path | None:
    """The environment nearest to `folder`, going up as far as the root or the home folder.

    Those two count only if `folder` is one of them: an environment there belongs to no project.
    """
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        if place != folder and place in {home, place.parent}:
            return None
        if (place / "conda-meta").is_dir():
            return place
        for name in _FOLDER_NAMES:
            if is_environment(place / name):
                return place / name
    return None


def is_environment(folder: Path) -> bool:
    """Tell whether a virtual or conda environment is there, in working order or not."""
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


def environment_from(variables: Mapping[str, str]) -> Path | None:
    """The environment that somebody has activated."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = variables.get(name)
        if folder and is_environment(Path(folder)):
            return Path(folder)
    return None


def interpreter_of(environment: Path) -> Path:
    """The Python of an environment.

    Raises:
        KernelMissing: it has none, or one that leads nowhere.
    """
    for name in ("python", "python3"):
        python = environment / "bin" / name
        if python.is_file():
            return python
    if (environment / "conda-meta").is_dir():
        problem, remedy = "has no Python", f"conda install --prefix {_quote(environment)} python"
    else:
        problem, remedy = "is broken", f"python3 -m venv --clear {_quote(environment)}"
    raise KernelMissing(
        f"The environment {environment} {problem}: there is no {environment / 'bin' / 'python'}",
        hint=f"Make it anew (`{remedy}`), or choose another kernel with --kernel",
    )


def has_ipykernel(python: Path) -> bool:
    """Tell whether the interpreter can start an ipykernel, without starting it if folders tell.

    Raises:
        KernelMissing: the interpreter does not run.
    """
    folders = list(_site_packages(python))
    if any((folder / "ipykernel_launcher.py").is_file() for folder in folders):
        return True
    if folders and not _sees_more(python, folders):
        return False
    return ask(python).has_ipykernel


def version_of(python: Path) -> tuple[int, int]:
    """The Python version of an interpreter.

    Raises:
        KernelMissing: the interpreter does not run.
    """
    for line in _configuration(python):
        key, _, value = line.partition("=")
        if key.strip() in {"version", "version_info"}:
            major, _, rest = value.strip().partition(".")
            minor = rest.partition(".")[0]
            if major.isdigit() and minor.isdigit():
                return int(major), int(minor)
    return ask(python).version


def require_ipykernel(python: Path) -> None:
    """Make sure that the interpreter can start an ipykernel.

    Raises:
        KernelMissing: it cannot; the hint is the command that changes that.
    """
    if not has_ipykernel(python):
        raise KernelMissing(
            f"{python} has no ipykernel",
            hint=f"Install it: `{install_command(python)}`; or use --runner, which needs nothing",
        )


def install_command(python: Path) -> str:
    """The command that installs ipykernel for an interpreter."""
    folders = list(_site_packages(python))
    if folders and not any((folder / "pip").is_dir() for folder in folders):
        return f"uv pip install --python {_quote(python)} ipykernel"
    return f"{_quote(python)} -m pip install ipykernel"


_answers: dict[tuple[object, ...], Answer] = {}


def ask(python: Path) -> Answer:
    """Run an interpreter and let it tell; remembered until it or its packages change.

    Raises:
        KernelMissing: it does not run.
    """
    key = (str(python), *(_changed(place) for place in (python, *_site_packages(python))))
    if key not in _answers:
        _answers[key] = _ask(python)
    return _answers[key]


def _ask(python: Path) -> Answer:
    import json

    try:
        # Isolated, so that neither the folder we are in nor our own variables decide.
        done = subprocess.run(  # noqa: S603 - the interpreter that will run the cells
            [str(python), "-I", "-c", _QUESTION],
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=_ASK_WITHIN,
        )
        version, has_one = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise KernelMissing(
            f"{python} does not run: {_reason(error)}", hint="Choose another with --kernel"
        ) from error
    return Answer((version[0], version[1]), has_one)


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {error.returncode}"
    return str(error)


def _site_packages(python: Path) -> Iterator[Path]:
    """The folders of packages beside an interpreter; a link is not followed, as Python does it."""
    prefix = python.parent.parent
    if is_environment(prefix):
        yield from sorted(prefix.glob("lib/python3*/site-packages"))


def _sees_more(python: Path, folders: list[Path]) -> bool:
    """Tell whether the interpreter may import from elsewhere than its own packages."""
    if any(next(folder.glob("*.pth"), None) for folder in folders):
        return True
    text = "".join("".join(line.split()).lower() for line in _configuration(python))
    return "include-system-site-packages=true" in text


def _configuration(python: Path) -> list[str]:
    try:
        text = (python.parent.parent / "pyvenv.cfg").read_text("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()


def _changed(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return 0


def _quote(path: Path) -> str:
    return shlex.quote(str(path))
