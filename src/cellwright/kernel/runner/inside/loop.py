"""The runner's main loop: one request after the other, until the host ends it or is gone."""

# Why not: see the package's docstring.

from __future__ import annotations

import builtins
import faulthandler
import gc
import os
import sys
from _thread import _count as count_threads

from . import boot
from .cells import CellExecutor, InterruptHandler
from .display import Displays
from .streams import OutputStreams, Stdin
from .wire import RunnerWire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

TOO_MANY = 100  # failures in a row, after which nothing here works any more


def serve(channel: int | None = None, owner: int = 0) -> NoReturn:
    """Set up the process for cells, say hello, and serve; below a keeper, with a channel to the owner."""
    boot.prepare()
    interrupts = InterruptHandler()
    interrupts.disarm()
    wire = RunnerWire(boot.control, boot.frames, interrupts)
    streams = OutputStreams(wire, interrupts, boot.pipes)
    # A crash in C code then prints where; the keeper passes it on.
    faulthandler.enable(2)
    displays = Displays(streams)
    builtins.display = displays.display  # type: ignore[attr-defined]
    stdin = Stdin(streams)
    cells = CellExecutor(streams, displays, interrupts)
    _hook_libraries(cells, stdin)
    _excuse_our_thread()
    sys.argv = [""]
    os.environ.setdefault("MPLBACKEND", "Agg")
    cells.enter(None, {})
    _call_all_old()
    is_kept = channel is not None and boot.continue_below(channel, owner)
    wire.send(
        "hello",
        pid=os.getpid(),
        python=sys.version.split()[0],
        implementation=sys.implementation.name,
        kept=is_kept,
    )
    streams.start(is_kept=is_kept)
    failures = 0
    while failures < TOO_MANY:
        try:
            if _step(wire, cells):
                break
            failures = 0
        except BaseException as error:  # noqa: BLE001 (a handler of the user may raise anywhere)
            if wire.is_cut:
                os._exit(1)
            failures += 1
            interrupts.disarm()
            sys.stderr.write(f"{type(error).__name__} between two cells: {error}\n")
    _leave(streams)


def _step(wire: RunnerWire, cells: CellExecutor) -> bool:
    """Handle one request; true when it was the last."""
    if cells.loop is not None and not wire.has_request():
        cells.loop.run_until_readable(wire.control)
    message = wire.receive()
    if message is None or message.get("type") == "exit":
        return True
    kind, cell = message.get("type"), message.get("id")
    if kind == "ping":
        wire.send("pong", id=cell)
    elif kind == "input":
        pass  # the answer to a question that is not open any more
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


def _hook_libraries(cells: CellExecutor, stdin: Any) -> None:
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

    ImportHooks(
        {
            "linecache": on_linecache,
            "getpass": on_getpass,
            "matplotlib.pyplot": on_pyplot,
            "IPython.core.display_functions": make_ipython_hook(cells.displays),
        }
    )


class ImportHooks:
    """A finder that calls a function with a module when, and only when, a cell has imported it."""

    def __init__(self, hooks: dict[str, Callable[[Any], None]]) -> None:
        self._hooks = hooks
        for name in [name for name in hooks if name in sys.modules]:
            hooks.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find what the other finders find, and have the hook called once it is loaded."""
        if name not in self._hooks:
            return None
        hook = self._hooks.pop(name)
        spec: Any = None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        loader: Any = spec.loader
        if type(loader).__name__ == "SourceFileLoader":  # one a module; others may be shared
            run = loader.exec_module

            def run_and_hook(module: Any) -> None:
                run(module)
                hook(module)

            loader.exec_module = run_and_hook
        return spec


def make_ipython_hook(displays: Any) -> Callable[[Any], None]:
    """Make a hook that lets `IPython.display` show things here, without an IPython shell."""

    def hook(module: Any) -> None:
        def publish(data: Any, metadata: Any = None, **more: Any) -> None:
            transient = more.get("transient") or {}
            displays.display(
                data,
                raw=True,
                metadata=metadata,
                display_id=transient.get("display_id"),
                update=more.get("update", False),
            )

        def update_display(value: Any, *, display_id: str, **more: Any) -> None:
            displays.display(value, display_id=display_id, update=True, **more)

        module.display = displays.display
        module.publish_display_data = publish
        module.update_display = update_display
        module.clear_output = displays.clear

    return hook


class _ForkWarning:
    """Matches Python's warning about a fork in a process with threads, if the thread is ours."""

    @staticmethod
    def match(message: str) -> bool:
        return "fork() may lead to deadlocks" in message and count_threads() <= 1


def _excuse_our_thread() -> None:
    """Let Python warn a cell that forks only of its own threads: ours can handle it."""
    if sys.version_info >= (3, 12):
        import _warnings  # type: ignore[import-not-found]

        with_ours = ("ignore", _ForkWarning, DeprecationWarning, None, 0)
        _warnings.filters.insert(0, with_ours)


def _call_all_old() -> None:
    """Let the garbage collector count from here, and leave what there is where it is."""
    try:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
    except AttributeError:  # another Python than CPython
        pass
    gc.enable()


def _leave(streams: OutputStreams) -> NoReturn:
    """End as an interpreter does, without its slow cleanup."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # noqa: SLF001
        import atexit

        atexit._run_exitfuncs()  # noqa: SLF001
        streams.end()
    finally:
        os._exit(0)
