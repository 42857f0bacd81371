"""Options that every command has, and what a command gets from them."""

from __future__ import annotations

import functools
import getpass
import os

import click

from cellwright.cli.output import Output, ReaderGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from cellwright.workspace.workspace import Workspace


class Call:
    """One call of a command: how to answer, and the workspace to work in."""

    def __init__(self, output: Output, root: str | None, mode: str, *, no_engine: bool) -> None:
        self.output = output
        self._root = root
        self._mode = mode
        self.uses_engine = not no_engine

    def here(self, *, runs: bool = False) -> Workspace:
        """A workspace in this process, whatever the engine does; kernels that it runs have tools."""
        from cellwright.workspace.workspace import Workspace

        workspace = Workspace(self._root, mode=self._mode, actor=f"cli:{_user()}")  # type: ignore[arg-type]
        if runs:
            from cellwright.tools.bridge import start_bridge

            workspace.hub.call(start_bridge(workspace.hub))
        return workspace

    def workspace(self, *, start: bool = False) -> Workspace | Workspace:
        """The workspace of whoever sits at this terminal: the engine's, if there is one.

        With `start` an engine is started, unless it must not be; for what needs a kernel.
        """
        if not self.uses_engine:
            return self.here(runs=start)
        from cellwright.cli.engines import through_engine

        found = through_engine(self._root, self._mode, f"cli:{_user()}", start=start)
        return found or self.here(runs=start)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user in this container
        return str(os.getuid())


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the common options; it is called with a `Call` first."""

    @click.option("--root", metavar="DIR", help="Refuse paths outside this folder.")
    @click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object.")
    @click.option(
        "--mode",
        type=click.Choice(["ask", "edit", "agent"]),
        default="agent",
        help="What is allowed; agent, the default, allows all.",
    )
    @click.option("--no-engine", is_flag=True, help="Work in this process alone.")
    @click.option("-q", "--quiet", is_flag=True, help="Say nothing but data, warnings and errors.")
    @click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        root: str | None,
        as_json: bool,
        mode: str,
        no_engine: bool,
        quiet: bool,
        verbose: bool,
        **kwargs: Any,
    ) -> Any:
        output = Output(as_json=as_json, quiet=quiet, verbose=verbose)
        try:
            return function(Call(output, root, mode, no_engine=no_engine), *args, **kwargs)
        except BrokenPipeError:
            raise ReaderGone from None  # before click makes an exit of it

    return wrapped


_FLAGS = frozenset({"--json", "--no-engine", "-q", "--quiet", "-v", "--verbose"})
_WITH_VALUE = frozenset({"--root", "--mode"})
# How many words name the command itself; the rest is its own.
_NAMES = {"edit": 3, "engine": 2, "git": 2, "kernel": 2}


def common_options_last(words: list[str]) -> list[str]:
    """Move common options that stand before the command, or inside its name, to its end."""
    moved: list[str] = []
    kept: list[str] = []
    rest = iter(words)
    needed = 1
    for word in rest:
        name = word.partition("=")[0]
        if word in _FLAGS:
            moved.append(word)
        elif name in _WITH_VALUE:
            moved += [word] if "=" in word else [word, *_next(rest)]
        else:
            kept.append(word)
            if word == "--":
                break
            if not word.startswith("-"):
                needed = _NAMES.get(kept[0], 1)
                if len(kept) >= needed:
                    break
    remaining = list(rest)
    cut = remaining.index("--") if "--" in remaining else len(remaining)
    return [*kept, *remaining[:cut], *moved, *remaining[cut:]]


def _next(words: Iterator[str]) -> list[str]:
    return [word for word in (next(words, None),) if word is not None]
