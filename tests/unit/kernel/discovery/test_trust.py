"""Environments that another user could have put there, and what is said about those that are used."""

from __future__ import annotations

import os
import struct
import sys
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelMissing
from cellwright.kernel import discovery
from cellwright.kernel.discovery import (
    choose_kernel,
    describe_found_environments,
    find_nearest_environment,
    list_specs,
)
from tests.unit.kernel.discovery.conftest import site_packages, write_spec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeVenv = Callable[..., Path]


@pytest.mark.parametrize(
    "what",
    [
        *(".", "..", "bin", "pyvenv.cfg", "bin/python", "lib"),
        f"lib/python3.{sys.version_info[1]}/site-packages",
        *("share/jupyter", "share/jupyter/kernels/own", "share/jupyter/kernels/own/kernel.json"),
    ],
)
def test_an_environment_that_others_may_write_is_passed_over(
    what: str, tmp_path: Path, make_venv: MakeVenv
) -> None:
    outer = make_venv(tmp_path / ".venv")
    inner = make_venv(tmp_path / "project" / ".venv")
    write_spec(inner / "share/jupyter", "own")
    folder = tmp_path / "project"
    assert find_nearest_environment(folder) == inner
    if what == "bin/python":  # its own mode, not that of the program it leads to
        (inner / what).unlink()
        (inner / what).write_text("#!/bin/sh\n")
    (inner / what).resolve().chmod(0o777)

    assert find_nearest_environment(folder) == outer
    (said, used) = describe_found_environments(str(folder), {}, str(outer / "bin" / "python"))
    assert said.startswith(f"The environment {inner} is not used: all users may write ")
    assert used == f"The Python that runs is that of {outer}"
    active = {"VIRTUAL_ENV": str(outer)}  # a person who activated it knows
    assert describe_found_environments(str(folder), active, str(outer / "bin" / "python")) == [said]


@pytest.mark.parametrize("what", [".pixi/envs", ".pixi", "."])
def test_no_folder_on_the_way_to_an_environment_may_be_exchanged_by_others(
    what: str, tmp_path: Path, make_venv: MakeVenv
) -> None:
    project = tmp_path / "project"
    found = make_venv(project / ".pixi/envs/default")
    assert find_nearest_environment(project) == found
    (project / what).chmod(0o777)
    assert find_nearest_environment(project) is None


def test_an_interpreter_that_is_asked_for_its_facts_gets_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, str]] = []

    def run(*_: object, env: dict[str, str], **__: object) -> None:
        given.append(env)
        raise OSError("enough")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PLAIN", "yes")
    monkeypatch.setattr("subprocess.run", run)
    with pytest.raises(KernelMissing):
        discovery.inspect_interpreter(tmp_path / "python")
    assert given[0]["PLAIN"] == "yes"
    assert "sk-secret" not in given[0].values()


def test_an_environment_of_another_user_is_passed_over(
    tmp_path: Path, make_venv: MakeVenv, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_venv(tmp_path / ".venv")
    if os.geteuid() == 0:
        os.chown(venv / "pyvenv.cfg", 65534, 65534)
    else:
        monkeypatch.setattr("os.geteuid", lambda: venv.stat().st_uid + 1)
    assert find_nearest_environment(tmp_path) is None


def test_a_group_that_has_other_members_may_not_write_it(
    tmp_path: Path, make_venv: MakeVenv, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_venv(tmp_path / ".venv")
    venv.chmod(0o775)
    monkeypatch.setattr("cellwright.config.directories._is_private_group", lambda _: False)
    assert find_nearest_environment(tmp_path) is None
    monkeypatch.setattr("cellwright.config.directories._is_private_group", lambda _: True)
    assert find_nearest_environment(tmp_path) == venv


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no access lists here")
def test_a_user_whom_an_access_list_names_may_not_write_it(
    tmp_path: Path, make_venv: MakeVenv, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_venv(tmp_path / ".venv")
    monkeypatch.setattr("cellwright.config.directories._is_private_group", lambda _: True)
    # Its own user, user 61002, its group, the most that they may, all others: as `setfacl` has it.
    entries = ((1, 7, -1), (2, 7, 61_002), (4, 5, -1), (16, 7, -1), (32, 5, -1))
    rows = [struct.pack("<HHi", *entry) for entry in entries]
    try:
        os.setxattr(venv, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(rows))
    except OSError:
        pytest.skip("this file system has no access lists")
    assert find_nearest_environment(tmp_path) is None


def test_listing_starts_no_interpreter_even_if_folders_do_not_say_enough(
    tmp_path: Path, make_venv: MakeVenv, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_venv(tmp_path / ".venv")
    (site_packages(venv) / "more.pth").write_text("/somewhere\n")
    monkeypatch.setattr(discovery, "inspect_interpreter", lambda python: pytest.fail(str(python)))

    choice = choose_kernel(str(tmp_path), env={"HOME": "/"}, probe=False)

    assert choice.python == str(venv / "bin" / "python")
    assert sys.executable in {spec.python for spec in list_specs({"HOME": str(tmp_path)})}
