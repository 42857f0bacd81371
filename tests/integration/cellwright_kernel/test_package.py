"""The package that kernels import: what it may use, and how it gets onto their path."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cellwright_kernel

HOME = Path(cellwright_kernel.__file__).parent
PATH = HOME / "path"
FILES = sorted(HOME.rglob("*.py"))


def other_pythons() -> list[str]:
    """Every Python from 3.9 on that this machine has, one of each version."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    folders += sorted(root.glob("versions/*/bin"))
    found = {sys.version_info[1]: sys.executable}
    for minor in range(9, 20):
        for folder in folders:
            python = folder / f"python3.{minor}"
            if minor not in found and folder.name != "shims" and python.exists():
                found[minor] = str(python)
    return list(found.values())


def python(code: str, *options: str, executable: str = sys.executable) -> str:
    """What Python prints that has only our folder on its path; `-S` leaves out all packages."""
    env = {**os.environ, "PYTHONPATH": str(PATH), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [executable, "-W", "error", *options, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HOME)))
def test_it_is_python_3_9_and_imports_the_standard_library_and_comm_alone(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
    allowed = {*sys.stdlib_module_names, "comm", "cellwright_kernel"}
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match)
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert str(node.module).split(".")[0] in allowed


@pytest.mark.parametrize("executable", other_pythons())
def test_every_python_here_imports_it_from_the_folder_for_kernels(executable: str) -> None:
    code = "import cellwright_kernel as k; print(k.__file__, k.notebook)"
    said = python(code, "-S", executable=executable)
    assert said == f"{HOME / '__init__.py'} <the notebook of this kernel>"


def test_the_folder_for_kernels_offers_two_names_and_nothing_of_ours_beside_them() -> None:
    assert sorted(entry.name for entry in PATH.iterdir() if entry.name != "__pycache__") == [
        "cellwright",
        "cellwright_kernel",
    ]
    names = ("cellwright", "msgspec", "click")
    found = python(
        f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])", "-S"
    )
    assert found == "['cellwright']"


def test_without_cellwright_the_extension_is_there_and_nothing_else() -> None:
    code = "import cellwright; print(callable(cellwright.load_ipython_extension))"
    assert python(code, "-S") == "True"
    assert python("import cellwright; print(hasattr(cellwright, 'read'))", "-S") == "False"


def test_an_environment_that_has_cellwright_gets_its_own_and_the_extension() -> None:
    code = (
        "import cellwright, cellwright.errors\n"
        "print(cellwright.__file__, cellwright.read.__module__, "
        "callable(cellwright.load_ipython_extension), cellwright.__spec__.origin)"
    )
    import cellwright

    own = cellwright.__file__
    assert python(code) == f"{own} cellwright.document.files True {own}"


def test_importing_it_does_not_look_for_a_kernel() -> None:
    code = "import sys, cellwright_kernel; print({'comm', 'IPython', 'zmq'} & set(sys.modules))"
    assert python(code) == "set()"


@pytest.mark.parametrize("options", [["-S"], []], ids=["without comm", "without a kernel"])
def test_where_there_is_no_kernel_it_says_so_at_once(options: list[str]) -> None:
    code = (
        "from cellwright_kernel import NoFrontend, notebook\n"
        "try:\n    notebook.cell_count()\nexcept NoFrontend as error:\n    print(error)"
    )
    assert python(code, *options).startswith("There is no Jupyter kernel here")


def test_all_names_are_there() -> None:
    assert sorted(cellwright_kernel.__all__) == cellwright_kernel.__all__
    assert all(hasattr(cellwright_kernel, name) for name in cellwright_kernel.__all__)
