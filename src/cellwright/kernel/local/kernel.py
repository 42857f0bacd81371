"""`LocalKernel`: a Jupyter kernel of this machine, as a `Transport`."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace

from cellwright.errors import CellwrightError, KernelCannot, KernelStartFailed
from cellwright.kernel import jupyter
from cellwright.kernel.events import Finished, IdleEventQueue, Missed, Started
from cellwright.kernel.local.channels import PIECE
from cellwright.kernel.local.conversation import translate_message
from cellwright.kernel.local.process import (
    KernelProcess,
    choose_carriers,
    require_descriptors,
    resolve_spec,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from cellwright.kernel.discovery import KernelSpec
    from cellwright.kernel.events import CommMessage, IdleEvent, KernelEvent, KernelExit
    from cellwright.kernel.local.conversation import LocalConversation
    from cellwright.kernel.local.process import Carrier, ConnectionFolder
    from cellwright.kernel.transport import Code, KernelInfo, Launch

START_TIMEOUT = 60.0
"""How long a kernel may take until it is ready for a cell."""
LONGEST_TEXT = 3 << 17
"""Characters that a kernel sends in one message of printed text, unless there are very many."""
TURN_SECONDS = 0.0005
"""How long a thread that prints may make the one that sends wait."""

# What an ipykernel runs once, before its first cell, so that floods of output do no harm. By itself
# it drops output when 1,000 messages wait for a slow reader: this turns it off, since we stop it
# when it runs ahead. And it gathers all that a cell prints in a fifth of a second into one message,
# which has to be held whole at our end: it is made to send that in pieces, of which only a few wait
# here. While it does, the thread that sends gets its turns from the one that prints sooner than
# usual: it loses some with every piece, and with the usual 5 ms each most of a flood would only
# leave when the cell has ended. A version of ipykernel without these parts stays as it is.
#
# What C code and child processes print goes through pipes, each read by a thread. By itself
# ipykernel sleeps at the end of every cell, for a sixth of the time that a short one takes, and hopes
# that the thread has read all of it by then; it has not always, and the rest is in no cell. So it
# is made to look into the pipes itself whenever it flushes, as it does before it says that a cell
# is over, and then need not sleep. What a forked child prints comes by another way, over a port of
# this machine, and is waited for as before.
#
# With every text that is written, ipykernel makes a set of the request that it belongs to, to look
# for its buffer: a quarter of what a short line costs. It is made once for a request.
#
# It flushes both streams several times in every cell, and waits each time for the thread that sends:
# a sixth of what a short cell costs. Where nothing waits to be sent, it need not. It also makes
# records for its log that no handler takes, and looks up in every cell what its own methods accept.
#
# When it is asked to end, its main thread takes down what the thread that was asked still needs for
# its last words; it then waits for seconds, or aborts, and nothing of the user's that should run at
# the end does. So its main thread is told of the end only after those words.
_PREPARATION = f"""
def prepare(longest, turn):
    from IPython import get_ipython
    thread = get_ipython().kernel.iopub_thread
    thread.schedule(lambda: thread.socket.set_hwm(0))

    from sys import getswitchinterval, setswitchinterval
    from ipykernel.iostream import OutStream
    take = OutStream._flush_buffers

    def take_in_pieces(self):
        for parent, text in take(self):
            # It waits for itself for ever if it is to send a thousand messages at once.
            size = max(longest, len(text) // 400 + 1)
            if len(text) <= size:
                yield parent, text
                continue
            before = getswitchinterval()
            setswitchinterval(min(before, turn))
            ours = getswitchinterval()
            try:
                for start in range(0, len(text), size):
                    yield parent, text[start : start + size]
            finally:
                if getswitchinterval() == ours:
                    setswitchinterval(before)

    OutStream._flush_buffers = take_in_pieces

def keep_parent():
    import sys
    from ipykernel.iostream import OutStream
    sys.stdout._buffers  # one for each request; a version without them has no such work
    set_parent = OutStream.set_parent

    class Parent(dict):
        def items(self):
            return self.frozen

    def set_and_keep(self, parent):
        set_parent(self, parent)
        kept = Parent(self.parent_header)
        kept.frozen = frozenset(dict.items(kept))
        self.parent_header = kept

    OutStream.set_parent = set_and_keep

def end_in_order():
    from IPython import get_ipython
    kernel = get_ipython().kernel
    handlers = kernel.control_handlers
    shutdown = handlers["shutdown_request"]
    main = kernel.io_loop
    tell, tell_later = main.add_callback, kernel.control_stream.io_loop.add_callback

    async def shutdown_in_order(*arguments):
        main.add_callback = lambda *call: tell_later(tell, *call)
        main.call_later = lambda *call: None  # its shell would stop it in a moment
        await shutdown(*arguments)

    handlers["shutdown_request"] = shutdown_in_order

def log_what_is_taken():
    from IPython import get_ipython
    log = get_ipython().kernel.log
    if not log.propagate:
        log.setLevel(max(log.level, min(handler.level for handler in log.handlers)))

def look_up_once():
    from ipykernel import ipkernel
    look_up, known = ipkernel._accepts_parameters, {{}}

    def find(method, names):
        key = (getattr(method, "__func__", method), *names)
        if key not in known:
            known[key] = look_up(method, names)
        return known[key]

    ipkernel._accepts_parameters = find

def read_pipes():
    import os, sys
    from IPython import get_ipython
    kernel = get_ipython().kernel
    sleep = kernel._execute_sleep
    for stream in (sys.stdout, sys.stderr):
        if stream._fid is not None:
            read_pipe(stream, stream._fid, stream._original_stdstream_copy)
    kernel._execute_sleep = 0
    os.register_at_fork(after_in_parent=lambda: setattr(kernel, "_execute_sleep", sleep))

def read_pipe(stream, pipe, copy):
    import os
    from _thread import RLock, start_new_thread
    from codecs import getincrementaldecoder
    from select import POLLIN, poll
    lock = RLock()  # a handler that flushes may come in while its own thread holds it
    flush, has_come, comes = stream.flush, poll(), poll()
    has_come.register(pipe, POLLIN)
    comes.register(pipe, POLLIN)
    decode = getincrementaldecoder("utf-8")("replace").decode
    stream._is_master_process()

    def take():
        with lock:
            if has_come.poll(0):
                data = os.read(pipe, 1 << 20)  # all that is there: no pipe holds more
                stream.write(decode(data))
                os.write(copy, data)

    def serve():
        while comes.poll() and stream._should_watch:
            take()

    def take_and_flush():
        if stream._is_master_process():
            take()
        flush()

    stream._should_watch = False
    os.write(stream._original_stdstream_fd, b"\\0")
    stream.watch_fd_thread.join()
    stream._should_watch = True
    start_new_thread(serve, ())
    stream.flush = take_and_flush

def flush_what_waits():
    import sys
    for stream in sys.stdout, sys.stderr:
        flush_if_needed(stream)

def flush_if_needed(stream):
    flush, send = stream.flush, stream._flush
    waiting, sending = stream.pub_thread._events, []
    stream._flush_pending  # whether something was written; a version without it stays as it is

    def send_and_note():
        sending.append(1)  # first of all: soon nothing is pending, and not yet sent
        try:
            send()
        finally:
            sending.pop()

    def flush_unless_done():
        if stream._flush_pending or sending or waiting or stream.echo is not None:
            flush()

    stream._flush, stream.flush = send_and_note, flush_unless_done

prepare_pieces = lambda: prepare({LONGEST_TEXT}, {TURN_SECONDS})
parts = keep_parent, end_in_order, flush_what_waits, read_pipes, log_what_is_taken, look_up_once
for work in prepare_pieces, *parts:
    try:
        work()
    except Exception:
        pass
"""


# What an ipykernel runs once, when it is started ahead of need. It loads what IPython loads only with
# the first cell and the first value, and collects the garbage of its start. And its next request may
# bring along the folder and the variables, which saves a request of their own. Where that is not
# possible, they have one.
_CONTEXT = "cellwright_context"
_WARM_UP = f"""
def warm_up():
    from IPython import get_ipython
    shell = get_ipython()
    shell.logger, shell.display_formatter.format(1)
    handlers = shell.kernel.shell_handlers
    execute = handlers["execute_request"]
    context = ""

    def execute_elsewhere(stream, ident, parent):
        nonlocal context
        context = parent["metadata"].pop("{_CONTEXT}", context)
        try:
            exec(context, {{}})
            handlers["execute_request"] = execute
        except BaseException:
            parent["content"]["code"] = context  # it fails, and the cell does not run elsewhere
        return execute(stream, ident, parent)

    execute_elsewhere.{_CONTEXT} = True
    handlers["execute_request"] = execute_elsewhere

try:
    warm_up()
except Exception:
    pass
from gc import collect
collect()
"""
_TAKES_CONTEXT = f"hasattr(get_ipython().kernel.shell_handlers['execute_request'], '{_CONTEXT}')"


class LocalKernel:
    """A kernel that runs here, under a keeper: it and everything it starts end with this process.

    Any installed kernelspec works; one that ends at once over private sockets is tried again over
    ports of this machine, as Jupyter would.
    What the kernel says between cells, or for an earlier cell, is not part of a cell's events;
    `idle_events` has it.
    `Code.env` and `Code.cwd` work in Python kernels: what differs from what was set last is
    changed by a silent request before the cell, and stays. Other kernels refuse them.
    """

    def __init__(self, launch: Launch, *, start_timeout: float = START_TIMEOUT) -> None:
        self.launch = launch
        self._start_timeout = start_timeout
        self._idle_events = IdleEventQueue()
        self._process: KernelProcess | None = None
        self._place: ConnectionFolder | None = None  # where other clients know it to be
        self._release: weakref.finalize[[KernelProcess], LocalKernel] | None = None
        self._info: KernelInfo | None = None
        self._context = jupyter.KernelContext(launch.cwd, launch.env)
        self._takes_context = False
        self._along: Mapping[str, str] = {}  # what the next request brings along

    @property
    def info(self) -> KernelInfo:
        """What the kernel is; valid once `start` has returned."""
        if self._info is None:
            raise RuntimeError("the kernel was not started")
        return self._info

    @property
    def is_alive(self) -> bool:
        """Whether the kernel can still answer, as far as is known without asking it."""
        process = self._process
        return process is not None and process.exit is None and not process.has_ended

    @property
    def process(self) -> str | None:
        """What the kernel process calls itself in its messages; other clients hear it too."""
        conversation = self._process.conversation if self._process is not None else None
        return conversation.process if conversation is not None else None

    @property
    def is_lent(self) -> bool:
        """Whether other clients may use it too."""
        return self._place is not None

    @property
    def is_shared(self) -> bool:
        """Whether cells of other clients may run in it."""
        return self.is_lent

    def lend(self) -> str | None:
        """Return the file by which other clients of this machine connect; None if it is not alive.

        From then on it is restarted in its place, so that they are connected to it again.
        """
        if self._process is not None and self.is_alive:
            self._place = self._process.place
            if self._conversation is not None and self._along:  # before a request of others
                request = jupyter.build_execute_request("")
                self._conversation.send("shell", "execute_request", request, metadata=self._along)
                self._along = {}
        return None if self._place is None else self._place.connection_file

    @property
    def exit(self) -> KernelExit | None:
        """How the kernel ended; None while it lives."""
        return None if self._process is None else self._process.exit

    def idle_events(self) -> AsyncIterator[IdleEvent]:
        """Yield what the kernel says outside the running cell; for one reader.

        At most 1,000 events, or 4 MiB, wait to be read; a `Missed` replaces those that were dropped.
        """
        return self._idle_events.events()

    async def start(self) -> None:
        """Start the kernel, and return when it is ready for a cell.

        Raises:
            KernelMissing: there is no such kernel.
            KernelStartFailed: it ended, or was not ready in time; nothing of it is left.
            UnsafeDirectory: there is no trustworthy folder for its sockets.
        """
        if self.is_alive:
            return
        await self.shutdown(now=True)
        spec = self._resolve()
        process = await self._start_process(spec)
        self._context = jupyter.KernelContext(self.launch.cwd, self.launch.env)
        self._info = _describe(process)
        self._takes_context, self._along = False, {}
        if self._info.implementation == "ipython" and process.conversation is not None:
            preparation = jupyter.isolate_code(_PREPARATION)
            process.conversation.prepare(jupyter.build_execute_request(preparation))

    async def _start_process(self, spec: KernelSpec) -> KernelProcess:
        failure: KernelStartFailed | None = None
        carriers = choose_carriers(spec) if self._place is None else (self._place.transport,)
        for transport in carriers:
            process = self._process = KernelProcess(spec, self.launch, self._idle_events)
            self._release = weakref.finalize(self, KernelProcess.close, process)
            try:
                await self._open(process, transport)
            except BaseException as error:
                has_ended_itself = process.exit is not None and not process.was_stopped
                await self.shutdown(now=True)
                if not isinstance(error, KernelStartFailed) or not has_ended_itself:
                    raise
                failure = failure or error
            else:
                return process
        raise failure or KernelStartFailed(spec.name, "there is no way to connect to it")

    def _resolve(self) -> KernelSpec:
        name = self.launch.kernel_name or self.launch.python or "python3"
        try:
            require_descriptors()
            spec = resolve_spec(self.launch)
        except CellwrightError:
            raise
        except OSError as error:
            raise KernelStartFailed(name, error.strerror or str(error)) from error
        _require_local(spec)
        return spec

    async def _open(self, process: KernelProcess, transport: Carrier) -> None:
        import zmq

        name = process.spec.name
        try:
            await process.open(transport, self._start_timeout, self._place)
        except zmq.ZMQError as error:
            cause = OSError(error.errno, error.strerror)
            raise KernelStartFailed(name, str(error.strerror)) from cause
        except CellwrightError:  # some are an OSError too, and say more
            raise
        except OSError as error:
            missing = process.spec.command[0] if isinstance(error, FileNotFoundError) else None
            reason = f"{error.strerror or error}" + (f" ({missing})" if missing else "")
            raise KernelStartFailed(name, reason) from error

    async def warm_up(self) -> None:
        """Have the kernel ready for a quick first cell, wherever and for whomever it will run."""
        if self._conversation is not None and self.info.language == "python":
            request = jupyter.build_execute_request(jupyter.isolate_code(_WARM_UP))
            request["user_expressions"] = {_CONTEXT: _TAKES_CONTEXT}
            cell = await self._conversation.run_silently(request)
            self._takes_context = jupyter.read_expression(cell.reply or {}, _CONTEXT) == "True"

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        """Run one cell. Leaving the iterator early does not stop the cell; interrupt does.

        Raises:
            KernelCannot: `code` has variables or a folder to set, and this is not a Python kernel.
        """
        process, conversation = self._process, self._conversation
        if process is None or conversation is None:
            yield Finished("died", exit=self.exit)
            return
        is_python = self.info.language == "python"
        cwd, env = self._context.find_changes(code.cwd, code.env)
        is_move = code.silent and not code.source
        if is_move:
            self.launch = _move(self.launch, code)  # where it is also started again
        # A process that is stopped is found out now, and not when it is too late to take another.
        if is_move and self._takes_context and await conversation.probe(None, by_heartbeat=True):
            self._takes_context = False
            self._along = {_CONTEXT: jupyter.write_context_code(cwd, env)}
            self._context.remember(cwd, env)
            yield Started()
            yield Finished("ok")
            return
        along, self._along = self._along, {}
        if cwd is not None or env:
            if not is_python:
                raise KernelCannot(
                    self.info.name,
                    "change its folder or variables for one cell",
                    hint="Set them when the kernel is started",
                )
            change = jupyter.write_context_code(cwd, env)
            request = jupyter.build_execute_request(change)
            cell = await conversation.run_silently(request, metadata=along)
            along = {}
            if cell.reply is None or cell.reply.get("status") != "ok":
                if cell.reply is not None:
                    yield jupyter.make_raised(cell.reply)
                yield cell.make_finished(process.exit, is_python=True)
                return
            self._context.remember(cwd, env)
            if is_move:
                yield Started()
                yield cell.make_finished(process.exit, is_python=True)
                return
        request = jupyter.build_execute_request(
            code.source,
            silent=code.silent,
            store_history=code.store_history,
            allow_stdin=code.allow_stdin,
        )
        cell = conversation.begin(
            request,
            cell_id=code.cell_id,
            silent=code.silent,
            metadata={**code.metadata, **along},
        )
        if process.kept is not None:
            process.kept.memory.note()  # no cell is killed for memory within a moment
        try:
            if code.silent:
                yield Started()
            while (message := await conversation.next(cell)) is not None:
                for event in translate_message(message, code.most_bytes):
                    yield event
                    if message.size > PIECE:
                        await asyncio.sleep(0)  # others must not wait for the end of a large one
            for page in jupyter.make_pages(cell.reply or {}):
                yield page
            if cell.has_missed_idle:
                yield Missed("the kernel's word that the cell is done, and maybe output before it")
            yield cell.make_finished(process.exit, is_python=is_python)
        finally:
            conversation.leave(cell)

    @property
    def _conversation(self) -> LocalConversation | None:
        """The conversation with the kernel; None if it is not alive."""
        return self._process.conversation if self._process and self.is_alive else None

    async def ping(self, within: float) -> bool:
        """Ask an idle kernel whether it answers in so many seconds; a busy one is not asked."""
        conversation = self._conversation
        if conversation is None:
            return False
        return True if conversation.is_running_cell else await conversation.probe(within)

    async def answer_input(self, text: str | None) -> None:
        """Answer the `InputRequested` that was yielded last; None makes the cell fail there."""
        if text is None:  # Jupyter has no other way to refuse what was allowed at first
            await self.interrupt()
        elif self._conversation is not None:
            self._conversation.answer_input(text)

    async def send_comm(self, message: CommMessage) -> None:
        """Send a message on a comm to the kernel."""
        if self._conversation is not None:
            kind, content = jupyter.build_comm_content(message)
            self._conversation.send(
                message.channel, kind, content, metadata=message.metadata, buffers=message.buffers
            )

    async def interrupt(self) -> None:
        """Ask the kernel to stop the running cell; does nothing when none runs.

        A cell that was sent but has not begun is interrupted soon after it does.
        """
        if self._conversation is not None:
            self._conversation.interrupt()

    async def restart(self) -> bool:
        """Start one that others use too again, dead or alive; leave another to the session."""
        if not self.is_lent:
            return False
        await self.shutdown(now=not self.is_alive)
        await self.start()
        return True

    async def shutdown(self, *, now: bool = False) -> None:
        """End the kernel and everything it started; `now` without asking it first."""
        if self._process is not None:
            await self._process.stop(now=now)
        if self._release is not None:
            self._release.detach()
            self._release = None


def _move(launch: Launch, code: Code) -> Launch:
    """Return how a kernel would have been started that is now moved there."""
    env = {name: value for name, value in {**launch.env, **code.env}.items() if value is not None}
    return replace(launch, cwd=code.cwd or launch.cwd, env=env)


def _describe(process: KernelProcess) -> KernelInfo:
    conversation = process.conversation
    content = (conversation and conversation.kernel_info) or {}
    return jupyter.read_info(
        content,
        name=process.spec.name,
        transport="local",
        language=process.spec.language,
        pid=None if process.kept is None else process.kept.pid,
        details=content,
        display_name=process.spec.display_name,
    )


def _require_local(spec: KernelSpec) -> None:
    provisioner = (spec.metadata.get("kernel_provisioner") or {}).get("provisioner_name")
    if provisioner not in {None, "local-provisioner"}:
        raise KernelCannot(
            spec.name,
            f"be started here: it wants the provisioner `{provisioner}`",
            hint="Start it with a Jupyter server, and connect to that",
        )
