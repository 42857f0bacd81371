"""Run one cell: compile it, execute it, show its last value, stop it, report how it ended."""

# Why not: see the package's docstring.

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import builtins
import os
import sys
from _thread import get_ident

from .display import make_bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .display import Displays
    from .streams import OutputStreams

AWAITS = 0x80  # CO_COROUTINE, the flag of code with an await at its top level
TOP_LEVEL_AWAIT = 0x2000  # flags for `compile`, by number because `ast` takes long to load
ONLY_AST = 0x400
UTF8 = 0x100 | 0x800  # the source is UTF-8, whatever its first lines say
EXPRESSION = 258  # `Py_eval_input`
SHORT = 1000
CANCEL_SECONDS = 2.0  # what an interrupted cell may take to clean up
HISTORY = ("_", "__", "___")


class CellExecutor:
    """Runs cells in one namespace."""

    def __init__(
        self, streams: OutputStreams, displays: Displays, interrupts: InterruptHandler
    ) -> None:
        self.displays = displays
        self.streams = streams
        self.sources: dict[str, str] = {}
        self.count = 0
        self.loop: Any = None
        self._interrupts = interrupts
        self._folder = ""
        self._own_main = sys.modules["__main__"]
        # A module of its own, so that pickle and multiprocessing find what cells define.
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        self.names = main.__dict__
        self.names.update(__builtins__=builtins, __doc__=None, __spec__=None)
        self.forget()

    def forget(self) -> None:
        """Begin the history anew."""
        self.names.update(In=[""], Out={}, **dict.fromkeys(HISTORY, ""))

    def run(self, request: dict[str, Any]) -> None:
        """Run the request's code; ends with one `done` frame, whatever happens."""
        wire, cell = self.streams.wire, request["id"]
        problem: BaseException | None = None
        stores = bool(request.get("storeHistory", True)) and not request.get("silent")
        if stores:
            self._count(request["code"])
        try:
            try:
                self._interrupts.arm()
                wire.send("started", id=cell, executionCount=self.count if stores else None)
                self.streams.begin(cell)
                self._run(request, stores=stores)
            except BaseException as error:  # noqa: BLE001 (a cell may raise anything)
                problem = error
                self._send_error(error, cell)
            self._interrupts.disarm()
        except BaseException as error:  # noqa: BLE001 (interrupted while it ended)
            # By an assignment, in which no handler runs: the next interrupt could break a call, and
            # then the end of the cell would not be reported.
            self._interrupts.is_armed = False
            self._interrupts.disarm()
            if problem is None:
                self._send_error(error, cell)
            problem = problem or error
        if wire.is_cut:  # a child that a cell forked and that ran on to here
            self._leave_child(problem)
        is_stopped = isinstance(problem, KeyboardInterrupt)
        status = "ok" if problem is None else "error"
        problem = None
        self.streams.end()
        wire.send("done", id=cell, status=status, executionCount=self.count, cancelled=is_stopped)

    def _count(self, source: str) -> None:
        self.count += 1
        inputs = self.names.get("In")
        if type(inputs) is list:
            inputs += [""] * (self.count - len(inputs)) + [source]

    def _run(self, request: dict[str, Any], *, stores: bool) -> None:
        self.enter(request.get("cwd"), request.get("env") or {})
        filename = f"<cell {self.count}>" if stores else "<cell>"
        try:
            value = self.execute(request["code"], filename)
            if value is not None and not request.get("silent"):
                self._show(value, stores=stores)
        finally:
            if "matplotlib.pyplot" in sys.modules:
                self.displays.figures()

    def execute(self, source: str, filename: str) -> Any:
        """Run code in the namespace; returns the value of a last expression."""
        self.sources[filename] = source
        if "linecache" in sys.modules:
            linecache = sys.modules["linecache"]
            linecache.cache.pop(filename, None)
            from .errors import show_sources

            show_sources(linecache, self.sources)
        if len(source) < SHORT:  # most cells are one expression, which needs no syntax tree
            try:
                code = compile_expression(source, filename)
            except (SyntaxError, ValueError):
                pass
            else:
                return self._evaluate([code])
        return self._execute_tree(self._parse(source, filename), source, filename)

    def _parse(self, source: str, filename: str) -> Any:
        flags = ONLY_AST | TOP_LEVEL_AWAIT
        try:
            return compile(source, filename, "exec", flags, dont_inherit=True)
        except SyntaxError:
            if "%" not in source and "!" not in source:
                raise
            from .magic_syntax import translate

            translated = translate(source)
            if translated is None:
                raise
        self._load_magics()
        return compile(translated, filename, "exec", flags, dont_inherit=True)

    def _execute_tree(self, tree: Any, source: str, filename: str) -> Any:
        import _ast

        last = None
        # A semicolon at the end means: do not show it.
        if tree.body and isinstance(tree.body[-1], _ast.Expr) and source.rstrip()[-1:] != ";":
            last = _ast.Expression(tree.body.pop().value)
        parts = [(tree, "exec")] if tree.body else []
        if last is not None:
            parts.append((last, "eval"))
        value = self._evaluate(
            [
                compile(part, filename, mode, TOP_LEVEL_AWAIT, dont_inherit=True)
                for part, mode in parts
            ]
        )
        return None if last is None else value

    def _evaluate(self, codes: list[Any]) -> Any:
        """Run the parts of a cell; give the value of the last one."""
        if any(code.co_flags & AWAITS for code in codes):
            if self.loop is None:
                self.loop = CellLoop()
            return self.loop.run(codes, self.names)
        value = None
        for code in codes:
            value = eval(code, self.names)  # noqa: S307 (what a runner is for)
        return value

    def _show(self, value: Any, *, stores: bool) -> None:
        names = self.names
        if stores:
            if names.get("_") is not value:
                names["___"], names["__"], names["_"] = names.get("__"), names.get("_"), value
            names[f"_{self.count}"] = value
            if type(names.get("Out")) is dict:
                names["Out"][self.count] = value
        data, metadata = make_bundle(value)
        self.displays.send("result", data, metadata, executionCount=self.count)
        self.displays.close_figure(value)

    def _send_error(self, error: BaseException, cell: str) -> None:
        from .errors import describe_error

        if self.streams.wire.is_cut:
            return
        facts = describe_error(error, self.sources)
        self.streams.flush()
        self.streams.wire.send("error", id=cell, **facts)

    def _leave_child(self, problem: BaseException | None) -> None:
        code: Any = 0
        if isinstance(problem, SystemExit):
            code = problem.code if isinstance(problem.code, int) else int(problem.code is not None)
        elif problem is not None:
            code = 1
        self.streams.out.text.flush()
        self.streams.err.text.flush()
        os._exit(code & 0xFF)

    def enter(self, folder: str | None, variables: dict[str, str | None]) -> None:
        """Go to a folder, which imports then see too; set variables, and remove those with None."""
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if folder:
            os.chdir(folder)
        if folder or not self._folder:
            try:
                here = os.getcwd()
            except OSError:  # it was removed meanwhile
                return
            if here != self._folder:
                if self._folder in sys.path:
                    sys.path.remove(self._folder)
                self._folder = here
                if here not in sys.path:
                    sys.path.insert(0, here)

    def _load_magics(self) -> None:
        """Make `__cellwright__`, which translated magics call, known to every cell."""
        if not hasattr(builtins, "__cellwright__"):
            from .magics import Magics

            builtins.__cellwright__ = Magics(self)  # type: ignore[attr-defined]


def _find_compiler() -> Any:
    """Find what `compile` calls in the end; None if that cannot be had.

    The first call of `compile` itself makes all types of syntax trees, which takes as long as a
    tenth of the start of Python.
    """
    try:
        import _ctypes

        class Number(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001
            _type_ = "i"

        class _CodeObject(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001
            _type_ = "O"

        class Flags(_ctypes.Array):  # type: ignore[type-arg]
            _type_, _length_ = Number, 2

        class Compiler(_ctypes.CFuncPtr):
            _flags_, _restype_ = 5, _CodeObject  # a function of Python itself, which may raise

        find = Compiler(_ctypes.dlsym(_ctypes.dlopen(None, 0), "Py_CompileStringExFlags"))  # type: ignore[arg-type]
        flags = _ctypes.byref(Flags(TOP_LEVEL_AWAIT | UTF8, sys.version_info[1]))
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return None
    return lambda source, filename: find(source, filename, EXPRESSION, flags, -1)


_compile_utf8 = _find_compiler()


def compile_expression(source: str, filename: str) -> Any:
    """Compile a cell that is one expression; raises `SyntaxError` or `ValueError` if it is not."""
    if _compile_utf8 is None or "\0" in source:
        return compile(source, filename, "eval", TOP_LEVEL_AWAIT, dont_inherit=True)
    return _compile_utf8(source.encode(), filename.encode())


class CellLoop:
    """Top-level await: one event loop for all cells, so that tasks live on between them."""

    def __init__(self) -> None:
        import asyncio

        self._asyncio = asyncio
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def run(self, codes: list[Any], names: dict[str, Any]) -> Any:
        """Run a cell to its end, all parts inside the loop; other tasks continue meanwhile.

        A cell without an await does not come here, so that `asyncio.run` works in it.
        """
        task = self._loop.create_task(_run_parts(codes, names))
        try:
            return self._loop.run_until_complete(task)
        except KeyboardInterrupt:
            if not task.done():
                task.cancel()
                self._loop.run_until_complete(self._asyncio.wait({task}, timeout=CANCEL_SECONDS))
            raise

    def run_until_readable(self, number: int) -> None:
        """Let the remaining tasks continue until there is something to read."""
        if not self._asyncio.all_tasks(self._loop):
            return
        self._loop.add_reader(number, self._loop.stop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.remove_reader(number)


async def _run_parts(codes: list[Any], names: dict[str, Any]) -> Any:
    value = None
    for code in codes:
        value = eval(code, names)  # noqa: S307 (what a runner is for)
        if code.co_flags & AWAITS:
            value = await value
    return value


class InterruptHandler:
    """Raises KeyboardInterrupt while a cell runs, and only between two pieces of our own work.

    As a context it is such a piece of work in the main thread. It does not nest: if a user's
    handler raises inside one, the end of the next one restores the state.
    """

    def __init__(self) -> None:
        self.is_armed = False
        self.wake = -1  # a descriptor that gets the number of every signal that comes
        self._heard = 0
        self._is_held = False
        self._is_pending = False
        self._main = get_ident()

    def install(self) -> None:
        """Become the handler again, whatever the last cell changed."""
        signal.signal(signal.SIGINT, self._on_signal)
        try:
            signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        except (OSError, ValueError):  # a cell has closed it
            pass

    def count_heard(self) -> int:
        """How often the handler ran."""
        return self._heard

    def repeat(self, heard: int) -> None:
        """Send an interrupt again, from another thread, if the handler did not run.

        An interrupt right before the main thread sleeps in a system call does not wake it, and
        the handler runs only when it wakes up.
        """
        is_ours = signal.getsignal(signal.SIGINT) == self._on_signal
        if self.is_armed and is_ours and heard == self._heard:
            signal.pthread_kill(self._main, signal.SIGINT)

    def arm(self) -> None:
        """Let interrupts stop the cell, until `disarm`."""
        self.install()
        self._is_pending = False
        self.is_armed = True

    def disarm(self) -> None:
        """Ignore interrupts from now on."""
        self.is_armed = False
        self._is_pending = False
        self.install()

    def _on_signal(self, _number: int, _frame: Any) -> None:
        self._heard += 1
        if self.is_armed:
            if not self._is_held:
                raise KeyboardInterrupt
            self._is_pending = True

    def __enter__(self) -> None:
        if get_ident() == self._main:
            self._is_held = True

    def __exit__(self, *_: object) -> None:
        if get_ident() != self._main:
            return
        self._is_held = False
        if self._is_pending:
            self._is_pending = False
            if self.is_armed:
                raise KeyboardInterrupt
