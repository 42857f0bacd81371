"""A kernel is made to request: the right one, in an activated environment, from the spare if it fits."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cellwright.config.settings import Settings
from cellwright.errors import KernelMissing
from cellwright.kernel import factory
from cellwright.kernel.environment import (
    build_kernel_environment,
    build_session_variables,
    explain_withheld,
)
from cellwright.kernel.factory import (
    KernelFactory,
    KernelOrder,
    SpareKernel,
    activate_environment,
)
from cellwright.kernel.transport import Code, Launch
from cellwright.outputs.events import DisplayEvent
from tests.memory_kernel import MemoryKernel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.transport import Transport


async def value(kernel: Transport, source: str) -> str:
    found = [
        event async for event in kernel.execute(Code(source)) if isinstance(event, DisplayEvent)
    ]
    return str(found[-1].data["text/plain"]).strip("'")


class Kernels:
    def __init__(self) -> None:
        self.made: list[MemoryKernel] = []

    def make(self, launch: Launch) -> MemoryKernel:
        self.made.append(MemoryKernel(launch))
        return self.made[-1]


# --- The spare -----------------------------------------------------------------------------------


async def test_a_spare_stands_in_for_a_kernel_of_the_same_kind_wherever_it_is_to_run() -> None:
    kernels = Kernels()
    spare = SpareKernel(kernels.make)
    launch = Launch("/", {"A": "1"}, python="python")
    spare.prepare(launch)
    spare.prepare(launch)  # one is enough
    wanted = replace(launch, cwd="/tmp", env={"A": "1", "CELLWRIGHT_SESSION_FILE": "f"})  # noqa: S108
    kernel = await spare.take(wanted)
    assert kernel is kernels.made[0]
    assert len(kernels.made) == 1
    assert await value(kernel, "cwd") == "/tmp"  # noqa: S108
    assert await value(kernel, "getenv CELLWRIGHT_SESSION_FILE") == "f"
    assert await spare.take(wanted) is None  # it is gone


async def test_a_spare_gets_the_variables_of_its_session_with_its_folder_and_at_once() -> None:
    kernels = Kernels()
    spare = SpareKernel(kernels.make, delay=600)
    launch = Launch("/", {}, python="python")
    spare.prepare(launch)
    async with asyncio.timeout(20):  # whoever needs it does not wait for the delay
        kernel = await spare.take(launch, lambda: {"CELLWRIGHT_SESSION_FILE": "f"})
    assert kernel is not None
    assert await value(kernel, "getenv CELLWRIGHT_SESSION_FILE") == "f"


@pytest.mark.parametrize(
    "other",
    [
        Launch("/", {"A": "2"}, python="python"),
        Launch("/", {}, python="python"),
        Launch("/", {"A": "1", "PYTHONPATH": "x"}, python="python"),
        Launch("/", {"A": "1"}, python="another"),
        Launch("/", {"A": "1"}, python="python", kernel_name="ir"),
    ],
)
async def test_a_spare_stands_in_for_no_other_kind(other: Launch) -> None:
    kernels = Kernels()
    spare = SpareKernel(kernels.make)
    spare.prepare(Launch("/", {"A": "1"}, python="python"))
    assert await spare.take(other) is None
    await spare.release()
    assert not any(kernel.is_alive for kernel in kernels.made)


async def test_a_spare_of_another_kind_is_ended_first() -> None:
    kernels = Kernels()
    spare = SpareKernel(kernels.make, delay=0)
    spare.prepare(Launch("/", {}, python="one"))
    await asyncio.sleep(0.01)
    spare.prepare(Launch("/", {}, python="two"))
    await asyncio.sleep(0.01)
    assert [kernel.is_alive for kernel in kernels.made] == [False, True]
    await spare.release()
    assert [kernel.is_alive for kernel in kernels.made] == [False, False]


async def test_a_spare_that_died_is_not_given_out() -> None:
    kernels = Kernels()
    spare = SpareKernel(kernels.make, delay=0)
    launch = Launch("/", {}, python="python")
    spare.prepare(launch)
    await asyncio.sleep(0.01)
    kernels.made[0].kill()
    assert await spare.take(launch) is None


class StoppedKernel(MemoryKernel):
    """Alive, but its process is stopped: it answers nothing."""

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        await asyncio.Event().wait()
        async for event in super().execute(code):
            yield event


async def test_a_spare_that_is_stopped_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "_SPARE_MOVES_WITHIN", 0.01)
    kernels: list[StoppedKernel] = []

    def make(launch: Launch) -> StoppedKernel:
        kernels.append(StoppedKernel(launch))
        return kernels[-1]

    spare = SpareKernel(make)
    launch = Launch("/", {}, python="python")
    spare.prepare(launch)
    async with asyncio.timeout(10):
        assert await spare.take(launch) is None
        assert spare._ending is not None
        await spare._ending
    assert not kernels[0].is_alive


async def test_the_spare_can_be_switched_off() -> None:
    kernels = Kernels()
    spare = SpareKernel(kernels.make, enabled=False)
    spare.prepare(Launch("/", {}))
    await asyncio.sleep(0.01)
    assert kernels.made == []


# --- Environments --------------------------------------------------------------------------------


def test_the_environment_of_the_interpreter_is_activated(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    env = {"PATH": "/usr/bin:/bin", "PYTHONHOME": "/nowhere", "KEPT": "1"}
    assert activate_environment(env, str(python)) is env
    assert activate_environment(env, None) is env
    (tmp_path / "pyvenv.cfg").touch()
    assert activate_environment(env, str(python)) == {
        "KEPT": "1",
        "VIRTUAL_ENV": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
    }
    (tmp_path / "pyvenv.cfg").unlink()
    (tmp_path / "conda-meta").mkdir()
    assert activate_environment(env, str(python))["CONDA_PREFIX"] == str(tmp_path)


async def test_what_is_not_there_is_missing_by_name(tmp_path: Path) -> None:
    factory = KernelFactory(Settings())
    request = KernelOrder(cwd=str(tmp_path), env=dict(os.environ))
    with pytest.raises(KernelMissing, match="no-such"):
        await factory.start(replace(request, kernel="no-such"))
    with pytest.raises(KernelMissing, match="nowhere"):
        await factory.start(replace(request, kernel=str(tmp_path / "nowhere"), runner=True))


# --- Variables -----------------------------------------------------------------------------------


def test_secrets_are_withheld_by_pattern_and_passed_by_name_or_pattern() -> None:
    environ = {
        "ANTHROPIC_API_KEY": "a",
        "OPENAI_API_KEY": "b",
        "CELLWRIGHT_SERVER_TOKEN": "c",
        "CELLWRIGHT_TOKEN": "d",
        "JUPYTER_TOKEN": "e",
        "DATABASE_API_KEY": "f",
        "AWS_ACCESS_KEY_ID": "g",
        "AWS_BEARER_TOKEN_BEDROCK": "h",
        "AWS_REGION": "eu",
        "AWS_SECRET_ACCESS_KEY": "i",
        "AZURE_CLIENT_SECRET": "j",
        "AZURE_STORAGE_CONNECTION_STRING": "k",
        "GITHUB_TOKEN": "l",
        "GOOGLE_APPLICATION_CREDENTIALS": "m",
        "HF_TOKEN": "n",
        "SECRET_KEY": "o",
        "AZURE_DEVOPS_EXT_PAT": "p",
        "INPUT_GITHUB-TOKEN": "q",
        "npm_config_//registry.example.org/:_authToken": "r",
        "TS_AUTHKEY": "s",
        "OPENAI_API_KEYS": "u",
        "AZURE_OPENAI_KEY": "v",
        "KAGGLE_KEY": "w",
        "FIELD_ENCRYPTION_KEY": "x",
        "API_TOKENS": "y",
        "DOCKER_SECRETS": "z",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "t",
        "CELLWRIGHT_SERVER": "http://localhost:8888/?token=of-a-server",
        "CELLWRIGHT_SERVERS": "http://localhost:8888/?token=of-a-server",
        "CELLWRIGHT_ASSISTANT_BASE_URL": "https://me:password@example.invalid",
        "CELLWRIGHT_MODE": "agent",
        "PATH": "/bin",
        "KEYBOARD": "us",
        "SORT_KEY": "name",
        "MAX_TOKENS": "100",
        "DATABASE_PASSWORD": "passed: notebooks need it",
        "TOKENIZERS_PARALLELISM": "true",
        "PI_SESSION_FILE": "of another session",
        "CELLWRIGHT_KERNEL_MARK": "of another kernel",
    }
    env, withheld = build_kernel_environment(environ, ["OPENAI_API_KEY", "AWS_*"])
    assert set(env) == {
        "OPENAI_API_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "CELLWRIGHT_MODE",
        "DATABASE_PASSWORD",
        "KEYBOARD",
        "MAX_TOKENS",
        "PATH",
        "SORT_KEY",
        "TOKENIZERS_PARALLELISM",
    }
    assert withheld == (
        "ANTHROPIC_API_KEY",
        "API_TOKENS",
        "AZURE_CLIENT_SECRET",
        "AZURE_DEVOPS_EXT_PAT",
        "AZURE_OPENAI_KEY",
        "AZURE_STORAGE_CONNECTION_STRING",
        "CELLWRIGHT_SERVER_TOKEN",
        "CELLWRIGHT_TOKEN",
        "DATABASE_API_KEY",
        "DOCKER_SECRETS",
        "FIELD_ENCRYPTION_KEY",
        "GITHUB_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "HF_TOKEN",
        "INPUT_GITHUB-TOKEN",
        "JUPYTER_TOKEN",
        "KAGGLE_KEY",
        "OPENAI_API_KEYS",
        "SECRET_KEY",
        "TS_AUTHKEY",
        "npm_config_//registry.example.org/:_authToken",
    )
    assert explain_withheld(withheld, "KeyError: 'PATH'") is None
    note = explain_withheld(withheld, "KeyError: 'ANTHROPIC_API_KEY'")
    assert note is not None
    assert "CELLWRIGHT_PASS_VARIABLES=ANTHROPIC_API_KEY" in note


def test_a_sessions_variables_have_all_their_names_and_none_removes_them() -> None:
    variables = build_session_variables(session_file="f", bridge_url="u")
    assert variables["CELLWRIGHT_SESSION_FILE"] == variables["PI_SESSION_FILE"] == "f"
    assert variables["CELLWRIGHT_TOOL_BRIDGE_URL"] == variables["PI_TOOL_BRIDGE_URL"] == "u"
    assert variables["ARTIFACTS"] is None
    assert variables["PI_TOOL_BRIDGE_TOKEN"] is None
