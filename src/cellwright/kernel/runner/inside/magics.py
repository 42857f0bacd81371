"""The magics: what `%name`, `%%name` and `!` call. Loaded with the first cell that has one."""

# Why not: see the package's docstring.

from __future__ import annotations

import io
import os
import re
import sys
from time import perf_counter, process_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .cells import CellExecutor

HIDDEN = frozenset({"In", "Out"})
SHOWN_CHARS = 60
CAPTURED_BYTES = 1 << 20
CAPTURED_LINES = 3000
PIECE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|\$\$|\$([A-Za-z_]\w*)")
PACKAGE_CHANGES = frozenset({"install", "uninstall"})
REPEATS = 7
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


class UnknownMagic(Exception):
    """There is no such magic here."""


class Magics:
    """Reached from cells as `__cellwright__`."""

    def __init__(self, cells: CellExecutor) -> None:
        self._cells = cells
        self._status = cells.displays.status
        self._last_folder = os.getcwd()

    # --- what a translated cell calls ---

    def line(self, name: str, text: str) -> Any:
        """Run a line magic."""
        magic = getattr(self, "line_" + name, None)
        if magic is None:
            raise self._make_unknown("%", name)
        return magic(self._fill_in(text))

    def cell(self, name: str, text: str, body: str) -> Any:
        """Run a cell magic."""
        magic = getattr(self, "cell_" + name, None)
        if magic is None:
            raise self._make_unknown("%%", name)
        return magic(self._fill_in(text), body)

    def shell(self, command: str) -> None:
        """Run `!command`; its exit code is in `_exit_code`, and reported if it failed."""
        self._flush()
        code = run_shell(self._fill_in(command))
        self._cells.names["_exit_code"] = code
        if code:
            self._status("shell", returncode=code)

    def capture(self, command: str) -> ShellLines:
        """Give the lines of `x = !command`."""
        self._flush()
        lines = capture_shell(self._fill_in(command))
        self._cells.names["_exit_code"] = lines.returncode
        return lines

    def _fill_in(self, text: str) -> str:
        caller = sys._getframe(2)  # noqa: SLF001 (the cell, or a function in it)
        return fill_in_values(text, caller.f_globals, dict(caller.f_locals))

    def _flush(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()

    def _make_unknown(self, sign: str, name: str) -> UnknownMagic:
        prefix = "line_" if sign == "%" else "cell_"
        known = sorted(sign + n[len(prefix) :] for n in dir(self) if n.startswith(prefix))
        return UnknownMagic(
            f"{sign}{name} is not known here; known are {', '.join(known)}."
            " A Jupyter kernel has the rest."
        )

    # --- folders and variables ---

    def line_cd(self, text: str) -> None:
        """Change the folder; `-` goes back, no argument goes to the home folder."""
        target = text.strip().strip("\"'")
        folder = self._last_folder if target == "-" else os.path.expanduser(target or "~")
        self._last_folder = os.getcwd()
        self._cells.enter(folder, {})
        print(os.getcwd())  # noqa: T201
        self._status("cd", cwd=os.getcwd())

    def line_pwd(self, _text: str) -> str:
        """Give the folder."""
        return os.getcwd()

    def line_ls(self, text: str) -> None:
        """List a folder."""
        self._flush()
        run_shell("ls -C " + text if not text.startswith("-") else "ls " + text)

    def line_env(self, text: str) -> Any:
        """Give all variables, or one; with a value, set it."""
        name, separator, value = text.partition("=" if "=" in text else " ")
        if not text:
            return dict(os.environ)
        if separator:
            return self.line_set_env(f"{name.strip()} {value.strip()}")
        if text not in os.environ:
            raise KeyError(f"no variable {text} in the environment")
        return os.environ[text]

    def line_set_env(self, text: str) -> None:
        """Set a variable."""
        name, _, value = text.partition("=" if "=" in text.split(" ", maxsplit=1)[0] else " ")
        name, value = name.strip(), value.strip()
        if not name or "=" in name:
            raise ValueError("use %set_env NAME VALUE")
        os.environ[name] = value
        print(f"env: {name}={value}")  # noqa: T201
        self._status("env", name=name)

    # --- names ---

    def line_who(self, _text: str) -> None:
        """Print the names that cells have defined."""
        names = list_own_names(self._cells.names)
        print("  ".join(names) or "No names yet.")  # noqa: T201

    def line_whos(self, _text: str) -> None:
        """Print the names, with type and value."""
        print(format_table(self._cells.names))  # noqa: T201

    def line_reset(self, _text: str) -> None:
        """Forget every name and the history, without asking."""
        names = self._cells.names
        for name in [name for name in names if not name.startswith("__")]:
            del names[name]
        self._cells.forget()
        self._status("reset")

    # --- code ---

    def line_run(self, text: str) -> None:
        """Run a Python file as a script, and keep the names that it defines."""
        from shlex import split

        words = split(text)
        if not words:
            raise ValueError("use %run FILE [ARGUMENTS]")
        path = os.path.abspath(os.path.expanduser(words[0]))
        if not os.path.exists(path) and os.path.exists(path + ".py"):
            path += ".py"
        names = {"__name__": "__main__", "__file__": path, "__builtins__": __builtins__}
        before, sys.argv = sys.argv, [path, *words[1:]]
        sys.path.insert(0, os.path.dirname(path))
        try:
            with open(path, "rb") as file:
                exec(compile(file.read(), path, "exec", dont_inherit=True), names)  # noqa: S102
        finally:
            sys.argv = before
            if os.path.dirname(path) in sys.path:
                sys.path.remove(os.path.dirname(path))
            self._cells.names.update(
                {name: value for name, value in names.items() if not name.startswith("__")}
            )
        self._status("run", path=path)

    def line_load(self, text: str) -> None:
        """Print the text of a file: a cell cannot replace its own source here."""
        from tokenize import open as open_source

        with open_source(os.path.expanduser(text.strip())) as file:
            source = file.read()
        print(source, end="" if source.endswith("\n") else "\n")  # noqa: T201
        self._status("load", path=text.strip())

    def line_pip(self, text: str) -> None:
        """Install into this very interpreter."""
        self._flush()
        run_pip(text, self._status)

    def line_matplotlib(self, _text: str) -> None:
        """Do nothing: figures are shown in the cell anyway."""

    def line_time(self, text: str) -> Any:
        """Run a line and print how long it took."""
        return self._run_timed(text)

    def line_timeit(self, text: str) -> None:
        """Run a line many times and print how long it takes."""
        run_timeit(text, None, self._cells, self._status)

    # --- whole cells ---

    def cell_time(self, _text: str, body: str) -> Any:
        """Run the cell and print how long it took."""
        return self._run_timed(body)

    def cell_timeit(self, text: str, body: str) -> None:
        """Run the cell many times and print how long it takes; the first line is its setup."""
        run_timeit(text, body, self._cells, self._status)

    def cell_bash(self, text: str, body: str) -> None:
        """Run the cell in bash."""
        self._run_script("bash", text, body)

    def cell_sh(self, text: str, body: str) -> None:
        """Run the cell in sh."""
        self._run_script("sh", text, body)

    def cell_writefile(self, text: str, body: str) -> None:
        """Write the cell to a file; `-a` appends."""
        words = text.split(None, 1)
        appends = bool(words) and words[0] in {"-a", "--append"}
        name = (words[1] if len(words) > 1 else "") if appends else text
        path = os.path.expanduser(name.strip().strip("\"'"))
        existed = os.path.exists(path)
        with open(path, "a" if appends else "w", encoding="utf-8") as file:
            file.write(body if body.endswith("\n") or not body else body + "\n")
        verb = "Appending to" if appends else "Overwriting" if existed else "Writing"
        print(f"{verb} {path}")  # noqa: T201
        self._status("writefile", path=os.path.abspath(path), bytes=len(body.encode()))

    def cell_capture(self, text: str, body: str) -> None:
        """Run the cell without showing what it prints; a name keeps it, with `stdout` and `stderr`."""
        words = [word for word in text.split() if not word.startswith("-")]
        with CapturedOutput() as output:
            if words:
                self._cells.names[words[0]] = output
            output.result = self._cells.execute(body, self._filename("capture"))

    def _run_script(self, program: str, text: str, body: str) -> None:
        self._flush()
        code = run_shell(f"{program} -s {text}".strip(), text=body)
        self._cells.names["_exit_code"] = code
        if code:
            from subprocess import CalledProcessError

            raise CalledProcessError(code, program)

    def _run_timed(self, source: str) -> Any:
        wall, cpu = perf_counter(), process_time()
        try:
            return self._cells.execute(source, self._filename("time"))
        finally:
            wall, cpu = perf_counter() - wall, process_time() - cpu
            print(f"CPU times: {cpu:.3g} s\nWall time: {wall:.3g} s")  # noqa: T201
            self._status("time", wall=round(wall, 6), cpu=round(cpu, 6))

    def _filename(self, magic: str) -> str:
        return f"<cell {self._cells.count} %{magic}>"


# --- names and kept output ---


def list_own_names(names: dict[str, Any]) -> list[str]:
    """Give the names that cells have defined, sorted."""
    return sorted(name for name in names if not name.startswith("_") and name not in HIDDEN)


def format_table(names: dict[str, Any]) -> str:
    """Give name, type and the beginning of the value, a line each."""
    found = [(name, names[name]) for name in list_own_names(names)]
    rows = [("Variable", "Type", "Value")]
    rows += [(name, type(value).__name__, _abbreviate(value)) for name, value in found]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in rows)


def _abbreviate(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return "x".join(map(str, shape))
    if isinstance(value, (dict, list, set, frozenset, tuple)):
        return f"n={len(value)}"
    try:
        text = " ".join(repr(value).split())
    except Exception as problem:  # noqa: BLE001
        return f"<its repr raised {type(problem).__name__}>"
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 3] + "..."


class CapturedOutput:
    """Keeps what is printed to `sys.stdout` and `sys.stderr`, for `%%capture`."""

    def __init__(self) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()
        self.result: Any = None

    @property
    def stdout(self) -> str:
        """What went to stdout."""
        return self._out.getvalue()

    @property
    def stderr(self) -> str:
        """What went to stderr."""
        return self._err.getvalue()

    def show(self) -> None:
        """Print it."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show

    def __str__(self) -> str:
        return self.stdout

    def __enter__(self) -> CapturedOutput:  # noqa: PYI034 (3.9 has no Self)
        self._before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self._out, self._err
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._before


# --- shell commands ---


class ShellLines(list):  # type: ignore[type-arg]
    """The lines that a command wrote: a list that can also be read as text.

    `n` joins them with line breaks, `s` with spaces; `returncode` says how the command ended.
    """

    returncode = 0
    truncated = False

    @property
    def n(self) -> str:
        """All lines, one below the other."""
        return "\n".join(self)

    nlstr = n

    @property
    def s(self) -> str:
        """All lines, one behind the other."""
        return " ".join(self)

    spstr = s

    @property
    def l(self) -> list[str]:  # noqa: E743
        """The lines, as a plain list."""
        return list(self)

    def grep(self, pattern: str) -> ShellLines:
        """Give the lines in which the pattern is found."""
        return ShellLines(line for line in self if re.search(pattern, line))


def fill_in_values(text: str, names: dict[str, Any], local: dict[str, Any]) -> str:
    """Replace `{expression}` and `$name` by Python values; `{{`, `}}` and `$$` are escapes.

    What is not Python, such as awk's braces or the shell's own variables, stays as it is.
    """

    def value(found: re.Match[str]) -> str:
        whole = found[0]
        if whole in {"{{", "}}", "$$"}:
            return whole[0]
        try:
            return str(eval(found[1] or found[2], names, local))  # noqa: S307 (the cell's own code)
        except Exception:  # noqa: BLE001
            return whole

    return PIECE.sub(value, text) if "{" in text or "$" in text else text


def run_shell(command: str, *, text: str | None = None) -> int:
    """Run a shell command; what it writes goes straight to the cell's output.

    An interrupt reaches the command too, and is passed on when it has ended.
    """
    from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

    child = Popen(command, shell=True, stdin=DEVNULL if text is None else PIPE)  # noqa: S602
    try:
        child.communicate(text.encode() if text is not None else None)
    except KeyboardInterrupt:
        try:
            child.wait(1)
        except TimeoutExpired:
            child.kill()
            child.wait()
        raise
    return child.returncode


def capture_shell(command: str) -> ShellLines:
    """Run a shell command and return the lines that it wrote, stderr included."""
    from subprocess import DEVNULL, PIPE, STDOUT, Popen

    child = Popen(command, shell=True, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)  # noqa: S602
    output: Any = child.stdout
    kept = bytearray()
    truncated = False
    try:
        for piece in iter(lambda: output.read1(1 << 16), b""):
            room = CAPTURED_BYTES - len(kept)
            kept += piece[:room]
            truncated |= len(piece) > room
    finally:
        output.close()
        if sys.exc_info()[0] is not None:
            child.kill()
        code = child.wait()
    lines = ShellLines(kept.decode("utf-8", "replace").splitlines())
    truncated |= len(lines) > CAPTURED_LINES
    del lines[CAPTURED_LINES:]
    lines.returncode = code
    lines.truncated = truncated
    if truncated:
        sys.stderr.write(
            f"[the output of `{command}` was cut to {CAPTURED_BYTES >> 20} MiB"
            f" and {CAPTURED_LINES} lines]\n"
        )
    return lines


# --- pip ---


def run_pip(text: str, status: Callable[..., None]) -> None:
    """Run pip with these arguments, and let the next import see what is new.

    Modules whose files it changed are forgotten, so that importing them again loads the new ones.
    """
    from shlex import split
    from subprocess import DEVNULL, CalledProcessError, Popen

    words = split(text)
    before = _list_times() if words and words[0] in PACKAGE_CHANGES else {}
    if words[:1] == ["uninstall"] and not {"-y", "--yes"} & set(words):
        words.append("--yes")  # its question could not be answered
    command = _pip_command(words)
    environment = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUNBUFFERED": "1", **os.environ}
    child = Popen(command, stdin=DEVNULL, env=environment)  # noqa: S603
    try:
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    purged = _purge(before) if words and words[0] in PACKAGE_CHANGES else []
    status("pip", arguments=words, returncode=code, purged=purged)
    if code:
        raise CalledProcessError(code, ["pip", *words])


def _pip_command(words: list[str]) -> list[str]:
    from importlib.util import find_spec

    if find_spec("pip") is None:  # an environment that uv made
        from shutil import which

        uv = which("uv")
        if uv is None:
            raise ModuleNotFoundError(
                f"this Python has no pip; `{sys.executable} -m ensurepip` installs it"
            )
        without = [word for word in words if word not in {"-y", "--yes"}]
        return [uv, "pip", *without[:1], "--python", sys.executable, *without[1:]]
    return [sys.executable, "-m", "pip", *words]


def _list_times() -> dict[str, int]:
    """Find when the file of each module outside the standard library was last changed."""
    library = os.path.dirname(os.__file__)
    times = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not path or name.startswith("_cellwright_runner"):
            continue
        if not path.startswith(library) or "-packages" in path:
            try:
                times[name] = os.stat(path).st_mtime_ns
            except OSError:
                continue
    return times


def _purge(before: dict[str, int]) -> list[str]:
    """Forget the modules of every package of which a file changed or was removed."""
    import importlib

    importlib.invalidate_caches()
    now = _list_times()
    changed = {name.split(".")[0] for name in before if now.get(name) != before[name]}
    for name in list(sys.modules):
        if name.split(".")[0] in changed:
            del sys.modules[name]
    return sorted(changed)


# --- timeit ---


def run_timeit(
    text: str, body: str | None, cells: CellExecutor, status: Callable[..., Any]
) -> None:
    """Time a line, or a cell whose first line is then the setup. `-n` loops, `-r` repeats."""
    from statistics import mean, stdev
    from timeit import Timer

    loops, repeats, rest = _options(text)
    statement, setup = (rest, "pass") if body is None else (body, rest or "pass")
    timer = Timer(statement, setup, globals=cells.names)
    if not loops:
        loops, _ = timer.autorange()
    each = [total / loops for total in timer.repeat(repeats, loops)]
    spread = stdev(each) if len(each) > 1 else 0.0
    print(  # noqa: T201
        f"{_format_seconds(mean(each))} ± {_format_seconds(spread)} per loop"
        f" (mean ± std. dev. of {repeats} runs, {loops:,} loops each)"
    )
    status("timeit", mean=mean(each), best=min(each), loops=loops, repeats=repeats)


def _options(text: str) -> tuple[int, int, str]:
    loops, repeats = 0, REPEATS
    rest = text.strip()
    while rest[:2] in {"-n", "-r"}:
        option, _, value = rest.partition(" ") if rest[2:3] == " " else (rest[:2], "", rest[2:])
        number, _, rest = value.strip().partition(" ")
        if option == "-n":
            loops = int(number)
        else:
            repeats = int(number)
        rest = rest.strip()
    return loops, repeats, rest


def _format_seconds(seconds: float) -> str:
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
