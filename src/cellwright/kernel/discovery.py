"""Which kernel, and which Python, a notebook means on this machine.

The choice, in this order: what was asked for; the setting; the notebook's own kernelspec; the
environment nearest the notebook; the one that the client has activated; a `python3` that Jupyter
knows; our own interpreter, only if nothing else was found.

`python3` is the name in every Python notebook, and does not say which Python: by itself it never
comes before an environment. An environment that was found is the choice even if it cannot run a
kernel: that is an error, and the next one is not tried silently.

Environments that another user could have put there are passed over.

This reads folders and small files, and does not import Jupyter. It starts an interpreter only when
these are not enough, and never without `probe`: listing what there is must run nothing.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cellwright.config.directories import describe_distrust
from cellwright.errors import KernelMissing
from cellwright.kernel.environment import CLIENT_PYTHON, build_kernel_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

OLDEST_PYTHON = (3, 9)
SpecOrigin = Literal["project", "variable", "user", "own", "system"]

_ANY_PYTHON = frozenset({"python", "python3"})


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel, and why it was chosen; `Launch` takes `kernel_name` and `python`."""

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
    probe: bool = True,
) -> KernelChoice:
    """Choose the kernel for a notebook in `folder`.

    `asked` and `setting` are the name of a kernelspec, or the path of an interpreter or of an
    environment; `notebook` is the name in the notebook's own `kernelspec`; `env` holds the
    client's variables. Without `probe` no interpreter is started; one of which the folders do not
    say whether it has an ipykernel counts as having one.

    Raises:
        KernelMissing: what was chosen does not exist, or has no kernel.
    """
    found = _find_environment(folder, env)
    for word, why in ((asked, "asked for"), (setting, "setting"), (notebook, "notebook")):
        if word is None or (word in _ANY_PYTHON and why == "notebook"):
            continue
        if word in _ANY_PYTHON and found is not None:
            break  # it means the environment, whatever the notebook names
        if _is_path(word) and why != "notebook":
            python = str(_find_interpreter_at(word, folder))
            return KernelChoice(make_python_spec(python, probe=probe), why)
        return KernelChoice(_find_named_spec(word, env, found), why)
    if found is not None:
        environment, why = found
        python = str(find_interpreter(environment))
        return KernelChoice(make_python_spec(python, probe=probe), why)
    spec = find_spec("python3", env)
    return KernelChoice(spec, "own environment" if spec.origin == "own" else "Jupyter's python3")


def choose_python(
    folder: str, *, env: Mapping[str, str], asked: str | None = None, setting: str | None = None
) -> str:
    """Choose the interpreter for code in `folder` that needs no kernel.

    Raises:
        KernelMissing: what was chosen is not a Python, or too old.
    """
    found = _find_environment(folder, env)
    word = asked if asked is not None else setting
    if word is not None and _is_path(word):
        python = _find_interpreter_at(word, folder)
    elif word is not None and not (word in _ANY_PYTHON and found is not None):
        spec = _find_named_spec(word, env, found)
        if spec.python is None:
            raise KernelMissing(
                f"The kernel `{word}` does not name a Python interpreter",
                hint="Give the path of one",
            )
        python = Path(spec.python)
    else:
        python = find_interpreter(found[0]) if found is not None else _own_python(env)
    version = find_version(python)
    if version < OLDEST_PYTHON:
        raise KernelMissing(
            f"{python} is Python {version[0]}.{version[1]}",
            hint="It must be 3.9 or newer; choose another kernel",
        )
    return str(python)


def _find_environment(folder: str, env: Mapping[str, str]) -> tuple[Path, str] | None:
    """The environment that belongs to `folder`, working or not, and why it does."""
    home = Path(env["HOME"]) if env.get("HOME") else None
    nearest = find_nearest_environment(Path(folder), home)
    if nearest is not None:
        return nearest, f"environment {nearest}"
    active = find_active_environment(env)
    return None if active is None else (active, f"active environment {active}")


def _find_named_spec(
    name: str, env: Mapping[str, str], environment: tuple[Path, str] | None
) -> KernelSpec:
    python = None if environment is None else str(environment[0] / "bin" / "python")
    return find_spec(name, env, python)


def _is_path(word: str) -> bool:
    return "/" in word


def _find_interpreter_at(word: str, folder: str) -> Path:
    """The interpreter at a path, or that of the environment there."""
    path = Path(folder, Path(word).expanduser())
    if path.is_dir():
        if not is_environment(path):
            raise KernelMissing(
                f"{path} is not a Python environment",
                hint="Give the path of one, or of an interpreter",
            )
        return find_interpreter(path)
    if not path.is_file():
        raise KernelMissing(
            f"There is no interpreter at {path}", hint="Check the path, or give a kernel's name"
        )
    return path


_NAME = re.compile(r"(?!\.+$)[\w .+-]+")
_SYSTEM = ("/usr/local/share/jupyter", "/usr/share/jupyter")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSpec:
    """How to start one kind of kernel.

    `origin` says where it was found: in the `project`'s environment, in a folder that one of
    Jupyter's variables names, in the `user`'s or the `system`'s folders, or in our `own`
    environment.
    `python` is the interpreter it starts, if it is known to start one.
    """

    name: str
    display_name: str
    language: str
    command: tuple[str, ...]
    origin: SpecOrigin
    folder: str | None = None
    python: str | None = None
    interrupt_mode: Literal["signal", "message"] = "signal"
    env: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def list_specs(env: Mapping[str, str], python: str | None = None) -> list[KernelSpec]:
    """List every kernelspec, sorted by name; of two with the same name the first one found.

    `env` holds the variables from which Jupyter's folders follow, `python` is an interpreter
    whose environment is searched first.
    """
    found: dict[str, KernelSpec] = {}
    for folder, origin in _folders(env, python):
        for spec in _read_specs(folder, origin):
            found.setdefault(spec.name.lower(), spec)
    own = _own_python(env)
    if "python3" not in found and _find_ipykernel(own):
        found["python3"] = _make_ipykernel_spec(own, "own")
    return sorted(found.values(), key=lambda spec: spec.name)


def find_spec(name: str, env: Mapping[str, str], python: str | None = None) -> KernelSpec:
    """Find the kernelspec called `name`, in the folders of `list_specs`.

    Raises:
        KernelMissing: there is none; the hint names the existing ones.
    """
    # The name may come from an untrusted notebook: it must not lead out of the folders.
    if _NAME.fullmatch(name):
        for folder, origin in _folders(env, python):
            for place in (folder / name, folder / name.lower()):
                spec = _read_spec(place, origin)
                if spec is not None:
                    return spec
    known = {spec.name: spec for spec in list_specs(env, python)}
    for spec in known.values():
        if spec.name.lower() == name.lower():
            return spec
    raise KernelMissing(f"There is no kernel `{name}` here", hint=_suggest_kernel(name, known))


def make_python_spec(python: str, *, probe: bool = True) -> KernelSpec:
    """Make the spec of an interpreter's ipykernel, whether or not there is a kernelspec for it.

    Raises:
        KernelMissing: it has none; the hint says how to install it.
    """
    if probe or _find_ipykernel(Path(python)) is False:
        require_ipykernel(Path(python))
    return _make_ipykernel_spec(Path(python), "project")


def _suggest_kernel(name: str, known: Mapping[str, KernelSpec]) -> str:
    from difflib import get_close_matches

    if not known:
        return "None is installed; install ipykernel"
    by_words = {spec.display_name: spec.name for spec in known.values()} | {n: n for n in known}
    near = get_close_matches(name, by_words, n=1)
    listing = f"There are: {', '.join(sorted(known))}; choose one of them"
    return f"Did you mean `{by_words[near[0]]}`? {listing}" if near else listing


def _folders(env: Mapping[str, str], python: str | None) -> Iterator[tuple[Path, SpecOrigin]]:
    """The folders of kernelspecs, in Jupyter's order; that of `python` comes first."""
    if python is not None:
        yield Path(python).parent.parent / "share/jupyter/kernels", "project"
    for folder in env.get("JUPYTER_PATH", "").split(os.pathsep):
        if folder:
            yield Path(folder, "kernels"), "variable"
    user: tuple[Path, SpecOrigin] = (_user_folder(env) / "kernels", "user")
    python_here = _own_python(env)
    is_ours = str(python_here) == sys.executable
    prefix = Path(sys.prefix) if is_ours else python_here.parent.parent
    own: tuple[Path, SpecOrigin] = (prefix / "share/jupyter/kernels", "own")
    # Jupyter prefers an environment that it runs in to the user's folder.
    yield from (own, user) if (prefix / "pyvenv.cfg").is_file() else (user, own)
    for folder in _SYSTEM:
        yield Path(folder, "kernels"), "system"
    yield _home(env) / ".ipython" / "kernels", "user"


def _own_python(env: Mapping[str, str]) -> Path:
    """The interpreter that Cellwright runs in: the client's, not that of an engine it talks to."""
    return Path(env.get(CLIENT_PYTHON) or sys.executable)


def _user_folder(env: Mapping[str, str]) -> Path:
    if env.get("JUPYTER_DATA_DIR"):
        return Path(env["JUPYTER_DATA_DIR"])
    if sys.platform == "darwin":
        return _home(env) / "Library" / "Jupyter"
    data = env.get("XDG_DATA_HOME")
    return Path(data, "jupyter") if data else _home(env) / ".local/share/jupyter"


def _home(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path("~").expanduser()


def _read_specs(folder: Path, origin: SpecOrigin) -> Iterator[KernelSpec]:
    try:
        places = sorted(folder.iterdir())
    except OSError:
        return
    for place in places:
        spec = _read_spec(place, origin)
        if spec is not None:
            yield spec


def _read_spec(folder: Path, origin: SpecOrigin) -> KernelSpec | None:
    """Read the kernelspec in a folder; None if there is none that can be started."""
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


def _make_ipykernel_spec(python: Path, origin: SpecOrigin) -> KernelSpec:
    return KernelSpec(
        name="python3",
        display_name="Python 3 (ipykernel)",
        language="python",
        command=(str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"),
        origin=origin,
        python=str(python),
    )


_FOLDER_NAMES = (".venv", "venv", ".conda", ".pixi/envs/default", "env")
_PACKAGES = "lib/python3*/site-packages"
# What a kernel of an environment is started from, and the folders that lead there.
_OBEYED = (
    *("pyvenv.cfg", "conda-meta", "bin", "bin/python", "bin/python3"),
    *("lib", "lib/python3*", _PACKAGES, "share", "share/jupyter", "share/jupyter/kernels"),
    *("share/jupyter/kernels/*", "share/jupyter/kernels/*/kernel.json"),
)
_ASK_WITHIN = 30.0
_QUESTION = (
    "import importlib.util, json, sys; print(json.dumps(["
    "list(sys.version_info[:2]), importlib.util.find_spec('ipykernel_launcher') is not None]))"
)


@dataclass(frozen=True, slots=True)
class InterpreterFacts:
    """What an interpreter reports about itself."""

    version: tuple[int, int]
    has_ipykernel: bool


def find_nearest_environment(folder: Path, home: Path | None = None) -> Path | None:
    """Find the environment nearest to `folder`, going up as far as the root or the home folder.

    Those two count only if `folder` is one of them: an environment there has no project.
    """
    for place in _find_environments(folder, home):
        if _explain_distrust(place) is None:
            return place
    return None


def _find_environments(folder: Path, home: Path | None) -> Iterator[Path]:
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        if place != folder and place in {home, place.parent}:
            return
        if (place / "conda-meta").is_dir():
            yield place
        for name in _FOLDER_NAMES:
            if is_environment(place / name):
                yield place / name


def _explain_distrust(environment: Path) -> str | None:
    """Say why an environment that was found is not used; None if it may be.

    Who may change any folder on the way to it can put another in its place after this look.
    """
    name = next((each for each in _FOLDER_NAMES if environment.match(each)), "")
    above = environment.parents[: name.count("/") + 1]
    inside = (found for part in _OBEYED for found in environment.glob(part))
    return describe_distrust(*map(str, (*reversed(above), environment, *inside)))


def describe_found_environments(
    folder: str, env: Mapping[str, str], python: str | None
) -> list[str]:
    """Say of what was found beside the code that it is used, or why it is passed over.

    A person who has just cloned a repository may not expect that its Python runs. `python` is the
    interpreter that was chosen.
    """
    home = Path(env["HOME"]) if env.get("HOME") else None
    said = []
    for place in _find_environments(Path(folder), home):
        distrust = _explain_distrust(place)
        if distrust is None:
            # Who has activated it knows.
            is_active = env.get("VIRTUAL_ENV") == str(place)
            if python is not None and Path(python).parent.parent == place and not is_active:
                said.append(f"The Python that runs is that of {place}")
            break
        said.append(f"The environment {place} is not used: {distrust}")
    return said


def is_environment(folder: Path) -> bool:
    """Whether there is a virtual or conda environment, working or not."""
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


def find_active_environment(variables: Mapping[str, str]) -> Path | None:
    """Find the environment that the caller has activated."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = variables.get(name)
        if folder and is_environment(Path(folder)):
            return Path(folder)
    return None


def find_interpreter(environment: Path) -> Path:
    """Find the Python of an environment.

    Raises:
        KernelMissing: it has none, or a broken link.
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
        hint=f"Create it again (`{remedy}`), or choose another kernel",
    )


def has_ipykernel(python: Path) -> bool:
    """Whether the interpreter can start an ipykernel; it is started only if folders do not tell.

    Raises:
        KernelMissing: the interpreter does not run.
    """
    known = _find_ipykernel(python)
    return inspect_interpreter(python).has_ipykernel if known is None else known


def _find_ipykernel(python: Path) -> bool | None:
    """Whether an interpreter has an ipykernel by its folders; None if they do not say."""
    if str(python) == sys.executable:
        return _have_ipykernel()
    folders = list(_site_packages(python))
    if any((folder / "ipykernel_launcher.py").is_file() for folder in folders):
        return True
    return None if not folders or _sees_more(python, folders) else False


def _have_ipykernel() -> bool:
    """Whether our own interpreter has an ipykernel."""
    from importlib.machinery import PathFinder

    return PathFinder.find_spec("ipykernel_launcher") is not None


def find_version(python: Path) -> tuple[int, int]:
    """Find the Python version of an interpreter.

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
    return inspect_interpreter(python).version


def require_ipykernel(python: Path) -> None:
    """Make sure that the interpreter can start an ipykernel.

    Raises:
        KernelMissing: it cannot; the hint has the command that installs it.
    """
    if not has_ipykernel(python):
        raise KernelMissing(
            f"{python} has no ipykernel",
            hint=f"Install it: `{build_install_command(python)}`; or choose another kernel",
        )


def build_install_command(python: Path) -> str:
    """Build the command that installs ipykernel for an interpreter."""
    folders = list(_site_packages(python))
    has_pip = not folders or any((folder / "pip").is_dir() for folder in folders)
    if not has_pip and shutil.which("uv"):
        return f"uv pip install --python {_quote(python)} ipykernel"
    install = f"{_quote(python)} -m pip install ipykernel"
    return install if has_pip else f"{_quote(python)} -m ensurepip && {install}"


_answers: dict[tuple[object, ...], InterpreterFacts] = {}


def inspect_interpreter(python: Path) -> InterpreterFacts:
    """Run an interpreter to learn its facts; they are cached until it or its packages change.

    Raises:
        KernelMissing: it does not run.
    """
    key = (str(python), *(_modification_time(place) for place in (python, *_site_packages(python))))
    if key not in _answers:
        _answers[key] = _run_interpreter(python)
    return _answers[key]


def _run_interpreter(python: Path) -> InterpreterFacts:
    try:
        # Isolated from the current folder and from our own variables.
        done = subprocess.run(  # noqa: S603 - the interpreter that will run the cells
            [str(python), "-I", "-c", _QUESTION],
            capture_output=True,
            check=True,
            env=build_kernel_environment(os.environ)[0],  # it may be a stranger's: no keys
            stdin=subprocess.DEVNULL,
            timeout=_ASK_WITHIN,
        )
        version, has_one = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise KernelMissing(
            f"{python} does not run: {_describe_failure(error)}",
            hint="Choose another kernel",
        ) from error
    return InterpreterFacts((version[0], version[1]), has_one)


def _describe_failure(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode("utf-8", "replace").strip().splitlines()
        # Quoted: it says what it likes.
        return json.dumps(lines[-1][:200]) if lines else f"exit code {error.returncode}"
    return str(error)


def _site_packages(python: Path) -> Iterator[Path]:
    """The folders of packages beside an interpreter; like Python, this does not follow a link."""
    prefix = python.parent.parent
    if is_environment(prefix):
        yield from sorted(prefix.glob(_PACKAGES))


def _sees_more(python: Path, folders: list[Path]) -> bool:
    """Whether the interpreter may import from elsewhere than its own packages."""
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


def _modification_time(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return 0


def _quote(path: Path) -> str:
    return shlex.quote(str(path))
