"""Talk to the engine from code that blocks; light enough for a command that ends at once."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time

from cellwright.engine import wire
from cellwright.engine.launch import greet_engine
from cellwright.errors import EngineError, EngineLost, EngineUnavailable
from cellwright.workspace.api.requests import WarningsRequest
from cellwright.workspace.caller import Caller
from cellwright.workspace.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from cellwright.workspace.api.requests import Ask, Mode, PathLike, Request

    A = TypeVar("A")

_LOOK_EVERY = 0.2
SILENCE = 1.0
"""Seconds without a word after which the engine is asked whether it is there."""
PATIENCE = 5.0
"""Seconds in which it has to answer that, or any call that does no work."""
LONG_PATIENCE = 20.0
"""The same while cells run, which lose more by a wrong guess."""
MUTE = "does not answer"
_NO_WORK = frozenset({"hello", "status", "stop"})


def connect(
    root: PathLike | None = None,
    *,
    cwd: str | None = None,
    mode: Mode = "agent",
    actor: str = "python:caller",
    environ: Mapping[str, str] | None = None,
    start: bool = True,
) -> Workspace | None:
    """Return a workspace whose kernels live in the engine, and outlive this process.

    An engine is started if none runs and `start` is true; without it the answer may be None. The
    rest is as for `Workspace`.

    Raises:
        EngineUnavailable: it could not be started.
        EngineDraining: the one that runs takes no new work.
    """
    options: dict[str, Any] = {"cwd": cwd, "mode": mode, "actor": actor, "environ": environ}
    api = EngineApi(Caller(root, **options), start=start)
    return Workspace(root, **options, api=api) if api.is_connected else None


@contextlib.contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


class EngineConnection:
    """One connection; calls are made one after the other."""

    def __init__(self, connected: socket.socket, hello: Callable[[], Any] | None = None) -> None:
        self._socket = connected
        self._wire = wire.ClientWire()
        self._heard: Iterator[Any] = iter(())
        self._sending = threading.Lock()
        self._heard_at = 0.0
        self._asked_at: float | None = None
        self.is_broken = False
        try:
            if hello is not None:
                self.call("hello", hello())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up; runs that were started continue."""
        self.is_broken = True
        with contextlib.suppress(OSError):
            self._socket.close()

    @property
    def is_usable(self) -> bool:
        """Whether the other end is there, as far as can be seen before a call."""
        if self.is_broken:
            return False
        try:
            self._socket.settimeout(0)
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True  # it has nothing to say, as it should
        except OSError:
            return False

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Call the engine itself: `hello`, `status` or `stop`.

        Raises:
            EngineUnavailable: it does not answer, as if it were stopped or overrun.
        """
        number, line = self._wire.write_call(method, params)
        return self._converse(method, number, line)

    def perform(self, request: Request[A]) -> A:
        """Call a verb and wait for its answer.

        Ctrl-C stops the run that the call has started, whose answer then says so; a second one
        waits for nothing.

        Raises:
            EngineLost: the engine went away; what it did is not known.
            CellwrightError: as the verb itself does.
        """
        number, line = self._wire.write_request(request)
        return request.decode_answer(self._converse(request.VERB, number, line, request))

    def _converse(
        self, verb: str, number: int, line: bytes, request: Request[Any] | None = None
    ) -> Any:
        progress, ask = getattr(request, "progress", None), getattr(request, "ask", None)
        until = getattr(request, "until", None)
        is_sent = is_stopped = False
        self._heard_at = time.monotonic()
        # A call of the engine itself does no work, so its answer is the sign of life.
        self._asked_at = self._heard_at if verb in _NO_WORK else None
        patience = LONG_PATIENCE if request is not None and request.runs_cells else PATIENCE
        while True:
            try:
                if not is_sent:
                    with _hold_interrupts():  # else a call could begin that no one stops
                        self._send(verb, line)
                        is_sent = True
                message = self._receive(verb, patience, None if is_stopped else until)
                if message is None:
                    is_stopped = True
                    self._send(verb, self._wire.write_stop(number))
                elif isinstance(message, wire.Question):
                    self._ask(verb, message, ask)
                elif isinstance(message, wire.EventMessage):
                    if message.call == number and progress is not None:
                        progress(message.facts)
                elif message.call == number:
                    if message.error is not None:
                        raise message.error
                    return message.result
            except KeyboardInterrupt:
                if is_stopped or self.is_broken or not is_sent:
                    raise
                self._send(verb, self._wire.write_stop(number))
                is_stopped = True
                if request is None or not request.runs_cells:
                    self.close()  # the answer will not be read
                    raise

    def _ask(self, verb: str, question: wire.Question, ask: Ask | None) -> None:
        """Ask the user in a thread, since the call may end before they answer."""

        def wait() -> None:
            import asyncio

            from cellwright.kernel.events import InputRequested

            text: str | None = None
            if ask is not None:

                async def ask_user() -> str | None:
                    request = InputRequested(question.prompt, password=question.password)
                    return await ask(request)

                text = asyncio.run(ask_user())
            with contextlib.suppress(EngineLost):
                self._send(verb, self._wire.write_input(question.id, text))

        threading.Thread(target=wait, daemon=True).start()

    def _send(self, verb: str, line: bytes) -> None:
        with self._sending:
            try:
                self._socket.settimeout(LONG_PATIENCE)
                self._socket.sendall(line)
            except OSError as error:
                self.close()
                how = MUTE if isinstance(error, TimeoutError) else "went away"
                raise EngineLost(verb, how) from None
            except BaseException:
                self.close()  # half a message cannot be taken back
                raise

    def _receive(self, verb: str, patience: float, until: Callable[[], bool] | None = None) -> Any:
        """Return the next message; None if `until` says that it is enough."""
        # What was read stays in the wire when Ctrl-C comes, unlike inside a file object.
        while (message := next(self._heard, None)) is None:
            try:
                self._socket.settimeout(SILENCE if until is None else _LOOK_EVERY)
                chunk = self._socket.recv(2**16)  # more would be mapped anew for every message
            except TimeoutError:
                if until is not None and until():
                    return None
                self._check_pulse(verb, patience)
                continue
            except OSError:
                chunk = b""
            if not chunk:
                self.close()
                raise EngineLost(verb)
            self._heard = self._wire.read(chunk)
            self._heard_at, self._asked_at = time.monotonic(), None
        return message

    def _check_pulse(self, verb: str, patience: float) -> None:
        """Ask an engine that is silent for a sign of life; raises if it gives none in time."""
        now = time.monotonic()
        if self._asked_at is None:
            if now - self._heard_at >= SILENCE:
                self._asked_at = now
                self._send(verb, self._wire.write_call("status", {})[1])
        elif now - self._asked_at >= patience:
            self.close()
            if verb in _NO_WORK:
                raise EngineUnavailable(f"it did not answer within {patience:g} s")
            raise EngineLost(verb, MUTE)


def can_ask_again(request: Request[Any], error: EngineError) -> bool:
    """Whether another engine can be asked instead: it was a read of files, and ours is gone."""
    is_gone = isinstance(error, EngineLost) and error.how != MUTE
    return is_gone and request.effect == "read" and not request.waits


class EngineApi:
    """Carries requests out in the engine, for callers that block.

    Threads may share it: calls at the same time use connections of their own. When the engine
    has gone away, the next call finds or starts another.
    """

    def __init__(self, caller: Caller, *, start: bool = True) -> None:
        self._caller = caller
        self._starts = start
        self._guard = threading.Lock()
        self._is_closed = False
        first = self._connect()
        self._idle = [first] if first is not None else []

    @property
    def is_connected(self) -> bool:
        """Whether there is an engine to talk to, as far as is known."""
        return bool(self._idle)

    def call(self, request: Request[A]) -> A:
        """Carry a request out in the engine."""
        # For warnings no engine is started: a new one would have none.
        connects = not isinstance(request, WarningsRequest)
        try:
            return self._use(lambda engine: engine.perform(request), connects=connects)
        except EngineError as error:
            if not connects:
                return []  # type: ignore[return-value]
            if not can_ask_again(request, error):
                raise
            return self._use(lambda engine: engine.perform(request))

    def call_engine(self, method: str) -> dict[str, Any]:
        """Ask the engine for its `status`, or tell it to `stop`."""
        found: dict[str, Any] = self._use(lambda engine: engine.call(method, {}))
        return found

    def close(self) -> None:
        """Hang up; kernels and runs stay where they are."""
        with self._guard:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        self._caller.close()

    def _use(self, work: Callable[[EngineConnection], A], *, connects: bool = True) -> A:
        connection = self._take(connects=connects)
        try:
            return work(connection)
        finally:
            self._give_back(connection)

    def _connect(self) -> EngineConnection | None:
        caller = self._caller
        return greet_engine(
            lambda connected: EngineConnection(connected, lambda: wire.make_hello(caller)),
            start=self._starts,
        )

    def _take(self, *, connects: bool) -> EngineConnection:
        with self._guard:
            while self._idle:
                connection = self._idle.pop()
                if connection.is_usable:
                    return connection
                connection.close()
        fresh = self._connect() if connects and not self._is_closed else None
        if fresh is None:
            raise EngineUnavailable("this workspace is closed" if self._is_closed else "none runs")
        return fresh

    def _give_back(self, connection: EngineConnection) -> None:
        with self._guard:
            if self._is_closed or connection.is_broken:
                connection.close()
            else:
                self._idle.append(connection)
