"""The magics: what `%name`, `%%name`, `!` call. Loaded with the first cell that has one."""

# Why not: see the package's docstring.

from __future__ import annotations

import os
import sys
from time import perf_counter, process_time

from . import magic_names, magic_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .cells import Cells


class UnknownMagic(Exception):
    """There is no such magic here."""


class Magics:
    """Reached from cells as `__cellwright__`."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._status = cells.displays.status
        self._last_folder = os.getcwd()

    # --- what a translated cell calls ---

    def line(self, name: str, text: str) -> Any:
        """Run a line magic."""
        magic = getattr(self, "line_" + name, None)
        if magic is None:
            raise self._unknown("%", name)
        return magic(self._fill_in(text))

    def cell(self, name: str, text: str, body: str) -> Any:
        """Run a cell magic."""
        magic = getattr(self, "cell_" + name, None)
        if magic is None:
            raise self._unknown("%%", name)
        return magic(self._fill_in(text), body)

    def shell(self, command: str) -> None:
        """Run `!command`; a failure is told, and leaves the code in `_exit_code`."""
        self._flush()
        code = magic_shell.run(self._fill_in(command))
        self._cells.names["_exit_code"] = code
        if code:
            self._status("shell", returncode=code)

    def capture(self, command: str) -> magic_shell.Lines:
        """Give the lines of `x = !command`."""
        self._flush()
        lines = magic_shell.capture(self._fill_in(command))
        self._cells.names["_exit_code"] = lines.returncode
        return lines

    def _fill_in(self, text: str) -> str:
        caller = sys._getframe(2)  # noqa: SLF001 (the cell, or a function in it)
        return magic_shell.fill_in(text, caller.f_globals, dict(caller.f_locals))

    def _flush(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()

    def _unknown(self, sign: str, name: str) -> UnknownMagic:
        prefix = "line_" if sign == "%" else "cell_"
        known = sorted(sign + n[len(prefix) :] for n in dir(self) if n.startswith(prefix))
        return UnknownMagic(
            f"{sign}{name} is not known here; known are {', '.join(known)}."
            " A Jupyter kernel has the rest."
        )

    # --- places and variables ---

    def line_cd(self, text: str) -> None:
        """Change the folder; `-` goes back, nothing goes home."""
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
        magic_shell.run("ls -C " + text if not text.startswith("-") else "ls " + text)

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
        names = magic_names.own_names(self._cells.names)
        print("  ".join(names) or "No names yet.")  # noqa: T201

    def line_whos(self, _text: str) -> None:
        """Print the names, with type and value."""
        print(magic_names.table(self._cells.names))  # noqa: T201

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
        from .magic_pip import pip

        self._flush()
        pip(text, self._status)

    def line_matplotlib(self, _text: str) -> None:
        """Do nothing: figures are shown in the cell anyway."""

    def line_time(self, text: str) -> Any:
        """Run a line and tell how long it took."""
        return self._timed(text)

    def line_timeit(self, text: str) -> None:
        """Run a line often and tell how long it takes."""
        from .magic_timeit import timeit

        timeit(text, None, self._cells, self._status)

    # --- whole cells ---

    def cell_time(self, _text: str, body: str) -> Any:
        """Run the cell and tell how long it took."""
        return self._timed(body)

    def cell_timeit(self, text: str, body: str) -> None:
        """Run the cell often and tell how long it takes; the first line is its setup."""
        from .magic_timeit import timeit

        timeit(text, body, self._cells, self._status)

    def cell_bash(self, text: str, body: str) -> None:
        """Run the cell in bash."""
        self._script("bash", text, body)

    def cell_sh(self, text: str, body: str) -> None:
        """Run the cell in sh."""
        self._script("sh", text, body)

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
        from .magic_names import captured

        words = [word for word in text.split() if not word.startswith("-")]
        with captured() as output:
            if words:
                self._cells.names[words[0]] = output
            output.result = self._cells.execute(body, self._filename("capture"))

    def _script(self, program: str, text: str, body: str) -> None:
        self._flush()
        code = magic_shell.run(f"{program} -s {text}".strip(), text=body)
        self._cells.names["_exit_code"] = code
        if code:
            from subprocess import CalledProcessError

            raise CalledProcessError(code, program)

    def _timed(self, source: str) -> Any:
        wall, cpu = perf_counter(), process_time()
        try:
            return self._cells.execute(source, self._filename("time"))
        finally:
            wall, cpu = perf_counter() - wall, process_time() - cpu
            print(f"CPU times: {cpu:.3g} s\nWall time: {wall:.3g} s")  # noqa: T201
            self._status("time", wall=round(wall, 6), cpu=round(cpu, 6))

    def _filename(self, magic: str) -> str:
        return f"<cell {self._cells.count} %{magic}>"
