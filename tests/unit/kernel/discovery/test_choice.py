"""Which kernel and which Python a notebook means."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelMissing
from cellwright.kernel.discovery import choose_kernel, choose_python, list_specs
from cellwright.kernel.environment import CLIENT_PYTHON
from tests.unit.kernel.discovery.conftest import site_packages, write_spec

if TYPE_CHECKING:
    from tests.unit.kernel.discovery.conftest import MakeVenv


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "notebooks"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A client's variables; its Jupyter folder is empty."""
    return {"HOME": os.environ["HOME"], "JUPYTER_DATA_DIR": str(tmp_path / "jupyter")}


def test_without_anything_it_is_our_own(project: Path, env: dict[str, str]) -> None:
    for notebook in (None, "python3"):
        choice = choose_kernel(str(project), env=env, notebook=notebook)

        assert choice.spec.origin == "own"
        assert choice.why == "own environment"
        assert choice.python is not None
        assert Path(choice.python).parent.parent == Path(sys.prefix)


@pytest.mark.parametrize("notebook", [None, "python3", "python"])
@pytest.mark.parametrize("name", [".venv", "venv"])
def test_the_environment_nearest_the_notebook_comes_before_any_python3(
    project: Path, env: dict[str, str], venv_with_ipykernel: MakeVenv, name: str, notebook: str
) -> None:
    venv_with_ipykernel(project.parent.parent / ".venv")
    near = venv_with_ipykernel(project.parent / name)
    write_spec(Path(env["JUPYTER_DATA_DIR"]), "python3", language="python")

    choice = choose_kernel(str(project), env=env, notebook=notebook)

    assert choice.python == str(near / "bin" / "python")
    assert choice.kernel_name is None
    assert str(near) in choice.why


@pytest.mark.parametrize("uv", [True, False])
def test_a_project_without_ipykernel_is_an_error_that_says_what_to_install(
    uv: bool,
    project: Path,
    env: dict[str, str],
    make_venv: MakeVenv,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Never silently our own environment, and not Jupyter's either."""
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/uv" if uv else None)
    venv = make_venv(project / ".venv")
    write_spec(Path(env["JUPYTER_DATA_DIR"]), "python3", language="python")

    for notebook in (None, "python3"):
        with pytest.raises(KernelMissing) as caught:
            choose_kernel(str(project), env=env, notebook=notebook)

        python = venv / "bin" / "python"
        assert str(python) in caught.value.message
        command = f"{python} -m ensurepip && {python} -m pip install ipykernel"
        if uv:
            command = f"uv pip install --python {python} ipykernel"
        assert f"`{command}`" in str(caught.value.hint)
        assert "another kernel" in str(caught.value.hint)


def test_an_environment_with_pip_is_told_to_use_it(
    tmp_path: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    folder = tmp_path / "with space"
    venv = make_venv(folder / ".venv")
    (site_packages(venv) / "pip").mkdir()

    with pytest.raises(KernelMissing) as caught:
        choose_kernel(str(folder), env=env)

    command = str(caught.value.hint).split("`")[1]
    assert shlex.split(command) == [str(venv / "bin/python"), "-m", "pip", "install", "ipykernel"]


def test_a_broken_environment_is_an_error_and_not_passed_over(
    project: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    make_venv(project.parent / ".venv", has_ipykernel=True)
    broken = make_venv(project / ".venv")
    for python in (broken / "bin").glob("python*"):
        python.unlink()
        python.symlink_to("/nowhere/python3")

    with pytest.raises(KernelMissing) as caught:
        choose_kernel(str(project), env=env)

    assert "broken" in caught.value.message
    assert str(broken) in str(caught.value.hint)


def test_a_broken_environment_is_no_obstacle_when_another_kernel_is_asked_for(
    project: Path, env: dict[str, str]
) -> None:
    (project / ".venv").mkdir()
    (project / ".venv" / "pyvenv.cfg").write_text("")
    write_spec(Path(env["JUPYTER_DATA_DIR"]), "ir", language="R")

    assert choose_kernel(str(project), env=env, asked="ir").spec.language == "R"


def test_what_is_asked_for_comes_before_the_setting_and_that_before_the_notebook(
    project: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    make_venv(project / ".venv", has_ipykernel=True)
    for name in ("one", "two", "three"):
        write_spec(Path(env["JUPYTER_DATA_DIR"]), name)

    chosen = [
        choose_kernel(str(project), env=env, asked="one", setting="two", notebook="three"),
        choose_kernel(str(project), env=env, setting="two", notebook="three"),
        choose_kernel(str(project), env=env, notebook="three"),
    ]

    assert [choice.kernel_name for choice in chosen] == ["one", "two", "three"]
    assert [choice.why for choice in chosen] == ["asked for", "setting", "notebook"]


def test_an_interpreter_or_an_environment_can_be_asked_for_by_path(
    project: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    make_venv(project / ".venv")
    other = make_venv(project.parent / "other", has_ipykernel=True)

    for asked in (str(other), str(other / "bin" / "python"), "../other", "../other/bin/python"):
        choice = choose_kernel(str(project), env=env, asked=asked)

        assert choice.python is not None
        assert Path(choice.python).samefile(other / "bin" / "python")
        assert Path(choice.python).parent.parent.samefile(other)


@pytest.mark.parametrize("asked", ["/nowhere/python", "./", "/"])
def test_a_path_without_an_interpreter_is_missing(
    project: Path, env: dict[str, str], asked: str
) -> None:
    with pytest.raises(KernelMissing):
        choose_kernel(str(project), env=env, asked=asked)


def test_a_notebook_cannot_name_a_program_by_path(project: Path, env: dict[str, str]) -> None:
    """A notebook comes from others; its kernelspec is a name, looked up where Jupyter looks."""
    with pytest.raises(KernelMissing):
        choose_kernel(str(project), env=env, notebook=sys.executable)


@pytest.mark.parametrize("name", ["../../evil", "..", ".", "a/b", "{absolute}", "", "\n"])
def test_a_notebooks_kernelspec_cannot_lead_out_of_jupyters_folders(
    tmp_path: Path, project: Path, env: dict[str, str], name: str
) -> None:
    kernels = Path(env["JUPYTER_DATA_DIR"]) / "kernels"
    for folder in (tmp_path / "evil", kernels.parent, kernels, kernels / "a" / "b"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.json").write_text('{"argv": ["evil"]}')

    notebook = name.format(absolute=tmp_path / "evil")

    with pytest.raises(KernelMissing):
        choose_kernel(str(project), env=env, notebook=notebook)


def test_a_kernelspec_that_does_not_exist_here_names_those_that_do(
    project: Path, env: dict[str, str]
) -> None:
    write_spec(Path(env["JUPYTER_DATA_DIR"]), "my-conda-env")

    with pytest.raises(KernelMissing) as caught:
        choose_kernel(str(project), env=env, notebook="my-conda-evn")

    assert "`my-conda-evn`" in caught.value.message
    hint = str(caught.value.hint)
    assert "Did you mean `my-conda-env`?" in hint
    assert "python3" in hint


def test_a_kernelspec_of_the_projects_environment_is_found_by_name(
    project: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    venv = make_venv(project / ".venv")
    write_spec(venv / "share" / "jupyter", "xpython", argv=["xpython"], language="python")

    choice = choose_kernel(str(project), env=env, notebook="xpython")

    assert choice.spec.origin == "project"


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_counts_if_the_project_has_none(
    tmp_path: Path,
    project: Path,
    env: dict[str, str],
    venv_with_ipykernel: MakeVenv,
    variable: str,
) -> None:
    active = venv_with_ipykernel(tmp_path / "active")
    env[variable] = str(active)

    choice = choose_kernel(str(project), env=env, notebook="python3")
    assert choice.python == str(active / "bin" / "python")

    nearer = venv_with_ipykernel(project / ".venv")
    choice = choose_kernel(str(project), env=env, notebook="python3")
    assert choice.python == str(nearer / "bin" / "python")


def test_an_active_environment_that_is_gone_is_none(project: Path, env: dict[str, str]) -> None:
    env["VIRTUAL_ENV"] = "/nowhere"

    assert choose_kernel(str(project), env=env).spec.origin == "own"


def test_conda_environments_are_found_and_repaired_by_conda(
    project: Path, env: dict[str, str]
) -> None:
    prefix = project / ".conda"
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "bin").mkdir()

    with pytest.raises(KernelMissing) as caught:
        choose_kernel(str(project), env=env)
    assert "conda install" in str(caught.value.hint)

    (prefix / "bin" / "python").symlink_to(sys.executable)
    packages = prefix / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "ipykernel_launcher.py").write_text("")
    choice = choose_kernel(str(project), env=env)
    assert choice.python == str(prefix / "bin" / "python")


def test_an_environment_in_the_home_folder_belongs_to_no_project(
    env: dict[str, str], make_venv: MakeVenv
) -> None:
    home = Path(env["HOME"])
    (home / "work").mkdir()
    venv = make_venv(home / ".venv", has_ipykernel=True)

    assert choose_kernel(str(home / "work"), env=env).spec.origin == "own"
    assert choose_kernel(str(home), env=env).python == str(venv / "bin" / "python")


def test_an_interpreter_alone_needs_no_ipykernel(
    project: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    assert choose_python(str(project), env=env) == sys.executable
    venv = make_venv(project / ".venv")

    assert choose_python(str(project), env=env) == str(venv / "bin" / "python")
    assert choose_python(str(project), env=env, asked="python3") == str(venv / "bin" / "python")
    assert choose_python(str(project), env=env, asked=sys.executable) == sys.executable


def test_the_interpreter_of_a_named_kernel(project: Path, env: dict[str, str]) -> None:
    data = Path(env["JUPYTER_DATA_DIR"])
    write_spec(data, "named", argv=[sys.executable, "-m", "x"], language="python")
    write_spec(data, "ir", language="R")

    assert choose_python(str(project), env=env, setting="named") == sys.executable
    with pytest.raises(KernelMissing):
        choose_python(str(project), env=env, asked="ir")


def test_an_interpreter_that_is_too_old_is_refused(
    project: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    venv = make_venv(project / ".venv")
    (venv / "pyvenv.cfg").write_text("home = /x\nversion = 3.8.20\n")

    with pytest.raises(KernelMissing) as caught:
        choose_python(str(project), env=env)
    assert "3.8" in caught.value.message


def test_the_clients_own_environment_counts_and_not_that_of_the_engine(
    tmp_path: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    folder = tmp_path / "nowhere"
    folder.mkdir()
    client = make_venv(tmp_path / "client")
    (site_packages(client) / "ipykernel_launcher.py").touch()
    write_spec(client / "share/jupyter", "only-there", language="python")
    env = {**env, CLIENT_PYTHON: str(client / "bin" / "python")}
    chosen = choose_kernel(str(folder), env=env)
    assert (chosen.python, chosen.why) == (str(client / "bin" / "python"), "own environment")
    assert choose_python(str(folder), env=env) == str(client / "bin" / "python")
    assert "only-there" in [spec.name for spec in list_specs(env)]


@pytest.mark.parametrize("asked", ["python3", "python"])
def test_python_by_name_wins_over_a_kernelspec_that_is_missing(
    asked: str, project: Path, env: dict[str, str], make_venv: MakeVenv
) -> None:
    venv = make_venv(project / ".venv")
    (site_packages(venv) / "ipykernel_launcher.py").touch()
    with pytest.raises(KernelMissing):
        choose_kernel(str(project), env=env, notebook="gone")
    chosen = choose_kernel(str(project), env=env, asked=asked, notebook="gone")
    assert chosen.python == str(venv / "bin" / "python")
    assert choose_kernel(str(project), env=env, setting=asked, notebook="gone") == chosen
