"""`LocalKernel`: a Jupyter kernel of this machine, as a `Transport`."""

from __future__ import annotations

import weakref

from cellwright.errors import CellwrightError, KernelCannot, KernelStartFailed
from cellwright.kernel import messages
from cellwright.kernel.aside import AsideQueue
from cellwright.kernel.events import Finished, Missed, Started
from cellwright.kernel.local import translate
from cellwright.kernel.local.connection import Connection
from cellwright.kernel.local.preparation import PREPARATION
from cellwright.kernel.local.starting import carriers, require_descriptors, resolve
from cellwright.kernel.local.surroundings import Surroundings, apart
from cellwright.kernel.transport import KernelInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from cellwright.kernel.aside import Aside
    from cellwright.kernel.discovery import KernelSpec
    from cellwright.kernel.events import CommMessage, KernelEvent, KernelExit
    from cellwright.kernel.local.conversation import Conversation
    from cellwright.kernel.local.starting import Carrier
    from cellwright.kernel.transport import Code, Launch

START_TIMEOUT = 60.0
"""How long a kernel may take until it is ready for a cell."""


class LocalKernel:
    """A kernel that runs here, under a keeper: it and all that it starts end with this process.

    Any installed kernelspec will do; one that ends at once over private sockets is tried again
    over ports of this machine, as Jupyter would.
    What the kernel says outside the cell that runs, between cells or for an earlier one, is not
    part of a cell's events; `idle_events` has it.
    `Code.env` and `Code.cwd` work in Python kernels: what differs from what was set last is
    changed by a silent request before the cell, and stays. Other kernels refuse them.
    """

    def __init__(self, launch: Launch, *, start_timeout: float = START_TIMEOUT) -> None:
        self.launch = launch
        self._start_timeout = start_timeout
        self._asides = AsideQueue()
        self._connection: Connection | None = None
        self._release: weakref.finalize[[Connection], LocalKernel] | None = None
        self._info: KernelInfo | None = None
        self._surroundings = Surroundings(launch)

    @property
    def info(self) -> KernelInfo:
        """What the kernel is; valid once `start` has returned."""
        if self._info is None:
            raise RuntimeError("the kernel was not started")
        return self._info

    @property
    def is_alive(self) -> bool:
        """Whether the kernel can still answer, as far as is known without asking it."""
        connection = self._connection
        return connection is not None and connection.exit is None and not connection.has_ended

    @property
    def exit(self) -> KernelExit | None:
        """How the kernel ended; None while it lives."""
        return None if self._connection is None else self._connection.exit

    @property
    def last_words(self) -> str:
        """The end of what the process itself wrote to its stdout and stderr, on one line."""
        return "" if self._connection is None else self._connection.last_words

    def idle_events(self) -> AsyncIterator[Aside]:
        """What the kernel says beside the cell that runs, across restarts; for one reader.

        At most 1,000 events, or 4 MiB, wait to be read; a `Missed` tells of those that did not.
        """
        return self._asides.events()

    async def start(self) -> None:
        """Start the kernel, and return when it is ready for a cell.

        Raises:
            KernelMissing: there is no such kernel.
            KernelStartFailed: it ended, or was not ready in time; nothing of it is left.
            UnsafeDirectory: there is no trustworthy place for its sockets.
        """
        if self.is_alive:
            return
        await self._stop(now=True)
        spec = self._resolve()
        connection = await self._connect(spec)
        self._surroundings = Surroundings(self.launch)
        self._info = _describe(connection)
        if self._info.implementation == "ipython" and connection.conversation is not None:
            request = _request(apart(PREPARATION), silent=True)
            connection.conversation.prepare(request)

    async def _connect(self, spec: KernelSpec) -> Connection:
        failure: KernelStartFailed | None = None
        for transport in carriers(spec):
            connection = self._connection = Connection(spec, self.launch, self._asides)
            self._release = weakref.finalize(self, Connection.close, connection)
            try:
                await self._open(connection, transport)
            except BaseException as error:
                has_ended_itself = connection.exit is not None and not connection.was_stopped
                await self._stop(now=True)
                if not isinstance(error, KernelStartFailed) or not has_ended_itself:
                    raise
                failure = failure or error
            else:
                return connection
        raise failure or KernelStartFailed(spec.name, "there is no way to talk to it")

    def _resolve(self) -> KernelSpec:
        name = self.launch.kernel_name or self.launch.python or "python3"
        try:
            require_descriptors()
            spec = resolve(self.launch)
        except CellwrightError:
            raise
        except OSError as error:
            raise KernelStartFailed(name, error.strerror or str(error)) from error
        _require_local(spec)
        return spec

    async def _open(self, connection: Connection, transport: Carrier) -> None:
        import zmq

        name = connection.spec.name
        try:
            await connection.open(transport, self._start_timeout)
        except zmq.ZMQError as error:
            cause = OSError(error.errno, error.strerror)
            raise KernelStartFailed(name, str(error.strerror)) from cause
        except CellwrightError:  # some are an OSError too, and say more
            raise
        except OSError as error:
            missing = connection.spec.command[0] if isinstance(error, FileNotFoundError) else None
            reason = f"{error.strerror or error}" + (f" ({missing})" if missing else "")
            raise KernelStartFailed(name, reason) from error

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run one cell. Leaving the iterator early does not stop the cell; interrupt does.

        Raises:
            KernelCannot: `code` has variables or a folder to set, and this is no Python kernel.
        """
        connection, conversation = self._connection, self._conversation
        if connection is None or conversation is None:
            yield Finished("died", exit=self.exit)
            return
        if connection.process is not None:
            connection.process.memory.note()
        is_python = self.info.language == "python"
        change = self._surroundings.change_for(code)
        if change is not None:
            if not is_python:
                raise KernelCannot(
                    self.info.name,
                    "change its folder or variables for one cell",
                    hint="Set them when the kernel is started",
                )
            run = await conversation.run_silently(_request(change, silent=True))
            if run.reply is None or run.reply.get("status") != "ok":
                if run.reply is not None:
                    yield messages.raised(run.reply)
                yield run.finished(connection.exit, is_python=True)
                return
            self._surroundings.remember(code)
        request = _request(
            code.source,
            silent=code.silent,
            store_history=code.store_history,
            allow_stdin=code.allow_stdin,
        )
        run = conversation.begin(
            request, cell_id=code.cell_id, silent=code.silent, metadata=code.metadata
        )
        try:
            if code.silent:
                yield Started()
            while (message := await conversation.next(run)) is not None:
                for event in translate.events(message):
                    yield event
            for page in messages.pages(run.reply or {}):
                yield page
            if run.has_missed_idle:
                yield Missed("the kernel's word that the cell is done, and maybe output before it")
            yield run.finished(connection.exit, is_python=is_python)
        finally:
            conversation.leave(run)

    @property
    def _conversation(self) -> Conversation | None:
        """Whom to talk to; None if nobody would answer."""
        return self._connection.conversation if self._connection and self.is_alive else None

    async def ping(self, within: float) -> bool:
        """Ask an idle kernel whether it answers in so many seconds; a busy one is not asked."""
        conversation = self._conversation
        if conversation is None:
            return False
        return True if conversation.runs_a_cell else await conversation.probe(within)

    async def answer_input(self, text: str) -> None:
        """Answer the `InputRequested` that was yielded last."""
        if self._conversation is not None:
            self._conversation.answer_input(text)

    async def send_comm(self, message: CommMessage) -> None:
        """Send a message on a comm to the kernel."""
        if self._conversation is not None:
            kind, content = messages.comm_content(message)
            self._conversation.send(
                message.channel, kind, content, metadata=message.metadata, buffers=message.buffers
            )

    async def interrupt(self) -> None:
        """Ask the kernel to stop the running cell; does nothing when none runs.

        A cell that was sent but has not begun is interrupted soon after it does.
        """
        if self._conversation is not None:
            self._conversation.interrupt()

    async def restart(self) -> None:
        """End the kernel and start it anew, with the same launch; its state is lost."""
        await self._stop(now=True)
        self._connection = None
        await self.start()

    async def shutdown(self, *, now: bool = False) -> None:
        """End the kernel and everything it started; `now` without asking it first."""
        await self._stop(now=now)

    async def _stop(self, *, now: bool) -> None:
        if self._connection is not None:
            await self._connection.stop(now=now)
        if self._release is not None:
            self._release.detach()
            self._release = None


def _request(
    source: str, *, silent: bool, store_history: bool = False, allow_stdin: bool = False
) -> dict[str, Any]:
    return {
        "code": source,
        "silent": silent,
        "store_history": store_history and not silent,
        "user_expressions": {},
        "allow_stdin": allow_stdin,
        # Cells are sent one by one; with this on, one sent right after a failure may be dropped.
        "stop_on_error": False,
    }


def _describe(connection: Connection) -> KernelInfo:
    conversation = connection.conversation
    content: Mapping[str, Any] = (conversation and conversation.kernel_info) or {}
    language: Mapping[str, Any] = content.get("language_info") or {}
    return KernelInfo(
        name=connection.spec.name,
        transport="local",
        language=str(language.get("name") or connection.spec.language).lower(),
        language_version=str(language.get("version", "")),
        implementation=str(content.get("implementation", "")),
        protocol_version=str(content.get("protocol_version", "")),
        pid=None if connection.process is None else connection.process.pid,
        details=content,
    )


def _require_local(spec: KernelSpec) -> None:
    provisioner = (spec.metadata.get("kernel_provisioner") or {}).get("provisioner_name")
    if provisioner not in {None, "local-provisioner"}:
        raise KernelCannot(
            spec.name,
            f"be started here: it wants the provisioner `{provisioner}`",
            hint="Start it with a Jupyter server, and connect to that",
        )
