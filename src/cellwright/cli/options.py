"""Options that every command has, and what a command gets from them."""

from __future__ import annotations

import functools
import getpass
import os

import click

from cellwright.cli.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cellwright.workspace.workspace import Workspace


class Call:
    """One call of a command: how to answer, and the workspace to work in."""

    def __init__(self, output: Output, root: str | None, mode: str) -> None:
        self.output = output
        self._root = root
        self._mode = mode

    def workspace(self) -> Workspace:
        """The workspace of whoever sits at this terminal."""
        from cellwright.workspace.workspace import Workspace

        return Workspace(self._root, mode=self._mode, actor=f"cli:{_user()}")  # type: ignore[arg-type]


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
    @click.option("-q", "--quiet", is_flag=True, help="Say nothing but data and errors.")
    @click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        root: str | None,
        as_json: bool,
        mode: str,
        no_engine: bool,  # noqa: ARG001  # commands on files never need one
        quiet: bool,
        verbose: bool,
        **kwargs: Any,
    ) -> Any:
        output = Output(as_json=as_json, quiet=quiet, verbose=verbose)
        return function(Call(output, root, mode), *args, **kwargs)

    return wrapped
