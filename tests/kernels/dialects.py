"""The same few cells in the language of every kernel, so that one suite can run over all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Dialect:
    """How a kernel is told to do something; None where its language has no such thing."""

    out: Callable[[str], str]
    err: Callable[[str], str]
    value: Callable[[str], str]
    keep: Callable[[str, str], str]
    recall: Callable[[str], str]
    fail: str
    failure: tuple[str, str]
    sleep: Callable[[float], str]
    deaf: Callable[[float], str] | None = None
    show: Callable[[str, str], str] | None = None
    renew: Callable[[str, str], str] | None = None
    clear: Callable[[bool], str] | None = None
    ask: Callable[[str], str] | None = None
    variable: Callable[[str], str] | None = None
    folder: str | None = None
    flood: Callable[[int], str] | None = None
    leave: Callable[[int], str] | None = None
    die: Callable[[int], str] | None = None


PYTHON = Dialect(
    out=lambda text: f"print({text!r})",
    err=lambda text: f"import sys; print({text!r}, file=sys.stderr)",
    value=lambda text: f"{text!r}",
    keep=lambda name, text: f"{name} = {text!r}",
    recall=lambda name: name,
    fail="raise ValueError('wrong')",
    failure=("ValueError", "wrong"),
    sleep=lambda seconds: f"import time; time.sleep({seconds})",
    deaf=lambda seconds: (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"end = time.time() + {seconds}\n"
        "while time.time() < end: pass"
    ),
    show=lambda mime, text: f"display({{{mime!r}: {text!r}}}, raw=True)",
    renew=lambda name, text: (
        f"display({{'text/plain': {text!r}}}, raw=True, display_id={name!r}, "
        f"update={name!r} in globals().setdefault('_shown', set())); _shown.add({name!r})"
    ),
    clear=lambda wait: f"from IPython.display import clear_output; clear_output(wait={wait})",
    ask=lambda prompt: f"print(input({prompt!r}))",
    variable=lambda name: f"__import__('os').environ.get({name!r})",
    folder="__import__('os').getcwd()",
    flood=lambda lines: f"for number in range({lines}): print(number)",
    leave=lambda code: f"import os; os._exit({code})",
    die=lambda signal: f"import os; os.kill(os.getpid(), {signal}); import time; time.sleep(10)",
)

SCRIPT = Dialect(
    out=lambda text: f"print {text}",
    err=lambda text: f"warn {text}",
    value=lambda text: f"result {text!r}",
    keep=lambda name, text: f"set {name} {text!r}",
    recall=lambda name: f"get {name}",
    fail="raise ValueError wrong",
    failure=("ValueError", "wrong"),
    sleep=lambda seconds: f"sleep {seconds}",
    deaf=lambda seconds: f"stuck {seconds}",
    show=lambda mime, text: f"show {mime} {text}",
    renew=lambda name, text: f"update {name} {text}",
    clear=lambda wait: "clear wait" if wait else "clear",
    ask=lambda prompt: f"input {prompt}",
    variable=lambda name: f"getenv {name}",
    folder="cwd",
    flood=lambda lines: f"flood {lines}",
    leave=lambda code: f"exit {code}",
    die=lambda signal: f"die {signal}",
)
