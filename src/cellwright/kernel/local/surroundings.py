"""The folder and variables of a running Python kernel, changed before a cell when they have to be."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.kernel.transport import Code, Launch


class Surroundings:
    """What was set last, at the start or before a cell.

    What a cell changes itself is not seen: it stays until something else is asked for.
    """

    def __init__(self, launch: Launch) -> None:
        self._cwd = launch.cwd
        self._env = dict(launch.env)

    def change_for(self, code: Code) -> str | None:
        """The source that sets what `code` wants and was not set yet; None if there is nothing."""
        cwd = code.cwd if code.cwd != self._cwd else None
        env = {name: value for name, value in code.env.items() if self._env.get(name) != value}
        return None if cwd is None and not env else apart(_source(cwd, env))

    def remember(self, code: Code) -> None:
        """What `code` wants is set now."""
        self._cwd = code.cwd if code.cwd is not None else self._cwd
        for name, value in code.env.items():
            if value is None:
                self._env.pop(name, None)
            else:
                self._env[name] = value


def apart(source: str) -> str:
    """The same in a namespace of its own: the user's names stay as they are."""
    return f"exec({source!r}, {{}})"


def _source(cwd: str | None, env: Mapping[str, str | None]) -> str:
    lines = ["import os, sys"]
    if cwd is not None:
        lines += [
            f"os.chdir({cwd!r})",
            # An ipykernel has '' there, which is whatever folder it is in.
            f"'' in sys.path or {cwd!r} in sys.path or sys.path.insert(0, {cwd!r})",
        ]
    for name, value in env.items():
        change = f"pop({name!r}, None)" if value is None else f"update({{{name!r}: {value!r}}})"
        lines.append(f"os.environ.{change}")
    return "\n".join(lines)
