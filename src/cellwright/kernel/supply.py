"""Kernels to order: which one is meant, started or taken from the spare."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

from cellwright.kernel.spare import Spare
from cellwright.kernel.transport import Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.config.settings import Settings
    from cellwright.kernel.session import Start
    from cellwright.kernel.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a caller wants.

    Args:
        cwd: the folder that code runs in.
        env: the kernel's variables, secrets taken out.
        kernel: the name of a kernelspec, or the path of an interpreter or an environment.
        notebook_kernel: the kernelspec that the notebook names.
        runner: no Jupyter kernel, but the plain Python runner.
        server: the address of a Jupyter server or gateway, with or without a token.
        kernel_id: a kernel of that server to attach to, instead of starting one.
    """

    cwd: str
    env: Mapping[str, str]
    kernel: str | None = None
    notebook_kernel: str | None = None
    runner: bool = False
    server: str | None = None
    server_token: str | None = None
    kernel_id: str | None = None


class Supply:
    """Makes kernels, and keeps one spare of the kind that was wanted last."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._spare = Spare(self._local, enabled=settings.spare_kernel)

    async def start(self, order: Order) -> Transport:
        """A kernel that is ready for a cell.

        Raises:
            KernelMissing: there is no such kernel here.
            KernelError: it could not be started or reached; nothing of it is left.
        """
        if order.server is not None:
            kernel = _remote(order)
        elif order.runner:
            kernel = _runner(order, self._settings)
        else:
            return await self._local_or_spare(order)
        await kernel.start()
        return kernel

    def starter(self, order: Order) -> Start:
        """`start` for that order, to be called whenever a session needs a kernel."""
        return partial(self.start, order)

    async def release_spare(self) -> None:
        """End the spare."""
        await self._spare.release()

    async def _local_or_spare(self, order: Order) -> Transport:
        from cellwright.kernel.discovery import choose_kernel

        choice = choose_kernel(
            order.cwd,
            env=order.env,
            asked=order.kernel,
            setting=self._settings.kernel or None,
            notebook=order.notebook_kernel,
        )
        env = activated(order.env, choice.python)
        launch = Launch(order.cwd, env, choice.python, choice.kernel_name)
        kernel = await self._spare.take(launch)
        if kernel is None:
            kernel = self._local(launch)
            await kernel.start()
        if kernel.info.language == "python":  # only there can folder and variables be changed later
            self._spare.prepare(launch)
        return kernel

    def _local(self, launch: Launch) -> Transport:
        from cellwright.kernel.local import LocalKernel

        return LocalKernel(launch, start_timeout=self._settings.kernel_start_timeout)


def _runner(order: Order, settings: Settings) -> Transport:
    from cellwright.kernel.discovery import choose_python
    from cellwright.kernel.runner import Runner

    python = choose_python(
        order.cwd, env=order.env, asked=order.kernel, setting=settings.kernel or None
    )
    return Runner(Launch(order.cwd, activated(order.env, python), python))


def activated(env: Mapping[str, str], python: str | None) -> Mapping[str, str]:
    """The variables as an activated environment has them, so that `!pip` means its own."""
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


def _remote(order: Order) -> Transport:
    from cellwright.kernel.remote import RemoteKernel, RemoteServer

    assert order.server is not None  # noqa: S101  # the caller looked
    server = RemoteServer(order.server, order.server_token)
    # Our folders and variables mean nothing on another machine: it starts where its server does.
    return RemoteKernel(server, name=order.kernel, kernel_id=order.kernel_id)
