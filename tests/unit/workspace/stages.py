"""Where the suite of verbs is played: kinds of hosts, kernels and faces, driven as if they blocked."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any

from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kernels.dialects import Dialect


class Stage:
    """A notebook `nb.ipynb` in one kind of host, with one kind of kernel behind one kind of face.

    `old.ipynb` is the same in nbformat 4.4.

    `make` makes a workspace; `language` and `dialect` are those of its kernels, and `host` is
    what answers call its hosts. Notebooks named `new.ipynb` and `made.ipynb` can be created.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        *,
        language: str,
        dialect: Dialect,
        host: str = "file",
        is_async: bool = False,
    ) -> None:
        self.language = language
        self.dialect = dialect
        self.host = host
        self._make = make
        self._loop = asyncio.new_event_loop() if is_async else None
        self._made: list[Any] = []

    def workspace(self, **options: Any) -> Any:
        """Return a workspace of one more caller; `test:ada` by default."""
        made = self._wait(self._make(**{"actor": "test:ada", **options}))
        self._made.append(made)
        return made if self._loop is None else _Blocking(made, self._wait)

    def close(self) -> None:
        """Close all workspaces."""
        for made in self._made:
            self._wait(made.close())
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    def _wait(self, value: Any) -> Any:
        if self._loop is not None and inspect.isawaitable(value):
            return self._loop.run_until_complete(value)
        return value


class _Blocking:
    """An awaited workspace or notebook whose verbs are waited for."""

    def __init__(self, target: Any, wait: Callable[[Any], Any]) -> None:
        self._target = target
        self._wait = wait

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            found = self._wait(value(*args, **options))
            return _Blocking(found, self._wait) if name == "open" else found

        return call


def make_content(language: str, dialect: Dialect, minor: int = 5) -> bytes:
    """Return a notebook of text, two cells that keep and show a word, one more, and one that fails."""
    cells = [
        samples.markdown("intro", "# Sales"),
        samples.code("a", dialect.keep("x", "one"), samples.STREAM, count=7),
        samples.code("b", dialect.recall("x")),
        samples.code("c", dialect.out("apart")),
        samples.code("bad", dialect.fail),
    ]
    if minor < 5:
        for cell in cells:
            del cell["id"]
    shape = {
        "cells": cells,
        "metadata": {"language_info": {"name": language}},
        "nbformat": 4,
        "nbformat_minor": minor,
    }
    return json.dumps(shape, indent=1, sort_keys=True).encode() + b"\n"  # as Jupyter saves it
