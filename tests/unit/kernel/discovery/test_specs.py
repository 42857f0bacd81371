"""Kernelspecs: found where Jupyter finds them, and read with patience."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cellwright.errors import KernelMissing
from cellwright.kernel.discovery import _folders, find_spec, list_specs, make_python_spec
from tests.unit.kernel.discovery.conftest import write_spec


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": os.environ["HOME"], "JUPYTER_DATA_DIR": str(tmp_path / "user")}


def test_a_kernelspec_says_how_to_start_it(tmp_path: Path, env: dict[str, str]) -> None:
    place = write_spec(
        tmp_path / "user",
        "ir",
        argv=["R", "{connection_file}"],
        display_name="R",
        language="R",
        interrupt_mode="message",
        env={"A": "b"},
        metadata={"x": 1},
    )

    spec = find_spec("ir", env)

    assert (spec.name, spec.display_name, spec.language) == ("ir", "R", "R")
    assert spec.command == ("R", "{connection_file}")
    assert (spec.folder, spec.origin, spec.python) == (str(place), "user", None)
    assert (spec.interrupt_mode, spec.env, spec.metadata) == ("message", {"A": "b"}, {"x": 1})


def test_names_are_found_in_any_case(tmp_path: Path, env: dict[str, str]) -> None:
    write_spec(tmp_path / "user", "Julia")

    assert find_spec("julia", env).name == "Julia"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"argv": []}', '{"argv": 1}', "{}", '{"argv": ["x"], "env": 1}']
)
def test_what_cannot_be_started_is_passed_over(
    tmp_path: Path, env: dict[str, str], content: str
) -> None:
    place = write_spec(tmp_path / "user", "bad")
    (place / "kernel.json").write_text(content)
    write_spec(tmp_path / "user", "good")

    assert [spec.name for spec in list_specs(env) if spec.origin == "user"] == ["good"]
    with pytest.raises(KernelMissing):
        find_spec("bad", env)


def test_the_first_of_two_with_one_name_wins(tmp_path: Path, env: dict[str, str]) -> None:
    write_spec(tmp_path / "user", "same", display_name="user's")
    write_spec(tmp_path / "first", "same", display_name="first")
    project = tmp_path / "project"
    write_spec(project / "share" / "jupyter", "same", display_name="project's")
    env["JUPYTER_PATH"] = os.pathsep.join([str(tmp_path / "first"), ""])
    python = str(project / "bin" / "python")

    assert find_spec("same", env).display_name == "first"
    assert find_spec("same", env, python).display_name == "project's"
    [listed] = [spec for spec in list_specs(env, python) if spec.name == "same"]
    assert (listed.display_name, listed.origin) == ("project's", "project")


def test_a_bare_python_is_that_of_the_kernelspecs_own_prefix(
    tmp_path: Path, env: dict[str, str]
) -> None:
    prefix = tmp_path / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(sys.executable)
    write_spec(prefix / "share" / "jupyter", "p", argv=["python", "-m", "x"], language="python")
    env["JUPYTER_PATH"] = str(prefix / "share" / "jupyter")

    spec = find_spec("p", env)

    assert spec.python == str(prefix / "bin" / "python")
    assert spec.command == (spec.python, "-m", "x")


def test_our_own_python3_is_always_there(env: dict[str, str]) -> None:
    spec = find_spec("python3", env)

    assert spec.origin == "own"
    assert spec.command[1:] == ("-m", "ipykernel_launcher", "-f", "{connection_file}")
    assert "python3" in [listed.name for listed in list_specs(env)]


def test_the_ipykernel_of_an_interpreter_needs_no_kernelspec() -> None:
    spec = make_python_spec(sys.executable)

    assert spec.command == (
        *(sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"),
    )
    assert spec.folder is None


def test_a_missing_kernel_names_near_ones_by_either_name(
    tmp_path: Path, env: dict[str, str]
) -> None:
    write_spec(tmp_path / "user", "conda-env-geo-py", display_name="Geography")

    for wrong in ("conda-env-geo-pi", "Geografy"):
        with pytest.raises(KernelMissing) as caught:
            find_spec(wrong, env)
        assert "Did you mean `conda-env-geo-py`?" in str(caught.value.hint)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"JUPYTER_DATA_DIR": "/data"},
        {"XDG_DATA_HOME": "/xdg"},
        {"JUPYTER_PATH": "/one:/two", "XDG_DATA_HOME": "/xdg"},
    ],
)
def test_the_places_and_their_order_are_jupyters(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyter_core import paths

    for name in ("JUPYTER_DATA_DIR", "JUPYTER_PATH", "XDG_DATA_HOME", "JUPYTER_PREFER_ENV_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    theirs = [Path(folder) for folder in paths.jupyter_path("kernels")]
    ours = [folder for folder, _ in _folders(dict(os.environ), None)]

    # Only a user's own site folder is theirs alone: of another Python than the notebook's.
    assert [folder for folder in theirs if folder in ours] == ours[: len(ours) - 1]
    assert ours[-1] == Path(os.environ["HOME"], ".ipython", "kernels")
