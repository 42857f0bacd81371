"""From a `Launch` to a command line, and the private folder that a kernel's sockets live in."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from cellwright.config.directories import runtime_directory
from cellwright.errors import KernelStartFailed
from cellwright.kernel.discovery import find_spec, python_spec
from cellwright.kernel.keeper import is_stale, new_mark, sweep_stale
from cellwright.kernel.local.channels import CHANNELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.kernel.discovery import KernelSpec
    from cellwright.kernel.transport import Launch

Carrier: TypeAlias = Literal["ipc", "tcp"]

_LONGEST_SOCKET_PATH = 107
_FOLDER_PREFIX = "k-"
_CONNECTION_FILE = "connection.json"
_OWNER_FILE = "owner"
_DESCRIPTORS_NEEDED = 40
_SPEAK_IPC = frozenset({"bash_kernel", "IRkernel::main()"})
_TEMPLATE = re.compile(r"\$\{(\w+)\}")


def require_descriptors() -> None:
    """Fail in an orderly way if descriptors are short: ZeroMQ would end the whole process.

    Raises:
        OSError: there are not enough.
    """
    held: list[int] = []
    try:
        while len(held) < _DESCRIPTORS_NEEDED:
            held.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for descriptor in held:
            os.close(descriptor)


def resolve(launch: Launch) -> KernelSpec:
    """The kernelspec that a launch means.

    Its name is looked up in its interpreter's environment first, then where Jupyter looks; one
    found there that starts another interpreter is not meant. An interpreter without a name is
    asked for its ipykernel.

    Raises:
        KernelMissing: there is no such kernel.
    """
    if launch.kernel_name is None and launch.python is None:
        return find_spec("python3", env=launch.env)
    if launch.kernel_name is not None:
        spec = find_spec(launch.kernel_name, env=launch.env, python=launch.python)
        is_elsewhere = spec.origin != "project" and spec.python not in {None, launch.python}
        if launch.python is None or not is_elsewhere:
            return spec
    assert launch.python is not None  # noqa: S101 - for the type checker
    return python_spec(launch.python)


def environment(spec: KernelSpec, launch: Launch) -> dict[str, str]:
    """The variables of the new process: the launch's, then the kernelspec's own."""
    env = dict(launch.env)
    for name, value in spec.env.items():
        # Jupyter's rule: a variable that does not exist is left as it is written.
        env[name] = _TEMPLATE.sub(lambda match: launch.env.get(match[1], match[0]), value)
    return env


@dataclass(frozen=True, slots=True)
class Place:
    """A private folder with the connection file, and where the kernel's sockets are.

    `ports` are numbers of files in the folder, or with `tcp` of ports of this machine.
    """

    folder: Path
    key: bytes
    transport: Carrier
    ports: tuple[int, ...]

    @property
    def connection_file(self) -> str:
        """What the kernel is told to read."""
        return str(self.folder / _CONNECTION_FILE)

    @property
    def ip(self) -> str:
        """What Jupyter calls the address: with `ipc`, the beginning of the sockets' paths."""
        return "127.0.0.1" if self.transport == "tcp" else str(self.folder / "s")

    @property
    def addresses(self) -> list[str]:
        """Where each of the channels is."""
        joint = ":" if self.transport == "tcp" else "-"
        return [f"{self.transport}://{self.ip}{joint}{port}" for port in self.ports]

    def command(self, spec: KernelSpec) -> list[str]:
        """The command line that starts the kernel here."""
        words = {"connection_file": self.connection_file, "resource_dir": spec.folder or ""}
        return [
            re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), part)
            for part in spec.command
        ]

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def carriers(spec: KernelSpec) -> tuple[Carrier, ...]:
    """How to try to talk to a kernel: in private if it is known to be able to.

    Others are talked to as Jupyter does, over signed messages to ports of this machine: some die
    of private sockets, some listen elsewhere for ever.
    """
    words = set(spec.command)
    if words & {"ipykernel_launcher", "ipykernel"}:
        return ("ipc",)
    return ("ipc", "tcp") if words & _SPEAK_IPC else ("tcp",)


def make_place(name: str, transport: Carrier = "ipc") -> Place:
    """Make the folder for a kernel called `name`, and write its connection file.

    Raises:
        KernelStartFailed: the runtime directory's path is too long for sockets.
        UnsafeDirectory: the runtime directory cannot be trusted.
        OSError: the disk refused.
    """
    folder = Path(runtime_directory(), f"{_FOLDER_PREFIX}{secrets.token_hex(6)}")
    ports = _free_ports() if transport == "tcp" else tuple(range(1, len(CHANNELS) + 1))
    place = Place(folder, secrets.token_hex(32).encode(), transport, ports)
    if len(os.fsencode(place.ip)) + 2 > _LONGEST_SOCKET_PATH:
        raise KernelStartFailed(
            name,
            f"{folder} is too long for the path of a socket",
            hint="Point CELLWRIGHT_RUNTIME_DIR at a folder with a shorter path",
        )
    folder.mkdir(mode=0o700)
    try:
        _write_private(folder / _OWNER_FILE, new_mark())
        _write_private(folder / _CONNECTION_FILE, json.dumps(_connection(place, name)))
    except BaseException:
        place.remove()
        raise
    return place


def sweep_leftovers() -> int:
    """Kill and remove what kernels of owners that are gone have left; returns how many processes.

    For the start of an owner: the one before may have been killed, together with its keepers.

    Raises:
        UnsafeDirectory: the runtime directory cannot be trusted.
    """
    killed = sweep_stale()
    for folder in Path(runtime_directory()).glob(f"{_FOLDER_PREFIX}*"):
        try:
            is_left = is_stale((folder / _OWNER_FILE).read_text())
        except OSError:
            continue  # being made, or being removed
        if is_left:
            shutil.rmtree(folder, ignore_errors=True)
    return killed


def _connection(place: Place, name: str) -> Mapping[str, str | int]:
    ports = zip(CHANNELS, place.ports, strict=True)
    return {
        **{f"{channel}_port": port for channel, port in ports},
        "transport": place.transport,
        "ip": place.ip,
        "key": place.key.decode(),
        "signature_scheme": "hmac-sha256",
        "kernel_name": name,
    }


def _free_ports() -> tuple[int, ...]:
    """Ports that nobody had a moment ago; the protocol gives no way to hold on to them."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in CHANNELS]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return tuple(one.getsockname()[1] for one in held)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
