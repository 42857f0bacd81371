"""The runner's main loop: one request after the other, until the host says or is gone."""

# Why not: see the package's docstring.

from __future__ import annotations

import builtins
import faulthandler
import os
import sys
from _thread import _count as count_threads

from .cells import Cells
from .display import Displays
from .interrupts import Interrupts
from .stdin import Stdin
from .streams import Streams
from .wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

TOO_MANY = 100  # failures in a row, after which nothing here works any more


def serve(boot: Any) -> NoReturn:
    """Set up the process for cells, say hello, and serve."""
    interrupts = Interrupts()
    interrupts.disarm()
    wire = Wire(boot.control, boot.frames, interrupts)
    streams = Streams(wire, interrupts, boot.pipes, is_kept=boot.is_kept)
    # A crash in C code then says where; the keeper passes it on.
    faulthandler.enable(2)
    displays = Displays(streams)
    builtins.display = displays.display  # type: ignore[attr-defined]
    stdin = Stdin(streams)
    cells = Cells(streams, displays, interrupts)
    _hook_libraries(cells, stdin)
    _excuse_our_thread()
    sys.argv = [""]
    os.environ.setdefault("MPLBACKEND", "Agg")
    cells.enter(None, {})
    wire.send(
        "hello",
        pid=os.getpid(),
        python=sys.version.split()[0],
        implementation=sys.implementation.name,
        kept=boot.is_kept,
    )
    streams.start()
    failures = 0
    while failures < TOO_MANY:
        try:
            if _step(wire, cells):
                break
            failures = 0
        except BaseException as error:  # noqa: BLE001 (a handler of the user's may raise anywhere)
            if wire.is_cut:
                os._exit(1)
            failures += 1
            interrupts.disarm()
            sys.stderr.write(f"{type(error).__name__} between two cells: {error}\n")
    _leave(streams)


def _step(wire: Wire, cells: Cells) -> bool:
    """Take one request; True when it was the last."""
    if cells.loop is not None and not wire.has_request():
        cells.loop.run_until_readable(wire.control)
    message = wire.receive()
    if message is None or message.get("type") == "exit":
        return True
    kind, cell = message.get("type"), message.get("id")
    if kind == "ping":
        wire.send("pong", id=cell)
    elif kind == "input":
        pass  # the answer to a question that nobody asks any more
    elif not isinstance(cell, str) or not cell:
        said = "a request needs an `id`"
        wire.send("error", id="", ename="ProtocolError", evalue=said, traceback=[])
    elif not isinstance(message.get("code"), str):
        said = "a request needs `code`"
        wire.send("error", id=cell, ename="ProtocolError", evalue=said, traceback=[])
        wire.send("done", id=cell, status="error", executionCount=cells.count, cancelled=False)
    else:
        cells.run(message)
    return False


def _hook_libraries(cells: Cells, stdin: Any) -> None:
    from .hooks import Hooks, ipython_hook

    def on_linecache(module: Any) -> None:
        from .errors import show_sources

        show_sources(module, cells.sources)

    def on_getpass(module: Any) -> None:
        module.getpass = stdin.getpass

    def on_pyplot(module: Any) -> None:
        show = module.show

        def show_here(*arguments: Any, **options: Any) -> Any:
            if module.get_backend().lower() == "agg":
                return cells.displays.figures()
            return show(*arguments, **options)

        module.show = show_here

    Hooks(
        {
            "linecache": on_linecache,
            "getpass": on_getpass,
            "matplotlib.pyplot": on_pyplot,
            "IPython.core.display_functions": ipython_hook(cells.displays),
        }
    )


class _ForkWarning:
    """Matches Python's warning about a fork in a process with threads, if the thread is ours."""

    @staticmethod
    def match(message: str) -> bool:
        return "fork() may lead to deadlocks" in message and count_threads() <= 1


def _excuse_our_thread() -> None:
    """A cell that forks is told of its own threads only: ours is ready for it."""
    if sys.version_info >= (3, 12):
        import _warnings  # type: ignore[import-not-found]

        with_ours = ("ignore", _ForkWarning, DeprecationWarning, None, 0)
        _warnings.filters.insert(0, with_ours)


def _leave(streams: Streams) -> NoReturn:
    """End as an interpreter does, but for taking it apart piece by piece."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # noqa: SLF001
        import atexit

        atexit._run_exitfuncs()  # noqa: SLF001
        streams.end()
    finally:
        os._exit(0)
