"""`KernelFactory`: starts the kernel that a caller means, or hands out the spare one."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field, replace
from functools import partial

from cellwright.kernel.environment import CLIENT_PYTHON, MANAGED
from cellwright.kernel.transport import Code, Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cellwright.config.settings import Settings
    from cellwright.kernel.discovery import KernelChoice
    from cellwright.kernel.session import Start
    from cellwright.kernel.transport import Transport


_SPARE_STARTS_AFTER = 0.25
_SPARE_STARTS_WITHIN = 10.0
_SPARE_MOVES_WITHIN = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOrder:
    """The kernel that a caller wants.

    Args:
        cwd: the folder that code runs in.
        env: the kernel's variables, without secrets.
        kernel: the name of a kernelspec, or the path of an interpreter or an environment.
        notebook_kernel: the kernelspec that the notebook names.
        runner: start the plain Python runner instead of a Jupyter kernel.
        server: the address of a Jupyter server or gateway, with or without a token.
        kernel_id: a kernel of that server to attach to, instead of starting one.
        tell: gets a sentence if the Python that runs was found beside the code.
        variables: returns those of the session, which a spare kernel gets together with its folder.
    """

    cwd: str
    env: Mapping[str, str]
    kernel: str | None = None
    notebook_kernel: str | None = None
    runner: bool = False
    server: str | None = None
    server_token: str | None = None
    kernel_id: str | None = None
    tell: Callable[[str], object] | None = field(default=None, compare=False)
    variables: Callable[[], Mapping[str, str | None]] | None = field(default=None, compare=False)


class KernelFactory:
    """Starts kernels, and keeps one spare of the kind that was started last."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._spare = SpareKernel(self._make_local, enabled=settings.spare_kernel)

    async def start(self, request: KernelOrder) -> Transport:
        """Start a kernel, and return when it is ready for a cell.

        Raises:
            KernelMissing: there is no such kernel here.
            KernelError: it could not be started or reached; nothing of it is left.
        """
        if request.server is not None:
            kernel = _make_remote(request)
        elif request.runner:
            kernel = self._make_runner(request)
        else:
            return await self._take_or_start_local(request)
        await kernel.start()
        return kernel

    def starter(self, request: KernelOrder) -> Start:
        """`start` with that request, to be called whenever a session needs a kernel."""
        return partial(self.start, request)

    def would_start(self, request: KernelOrder, kernel: Transport | None) -> bool:
        """Whether a kernel of this machine is the one that would be started, under any name.

        Raises:
            KernelMissing: what would be started is not there.
        """
        if request.server is not None or request.runner:
            return False
        choice = self._choose(request)
        launch: Launch | None = getattr(kernel, "launch", None)
        return launch is not None and (launch.python, launch.kernel_name) == (
            choice.python,
            choice.kernel_name,
        )

    async def release_spare(self) -> None:
        """End the spare kernel."""
        await self._spare.release()

    def _choose(self, request: KernelOrder) -> KernelChoice:
        from cellwright.kernel.discovery import choose_kernel

        return choose_kernel(
            request.cwd,
            env=request.env,
            asked=request.kernel,
            setting=self._settings.kernel or None,
            notebook=request.notebook_kernel,
        )

    async def _take_or_start_local(self, request: KernelOrder) -> Transport:
        choice = self._choose(request)
        _tell_environment(request, choice.python)
        env = activate_environment(_without_client(request.env), choice.python)
        launch = Launch(request.cwd, env, choice.python, choice.kernel_name)
        kernel = await self._spare.take(launch, request.variables)
        if kernel is None:
            kernel = self._make_local(launch)
            await kernel.start()
        if kernel.info.language == "python":  # only there can folder and variables be changed later
            self._spare.prepare(launch)
        return kernel

    def _make_local(self, launch: Launch) -> Transport:
        from cellwright.kernel.local import LocalKernel

        return LocalKernel(launch, start_timeout=self._settings.kernel_start_timeout)

    def _make_runner(self, request: KernelOrder) -> Transport:
        from cellwright.kernel.discovery import choose_python
        from cellwright.kernel.runner import Runner

        setting = self._settings.kernel or None
        python = choose_python(request.cwd, env=request.env, asked=request.kernel, setting=setting)
        _tell_environment(request, python)
        env = activate_environment(_without_client(request.env), python)
        return Runner(Launch(request.cwd, env, python))


def _tell_environment(request: KernelOrder, python: str | None) -> None:
    from cellwright.kernel.discovery import describe_found_environments

    if request.tell is not None and request.kernel is None:  # else the caller chose it
        for said in describe_found_environments(request.cwd, request.env, python):
            request.tell(said)


def _without_client(env: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in env.items() if name != CLIENT_PYTHON}


def _make_remote(request: KernelOrder) -> Transport:
    from cellwright.kernel.remote import RemoteKernel, RemoteServer

    assert request.server is not None  # noqa: S101  # the caller looked
    server = RemoteServer(request.server, request.server_token)
    # What a notebook calls python3 is whatever Python there is.
    named = None if request.notebook_kernel == "python3" else request.notebook_kernel
    # Our folder and variables mean nothing on another machine: it starts where its server does.
    return RemoteKernel(server, name=request.kernel or named, kernel_id=request.kernel_id)


def activate_environment(env: Mapping[str, str], python: str | None) -> Mapping[str, str]:
    """Set the variables that activating the environment of `python` sets, so that `!pip` works."""
    if python is None:
        return env
    prefix = os.path.dirname(os.path.dirname(python))  # noqa: PTH120
    if os.path.exists(os.path.join(prefix, "pyvenv.cfg")):  # noqa: PTH110, PTH118
        name = "VIRTUAL_ENV"
    elif os.path.isdir(os.path.join(prefix, "conda-meta")):  # noqa: PTH112, PTH118
        name = "CONDA_PREFIX"
    else:
        return env
    folders = [os.path.join(prefix, "bin"), *env.get("PATH", os.defpath).split(os.pathsep)]  # noqa: PTH118
    path = os.pathsep.join(dict.fromkeys(folders))
    others = {key: value for key, value in env.items() if key != "PYTHONHOME"}
    return {**others, name: prefix, "PATH": path}


class SpareKernel:
    """At most one kernel, started ahead of need, so that a first cell does not wait for it.

    It can replace only a kernel of the same interpreter, kernelspec and variables: what a program
    reads when it starts, such as `PYTHONPATH`, cannot be changed later. The folder and the
    variables of a session can, and are.
    """

    def __init__(
        self,
        make: Callable[[Launch], Transport],
        *,
        enabled: bool = True,
        delay: float = _SPARE_STARTS_AFTER,
    ) -> None:
        self._make = make
        self._enabled = enabled
        self._delay = delay
        self._wanted: Launch | None = None
        self._starting: asyncio.Task[Transport] | None = None
        self._is_needed = asyncio.Event()  # it starts at once
        self._ending: asyncio.Future[None] | None = None  # kept, or it would be garbage collected

    def prepare(self, launch: Launch) -> None:
        """Start a kernel like that one in the background, unless there is one."""
        wanted = _without_place(launch)
        if not self._enabled or (self._starting is not None and self._wanted == wanted):
            return
        old, self._starting = self._starting, None
        self._wanted = wanted
        self._is_needed = asyncio.Event()
        self._starting = asyncio.create_task(self._start(launch, old, self._is_needed))

    async def _start(
        self, launch: Launch, old: asyncio.Task[Transport] | None, is_needed: asyncio.Event
    ) -> Transport:
        await _end_spare(old)
        # The first cell of the kernel before it must not wait while this one takes the processor.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._delay):
                await is_needed.wait()
        kernel = self._make(launch)
        await kernel.start()
        warm_up: Callable[[], Awaitable[None]] | None = getattr(kernel, "warm_up", None)
        if kernel.is_alive and warm_up is not None:
            await warm_up()
        return kernel

    async def take(
        self,
        launch: Launch,
        variables: Callable[[], Mapping[str, str | None]] | None = None,
    ) -> Transport | None:
        """Give the spare kernel, moved to the right folder, if it fits the launch; else None.

        `variables` returns those of the session that it is for.
        """
        if self._starting is None or self._wanted != _without_place(launch):
            return None
        starting, self._starting = self._starting, None
        self._is_needed.set()
        try:
            async with asyncio.timeout(_SPARE_STARTS_WITHIN):
                kernel = await asyncio.shield(starting)
            if kernel.is_alive:
                async with asyncio.timeout(_SPARE_MOVES_WITHIN):
                    managed = {name: launch.env.get(name) for name in MANAGED}
                    managed |= variables() if variables is not None else {}
                    move = Code("", cwd=launch.cwd, env=managed, silent=True, store_history=False)
                    async for _ in kernel.execute(move):
                        pass
        except asyncio.CancelledError:
            self._ending = asyncio.ensure_future(_end_spare(starting))
            raise
        except Exception:  # noqa: BLE001  # stopped, stuck or dead: the caller starts a new one
            self._ending = asyncio.ensure_future(_end_spare(starting))
            return None
        if not kernel.is_alive:
            await kernel.shutdown(now=True)
            return None
        return kernel

    async def release(self) -> None:
        """End the spare kernel."""
        starting, self._starting = self._starting, None
        await _end_spare(starting)


async def _end_spare(starting: asyncio.Task[Transport] | None) -> None:
    if starting is None:
        return
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        kernel = await starting
        await kernel.shutdown(now=True)


def _without_place(launch: Launch) -> Launch:
    env = {
        name: value for name, value in launch.env.items() if name not in {*MANAGED, "PWD", "OLDPWD"}
    }
    return replace(launch, cwd="", env=env)
