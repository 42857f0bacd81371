"""One process of a local kernel: its command line, its private folder, its start and its end."""

from __future__ import annotations

import asyncio
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
from cellwright.kernel.discovery import find_spec, make_python_spec
from cellwright.kernel.environment import SESSION_FILE_PREFIX
from cellwright.kernel.local.channels import CHANNELS
from cellwright.kernel.local.conversation import LocalConversation
from cellwright.kernel.processes import is_stale, make_mark, start_kept_process, sweep_stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.kernel.discovery import KernelSpec
    from cellwright.kernel.events import IdleEventQueue, KernelExit
    from cellwright.kernel.processes import KeptProcess
    from cellwright.kernel.transport import Launch

Carrier: TypeAlias = Literal["ipc", "tcp"]

TAIL_BYTES = 8 * 2**10
_TAIL_SHOWN = 600
_TAIL_PIECE = 64 * 2**10
_READS_FOR_THE_END = 64
_LAST_OUTPUT_WITHIN = 0.5
_LEAVING_PATIENCE = 2.0
_SHUTDOWN_PATIENCE = 1.0
_KILL_PATIENCE = 10.0
_LONGEST_SOCKET_PATH = 107
_FOLDER_PREFIX = "k-"
_CONNECTION_FILE = "connection.json"
_OWNER_FILE = "owner"
_DESCRIPTORS_NEEDED = 40
_SPEAK_IPC = frozenset({"bash_kernel", "IRkernel::main()"})
_IPYTHON = frozenset({"ipykernel_launcher", "ipykernel"})
_HISTORY = "--HistoryManager.hist_file"
_TEMPLATE = re.compile(r"\$\{(\w+)\}")


class KernelProcess:
    """A kernel's process, its files and the conversation with it; every start makes a new one.

    `open` it first, and `stop` it in the end.
    """

    def __init__(self, spec: KernelSpec, launch: Launch, idle_events: IdleEventQueue) -> None:
        self.spec = spec
        self.kept: KeptProcess | None = None
        self.conversation: LocalConversation | None = None
        self.has_ended = False
        self.was_stopped = False
        self._launch = launch
        self._idle_events = idle_events
        self._loop = asyncio.get_running_loop()
        self.place: ConnectionFolder | None = None
        self._tail: OutputTail | None = None
        self._is_disconnected = False

    @property
    def exit(self) -> KernelExit | None:
        """How the process ended; None while it runs."""
        return None if self.kept is None else self.kept.exit

    @property
    def last_output(self) -> str:
        """The end of what the process itself wrote, on one line."""
        return "" if self._tail is None else self._tail.text()

    async def open(
        self, transport: Carrier, within: float, place: ConnectionFolder | None = None
    ) -> None:
        """Start the process and return when it is ready for a cell.

        `place` is that of a process that has ended: clients that were connected to it are then
        connected to this one.

        Raises:
            KernelStartFailed: it ended, or was not ready in so many seconds.
            OSError: the system refused something that is needed.
        """
        self._tail = OutputTail()
        folder = self.place = make_connection_folder(self.spec.name, transport, place)
        kept = self.kept = await start_kept_process(
            folder.command(self.spec),
            cwd=self._launch.cwd,
            env=build_environment(self.spec, self._launch),
            output=self._tail.writer,
        )
        self._tail.close_writer()
        if self.was_stopped:
            raise self._make_failure("it was shut down meanwhile")
        require_descriptors()
        conversation = self.conversation = LocalConversation(
            self.spec,
            folder,
            kept,
            self._idle_events,
            on_leaving=self._expect_exit,
            on_disconnect=self._on_disconnect,
        )
        kept.on_exit(self._on_exit)
        try:
            async with asyncio.timeout(within):
                is_ready = await conversation.wait_ready()
        except TimeoutError:
            raise self._make_failure(f"it was not ready within {within:g} s") from None
        if not is_ready:
            raise self._make_failure(f"it {self.exit}")

    def _make_failure(self, reason: str) -> KernelStartFailed:
        output = self.last_output
        return KernelStartFailed(
            self.spec.name, f"{reason}; it said: {output}" if output else reason
        )

    def _on_exit(self) -> None:
        if self._is_disconnected:
            self._end()
        else:
            # What it had sent may still be on its way through the sockets.
            self._loop.call_later(_LAST_OUTPUT_WITHIN, self._end)

    def _on_disconnect(self) -> None:
        self._is_disconnected = True
        if self.exit is not None:
            self._end()
        else:
            self._expect_exit()

    def _expect_exit(self) -> None:
        """Kill a kernel that announced its exit, if a thread keeps its process from ending."""
        self._loop.call_later(_LEAVING_PATIENCE, self._kill)

    def _kill(self) -> None:
        if self.kept is not None and self.exit is None:
            self.kept.kill()

    def _end(self) -> None:
        if self.has_ended:
            return
        self.has_ended = True
        if self.conversation is not None:
            self.conversation.end()
        if self.place is not None:
            self.place.remove()

    async def stop(self, *, now: bool) -> None:
        """End the kernel and everything it started; `now` without asking it first."""
        self.was_stopped = True
        if self.kept is not None:
            if not now and self.exit is None and self.conversation is not None:
                self.conversation.resume()
                self.conversation.send("control", "shutdown_request", {"restart": False})
                await self.kept.wait_gone(_SHUTDOWN_PATIENCE)
            self.kept.kill()
            await self.kept.wait_gone(_KILL_PATIENCE)
        self._end()
        self.close()

    def close(self) -> None:
        """Let go of everything at once; what still runs is killed. May be called twice."""
        if self.conversation is not None:
            self.conversation.close()
        if self.kept is not None:
            self.kept.close()
        if self._tail is not None:
            self._tail.close()
        if self.place is not None:
            self.place.remove()


class OutputTail:
    """A pipe for the stdout and stderr of a process; always drained, only its end is kept.

    The end says why a kernel did not start.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._kept = b""
        self._loop.add_reader(self._reader, self._read)

    def close_writer(self) -> None:
        """Close our copy of the writing end, which the process has."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def text(self) -> str:
        """What is kept, on one line: the end of it if it is long."""
        for _ in range(_READS_FOR_THE_END):
            if not self._read():
                break
        lines = self._kept.decode("utf-8", "replace").splitlines()
        joined = " / ".join(line.strip() for line in lines if line.strip())
        return joined if len(joined) <= _TAIL_SHOWN else f"…{joined[-_TAIL_SHOWN:]}"

    def close(self) -> None:
        """Stop listening. May be called twice, and after the event loop was closed."""
        self.close_writer()
        if self._reader >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1

    def _read(self) -> bool:
        """Read one piece, so that a flood does not block the event loop; false if there is none."""
        if self._reader < 0:
            return False
        try:
            data = os.read(self._reader, _TAIL_PIECE)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._reader)
        self._kept = (self._kept + data)[-TAIL_BYTES:]
        return bool(data)


def require_descriptors() -> None:
    """Check that there are enough descriptors: without, ZeroMQ would abort the whole process.

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


def resolve_spec(launch: Launch) -> KernelSpec:
    """Find the kernelspec of a launch.

    Its name is searched in its interpreter's environment first, then in Jupyter's folders; one
    found there that starts another interpreter does not count. An interpreter without a name
    means its ipykernel.

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
    return make_python_spec(launch.python)


def build_environment(spec: KernelSpec, launch: Launch) -> dict[str, str]:
    """Build the variables of the new process: the launch's, then the kernelspec's own."""
    env = dict(launch.env)
    for name, value in spec.env.items():
        # Jupyter's rule: a variable that does not exist is left as it is written.
        env[name] = _TEMPLATE.sub(lambda match: launch.env.get(match[1], match[0]), value)
    return env


@dataclass(frozen=True, slots=True)
class ConnectionFolder:
    """A private folder with the connection file, and where the kernel's sockets are.

    `ports` are numbers of files in the folder, or with `tcp` of ports of this machine.
    """

    folder: Path
    key: bytes
    transport: Carrier
    ports: tuple[int, ...]

    @property
    def connection_file(self) -> str:
        """The file that the kernel reads."""
        return str(self.folder / _CONNECTION_FILE)

    @property
    def ip(self) -> str:
        """What Jupyter calls the address: with `ipc`, the beginning of the sockets' paths."""
        return "127.0.0.1" if self.transport == "tcp" else str(self.folder / "s")

    @property
    def addresses(self) -> list[str]:
        """The address of each channel."""
        joint = ":" if self.transport == "tcp" else "-"
        return [f"{self.transport}://{self.ip}{joint}{port}" for port in self.ports]

    def command(self, spec: KernelSpec) -> list[str]:
        """The command line that starts the kernel here."""
        words = {"connection_file": self.connection_file, "resource_dir": spec.folder or ""}
        found = [
            re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), part)
            for part in spec.command
        ]
        # IPython would write every cell into a database that all kernels share, and the thread that
        # does so takes a fifth of the time of a short cell. Ours is the journal.
        if _IPYTHON.intersection(found) and not any(part.startswith(_HISTORY) for part in found):
            found.append(f"{_HISTORY}=:memory:")
        return found

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def choose_carriers(spec: KernelSpec) -> tuple[Carrier, ...]:
    """Choose which sockets to try: private ones if the kernel is known to support them.

    Others get what Jupyter uses, ports of this machine with signed messages: some kernels crash
    with private sockets, some listen at a wrong address for ever.
    """
    words = set(spec.command)
    if words & _IPYTHON:
        return ("ipc",)
    return ("ipc", "tcp") if words & _SPEAK_IPC else ("tcp",)


def make_connection_folder(
    name: str, transport: Carrier = "ipc", place: ConnectionFolder | None = None
) -> ConnectionFolder:
    """Make the folder for a kernel called `name`, and write its connection file.

    With `place` it is that one again, which was removed.

    Raises:
        KernelStartFailed: the runtime directory's path is too long for sockets.
        UnsafeDirectory: the runtime directory cannot be trusted.
        OSError: the disk refused.
    """
    if place is None:
        folder = Path(runtime_directory(), f"{_FOLDER_PREFIX}{secrets.token_hex(6)}")
        ports = _find_free_ports() if transport == "tcp" else tuple(range(1, len(CHANNELS) + 1))
        place = ConnectionFolder(folder, secrets.token_hex(32).encode(), transport, ports)
    folder = place.folder
    if len(os.fsencode(place.ip)) + 2 > _LONGEST_SOCKET_PATH:
        raise KernelStartFailed(
            name,
            f"{folder} is too long for the path of a socket",
            hint="Point CELLWRIGHT_RUNTIME_DIR at a folder with a shorter path",
        )
    folder.mkdir(mode=0o700)
    try:
        _write_private(folder / _OWNER_FILE, make_mark())
        _write_private(folder / _CONNECTION_FILE, json.dumps(_describe_connection(place, name)))
    except BaseException:
        place.remove()
        raise
    return place


def sweep_leftovers() -> int:
    """Kill and remove what kernels of dead owners have left behind; returns how many processes.

    An owner calls this when it starts: the one before may have died together with its keepers.

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
    remove_stale_session_files(runtime_directory())
    return killed


def remove_stale_session_files(folder: str) -> None:
    """Remove the session files of owners that are gone."""
    for path in Path(folder).glob(f"{SESSION_FILE_PREFIX}*.json"):
        try:
            owner = json.loads(path.read_bytes()).get("owner")
            if isinstance(owner, str) and is_stale(owner):
                path.unlink()
        except (OSError, ValueError, AttributeError):
            continue


def _describe_connection(place: ConnectionFolder, name: str) -> Mapping[str, str | int]:
    ports = zip(CHANNELS, place.ports, strict=True)
    return {
        **{f"{channel}_port": port for channel, port in ports},
        "transport": place.transport,
        "ip": place.ip,
        "key": place.key.decode(),
        "signature_scheme": "hmac-sha256",
        "kernel_name": name,
    }


def _find_free_ports() -> tuple[int, ...]:
    """Find free ports; the protocol has no way to reserve them."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in CHANNELS]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return tuple(one.getsockname()[1] for one in held)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
