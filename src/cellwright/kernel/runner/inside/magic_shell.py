"""`!command`, and what `x = !command` gives."""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CAPTURED_BYTES = 1 << 20
CAPTURED_LINES = 3000
PIECE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|\$\$|\$([A-Za-z_]\w*)")


class Lines(list):  # type: ignore[type-arg]
    """The lines that a command wrote: a list that knows itself as text.

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

    def grep(self, pattern: str) -> Lines:
        """Give the lines in which the pattern is found."""
        return Lines(line for line in self if re.search(pattern, line))


def fill_in(text: str, names: dict[str, Any], local: dict[str, Any]) -> str:
    """Put Python values in: `{expression}` and `$name`; `{{`, `}}` and `$$` stand for themselves.

    What is no Python, such as awk's braces or the shell's own variables, stays as it is.
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


def run(command: str, *, program: str | None = None, text: str | None = None) -> int:
    """Run a shell command; what it writes goes straight to the cell's output.

    An interrupt reaches the command too, and is passed on when it has ended.
    """
    from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

    arguments: Any = [program, "-c", command] if program else command
    child = Popen(  # noqa: S603
        arguments, shell=program is None, stdin=DEVNULL if text is None else PIPE
    )
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


def capture(command: str) -> Lines:
    """Run a shell command and give the lines that it wrote, stderr among them."""
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
    lines = Lines(kept.decode("utf-8", "replace").splitlines())
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
