"""Kernels of other languages, written by others: run, stream, fail, interrupt, restart."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cellwright.errors import KernelCannot
from cellwright.kernel.local import LocalKernel
from cellwright.kernel.session import CellExecution
from cellwright.kernel.transport import Code, Launch
from tests.conftest import ROOT, require_tool
from tests.kernels.fleet import Seen, run, start_again

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cellwright.kernel.events import KernelEvent

pytestmark = [pytest.mark.all, pytest.mark.timeout(300)]

PEERS = ROOT / ".dev" / "kernels"
PYTHON = str(PEERS / "bin" / "python")
FILE = "{connection_file}"


@dataclass(frozen=True)
class Language:
    """A kernel, and a few cells in its language."""

    name: str
    command: tuple[str, ...]
    out: str
    value: str
    fail: str
    sleep: str
    keep: str
    recall: str
    interrupt_mode: str = "signal"
    needs: str | None = None
    obeys: bool = True  # whether it can be interrupted at all


LANGUAGES = (
    Language(
        "bash",
        (PYTHON, "-m", "bash_kernel", "-f", FILE),
        out="echo one; echo two",
        value="echo 42",
        fail="no_such_command_here",
        sleep="sleep 60",
        keep="x=kept",
        recall="echo =$x=",
    ),
    Language(
        "R",
        ("R", "--slave", "-e", "IRkernel::main()", "--args", FILE),
        out="cat('one\\n'); cat('two\\n')",
        value="6 * 7",
        fail="stop('wrong')",
        sleep="Sys.sleep(60)",
        keep="x <- 'kept'",
        recall="cat(paste0('=', if (exists('x')) x, '=\\n'))",
        needs="R",
    ),
    Language(
        "deno",
        (str(PEERS / "bin" / "deno"), "jupyter", "--kernel", "--conn", FILE),
        out="console.log('one'); console.log('two')",
        value="6 * 7",
        fail="throw new Error('wrong')",
        sleep="await new Promise((resolve) => setTimeout(resolve, 60000))",
        keep="globalThis.x = 'kept'",
        recall="console.log('=' + (globalThis.x ?? '') + '=')",
        interrupt_mode="message",
        obeys=False,  # deno 2 answers the request and goes on
    ),
    Language(
        "kotlin",
        (PYTHON, "-m", "run_kotlin_kernel", FILE),
        out='println("one"); println("two")',
        value="6 * 7",
        fail='throw Exception("wrong")',
        sleep="Thread.sleep(60000)",
        keep='val x = "kept"',
        recall='println("=" + x + "=")',
        interrupt_mode="message",
        needs="java",
    ),
)
every_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)


@asynccontextmanager
async def started(language: Language, folder: Path) -> AsyncIterator[LocalKernel]:
    if language.needs is not None:
        require_tool(language.needs)
    spec = {
        "argv": list(language.command),
        "display_name": language.name,
        "language": language.name,
        "interrupt_mode": language.interrupt_mode,
    }
    place = folder / "jupyter" / "kernels" / language.name.lower()
    place.mkdir(parents=True)
    (place / "kernel.json").write_text(json.dumps(spec))
    env = {**os.environ, "JUPYTER_PATH": str(folder / "jupyter"), "HOME": str(folder)}
    env["DENO_DIR"] = str(folder / "deno")
    kernel = LocalKernel(
        Launch(str(folder), env, kernel_name=language.name.lower()), start_timeout=120
    )
    await kernel.start()
    try:
        yield kernel
    finally:
        await kernel.shutdown()
        shutil.rmtree(folder / "deno", ignore_errors=True)


def said(seen: Seen) -> str:
    """All the text of a cell, printed or shown."""
    shown = "\n".join(str(event.data.get("text/plain", "")) for event in seen.shown)
    return seen.text() + shown


@every_language
async def test_it_runs_streams_fails_and_goes_on(language: Language, tmp_path: Path) -> None:
    async with started(language, tmp_path) as kernel:
        assert kernel.info.language
        seen = await run(kernel, language.out, timeout=120)
        assert (seen.status, seen.text().split()) == ("ok", ["one", "two"])
        seen = await run(kernel, language.value)
        assert (seen.status, "42" in said(seen)) == ("ok", True)
        seen = await run(kernel, language.fail)
        assert seen.status == "error", seen
        assert seen.outcome.state_kept
        assert (await run(kernel, language.value)).status == "ok"


@every_language
async def test_it_is_interrupted_and_restarted(language: Language, tmp_path: Path) -> None:
    async with started(language, tmp_path) as kernel:
        await run(kernel, language.keep, timeout=120)
        assert "=kept=" in said(await run(kernel, language.recall))
        begun = asyncio.Event()

        def watch(_: KernelEvent) -> None:
            begun.set()

        going = CellExecution(kernel, Code(language.sleep), grace=5, on_event=watch)
        task = asyncio.create_task(going.wait())
        await begun.wait()
        await asyncio.sleep(1)
        going.cancel()
        outcome = await task
        assert outcome.status == "cancelled"
        assert outcome.seconds < 15
        assert outcome.state_kept is language.obeys
        if language.obeys:
            assert "=kept=" in said(await run(kernel, language.recall))
        await start_again(kernel)
        seen = await run(kernel, language.recall, timeout=120)
        assert "=kept=" not in said(seen)
        assert (await run(kernel, language.value, timeout=120)).status == "ok"


@every_language
async def test_what_only_python_can_is_refused_by_name(language: Language, tmp_path: Path) -> None:
    async with started(language, tmp_path) as kernel:
        with pytest.raises(KernelCannot):
            await run(kernel, language.value, env={"X": "1"})
